//! What a seed makes of a scenario: sizes, workloads, and each stroke of each fault.
//!
//! Owns: the draws. Each key, workload and fault has a stream of its own, named by what it says: what is taken out
//! of a file reshuffles nothing else. Must never: act. Next: `../world/director.rs`, `../world/asked.rs`.

use super::Scenario;
use super::keys::LINKS;
use super::measure::{Measure, Scale};
use super::reader::Fields;
use crate::bugs::PlantedBug;
use crate::options::{Families, Options, draw_day};
use crate::runtime::Stream;
use crate::without::Without;
use fencepost_core::time::Span;
use fencepost_history::zones::{change_number, change_of};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// From one to the other, both inclusive.
pub type Between = (u64, u64);

/// A scenario under a seed.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The file.
    pub name: String,
    /// What it tells.
    pub story: String,
    /// Jobs that clients make.
    pub jobs: Vec<Jobs>,
    /// Schedules that planners make.
    pub schedules: Vec<Schedules>,
    /// Jobs that are cancelled.
    pub cancels: Vec<Cancels>,
    /// Clients that look.
    pub looks: Vec<Looks>,
    /// What is done to schedules by hand.
    pub edits: Vec<Edits>,
    /// What befalls the machines.
    pub faults: Vec<Fault>,
    /// Checkers that judge.
    pub invariants: Vec<&'static str>,
    /// States that a set of runs must have seen.
    pub sometimes: Vec<&'static str>,
    /// From the healing to quiescence, in microseconds.
    pub settles_within: Option<u64>,
}

/// What jobs of a workload are.
#[derive(Clone, Debug)]
pub struct Shape {
    /// `key`, `token`, `neither`.
    pub effects: Vec<&'static str>,
    /// Handlers of the program; none where jobs call the target.
    pub handlers: Vec<&'static str>,
    /// What handlers get, as JSON.
    pub payloads: Vec<String>,
    /// `at-least-once`, `at-most-once`.
    pub deliveries: Vec<&'static str>,
    /// Most attempts.
    pub attempts: Between,
    /// Time-out of an attempt, in microseconds.
    pub timeout: Between,
    /// How long the target works on one, in microseconds.
    pub takes: Between,
    /// Whoever runs one dies of it.
    pub kills_its_worker: bool,
    /// Workers over HTTP do them.
    pub is_remote: bool,
    /// How long these work before they call the target, in microseconds.
    pub works: Between,
}

/// Jobs that clients make.
#[derive(Clone, Debug)]
pub struct Jobs {
    /// How many.
    pub count: u64,
    /// Within how long, in microseconds.
    pub over: u64,
    /// Client machines.
    pub clients: u64,
    /// When they are due after they are made, in microseconds.
    pub delay: Between,
    /// What they are.
    pub shape: Shape,
}

/// Schedules that planners make.
#[derive(Clone, Debug)]
pub struct Schedules {
    /// How many.
    pub count: u64,
    /// Until when they fire, in microseconds.
    pub over: u64,
    /// Expressions; each schedule has one of them.
    pub crons: Vec<String>,
    /// Or a distance, in microseconds.
    pub every: Option<Between>,
    /// Zones.
    pub zones: Vec<&'static str>,
    /// `next-valid`, `skip`.
    pub gaps: Vec<&'static str>,
    /// `first`, `second`, `both`.
    pub overlaps: Vec<&'static str>,
    /// Policies for what was missed.
    pub misfires: Vec<&'static str>,
    /// Cap of policy `all`.
    pub cap: Between,
    /// Microseconds.
    pub tolerance: Between,
    /// Microseconds.
    pub grace: Option<Between>,
    /// Microseconds.
    pub jitter: Option<Between>,
    /// What their jobs are.
    pub shape: Shape,
}

/// A share of the jobs is cancelled.
#[derive(Clone, Copy, Debug)]
pub struct Cancels {
    /// Of a hundred.
    pub percent: u64,
    /// After they were made, in microseconds.
    pub after: Between,
}

/// Clients that list jobs.
#[derive(Clone, Copy, Debug)]
pub struct Looks {
    /// Until when, in microseconds.
    pub over: u64,
    /// Time between two looks of a client, in microseconds.
    pub every: Between,
    /// Client machines.
    pub clients: u64,
}

