//! Negative controls: each planted fault must break something, or the walk proves nothing.
//!
//! Owns: which invariant each fault trips. Must never: plant a fault in the machines themselves (the
//! models around them misbehave). Next: `scope.rs` (the list).

use crate::explore::explore;
use crate::scope::{Budget, Fault, GuardKind, Scope};
use fencepost_core::job::Delivery;

const KEYS: (Delivery, GuardKind) = (Delivery::AtLeastOnce, GuardKind::Keys);
const TOKENS: (Delivery, GuardKind) = (Delivery::AtLeastOnce, GuardKind::Tokens);
const ONCE: (Delivery, GuardKind) = (Delivery::AtMostOnce, GuardKind::Nothing);

/// The walk must find the fault, by one of these words; without the fault the same walk must hold.
fn finds(fault: Fault, (delivery, guard): (Delivery, GuardKind), depth: u8, budget: Budget, words: &[&str]) {
    let honest = Scope {
        budget,
        ..Scope::all(delivery, guard, budget.all, depth)
    };
    if let Err(broken) = explore(honest) {
        panic!("breaks without {fault:?}: {}\n{:#?}", broken.what, broken.history);
    }
    let planted = Scope {
        fault: Some(fault),
        ..honest
    };
    let Err(broken) = explore(planted) else {
        panic!("{fault:?} is not found to depth {depth}");
    };
    println!("{fault:?}: {} after {} events", broken.what, broken.history.len());
    assert!(
        words.iter().any(|word| broken.what.contains(word)),
        "{fault:?} trips {}",
        broken.what
    );
}

fn only(change: impl FnOnce(&mut Budget)) -> Budget {
    let mut budget = Budget {
        all: 2,
        ..Budget::default()
    };
    change(&mut budget);
    budget
}

#[test]
fn an_unchecked_token_on_completion_is_found() {
    let budget = only(|budget| budget.silences = 1);
    finds(Fault::TokenNotChecked, KEYS, 9, budget, &["a stale token moved"]);
}

#[test]
fn a_renewal_after_the_reap_is_found() {
    let budget = only(|budget| (budget.silences, budget.beats) = (1, 1));
    finds(
        Fault::RenewsReaped,
        KEYS,
        6,
        budget,
        &["not grow", "second current attempt", "place rows"],
    );
}

#[test]
fn an_uncounted_crash_is_found() {
    let budget = only(|budget| budget.silences = 1);
    finds(Fault::CrashNotCounted, KEYS, 6, budget, &["attempts started"]);
}

#[test]
fn reading_back_an_unknown_commit_is_found() {
    let budget = only(|budget| budget.hangs = 1);
    finds(
        Fault::ReadsBack,
        KEYS,
        8,
        budget,
        &["current attempt", "not grow", "drawn before it was granted"],
    );
}

#[test]
fn an_unchecked_epoch_is_found() {
    let budget = only(|budget| budget.takeovers = 1);
    finds(
        Fault::EpochNotChecked,
        KEYS,
        6,
        budget,
        &["current attempt", "not grow", "place rows", "not a move"],
    );
}

#[test]
fn effects_before_durability_are_found() {
    let budget = only(|budget| (budget.hangs, budget.restarts) = (1, 1));
    finds(Fault::ReleasesEarly, KEYS, 7, budget, &["attempts started"]);
}

#[test]
fn a_cancel_that_was_not_written_is_found() {
    let budget = only(|budget| (budget.cancels, budget.restarts) = (1, 1));
    finds(
        Fault::CancelNotWritten,
        KEYS,
        7,
        budget,
        &["started after the answer", "not a move"],
    );
}

#[test]
fn f10_a_fence_without_sealing_is_found() {
    let budget = only(|budget| budget.silences = 1);
    finds(Fault::FenceOnly, TOKENS, 8, budget, &["applied twice"]);
}

#[test]
fn f10_sealing_without_a_fence_is_found() {
    let budget = only(|budget| budget.silences = 1);
    finds(Fault::TokenIgnoredAtResource, TOKENS, 9, budget, &["applied twice"]);
}

#[test]
fn f15_a_start_before_its_begin_is_found() {
    let budget = only(|budget| budget.silences = 1);
    finds(Fault::StartsBeforeBegin, ONCE, 6, budget, &["before its begin"]);
}

#[test]
fn f14_handing_back_what_started_is_found() {
    let budget = only(|budget| budget.drains = 1);
    finds(Fault::HandsBackStarted, KEYS, 6, budget, &["attempts started"]);
}
