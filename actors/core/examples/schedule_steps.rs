//! Prints what the scheduler shard's steps cost, as JSON lines; asserts nothing.
//!
//! Owns: the loop and its clock. Must never: become a test. Run it with
//! `cargo run --release -p fencepost-core --example schedule_steps`.
#![allow(clippy::disallowed_methods, reason = "measures real time")]

use fencepost_core::ids::{Epoch, Generation, Holder, ShardId, ShardMap};
use fencepost_core::job::{Delivery, JobSpec, RetryPolicy};
use fencepost_core::machine::{Out, ReplyTo, Write};
use fencepost_core::name::Name;
use fencepost_core::row::Row;
use fencepost_core::schedule::{GapPolicy, MisfirePolicy, OverlapPolicy, Rule, ScheduleSpec};
use fencepost_core::scheduler_shard::SchedulerShard;
use fencepost_core::scheduler_shard::io::{ScheduleEffect, ScheduleInput, ScheduleOpened};
use fencepost_core::shard::ShardFacts;
use fencepost_core::target::{Payload, Target};
use fencepost_core::time::{Monotonic, Now, Span, StoreTime};
use std::sync::Arc;
use std::time::Instant;

const BEGIN: i64 = 1_767_614_400;
const YEAR: i64 = 365 * 86_400;

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn spec(expression: &str, misfire: MisfirePolicy) -> ScheduleSpec {
    let job = JobSpec {
        tenant: name("default"),
        queue: name("default"),
        target: Target::Handler(name("noop")),
        payload: Payload::empty(),
        priority: 5,
        tags: Vec::new(),
        timeout: Span::from_secs(60),
        retry: RetryPolicy {
            attempt_count_max: 5,
            backoff_first: Span::from_secs(1),
            backoff_cap: Span::from_secs(60),
        },
        delivery: Delivery::AtLeastOnce,
        expires_at: None,
    };
    ScheduleSpec {
        rule: Rule::Cron {
            expressions: vec![expression.into()],
            resolved: vec![expression.into()],
            zone: "Europe/Berlin".into(),
            gap: GapPolicy::NextValid,
            overlap: OverlapPolicy::First,
        },
        starts_at: None,
        ends_at: None,
        count_max: None,
        exclusions: Vec::new(),
        jitter: Span::ZERO,
        misfire,
        tolerance: Span::from_secs(60),
        grace: None,
        job: Arc::new(job),
    }
}

fn now(second: i64) -> Now {
    Now {
        store: StoreTime::from_secs(BEGIN + second),
        mono: Monotonic(second as u64 * 1_000_000),
        doubt: false,
    }
}

fn facts() -> ShardFacts {
    ShardFacts {
        shard: ShardId(0),
        map: ShardMap::new(1).expect("one shard"),
        generation: Generation(1),
        epoch: Epoch(1),
        holder: Holder(1),
        lease: Span::from_secs(30),
        heartbeat: Span::from_secs(8),
        key_kept: fencepost_core::job::KEY_KEPT,
    }
}

struct Bench {
    machine: SchedulerShard,
    rows: ScheduleOpened,
}

impl Bench {
    fn new() -> Bench {
        let opened = ScheduleOpened::default();
        let machine = SchedulerShard::open(facts(), opened, now(0), &mut Out::default()).expect("opens");
        Bench {
            machine,
            rows: ScheduleOpened::default(),
        }
    }

    fn create(&mut self, text: &str, spec: ScheduleSpec) {
        let input = ScheduleInput::Create {
            reply: ReplyTo(1),
            name: (name("default"), name(text)),
            spec: Box::new(spec),
            paused: false,
        };
        let mut out: Out<ScheduleEffect> = Out::default();
        self.machine.step(now(0), input, &mut out, &mut Vec::new());
        for write in out.writes {
            match write {
                Write::Put {
                    row: Row::Definition(row),
                    ..
                } => self.rows.definitions.push(*row),
                Write::Put {
                    row: Row::Cursor(row), ..
                } => self.rows.cursors.push(*row),
                _ => {}
            }
        }
    }

    /// Steps until nothing is due; fires, row writes and steps.
    fn tick(&mut self, now: Now) -> (usize, usize, usize) {
        let (mut fires, mut writes, mut steps) = (0, 0, 0);
        loop {
            let (mut out, mut fired) = (Out::default(), Vec::new());
            self.machine.step(now, ScheduleInput::Tick, &mut out, &mut fired);
            (fires, writes, steps) = (fires + fired.len(), writes + out.writes.len(), steps + 1);
            if self.machine.next_wake().mono != Some(now.mono) {
                return (fires, writes, steps);
            }
        }
    }
}

fn per_second(count: usize, idle: usize) {
    let mut bench = Bench::new();
    let begun = Instant::now();
    for k in 0..count {
        bench.create(&format!("busy{k}"), spec("* * * * * *", MisfirePolicy::Latest));
    }
    for k in 0..idle {
        bench.create(&format!("idle{k}"), spec("0 3 1 1 *", MisfirePolicy::Latest));
    }
    let created = begun.elapsed();
    let (mut fires, mut writes, seconds) = (0, 0, 30);
    let begun = Instant::now();
    for second in 1..=seconds {
        let done = bench.tick(now(second));
        (fires, writes) = (fires + done.0, writes + done.1);
    }
    let took = begun.elapsed();
    println!(
        "{{\"bench\":\"per_second\",\"busy\":{count},\"idle\":{idle},\"created_ms\":{},\"fires\":{fires},\"writes\":{writes},\"ms_per_tick\":{:.3},\"fires_per_s\":{:.0}}}",
        created.as_millis(),
        took.as_secs_f64() * 1e3 / seconds as f64,
        fires as f64 / took.as_secs_f64(),
    );
    let begun = Instant::now();
    let opened = SchedulerShard::open(facts(), bench.rows, now(0), &mut Out::default());
    println!(
        "{{\"bench\":\"open\",\"schedules\":{},\"ms\":{}}}",
        opened.map_or(0, |machine| machine.len()),
        begun.elapsed().as_millis()
    );
}

fn a_year_missed(word: &str, misfire: MisfirePolicy) {
    let mut bench = Bench::new();
    bench.create("missed", spec("* * * * * *", misfire));
    let begun = Instant::now();
    let (fires, writes, steps) = bench.tick(now(YEAR));
    println!(
        "{{\"bench\":\"year_missed\",\"policy\":\"{word}\",\"fires\":{fires},\"writes\":{writes},\"steps\":{steps},\"us\":{}}}",
        begun.elapsed().as_micros()
    );
}

fn main() {
    per_second(10_000, 0);
    per_second(10_000, 90_000);
    per_second(100, 99_900);
    a_year_missed("latest", MisfirePolicy::Latest);
    a_year_missed("coalesce", MisfirePolicy::Coalesce);
    a_year_missed("skip", MisfirePolicy::Skip);
    a_year_missed("all", MisfirePolicy::All { cap: 100_000, rate: 50 });
}
