//! The schedules of a run: drawn, made through the API, remembered for the checkers.
//!
//! Owns: their rules and policies. All end with the active time, so that a run can settle. Next:
//! `rules.rs`, `../checkers/no_missed_fire.rs`.

use super::World;
use super::clients::{job_body, pause, set};
use super::http::send;
use super::rules::{PlainRule, text};
use crate::runtime::Stream;
use serde_json::{Value, json};

/// A schedule as it was asked for.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Its name.
    pub name: String,
    /// When.
    pub rule: PlainRule,
    /// `latest`, `coalesce`, `all` or `skip`.
    pub misfire: &'static str,
    /// Cap of policy `all`.
    pub cap: usize,
    /// Microseconds.
    pub tolerance: i64,
    /// Last instant, inclusive.
    pub ends_at: i64,
    /// The request.
    pub body: Value,
}

const CRONS: &[&str] = &[
    "*/2 * * * * *",
    "*/5 * * * * *",
    "*/15 * * * * *",
    "0 * * * * *",
    "30 * * * * *",
    "3,17,44 * * * * *",
    "0 */2 * * * *",
];
/// How far the node's clock is from the truth at most, with a little for the way.
pub const CLOCK_LIES_MAX: i64 = 12_000_000;
const ZONES: &[(&str, i64)] = &[("UTC", 0), ("Asia/Kolkata", 330), ("Asia/Tokyo", 540)];
const MISFIRES: &[&str] = &["latest", "coalesce", "all", "skip"];

impl Planned {
    /// Whether nothing may be left to fire, by a clock that lies at most `CLOCK_LIES_MAX`.
    fn is_over(&self, world: &World) -> bool {
        self.rule
            .instants(world.sim.wall() + CLOCK_LIES_MAX, self.ends_at)
            .is_empty()
    }
}

/// Draws the schedules of a run.
pub fn draw(world: &World) -> Vec<Planned> {
    let mut stream = Stream::new(world.options.seed, "timetable");
    let now = world.sim.wall();
    (0..world.options.schedules)
        .map(|number| draw_one(&mut stream, number, now, now + world.options.active.0.cast_signed()))
        .collect()
}

fn draw_one(stream: &mut Stream, number: u64, now: i64, ends_at: i64) -> Planned {
    let name = format!("s{number}");
    let rule = if number == 0 {
        frequent(stream)
    } else {
        draw_rule(stream, now)
    };
    let misfire = stream.pick(MISFIRES).copied().unwrap_or("latest");
    let tolerance = stream.between(500, 20_000);
    let mut body = rule.body();
    set(&mut body, "name", json!(name));
    set(&mut body, "misfire", json!(misfire));
    let cap = stream.between(2, 40);
    if misfire == "all" {
        set(
            &mut body,
            "catch_up",
            json!({"cap": cap, "rate": stream.between(1, 20)}),
        );
    }
    set(&mut body, "tolerance", json!(format!("{tolerance}ms")));
    set(&mut body, "ends_at", json!(text(ends_at)));
    set(&mut body, "job", job_body(stream, &name));
    Planned {
        name,
        rule,
        misfire,
        cap: usize::try_from(cap).unwrap_or(1),
        tolerance: tolerance.cast_signed() * 1_000,
        ends_at,
        body,
    }
}

/// At least one schedule of a run fires often.
fn frequent(stream: &mut Stream) -> PlainRule {
    let (zone, offset) = stream.pick(ZONES).copied().unwrap_or(("UTC", 0));
    let text = stream.pick(CRONS.get(..2).unwrap_or_default());
    let text = text.copied().unwrap_or("*/2 * * * * *").to_owned();
    PlainRule::Cron { text, zone, offset }
}

fn draw_rule(stream: &mut Stream, now: i64) -> PlainRule {
    match stream.between(0, 9) {
        0..=5 => {
            let (zone, offset) = stream.pick(ZONES).copied().unwrap_or(("UTC", 0));
            let text = stream.pick(CRONS).copied().unwrap_or("0 * * * * *").to_owned();
            PlainRule::Cron { text, zone, offset }
        }
        6 | 7 => PlainRule::Every {
            every: stream.between(700, 9_000).cast_signed() * 1_000,
            anchor: now - stream.between(0, 5_000_000).cast_signed(),
        },
        _ => PlainRule::Once {
            at: now + stream.between(10_000_000, 39_000_000).cast_signed(),
        },
    }
}

/// Makes them through the API, from a machine of its own.
pub fn start(world: &World, plans: &[Planned]) {
    let node = world.client_node(200);
    world.begin();
    let (world, plans) = (world.clone(), plans.to_vec());
    node.run(move || async move {
        let mut stream = Stream::new(world.options.seed, "planner");
        let mut made = Vec::new();
        for plan in &plans {
            if make(&world, plan, &mut stream).await {
                made.push(plan.clone());
            }
        }
        if world.options.faults.hands {
            by_hand(&world, &made, &mut stream).await;
        }
        world.done();
    });
}

/// Pauses and resumes schedules, and fires them once by hand, until the active time ends.
async fn by_hand(world: &World, plans: &[Planned], stream: &mut Stream) {
    while world.sim.now() < world.options.active.0 {
        world.sim.sleep(stream.between(500_000, 9_000_000)).await;
        let Some(plan) = stream.pick(plans) else { return };
        // Two at one store time, which a clock that was set back holds, would look like one wish.
        if !world.options.faults.clock && stream.percent(40) {
            order(world, plan, "run-now", stream).await;
            continue;
        }
        if order(world, plan, "pause", stream).await {
            world.feel("seen:paused");
            world.sim.sleep(stream.between(100_000, 8_000_000)).await;
            while !order(world, plan, "resume", stream).await {}
        }
    }
}

/// Sends an order until it is answered; false when it is refused, as for a finished schedule.
async fn order(world: &World, plan: &Planned, what: &str, stream: &mut Stream) -> bool {
    let path = format!("/v1/schedules/{}/{what}", plan.name);
    let key = format!("{what} {}", stream.draw());
    loop {
        let answer = send(world, "POST", &path, Some(&key), None).await;
        match answer.map(|answer| answer.status) {
            Some(503 | 507 | 408) | None => pause(world, stream).await,
            Some(status) => {
                world.sim.record("client", what, &format!("{} {status}", plan.name));
                return what == "resume" || (200..300).contains(&status);
            }
        }
    }
}

/// False when nothing was left to fire.
async fn make(world: &World, plan: &Planned, stream: &mut Stream) -> bool {
    loop {
        let answer = send(world, "POST", "/v1/schedules", None, Some(&plan.body)).await;
        if let Some(answer) = &answer
            && answer.text("code") == "schedule_never_fires"
            && plan.is_over(world)
        {
            world.history.lock().refused += 1;
            return false;
        }
        // 409: an earlier send, whose answer was lost, has made it.
        if let Some(answer) = answer
            && matches!(answer.status, 201 | 409)
        {
            world.sim.record("client", "schedule acked", &plan.name);
            world.history.lock().schedules.push(plan.name.clone());
            return true;
        }
        pause(world, stream).await;
    }
}
