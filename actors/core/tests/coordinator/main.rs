//! The coordinator, its hosts and the board: every short history, random long ones, and those of PROTOCOL.
//!
//! Owns: which scopes are walked. Next: `world.rs`, `rules.rs`, `histories.rs`, `random.rs`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod alone;
mod events;
mod histories;
mod random;
mod rules;
mod store;
mod unreadable;
mod walk;
mod world;

use events::Budget;
use std::io::Write as _;
use walk::explore;
use world::{Fault, Setup};

fn tell(counts: &str) {
    let _ = writeln!(std::io::stderr(), "\ncoordinator scope: {counts}");
}

fn holds(name: &str, setup: Setup, budget: Budget, depth: usize, floor: usize) {
    match explore(setup, budget, depth) {
        Ok(states) => {
            tell(&format!("{name}: {states} states, depth {depth}"));
            assert!(states >= floor, "{name} has shrunk to {states} states");
        }
        Err(broken) => panic!("{name}: {}\n{:?}", broken.what, broken.history),
    }
}

fn finds(fault: Fault, budget: Budget, depth: usize, what: &str) {
    let setup = Setup {
        fault: Some(fault),
        ..Setup::default()
    };
    match explore(setup, budget, depth) {
        Ok(states) => panic!("{fault:?} was not found in {states} states"),
        Err(broken) => {
            tell(&format!("{fault:?}: {:?}", broken.history));
            assert_eq!(broken.what, what);
        }
    }
}

const NONE: Budget = Budget {
    ticks: 0,
    skews: 0,
    losses: 0,
    slow: 0,
    crashes: 0,
    pauses: 0,
    drains: 0,
    boards: 0,
    rots: 0,
};
const TAKEOVER: Budget = Budget {
    ticks: 4,
    skews: 1,
    pauses: 1,
    slow: 1,
    ..NONE
};
const HANDOVER: Budget = Budget {
    ticks: 1,
    drains: 1,
    losses: 1,
    slow: 2,
    ..NONE
};
const CRASH: Budget = Budget {
    ticks: 4,
    crashes: 1,
    losses: 1,
    slow: 1,
    ..NONE
};
const COORDINATORS: Budget = Budget {
    ticks: 3,
    drains: 1,
    slow: 2,
    ..NONE
};
const ROT: Budget = Budget {
    ticks: 3,
    rots: 1,
    drains: 1,
    crashes: 1,
    slow: 1,
    ..NONE
};
const BOARD: Budget = Budget {
    ticks: 4,
    boards: 1,
    losses: 1,
    slow: 1,
    ..NONE
};

#[test]
fn a_takeover_after_a_pause_holds() {
    holds("takeover", Setup::default(), TAKEOVER, 8, 200_000);
}

#[test]
fn a_handover_holds() {
    holds("handover", Setup::default(), HANDOVER, 8, 90_000);
}

#[test]
fn a_crash_holds() {
    holds("crash", Setup::default(), CRASH, 8, 200_000);
}

#[test]
fn two_coordinators_hold() {
    holds("coordinators", Setup::default(), COORDINATORS, 8, 290_000);
}

#[test]
fn a_board_that_restarts_holds() {
    holds("board", Setup::default(), BOARD, 8, 190_000);
}

#[test]
fn f09_a_row_that_cannot_be_read_holds() {
    holds("rot", Setup::default(), ROT, 8, 100_000);
}

#[test]
fn two_shards_hold() {
    let setup = Setup {
        shards: 2,
        ..Setup::default()
    };
    holds("two shards", setup, HANDOVER, 8, 90_000);
}

const LEASES: &str = "two nodes hold one shard by their leases";

#[test]
fn a_board_without_a_margin_is_found() {
    finds(Fault::NoMargin, TAKEOVER, 9, LEASES);
}

#[test]
fn a_lease_counted_too_long_is_found() {
    finds(Fault::CountsTooLong, TAKEOVER, 9, LEASES);
}

#[test]
fn an_open_before_the_release_is_found() {
    finds(Fault::OpensBeforeRelease, HANDOVER, 9, LEASES);
}

#[test]
fn an_unchecked_epoch_is_found() {
    let what = "a decision about a shard replaced one that it did not follow";
    finds(Fault::EpochUnchecked, COORDINATORS, 9, what);
}

#[test]
fn a_row_that_reads_as_absent_is_found() {
    let what = "a decision about a shard replaced one that it did not follow";
    finds(Fault::UnreadableTakenForAbsent, ROT, 9, what);
}

#[test]
fn a_young_board_that_is_trusted_is_found() {
    finds(Fault::YoungBoardTrusted, BOARD, 9, LEASES);
}
