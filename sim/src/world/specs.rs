//! What a schedule is asked to be: drawn, sent as a request, remembered for the checkers.
//!
//! Owns: rules with their bounds, exclusions and policies, each under a tag that its jobs carry in their
//! payload. All end with the active time, so that a run can settle. Must never: read what the product
//! made of it. Next: `rules.rs`, `planner.rs`, `../checkers/no_missed_fire.rs`.

use super::World;
use super::rules::{PlainRule, text};
use super::wishes::{job_body, set};
use super::zones::{CHANGES, PlainZone, STEADY};
use crate::runtime::Stream;
use serde_json::{Value, json};

/// A definition as it was asked for.
#[derive(Clone, Debug)]
pub struct PlainSpec {
    /// In the payload of its jobs: the name, a point, a number.
    pub tag: String,
    /// When.
    pub rule: PlainRule,
    /// First instant, inclusive.
    pub starts_at: Option<i64>,
    /// Last instant, inclusive.
    pub ends_at: i64,
    /// Most fires.
    pub count: Option<u64>,
    /// Local days since 1970 that are left out, inclusive.
    pub excluded: Option<(i64, i64)>,
    /// Weekday that is left out, 0 is Sunday.
    pub weekday: Option<i64>,
    /// Window of the jitter, in microseconds.
    pub jitter: i64,
    /// `latest`, `coalesce`, `all` or `skip`.
    pub misfire: &'static str,
    /// Cap of policy `all`.
    pub cap: usize,
    /// Microseconds.
    pub tolerance: i64,
    /// Microseconds.
    pub grace: Option<i64>,
    /// Its jobs start before this or never.
    pub expires_at: Option<i64>,
    /// The request, without name.
    pub body: Value,
}

const OFTEN: &[&str] = &["*/2 * * * * *", "*/5 * * * * *"];
const CRONS: &[&str] = &[
    "*/2 * * * * *",
    "*/5 * * * * *",
    "*/15 * * * * *",
    "0 * * * * *",
    "30 * * * * *",
    "3,17,44 * * * * *",
    "0 */2 * * * *",
];
/// Local times, seconds beside the hours that clocks skip or show twice among them.
const FIXED: &[&str] = &[
    "0,10,20,30,40,50 0-59 0-23 * * *",
    "0-59 0,1,29,30,59 1,2,3 * * *",
    "0,20,45 0,30 1,2,3 * * *",
    "7 0-59 0-23 * * *",
];
const MISFIRES: &[&str] = &["latest", "coalesce", "all", "skip"];

impl PlainSpec {
    /// Instants in `(from, to]` within the bounds, those on excluded days too.
    pub fn instants(&self, from: i64, to: i64) -> Vec<i64> {
        let from = self.starts_at.map_or(from, |start| from.max(start - 1));
        self.rule.instants(from, to.min(self.ends_at))
    }

    /// Whether an instant lies on an excluded local day.
    pub fn is_excluded(&self, at: i64) -> bool {
        let day = self.rule.zone().day(at);
        // 1970-01-01 was a Thursday.
        let weekday = (day + 4).rem_euclid(7);
        self.excluded.is_some_and(|(first, last)| first <= day && day <= last) || self.weekday == Some(weekday)
    }

    /// Whether nothing may be left to fire, by a clock that lies as far as clocks of this run do.
    pub fn is_over(&self, world: &World, is_edit: bool) -> bool {
        let now = match self.rule {
            // Due at creation when its instant has passed; an edit does not work backwards.
            PlainRule::Once { at } if !is_edit => at - 1,
            _ => world.sim.wall() + world.options.lies_max(),
        };
        self.instants(now, self.ends_at).iter().all(|at| self.is_excluded(*at))
    }

    /// Draws one. The first of a run fires often and plainly, so that each run has fires to judge.
    pub fn draw(world: &World, stream: &mut Stream, tag: String, is_plain: bool) -> PlainSpec {
        let now = world.sim.wall();
        let rule = if is_plain {
            plain(stream)
        } else {
            draw_rule(world, stream, now)
        };
        let mut spec = PlainSpec {
            tag,
            rule,
            starts_at: None,
            ends_at: world.ends_at(),
            count: None,
            excluded: None,
            weekday: None,
            jitter: 0,
            misfire: stream.pick(MISFIRES).copied().unwrap_or("latest"),
            cap: usize::try_from(stream.between(2, 40)).unwrap_or(2),
            tolerance: stream.between(500, 20_000).cast_signed() * 1_000,
            grace: None,
            expires_at: None,
            body: Value::Null,
        };
        if !is_plain {
            spec.draw_bounds(stream, now);
        }
        spec.body = spec.request(stream);
        spec
    }

