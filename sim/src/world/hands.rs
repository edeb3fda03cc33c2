//! What a planner does to its schedule: make, edit, pause, resume, run now, backfill, delete.
//!
//! Owns: the requests, and the note of each before it is sent, since its answer may be lost. Must never:
//! work on a schedule of another planner. Next: `planner.rs`, `../checkers/no_missed_fire.rs`.

use super::World;
use super::http::{Answer, Ask, ask};
use super::planner::remember;
use super::specs;
use super::wishes::set;
use crate::runtime::Stream;
use crate::scenario::plan::Schedules;
use fencepost_core::ids::JobId;
use fencepost_history::rules::text;
use fencepost_history::seen::{Backfilled, Hold, Made, Ran};
use fencepost_history::spec::PlainSpec;
use serde_json::json;

/// One planner's hand on one schedule.
pub struct Hand {
    world: World,
    name: String,
    /// Its own chance.
    pub stream: Stream,
    drawn: u64,
    asked: u64,
    lives: u64,
    /// Keys of run-nows in this life, oldest first, with the job that each was told.
    ran: Vec<(String, JobId)>,
    /// How many of a hundred are made paused.
    pub paused: u64,
}

/// Run-nows in a burst: more than a schedule remembers.
const BURST: u64 = 20;

impl Hand {
    /// On the schedule of this number, which is not there yet.
    pub fn new(world: &World, number: u64) -> Hand {
        Hand {
            world: world.clone(),
            name: format!("s{number}"),
            stream: Stream::new(world.options.seed, &format!("planner {number}")),
            drawn: 0,
            asked: 0,
            lives: 0,
            ran: Vec::new(),
            paused: 10,
        }
    }

    /// A new definition, remembered under its tag.
    pub fn draw(&mut self, is_plain: bool) -> PlainSpec {
        let tag = self.next_tag();
        let spec = specs::draw(&self.world, &mut self.stream, tag, is_plain);
        remember(&self.world, &spec);
        spec
    }

    fn next_tag(&mut self) -> String {
        self.drawn += 1;
        format!("{}.{}", self.name, self.drawn)
    }

    /// A new definition as a scenario asks for it, remembered under its tag.
    pub fn draw_planned(&mut self, plan: &Schedules) -> PlainSpec {
        let tag = self.next_tag();
        let spec = specs::planned(&self.world, &mut self.stream, tag, plan);
        remember(&self.world, &spec);
        spec
    }

    async fn ask(&mut self, request: Ask) -> Answer {
        ask(&self.world, &request, &mut self.stream).await
    }

    fn path(&self, rest: &str) -> String {
        format!("/v1/schedules/{}{rest}", self.name)
    }

    fn key(&mut self, what: &str) -> String {
        self.asked += 1;
        format!("{what} {} {}", self.name, self.asked)
    }

    /// False when nothing was left to fire.
    pub async fn create(&mut self, spec: &PlainSpec) -> bool {
        let mut body = spec.body.clone();
        set(&mut body, "name", json!(self.name));
        let is_paused = self.stream.percent(self.paused);
        if is_paused {
            set(&mut body, "paused", json!(true));
        }
        let from = self.world.sim.now();
        let answer = self
            .ask(Ask::new("op:schedule", "POST", "/v1/schedules").of(body))
            .await;
        // 409: an earlier send, whose answer was lost, has made it.
        let is_made = answer.is_done() || answer.status == 409;
        if is_made {
            self.note_made(spec);
            self.ran.clear();
            self.lives += 1;
            if is_paused {
                let wait = self.stream.between(100_000, 9_000_000);
                self.world.sim.sleep(wait).await;
                self.resume_since(from).await;
            }
        } else {
            self.note_never_fires(spec, &answer, false);
        }
        is_made
    }

    fn note_made(&self, spec: &PlainSpec) {
        let (name, tag) = (self.name.clone(), spec.tag.clone());
        self.world.history.lock().made.push(Made { name, tag });
    }

    fn note_never_fires(&self, spec: &PlainSpec, answer: &Answer, is_edit: bool) {
        let code = answer.text("code");
        if code == "schedule_never_fires" && specs::is_over(spec, &self.world, is_edit) {
            self.world.history.lock().refused += 1;
        }
    }