/// What is done to each schedule by hand.
#[derive(Clone, Debug)]
pub struct Edits {
    /// Which things.
    pub works: Vec<&'static str>,
    /// Time between two, in microseconds.
    pub every: Between,
}

/// One entry of the file with all its strokes.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Its number in the file, from 1.
    pub number: usize,
    /// What it does.
    pub kind: &'static str,
    /// To whom: empty for a fault of the store or the target.
    pub role: &'static str,
    /// From whom it is cut off; empty for everyone.
    pub from: &'static str,
    /// `both`, `in`, `out`.
    pub ways: &'static str,
    /// Share of the calls that it meets.
    pub percent: u64,
    /// How much slower, in microseconds.
    pub slower: Between,
    /// Bytes a second that come through.
    pub bandwidth: u64,
    /// When.
    pub strokes: Vec<Stroke>,
}

/// One time that a fault strikes.
#[derive(Clone, Copy, Debug)]
pub struct Stroke {
    /// Since the stroke before ended, or the run began, in microseconds.
    pub waits: u64,
    /// Microseconds.
    pub lasts: u64,
    /// Which machine of the role, and whatever else is drawn when it strikes.
    pub chance: u64,
    /// How far a clock is set, in microseconds; of a drift, how many millionths it is fast.
    pub by: i64,
}

impl Fault {
    /// As it is counted when it was felt.
    pub fn counted(&self) -> String {
        let role = if self.role.is_empty() { "" } else { "-" };
        format!("fault:{}-{}{role}{}", self.number, self.kind, self.role)
    }
}

/// Draws for one run.
struct Draw {
    seed: u64,
    scale: Scale,
}

impl Draw {
    fn stream(&self, purpose: &str) -> Stream {
        Stream::new(self.seed, &format!("scenario {purpose}"))
    }

    fn stream_of(&self, fields: &Fields, key: &str) -> Stream {
        match fields.kind {
            "" => self.stream(key),
            _ => self.stream(&format!("{key} of {}", fields.signature())),
        }
    }

    fn count(&self, fields: &Fields, key: &str, usual: Between) -> u64 {
        let (low, high) = fields.count(key).unwrap_or(usual);
        self.stream_of(fields, key).between(low, high)
    }

    fn length(&self, fields: &Fields, key: &str, usual: &str) -> u64 {
        let measure = measure(fields, key, usual);
        let mut stream = self.stream_of(fields, key);
        measure.map_or(0, |measure| measure.draw(&mut stream, self.scale).unsigned_abs())
    }

    fn between(&self, fields: &Fields, key: &str, usual: &str) -> Between {
        measure(fields, key, usual).map_or((0, 0), |measure| {
            let (low, high) = measure.ends(self.scale);
            (low.unsigned_abs(), high.unsigned_abs().max(low.unsigned_abs()))
        })
    }

    fn shape(&self, fields: &Fields) -> Shape {
        Shape {
            effects: words(fields, "effect", &["key", "token"]),
            handlers: words(fields, "handler", &[]),
            payloads: texts(fields, "payload"),
            deliveries: words(fields, "delivery", &["at-least-once"]),
            attempts: fields.count("attempts").unwrap_or((20, 60)),
            timeout: self.between(fields, "timeout", "3s"),
            takes: self.between(fields, "takes", "0..200ms"),
            kills_its_worker: fields.switch("kills_its_worker").unwrap_or(false),
            is_remote: fields.switch("remote").unwrap_or(false),
            works: self.between(fields, "works", "0..300ms"),
        }
    }

    fn jobs(&self, fields: &Fields) -> Jobs {
        Jobs {
            count: self.count(fields, "count", (1, 1)),
            over: self.length(fields, "over", "30s"),
            clients: self.count(fields, "clients", (2, 2)),
            delay: self.between(fields, "delay", "0s"),
            shape: self.shape(fields),
        }
    }

