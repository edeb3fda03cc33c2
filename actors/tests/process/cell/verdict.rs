//! What must be true of a cell in the end, whatever was done to it.
//!
//! Owns: nothing lost, nothing twice, nothing by the stale. Must never: accept the product's word for an effect.
//! Next: `effects.rs`.

use super::{Cell, succeeded, tries};
use crate::api::Api;
use crate::pace::until_true;
use serde_json::{Value, json};

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
    pub fn judge(&self, apis: &mut [Api], made: &[String], schedules: &[String]) {
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
    }

    fn judge_fires(&self, api: &mut Api, name: &str) -> usize {
        let path = format!("/v1/schedules/{name}");
        until_true("its pause", || {
            api.post(&format!("{path}/pause"), &json!({})).status == 200
        });
        let schedule = api.get(&path).expect(200);
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