    /// Pauses, and resumes after a while.
    pub async fn pause(&mut self) {
        let from = self.world.sim.now();
        let request = Ask::new("op:pause", "POST", self.path("/pause"));
        if !self.ask(request).await.is_done() {
            return;
        }
        let wait = self.stream.between(100_000, 8_000_000);
        self.world.sim.sleep(wait).await;
        if self.stream.percent(30) {
            let spec = self.draw(false);
            self.edit(&spec).await;
        }
        self.resume_since(from).await;
    }

    async fn resume_since(&mut self, from: u64) {
        // Noted before: what the answer never tells may have happened.
        self.world.history.lock().holds.push(Hold {
            name: self.name.clone(),
            from,
            to: u64::MAX,
        });
        self.resume().await;
        let to = self.world.sim.now();
        let mut seen = self.world.history.lock();
        let hold = seen.holds.iter_mut().rev().find(|hold| hold.name == self.name);
        hold.into_iter().for_each(|hold| hold.to = to);
    }

    /// Resumes; a schedule that is gone or runs takes no harm.
    pub async fn resume(&mut self) {
        let request = Ask::new("op:resume", "POST", self.path("/resume"));
        self.ask(request).await;
    }

    /// Fires once by hand; sometimes under a key that was used before.
    pub async fn run_now(&mut self) {
        if self.stream.percent(30)
            && let Some((key, _)) = self.stream.pick(&self.ran).cloned()
        {
            self.world.feel("seen:run-now-key-again");
            return self.run_now_as(key).await;
        }
        let key = self.key("run-now");
        self.run_now_as(key).await;
    }

    /// More run-nows than a schedule remembers, then the key of the first once more.
    pub async fn run_now_burst(&mut self) {
        let first = self.key("run-now");
        self.run_now_as(first.clone()).await;
        for _ in 0..BURST {
            let key = self.key("run-now");
            self.run_now_as(key).await;
        }
        self.world.feel("seen:run-now-key-long-after");
        self.run_now_as(first).await;
    }

    async fn run_now_as(&mut self, key: String) {
        let request = Ask::new("op:run-now", "POST", self.path("/run-now")).with("idempotency-key", &key);
        let answer = self.ask(request).await;
        let Some(job) = JobId::parse(answer.text("id")).filter(|_| answer.is_done()) else {
            return;
        };
        self.ran.push((key.clone(), job));
        let life = format!("{} {}", self.name, self.lives);
        self.world.history.lock().ran.push(Ran { life, key, job });
    }

    /// Replaces the definition.
    pub async fn edit(&mut self, spec: &PlainSpec) {
        let Some(etag) = self.etag().await else {
            return;
        };
        let pending = ["keep", "retime", "drop"];
        let pending = self.stream.pick(&pending).copied().unwrap_or("keep");
        if self.stream.percent(30) {
            let path = self.path(&format!("?pending={pending}&dry_run=true"));
            let request = Ask::new("op:edit-preview", "PUT", path).with("if-match", &etag);
            let answer = self.ask(request.of(spec.body.clone())).await;
            self.note_never_fires(spec, &answer, true);
        }
        if pending == "drop" {
            self.world.history.lock().drops.insert(self.name.clone());
        }
        let request = Ask::new("op:edit", "PUT", self.path(&format!("?pending={pending}"))).with("if-match", &etag);
        let answer = self.ask(request.of(spec.body.clone())).await;
        self.note_never_fires(spec, &answer, true);
        // 412: an earlier send, whose answer was lost, has done it.
        if answer.is_done() || answer.status == 412 {
            self.world.feel(match pending {
                "keep" => "seen:edit-keeps",
                "retime" => "seen:edit-retimes",
                _ => "seen:edit-drops",
            });
            self.note_made(spec);
        }
    }

    /// An edit of a version that was never there: must be refused.
    pub async fn edit_stale(&mut self, spec: &PlainSpec) {
        let Some(etag) = self.etag().await else {
            return;
        };
        // Of this life, sometimes of none that ever was.
        let life = etag.split_once('-').map_or("", |(_, life)| life);
        let etag = match self.stream.percent(50) {
            true => format!("\"99999-{life}"),
            false => format!("\"1-{}\"", "f".repeat(48)),
        };
        let request = Ask::new("op:edit-stale", "PUT", self.path("")).with("if-match", &etag);
        let answer = self.ask(request.of(spec.body.clone())).await;
        self.note_never_fires(spec, &answer, true);
        if answer.status == 412 {
            self.world.feel("seen:edit-refused");
        }
    }

