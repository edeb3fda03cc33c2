//! Exhaustive small scopes: one shard, two workers, one job, a resource with a guard, and every history of grants,
//! lost and repeated messages, expiries, outcomes, cancels, new owners and deaths up to a depth and a number of rarer
//! events (`scope.rs`). The machines are the real ones; store, shell, wire and resource are models.
//!
//! Owns: which scopes are walked. Must never: use chance. `FENCEPOST_DEEPER=1` walks one event deeper
//! (minutes). Next: `world.rs` (events and invariants), `faults.rs` (what the walk must find).
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod events;
mod explore;
mod faults;
mod mailbox;
#[allow(dead_code, reason = "a part of it is enough here")]
#[path = "../support/make.rs"]
mod make;
mod nodes;
mod resource;
mod scope;
mod shell;
mod store;
mod wire;
mod world;

use explore::explore;
use fencepost_core::job::Delivery;
use scope::{Budget, GuardKind, Scope};
use std::io::Write as _;

/// Past the runner, which swallows what a passed test prints: `scripts/test` shows these lines.
fn tell(counts: &str) {
    let _ = writeln!(std::io::stderr(), "\nsmall scope: {counts}");
}

/// Walks a scope that must hold, prints how much was walked, and keeps it from shrinking unseen.
fn holds(name: &str, mut scope: Scope, floor: usize) {
    scope.depth += u8::from(std::env::var_os("FENCEPOST_DEEPER").is_some());
    match explore(scope) {
        Ok(walk) => {
            tell(&format!(
                "{name}: {} states, {} events, depth {}",
                walk.states, walk.events, scope.depth
            ));
            assert!(walk.states >= floor, "{name} has shrunk to {} states", walk.states);
        }
        Err(broken) => panic!("{name}: {}\n{:#?}", broken.what, broken.history),
    }
}

/// Every kind of event, at most two of the rarer ones in one history.
#[test]
fn at_least_once_with_keys_holds_to_depth_eight() {
    holds(
        "at least once, keys",
        Scope::all(Delivery::AtLeastOnce, GuardKind::Keys, 2, 8),
        600_000,
    );
}

/// The same with a resource that knows tokens only, and attempts that seal before they apply (F10).
#[test]
fn at_least_once_with_tokens_holds_to_depth_eight() {
    holds(
        "at least once, tokens",
        Scope::all(Delivery::AtLeastOnce, GuardKind::Tokens, 2, 8),
        600_000,
    );
}

/// The same with a resource that applies whatever comes, and attempts that begin durably (F15).
#[test]
fn at_most_once_holds_to_depth_eight() {
    holds(
        "at most once",
        Scope::all(Delivery::AtMostOnce, GuardKind::Nothing, 2, 8),
        300_000,
    );
}

/// Workers with room for two: their offers wait at the shard, and what becomes ready is granted at once.
#[test]
fn offers_that_wait_hold_to_depth_eight() {
    let scope = Scope::all(Delivery::AtLeastOnce, GuardKind::Keys, 2, 8);
    holds("offers that wait", Scope { slots: 2, ..scope }, 600_000);
}

/// No rarer events but those that end attempts, and of these as many as happen: each may come twice, all in one
/// history.
#[test]
fn expiries_cancels_and_new_owners_together_hold_to_depth_nine() {
    let scope = Scope::all(Delivery::AtLeastOnce, GuardKind::Keys, 6, 9);
    holds("grant, expiry, cancel, new owner", ends_twice(scope), 700_000);
}

/// The same for what may happen once only, and for a resource that knows tokens only.
#[test]
fn expiries_cancels_and_new_owners_together_hold_to_depth_eight_for_the_others() {
    for (name, delivery, guard, floor) in [
        (
            "the same, at most once",
            Delivery::AtMostOnce,
            GuardKind::Nothing,
            150_000,
        ),
        ("the same, tokens", Delivery::AtLeastOnce, GuardKind::Tokens, 180_000),
    ] {
        holds(name, ends_twice(Scope::all(delivery, guard, 6, 8)), floor);
    }
}

fn ends_twice(scope: Scope) -> Scope {
    let budget = Budget {
        all: 6,
        silences: 2,
        cancels: 2,
        restarts: 2,
        ..Budget::default()
    };
    Scope { budget, ..scope }
}

/// Only lost and late words of one worker: what it says about attempts that were reaped while it
/// could not be heard (F18). Two of them in one message once ended the shard with a conflict.
#[test]
fn late_words_hold_to_depth_eleven() {
    let budget = Budget {
        all: 3,
        silences: 2,
        beats: 1,
        ..Budget::default()
    };
    let scope = Scope::all(Delivery::AtLeastOnce, GuardKind::Keys, 3, 11);
    let lone = true;
    holds("late words", Scope { budget, lone, ..scope }, 350_000);
}

/// Only new owners, known and unknown to the old ones, and commits that hang.
#[test]
fn owners_hold_to_depth_nine() {
    let budget = Budget {
        all: 3,
        restarts: 2,
        takeovers: 2,
        hangs: 1,
        silences: 1,
        ..Budget::default()
    };
    let scope = Scope::all(Delivery::AtMostOnce, GuardKind::Nothing, 3, 9);
    holds("owners", Scope { budget, ..scope }, 500_000);
}

/// A worker that was not heard for longer than a lease, a client that cancels and a new owner, all in
/// one history: what the reaped attempt still says meets a job that was cancelled, read back from rows.
#[test]
fn expiry_cancel_and_new_owner_hold_to_depth_ten() {
    let budget = Budget {
        all: 3,
        silences: 1,
        cancels: 1,
        restarts: 1,
        ..Budget::default()
    };
    let scope = Scope::all(Delivery::AtLeastOnce, GuardKind::Keys, 3, 10);
    holds("expiry, cancel, new owner", Scope { budget, ..scope }, 500_000);
}