    fn schedules(&self, fields: &Fields) -> Schedules {
        let some = |key: &str| fields.has(key).then(|| self.between(fields, key, ""));
        Schedules {
            count: self.count(fields, "count", (1, 1)),
            over: self.length(fields, "over", "30s"),
            crons: texts(fields, "cron"),
            every: some("every"),
            zones: words(fields, "tz", &[]),
            gaps: words(fields, "gap", &["next-valid", "skip"]),
            overlaps: words(fields, "overlap", &["first", "second", "both"]),
            misfires: words(fields, "misfire", &["latest", "coalesce", "all", "skip"]),
            cap: fields.count("cap").unwrap_or((2, 40)),
            tolerance: self.between(fields, "tolerance", "0.5..20s"),
            grace: some("grace"),
            jitter: some("jitter"),
            shape: self.shape(fields),
        }
    }

    fn faults(&self, scenario: &Scenario, active: u64) -> Vec<Fault> {
        let mut same: BTreeMap<String, u64> = BTreeMap::new();
        let mut faults = Vec::new();
        for (at, fields) in scenario.faults.iter().enumerate() {
            let signature = fields.signature();
            let nth = same.entry(signature.clone()).or_default();
            let purpose = format!("fault {signature} {nth}");
            *nth += 1;
            faults.push(self.fault(at + 1, fields, &purpose, active));
        }
        faults
    }

    fn fault(&self, number: usize, fields: &Fields, purpose: &str, active: u64) -> Fault {
        let mut stream = self.stream(purpose);
        let one = |key: &str, stream: &mut Stream| stream.pick(fields.words(key)).copied();
        let (low, high) = fields.count("times").unwrap_or((1, 1));
        let times = stream.between(low, high);
        let after = measure(fields, "after", "1..10s");
        let rest = active.saturating_sub(self.between(fields, "after", "1..10s").0) / times;
        let every = fields.length("every");
        let strokes = (0..times).map(|stroke| {
            let mut stream = self.stream(&format!("{purpose} {stroke}"));
            let waits = match (stroke, every) {
                (0, _) => after.map_or(0, |after| after.draw(&mut stream, self.scale).unsigned_abs()),
                (_, Some(every)) => every.draw(&mut stream, self.scale).unsigned_abs(),
                (_, None) => stream.between(rest / 4, rest),
            };
            let mut draw = |key: &str, usual: &str| {
                measure(fields, key, usual).map_or(0, |measure| measure.draw(&mut stream, self.scale))
            };
            let lasts = draw("lasts", usual_length(fields.kind)).unsigned_abs();
            let by = match fields.kind {
                "clock" => draw("by", "0s"),
                "drift" => fields
                    .count("ppm")
                    .map_or(0, |(low, high)| pace(&mut stream, low, high)),
                _ => 0,
            };
            Stroke {
                waits,
                lasts,
                by,
                chance: stream.draw(),
            }
        });
        Fault {
            number,
            kind: fields.kind,
            strokes: strokes.collect(),
            role: one("role", &mut stream).unwrap_or_default(),
            from: one("from", &mut stream).unwrap_or_default(),
            ways: one("ways", &mut stream).unwrap_or("both"),
            percent: self.count(fields, "percent", (30, 30)),
            slower: self.between(fields, "by", usual_delay(fields.kind)),
            bandwidth: self.count(fields, "bandwidth", (10_000, 10_000)),
        }
    }
}

/// Fast or slow by so many millionths.
fn pace(stream: &mut Stream, low: u64, high: u64) -> i64 {
    let ppm = stream.between(low, high).cast_signed();
    if stream.percent(50) { ppm } else { -ppm }
}

/// How long a fault lasts that does not say so.
fn usual_length(kind: &str) -> &'static str {
    match kind {
        "crash" | "power" | "rolling-restart" => "0.01..3s",
        "pause" => "0.1..3 lease",
        "cut" | "clock" => "0.5..10s",
        "store-away" | "store-full" => "0.05..6s",
        "reset" | "half-open" => "1ms",
        _ => "5..20s",
    }
}

/// How much slower what does not say so: a lost segment comes with the next tries of its sender.
fn usual_delay(kind: &str) -> &'static str {
    match kind {
        "lossy" => "0.2..3s",
        _ => "0.01..4s",
    }
}