    async fn etag(&mut self) -> Option<String> {
        let request = Ask::new("op:read", "GET", self.path(""));
        let answer = self.ask(request).await;
        answer
            .is_done()
            .then(|| format!("\"{}-{}\"", answer.number("version"), answer.text("incarnation")))
    }

    /// Makes up a stretch of the past, sometimes after a look at what that would be.
    pub async fn backfill(&mut self) {
        let now = self.world.sim.wall();
        let to = now - self.stream.between(500_000, 8_000_000).cast_signed();
        let from = to - self.stream.between(1_000_000, 40_000_000).cast_signed();
        let (rerun, cap) = (self.stream.percent(40), self.stream.between(1, 30));
        let body =
            |dry_run: bool| json!({"from": text(from), "to": text(to), "cap": cap, "rerun": rerun, "dry_run": dry_run});
        let key = self.key("backfill");
        if self.stream.percent(40) {
            let request = Ask::new("op:backfill-preview", "POST", self.path("/backfill"));
            let answer = self.ask(request.of(body(true))).await;
            self.check_cap(&answer, cap);
        }
        self.world.history.lock().backfills.push(Backfilled {
            name: self.name.clone(),
            from,
            to,
            is_rerun: rerun,
        });
        let again = u64::from(self.stream.percent(30));
        let mut told = None;
        for _ in 0..=again {
            let request = Ask::new("op:backfill", "POST", self.path("/backfill")).with("idempotency-key", &key);
            let answer = self.ask(request.of(body(false))).await;
            self.check_cap(&answer, cap);
            if answer.number("count") > 0 {
                self.world.feel("seen:backfilled");
            }
            self.check_same(&answer, &mut told);
        }
    }

    /// The same key and body, the same answer: as far as it says what is made.
    fn check_same(&self, answer: &Answer, told: &mut Option<(u64, u64, u64)>) {
        let says = ["count", "already_fired", "over_cap"].map(|field| answer.number(field));
        let says = (says[0], says[1], says[2]);
        if !answer.is_done() {
            return;
        }
        if *told.get_or_insert(says) != says {
            let what = format!("a backfill of {} was told {told:?}, then {says:?}", self.name);
            self.world.history.lock().odd.push(what);
        }
    }

    fn check_cap(&self, answer: &Answer, cap: u64) {
        let count = answer.number("count");
        if count > cap {
            let what = format!("a backfill of {} makes {count}, its cap is {cap}", self.name);
            self.world.history.lock().odd.push(what);
        }
    }

    /// Deletes it.
    pub async fn delete(&mut self) {
        let request = Ask::new("op:read", "GET", self.path(""));
        let life = self.ask(request).await.text("incarnation").to_owned();
        self.world.history.lock().deletes.insert(self.name.clone());
        let request = Ask::new("op:delete", "DELETE", self.path(""));
        let answer = self.ask(request).await;
        // 404: an earlier send, whose answer was lost, has done it.
        if answer.is_done() || answer.status == 404 {
            let life = format!("{} {life}", self.name);
            self.world.history.lock().deleted.insert(life);
        }
    }

    /// Reads its fates page by page: they must follow each other.
    pub async fn look(&mut self) {
        let request = Ask::new("op:fates", "GET", self.path("/fates?limit=1000"));
        let answer = self.ask(request).await;
        let items = answer.body.get("items").and_then(serde_json::Value::as_array);
        let items = items.map_or(&[] as &[serde_json::Value], Vec::as_slice);
        for pair in items.windows(2) {
            if let [first, second] = pair
                && sortable(first, "to") > sortable(second, "from")
            {
                let what = format!("fates of {} overlap: {first} and {second}", self.name);
                self.world.history.lock().odd.push(what);
            }
        }
    }
}

/// An instant of an answer, so that texts order as instants do.
fn sortable(item: &serde_json::Value, field: &str) -> String {
    let text = item.get(field).and_then(serde_json::Value::as_str).unwrap_or_default();
    let (seconds, fraction) = text
        .trim_end_matches('Z')
        .split_once('.')
        .unwrap_or((text.trim_end_matches('Z'), ""));
    format!("{seconds}.{fraction:0<6}")
}
