//! What a schedule is asked to be: drawn, sent as a request, remembered for the checkers.
//!
//! Owns: rules with their bounds, exclusions and policies, each under a tag that its jobs carry in their
//! payload. All end with the active time, so that a run can settle. Must never: read what the product
//! made of it. Next: `planner.rs`, `../../history/src/rules.rs`.

use super::World;
use super::wishes::{job_body, set};
use crate::runtime::Stream;
use crate::scenario::plan::{Between, Schedules};
use fencepost_history::rules::{PlainRule, text};
use fencepost_history::spec::PlainSpec;
use fencepost_history::zones::{PlainZone, STEADY, change};
use serde_json::{Value, json};

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

/// Whether nothing may be left to fire, by a clock that lies as far as clocks of this run do.
pub fn is_over(spec: &PlainSpec, world: &World, is_edit: bool) -> bool {
    let now = match spec.rule {
        // Due at creation when its instant has passed; an edit does not work backwards.
        PlainRule::Once { at } if !is_edit => at - 1,
        _ => world.sim.wall() + world.options.lies_max(),
    };
    spec.instants(now, spec.ends_at).iter().all(|at| spec.is_excluded(*at))
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
        draw_bounds(&mut spec, stream, now);
    }
    let rate = stream_rate(&spec, stream);
    let job = job_body(stream, &spec.tag);
    spec.body = request(&spec, rate, job);
    spec
}

/// How many a second go out when all that was missed is made up.
fn stream_rate(spec: &PlainSpec, stream: &mut Stream) -> u64 {
    if spec.misfire == "all" {
        stream.between(1, 20)
    } else {
        0
    }
}

/// One as a scenario asks for it.
pub fn planned(world: &World, stream: &mut Stream, tag: String, plan: &Schedules) -> PlainSpec {
    let now = world.sim.wall();
    let one = |stream: &mut Stream, (low, high): Between| stream.between(low, high.max(low)).cast_signed();
    let zone = match stream.pick(&plan.zones) {
        Some(name) => zone_named(world, name),
        None => world
            .options
            .change
            .and_then(change)
            .unwrap_or_else(|| steady_zone(stream)),
    };
    let text = stream.pick(&plan.crons).cloned();
    let rule = match (text, plan.every) {
        (Some(text), _) => PlainRule::Cron {
            texts: vec![text],
            zone,
            fires_after_gap: stream.pick(&plan.gaps) != Some(&"skip"),
            overlap: stream.pick(&plan.overlaps).copied().unwrap_or("first"),
        },
        (None, Some(every)) => PlainRule::Every {
            every: (one(stream, every) / 1_000).max(100) * 1_000,
            anchor: now - one(stream, (0, 5_000_000)),
        },
        (None, None) => draw_cron(world, stream),
    };
    let millis = |micros: i64| micros / 1_000 * 1_000;
    let mut spec = PlainSpec {
        tag,
        rule,
        starts_at: None,
        ends_at: world.options.starts_at + plan.over.cast_signed(),
        count: None,
        excluded: None,
        weekday: None,
        jitter: plan.jitter.map_or(0, |jitter| millis(one(stream, jitter))),
        misfire: stream.pick(&plan.misfires).copied().unwrap_or("latest"),
        cap: usize::try_from(one(stream, plan.cap)).unwrap_or(2),
        tolerance: millis(one(stream, plan.tolerance)).max(1_000),
        grace: plan.grace.map(|grace| millis(one(stream, grace)).max(1_000)),
        expires_at: None,
        body: Value::Null,
    };
    let rate = stream_rate(&spec, stream);
    let job = plan.shape.body(stream, &spec.tag);
    spec.body = request(&spec, rate, job);
    spec
}

/// The zone around the change that the run begins before, or one whose clocks never change.
fn zone_named(world: &World, name: &str) -> PlainZone {
    let change = world.options.change.and_then(change).filter(|zone| zone.name == name);
    let steady = || STEADY.iter().find(|zone| zone.name == name).copied();
    change.or_else(steady).unwrap_or(STEADY[0])
}

fn draw_bounds(spec: &mut PlainSpec, stream: &mut Stream, now: i64) {
    let later = |stream: &mut Stream, most: u64| now + stream.between(0, most).cast_signed();
    if stream.percent(15) {
        spec.starts_at = Some(later(stream, 20_000_000));
    }
    if stream.percent(15) {
        spec.ends_at = spec.ends_at.min(later(stream, 60_000_000).max(now + 5_000_000));
    }
    // A start beyond the end is refused as a whole.
    spec.starts_at = spec.starts_at.filter(|start| *start < spec.ends_at);
    if stream.percent(15) {
        spec.count = Some(stream.between(1, 12));
    }
    if stream.percent(30) {
        spec.jitter = stream.between(1, 12_000).cast_signed() * 1_000;
    }
    if stream.percent(20) {
        spec.grace = Some(stream.between(500, 40_000).cast_signed() * 1_000);
    }
    if stream.percent(8) {
        spec.expires_at = Some(later(stream, 60_000_000));
    }
    let day = spec.rule.zone().day(now) + i64::from(stream.percent(50));
    match stream.between(0, 9) {
        0 => spec.excluded = Some((day, day + stream.between(0, 2).cast_signed())),
        1 => spec.weekday = Some((day + 4).rem_euclid(7)),
        _ => {}
    }
}

/// The body of a request that asks for it.
fn request(spec: &PlainSpec, rate: u64, mut job: Value) -> Value {
    let mut body = spec.rule.body();
    let millis = |micros: i64| json!(format!("{}ms", micros / 1_000));
    set(&mut body, "misfire", json!(spec.misfire));
    if spec.misfire == "all" {
        set(&mut body, "catch_up", json!({"cap": spec.cap, "rate": rate}));
    }
    set(&mut body, "tolerance", millis(spec.tolerance));
    set(&mut body, "ends_at", json!(text(spec.ends_at)));
    let optional = [
        ("starts_at", spec.starts_at.map(|at| json!(text(at)))),
        ("count", spec.count.map(|count| json!(count))),
        ("jitter", (spec.jitter > 0).then(|| millis(spec.jitter))),
        ("grace", spec.grace.map(millis)),
        ("exclude", exclusions(spec)),
    ];
    for (field, value) in optional {
        if let Some(value) = value {
            set(&mut body, field, value);
        }
    }
    if let Some(at) = spec.expires_at {
        set(&mut job, "expires_at", json!(text(at)));
    }
    set(&mut body, "job", job);
    body
}

fn exclusions(spec: &PlainSpec) -> Option<Value> {
    const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
    let date = |day: i64| text(day * 86_400_000_000).chars().take(10).collect::<String>();
    let range = spec.excluded.map(|(first, last)| match first == last {
        true => date(first),
        false => format!("{}..{}", date(first), date(last)),
    });
    let weekday = spec.weekday.and_then(|day| DAYS.get(usize::try_from(day).unwrap_or(0)));
    let all: Vec<String> = range.into_iter().chain(weekday.map(|day| (*day).to_owned())).collect();
    (!all.is_empty()).then(|| json!(all))
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
    let zone = match world.options.change.and_then(change) {
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