fn measure(fields: &Fields, key: &str, usual: &str) -> Option<Measure> {
    fields.length(key).or_else(|| Measure::parse(usual).ok())
}

fn texts(fields: &Fields, key: &str) -> Vec<String> {
    fields.texts(key).iter().map(|(text, _)| text.clone()).collect()
}

fn words(fields: &Fields, key: &str, usual: &[&'static str]) -> Vec<&'static str> {
    match fields.words(key) {
        [] => usual.to_vec(),
        words => words.to_vec(),
    }
}

impl Scenario {
    /// What this seed makes of it.
    pub fn draw(&self, seed: u64, bug: Option<PlantedBug>) -> Options {
        let topology = &self.topology;
        let none = Fields::default();
        let nodes = topology.section("nodes").unwrap_or(&none);
        let mut draw = Draw {
            seed,
            scale: Scale { lease: 0, heartbeat: 0 },
        };
        draw.scale.lease = draw.length(topology, "lease", "5..15s").max(1_000_000);
        draw.scale.heartbeat = match topology.has("heartbeat") {
            true => draw
                .length(topology, "heartbeat", "")
                .clamp(100_000, draw.scale.lease / 3),
            false => draw.scale.lease / 4,
        };
        let (starts_at, change) = self.date(&draw);
        let plan = self.plan(&draw);
        let node_count = |role: &str| draw.count(nodes, role, (0, 0));
        let (schedulers, far_workers) = (node_count("scheduler").max(1), node_count("worker"));
        let small = |count: u64| u32::try_from(count).unwrap_or(1);
        Options {
            starts_at,
            change,
            shards: u16::try_from(draw.count(topology, "shards", (1, 5))).unwrap_or(1),
            slots: small(draw.count(topology, "slots", (2, 24))),
            clients: 0,
            jobs: 0,
            schedules: 0,
            active: Span(plan.active()),
            lease: Span(draw.scale.lease),
            heartbeat: Span(draw.scale.heartbeat),
            latency: draw.length(topology, "latency", "1..20ms").max(300),
            faults: plan.families(node_count("store") > 0),
            lie: plan.lie(),
            next_day: false,
            apart: node_count("store") > 0,
            others: schedulers - 1,
            far_workers,
            remotes: node_count("remote"),
            owners_work: topology.switch("schedulers_work").unwrap_or(far_workers == 0),
            set_back: None,
            plan: Some(Arc::new(plan)),
            bug,
            without: Without::default(),
            seed,
        }
    }

    fn date(&self, draw: &Draw) -> (i64, Option<usize>) {
        let mut stream = draw.stream("date");
        let before = draw.length(&self.topology, "starts_before", "2..45s").cast_signed();
        let word = stream.pick(self.topology.words("starts")).copied().unwrap_or("any");
        match change_of(word) {
            Some(zone) => (zone.changes_at - before, change_number(word)),
            None => (draw_day(&mut stream, before, word == "midnight"), None),
        }
    }

    fn plan(&self, draw: &Draw) -> Plan {
        let of = |kind: &'static str| self.workloads.iter().filter(move |fields| fields.kind == kind);
        let mut plan = Plan {
            name: self.name.clone(),
            story: self.story.clone(),
            jobs: of("one-shot-jobs").map(|fields| draw.jobs(fields)).collect(),
            schedules: of("schedules").map(|fields| draw.schedules(fields)).collect(),
            cancels: of("cancels")
                .map(|fields| Cancels {
                    percent: draw.count(fields, "percent", (20, 20)),
                    after: draw.between(fields, "after", "0..3s"),
                })
                .collect(),
            looks: of("looks")
                .map(|fields| Looks {
                    over: draw.length(fields, "over", "30s"),
                    every: draw.between(fields, "every", "50..250ms"),
                    clients: draw.count(fields, "clients", (2, 2)),
                })
                .collect(),
            edits: of("edits")
                .map(|fields| Edits {
                    works: words(fields, "works", super::keys::WORKS),
                    every: draw.between(fields, "every", "0.2..7s"),
                })
                .collect(),
            faults: Vec::new(),
            invariants: words(&self.expect, "invariants", &["all"]),
            sometimes: self.expect.words("sometimes").to_vec(),
            settles_within: self
                .expect
                .has("settles_within")
                .then(|| draw.between(&self.expect, "settles_within", "").1),
        };
        plan.faults = draw.faults(self, plan.active());
        plan
    }
}

impl Plan {
    /// How long workloads and faults go on, in microseconds.
    fn active(&self) -> u64 {
        let jobs = self.jobs.iter().map(|jobs| jobs.over);
        let schedules = self.schedules.iter().map(|schedules| schedules.over);
        let looks = self.looks.iter().map(|looks| looks.over);
        jobs.chain(schedules).chain(looks).max().unwrap_or(30_000_000)
    }

    /// Whether a fault is of one of these kinds.
    pub fn has(&self, kinds: &[&str]) -> bool {
        self.faults.iter().any(|fault| kinds.contains(&fault.kind))
    }

    fn is_on_role(&self, kinds: &[&str], is_it: impl Fn(&str) -> bool) -> bool {
        let mut faults = self.faults.iter();
        faults.any(|fault| kinds.contains(&fault.kind) && is_it(fault.role))
    }

    /// How far the clock that counts is set off at most.
    fn lie(&self) -> u64 {
        let clocks = self.faults.iter().filter(|fault| fault.kind == "clock");
        let strokes = clocks.flat_map(|fault| &fault.strokes);
        strokes.map(|stroke| stroke.by.unsigned_abs()).max().unwrap_or(0)
    }

    /// As the swarm would name what befalls the nodes: the circumstances that checkers know.
    fn families(&self, is_apart: bool) -> Families {
        let is_stores = |role: &str| role == "store" || (!is_apart && role == "scheduler");
        let is_not_targets = |role: &str| role != "target";
        Families {
            crash: self.has(&["crash", "rolling-restart"]),
            power: self.has(&["power"]),
            pause: self.is_on_role(&["pause"], |_| true),
            clock: self.is_on_role(&["clock"], is_stores),
            away: self.has(&["store-away"]),
            full: self.has(&["store-full"]),
            net: self.is_on_role(&["cut"], is_not_targets) || self.has(LINKS),
            hands: !self.edits.is_empty(),
            slow: self.has(&["store-slow"]),
            unknown: self.has(&["store-unknown"]),
            sick: self.has(&["store-sick"]),
            target: self.has(&["target-errors", "target-hangs", "target-loses-answers", "target-slow"]),
        }
    }

    /// Checkers that must have judged something in a set of runs: all that are asked for, but those that these
    /// workloads give nothing to judge.
    pub fn judging(&self) -> Vec<&'static str> {
        let all = self.invariants.contains(&"all");
        let names = fencepost_history::checkers::NAMES.iter().copied();
        let is_idle = |name: &str| match name {
            "all" => true,
            "no_missed_fire" | "no_double_fire" => self.schedules.is_empty(),
            "cancel_holds" => self.cancels.is_empty(),
            _ => false,
        };
        let asked = names.filter(|name| self.invariants.contains(name) || (all && !is_idle(name)));
        asked.filter(|name| *name != "all").collect()
    }
}

/// Strokes of one fault that are printed.
const SHOWN_MAX: usize = 8;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |micros: u64| format!("{}.{:03}s", micros / 1_000_000, micros / 1_000 % 1_000);
        write!(f, "{}: {}", self.name, self.story)?;
        for fault in &self.faults {
            let shown = fault.strokes.iter().take(SHOWN_MAX).map(|stroke| {
                let by = match (stroke.by, fault.kind) {
                    (0, _) => String::new(),
                    (ppm, "drift") => format!(" by {ppm}ppm"),
                    (by, _) => format!(" by {by}us"),
                };
                format!("{} for {}{by}", seconds(stroke.waits), seconds(stroke.lasts))
            });
            let more = fault.strokes.len().saturating_sub(SHOWN_MAX);
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            let from = if fault.from.is_empty() { "" } else { " from " };
            write!(
                f,
                "\n  fault {} {} {}{from}{}: after {}{more}",
                fault.number,
                fault.kind,
                fault.role,
                fault.from,
                shown.collect::<Vec<_>>().join(", then ")
            )?;
        }
        Ok(())
    }
}
