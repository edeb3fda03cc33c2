//! What must be true of a cell in the end, whatever was done to it.
//!
//! Owns: nothing lost, nothing twice, nothing by the stale; then the same by the checkers of the simulator. Must
//! never: accept the product's word for an effect. Next: `effects.rs`, `record.rs`.

use super::{Cell, succeeded, tries};
use crate::api::Api;
use crate::pace::until_true;
use serde_json::Value;

impl Cell {
    /// Ends only when every job has succeeded; each has its effect, and each once. The jobs.
    pub fn all_done(&self, apis: &mut [Api], made: &[String]) -> Vec<Value> {
        let jobs: Vec<Value> = made.iter().map(|id| succeeded(apis, id)).collect();
        let seen = self.effects.seen();
        let lost: Vec<_> = made.iter().filter(|id| !seen.applied.contains_key(*id)).collect();
        assert!(lost.is_empty(), "acknowledged, and without effect: {lost:?}");
        assert_eq!(seen.applied.len(), made.len(), "nothing is there that nobody made");
        let twice: Vec<_> = seen.applied.iter().filter(|(_, times)| **times > 1).collect();
        assert!(twice.is_empty(), "applied twice: {twice:?}");
        assert!(seen.stale.is_empty(), "effects of stale attempts: {:?}", seen.stale);
        jobs
    }

    /// The same, and of each job one attempt has succeeded, the last; every instant of the schedules was fired for,
    /// once.
    pub fn judge(&mut self, apis: &mut [Api], made: &[String], schedules: &[String]) {
        let jobs = self.all_done(apis, made);
        let mut again = 0;
        for job in jobs.iter().filter(|job| job["attempt_count"] != 1) {
            let tries = tries(&mut apis[0], job["id"].as_str().unwrap());
            let well: Vec<_> = tries.iter().map(|(_, result)| result == "succeeded").collect();
            let is_last = well.last() == Some(&true) && well.iter().filter(|is_well| **is_well).count() == 1;
            assert!(is_last, "what a stale attempt said was taken: {tries:?}");
            again += 1;
        }
        let fired: usize = schedules.iter().map(|name| self.judge_fires(&mut apis[0], name)).sum();
        println!(
            "figure: {} jobs, {again} of them tried again, {fired} occurrences; none lost, none twice, {} calls of stale attempts \
             refused and 0 taken",
            made.len(),
            self.effects.seen().refused
        );
        until_true("the end of every job", || !has_unfinished(&mut apis[0]));
        self.kill_store();
        self.judge_rows();
    }

    /// By the simulator's checkers, once the store's process is gone.
    fn judge_rows(&self) {
        let verdicts = self.effects.record.judged(&self.store_folder());
        for (name, verdict) in &verdicts {
            println!("figure: {name} judged {} things", verdict.evaluations);
            assert!(verdict.evaluations > 0, "{name} judged nothing");
        }
        let wrong = verdicts.iter().filter(|(_, verdict)| !verdict.violations.is_empty());
        let wrong: Vec<_> = wrong.map(|(name, verdict)| (name, &verdict.violations)).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    fn judge_fires(&self, api: &mut Api, name: &str) -> usize {
        let schedule = self.end(api, name);
        let fired = usize::try_from(schedule["fired"].as_u64().unwrap()).unwrap();
        until_true(&format!("every fire of {name} to have its effect"), || {
            self.effects.seen().fires_of(name) == fired
        });
        let seen = self.effects.seen();
        let twice: Vec<_> = seen.fired_for.iter().filter(|(_, times)| **times > 1).collect();
        assert!(twice.is_empty(), "an occurrence had two effects: {twice:?}");
        fired
    }
}

/// Whether a job has not ended. A page may be empty and still have a next one.
fn has_unfinished(api: &mut Api) -> bool {
    let path = "/v1/jobs?state=waiting,ready,running,uncertain&limit=1000";
    let mut cursor = String::new();
    loop {
        let page = api.get(&format!("{path}{cursor}"));
        let Some(items) = page.body["items"].as_array() else {
            return true;
        };
        match page.body["next"].as_str() {
            _ if !items.is_empty() => return true,
            Some(next) => cursor = format!("&cursor={next}"),
            None => return false,
        }
    }
}
