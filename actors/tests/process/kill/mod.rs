//! The kill test: a server is killed again and again under load, and outside records are judged.
//!
//! Owns: the cycles. `FENCEPOST_KILL_CYCLES` sets their number (100), `FENCEPOST_KILL_SEED` repeats the choices
//! of a run; a run with faults keeps its folder and the record. Must never: judge by anything but the records.
//! Next: `load.rs`, `checker.rs`.

mod checker;
mod checker_tests;
mod end;
mod history;
mod load;

use crate::pace;
use crate::server::{Place, Server};
use checker::{Fault, Tally, judge};
use load::{Chance, Clients, Shared, make_schedules, start_sink};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const CYCLES: u64 = if cfg!(feature = "planted-ack-before-commit") {
    12
} else {
    100
};
/// Servers at once, each with a folder, clients and a sink of its own.
const LINES: u64 = 2;
const SEED: u64 = 20_261_129;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// What one line of cycles came to.
struct Ran {
    faults: Vec<Fault>,
    tally: Tally,
    folder: String,
}

#[test]
fn a_server_that_is_killed_again_and_again_loses_nothing_and_repeats_nothing() {
    let seed = number("FENCEPOST_KILL_SEED", SEED);
    let cycles = number("FENCEPOST_KILL_CYCLES", CYCLES);
    let line = |n| std::thread::spawn(move || run_line(seed + n, cycles.div_ceil(LINES)));
    let lines: Vec<_> = (0..LINES).map(line).collect();
    let (mut kills, mut in_flight) = (0, 0);
    let mut broken = Vec::new();
    for line in lines {
        let ran = line.join().unwrap();
        println!("seed {seed}: {:?}", ran.tally);
        kills += ran.tally.kills;
        in_flight += ran.tally.kills_in_flight;
        if !ran.faults.is_empty() {
            let some: Vec<&Fault> = ran.faults.iter().take(20).collect();
            broken.push(format!("{}: {} faults: {some:?}", ran.folder, ran.faults.len()));
        }
    }
    assert!(broken.is_empty(), "seed {seed}: {broken:#?}");
    assert!(kills as u64 >= cycles, "{kills} kills of {cycles}");
    assert!(
        in_flight * 10 >= kills * 8,
        "{in_flight} of {kills} kills with work in flight"
    );
}

fn run_line(seed: u64, cycles: u64) -> Ran {
    let shared = Arc::new(Shared::default());
    let mut chance = Chance::new(seed);
    let sink = start_sink(&shared, seed);
    let mut place = Place::new(&[]);
    let mut server = place.start();
    make_schedules(&mut server.api(), &sink);
    let token = std::fs::read_to_string(place.data().join("token")).unwrap();
    let clients = Clients::start(&shared, server.address(), token.trim(), &sink);
    for _ in 0..cycles {
        kill_under_load(server, &shared, 5 + chance.below(1_496));
        server = place.start();
    }
    clients.stop(&shared);
    let end = end::settle(&mut server.api());
    let (faults, tally) = judge(&shared.history.events(), &end);
    let mut folder = String::from("folder not kept");
    if !faults.is_empty() && !cfg!(feature = "planted-ack-before-commit") {
        folder = place.keep().display().to_string();
        let record = format!("{:#?}\n{end:#?}\n", shared.history.events());
        std::fs::write(place.path().join("record"), record).unwrap();
    }
    Ran { faults, tally, folder }
}

/// Kills once load has flowed since the start, this much later.
fn kill_under_load(server: Server, shared: &Shared, millis: u64) {
    let from = shared.acknowledged.load(Ordering::SeqCst);
    pace::until_true("load that flows", || {
        shared.acknowledged.load(Ordering::SeqCst) >= from + load::CLIENTS as u64
    });
    pace::reach(pace::from_now(Duration::from_millis(millis)));
    shared.history.push(history::Event::Kill);
    server.kill();
}