    fn draw_bounds(&mut self, stream: &mut Stream, now: i64) {
        let later = |stream: &mut Stream, most: u64| now + stream.between(0, most).cast_signed();
        if stream.percent(15) {
            self.starts_at = Some(later(stream, 20_000_000));
        }
        if stream.percent(15) {
            self.ends_at = self.ends_at.min(later(stream, 60_000_000).max(now + 5_000_000));
        }
        // A start beyond the end is refused as a whole.
        self.starts_at = self.starts_at.filter(|start| *start < self.ends_at);
        if stream.percent(15) {
            self.count = Some(stream.between(1, 12));
        }
        if stream.percent(30) {
            self.jitter = stream.between(1, 12_000).cast_signed() * 1_000;
        }
        if stream.percent(20) {
            self.grace = Some(stream.between(500, 40_000).cast_signed() * 1_000);
        }
        if stream.percent(8) {
            self.expires_at = Some(later(stream, 60_000_000));
        }
        let day = self.rule.zone().day(now) + i64::from(stream.percent(50));
        match stream.between(0, 9) {
            0 => self.excluded = Some((day, day + stream.between(0, 2).cast_signed())),
            1 => self.weekday = Some((day + 4).rem_euclid(7)),
            _ => {}
        }
    }

    /// The body of a request that asks for it.
    fn request(&self, stream: &mut Stream) -> Value {
        let mut body = self.rule.body();
        let millis = |micros: i64| json!(format!("{}ms", micros / 1_000));
        set(&mut body, "misfire", json!(self.misfire));
        if self.misfire == "all" {
            let rate = stream.between(1, 20);
            set(&mut body, "catch_up", json!({"cap": self.cap, "rate": rate}));
        }
        set(&mut body, "tolerance", millis(self.tolerance));
        set(&mut body, "ends_at", json!(text(self.ends_at)));
        let mut job = job_body(stream, &self.tag);
        let optional = [
            ("starts_at", self.starts_at.map(|at| json!(text(at)))),
            ("count", self.count.map(|count| json!(count))),
            ("jitter", (self.jitter > 0).then(|| millis(self.jitter))),
            ("grace", self.grace.map(millis)),
            ("exclude", self.exclusions()),
        ];
        for (field, value) in optional {
            if let Some(value) = value {
                set(&mut body, field, value);
            }
        }
        if let Some(at) = self.expires_at {
            set(&mut job, "expires_at", json!(text(at)));
        }
        set(&mut body, "job", job);
        body
    }

    fn exclusions(&self) -> Option<Value> {
        const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
        let date = |day: i64| text(day * 86_400_000_000).chars().take(10).collect::<String>();
        let range = self.excluded.map(|(first, last)| match first == last {
            true => date(first),
            false => format!("{}..{}", date(first), date(last)),
        });
        let weekday = self.weekday.and_then(|day| DAYS.get(usize::try_from(day).unwrap_or(0)));
        let all: Vec<String> = range.into_iter().chain(weekday.map(|day| (*day).to_owned())).collect();
        (!all.is_empty()).then(|| json!(all))
    }
}

fn steady_zone(stream: &mut Stream) -> PlainZone {
    stream.pick(&STEADY).copied().unwrap_or(STEADY[0])
}

fn plain(stream: &mut Stream) -> PlainRule {
    let zone = steady_zone(stream);
    let text = stream.pick(OFTEN).copied().unwrap_or("*/2 * * * * *");
    cron(vec![text.to_owned()], zone, stream)
}

fn cron(texts: Vec<String>, zone: PlainZone, stream: &mut Stream) -> PlainRule {
    PlainRule::Cron {
        texts,
        zone,
        fires_after_gap: stream.percent(60),
        overlap: stream.pick(&["first", "second", "both"]).copied().unwrap_or("first"),
    }
}

fn draw_rule(world: &World, stream: &mut Stream, now: i64) -> PlainRule {
    match stream.between(0, 11) {
        0..=7 => draw_cron(world, stream),
        8 | 9 => PlainRule::Every {
            every: stream.between(700, 9_000).cast_signed() * 1_000,
            anchor: now - stream.between(0, 5_000_000).cast_signed(),
        },
        10 => PlainRule::Once {
            at: now + stream.between(1_000_000, 39_000_000).cast_signed(),
        },
        _ => PlainRule::Once {
            at: now - stream.between(1_000_000, 60_000_000).cast_signed(),
        },
    }
}

fn draw_cron(world: &World, stream: &mut Stream) -> PlainRule {
    let change = world.options.change.and_then(|number| CHANGES.get(number)).copied();
    let zone = match change {
        Some(zone) if stream.percent(70) => zone,
        _ => steady_zone(stream),
    };
    let mut texts = Vec::new();
    for _ in 0..=u64::from(stream.percent(20)) {
        let pool = if stream.percent(35) { FIXED } else { CRONS };
        texts.push(stream.pick(pool).copied().unwrap_or("0 * * * * *").to_owned());
    }
    cron(texts, zone, stream)
}
