//! The kill test: a server is killed again and again under load, and a program apart judges the logs.
//!
//! Owns: the cycles. `FENCEPOST_KILL_CYCLES` sets their number (100), `FENCEPOST_KILL_SEED` repeats the choices
//! of a run; a run with faults keeps its folder and the logs. Must never: judge by itself: the verdict is that of
//! `kill-judge`, which reads what clients and sink wrote and nothing else. Next: `load.rs`, `judge/`.

mod end;
mod load;
mod logs;
mod planted;
mod verdict;

use crate::pace;
use crate::server::{Place, Server};
use load::{CLIENTS, Chance, Clients, Shared, make_schedules, start_sink};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use verdict::{Verdict, judge};

const CYCLES: u64 = 100;
/// With a fault planted, a round has so many: about one kill in three shows it.
const CYCLES_PLANTED: u64 = 12;
/// Rounds at most until a planted fault shows; the first that does ends the test.
const ROUNDS_PLANTED: u64 = 10;
/// Servers at once, each with a folder, clients and a sink of its own.
const LINES: u64 = 2;
const SEED: u64 = 20_261_129;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// Whether the servers leave a check out (`controls` in `scripts/test`): this run must then fail.
fn is_planted() -> bool {
    cfg!(feature = "test-switches") && std::env::var_os("FENCEPOST_TEST_PLANTED").is_some()
}

/// What one line of cycles came to.
struct Ran {
    verdict: Verdict,
    folder: String,
}

#[test]
fn a_server_that_is_killed_again_and_again_loses_nothing_and_repeats_nothing() {
    let seed = number("FENCEPOST_KILL_SEED", SEED);
    if is_planted() {
        // Each round has choices of its own; without the fault shown in any, the control finds nothing caught.
        for round in 0..ROUNDS_PLANTED {
            run_round(seed + round * LINES, CYCLES_PLANTED);
        }
        return;
    }
    let cycles = number("FENCEPOST_KILL_CYCLES", CYCLES);
    let (kills, in_flight) = run_round(seed, cycles);
    assert!(kills >= cycles, "{kills} kills of {cycles}");
    assert!(
        in_flight * 10 >= kills * 8,
        "{in_flight} of {kills} kills with work in flight"
    );
}

/// All lines once, none of which may have a fault (of what a planted fault breaks, loss is what shows it);
/// gives the kills, and those with work in flight.
fn run_round(seed: u64, cycles: u64) -> (u64, u64) {
    let line = |n| std::thread::spawn(move || run_line(seed + n, cycles.div_ceil(LINES)));
    let lines: Vec<_> = (0..LINES).map(line).collect();
    let (mut kills, mut in_flight) = (0, 0);
    let mut broken = Vec::new();
    for line in lines {
        let Ran { verdict, folder } = line.join().unwrap();
        println!("seed {seed}: {}", verdict.whole);
        kills += verdict.number("kills");
        in_flight += verdict.number("kills_in_flight");
        let is_meant = !is_planted() || verdict.faults.iter().any(|fault| fault.starts_with("AcknowledgedLost"));
        if verdict.code != 0 && is_meant {
            broken.push(format!("{folder}: {verdict:#?}"));
        }
    }
    assert!(broken.is_empty(), "seed {seed}: {broken:#?}");
    (kills, in_flight)
}

fn run_line(seed: u64, cycles: u64) -> Ran {
    let mut place = Place::new(&[]);
    let shared = Arc::new(Shared::new(place.path()));
    let mut chance = Chance::new(seed);
    let sink = start_sink(&shared, seed);
    let mut server = place.start();
    make_schedules(&mut shared.logged(server.api(), CLIENTS), &sink);
    let token = std::fs::read_to_string(place.data().join("token")).unwrap();
    let clients = Clients::start(&shared, server.address(), token.trim(), &sink);
    let mut slowest = Duration::ZERO;
    for cycle in 1..=cycles {
        kill_under_load(server, &shared, 5 + chance.below(1_496));
        let (started, took) = pace::took(|| place.start());
        (server, slowest) = (started, slowest.max(took));
        if cycle.is_multiple_of(50) {
            println!("seed {seed}: {cycle} kills, slowest start {slowest:?}, this one {took:?}");
        }
    }
    clients.stop(&shared);
    end::settle(&mut shared.logged(server.api(), CLIENTS));
    drop((server, sink));
    let verdict = judge(&shared.logs.finish());
    let mut folder = String::from("folder not kept");
    if verdict.code != 0 && !is_planted() {
        folder = place.keep().display().to_string();
    }
    Ran { verdict, folder }
}

/// Kills once load has flowed since the start, this much later.
fn kill_under_load(server: Server, shared: &Shared, millis: u64) {
    let from = shared.acknowledged.load(Ordering::SeqCst);
    pace::until_true("load that flows", || {
        shared.acknowledged.load(Ordering::SeqCst) >= from + CLIENTS as u64
    });
    pace::reach(pace::from_now(Duration::from_millis(millis)));
    shared.logs.kill(server.pid());
    server.kill();
}
