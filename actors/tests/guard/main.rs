//! The resource-side guard: its contract on every ledger, every order of arrival, and many threads.
//!
//! Negative control: with `--features test-switches` and `FENCEPOST_TEST_PLANTED=no-token-check` the same tests must
//! fail, because then it accepts an older attempt after a newer one.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
#![cfg(not(madsim))]

mod contract;
mod orders;
mod random;
mod threads;

use fencepost::guard::fjall::FjallLedger;
use fencepost::guard::ledger::{Ledger, MemoryLedger};
use fencepost::guard::{Answer, Call, Effects, Guard, GuardError};
use fencepost_core::ids::{Epoch, Generation, Token};
use fencepost_core::time::StoreTime;

type AnyGuard = Guard<Box<dyn Ledger>>;

fn token(sequence: u64) -> Token {
    Token {
        generation: Generation(1),
        epoch: Epoch(1),
        sequence,
    }
}

fn call<'a>(key: &'a str, line: Option<&'a str>, sequence: u64) -> Call<'a> {
    Call {
        key,
        token: token(sequence),
        line,
        now: StoreTime::from_secs(1_000),
    }
}

fn in_memory() -> AnyGuard {
    Guard::new(Box::new(MemoryLedger::default()))
}

/// Runs the test on a fresh guard of each kind.
fn on_each_ledger(test: impl Fn(&AnyGuard)) {
    test(&in_memory());
    let folder = tempfile::tempdir().unwrap();
    test(&Guard::new(Box::new(FjallLedger::open(folder.path()).unwrap())));
}

/// An effect that adds the number of its attempt to a list: applied twice, it is there twice.
fn note(row: &'static str, sequence: u64) -> impl FnMut(&mut Effects<'_>) -> Result<Vec<u8>, GuardError> {
    move |effects| {
        let mut list = effects.get(row.as_bytes())?.unwrap_or_default();
        list.extend(sequence.to_be_bytes());
        effects.put(row.as_bytes(), list);
        Ok(format!("by {sequence}").into_bytes())
    }
}

/// The attempts whose effect is in the list, in the order of applying.
fn noted(guard: &AnyGuard, row: &str) -> Vec<u64> {
    let list = guard.read(row.as_bytes()).unwrap().unwrap_or_default();
    list.chunks(8)
        .map(|chunk| u64::from_be_bytes(chunk.try_into().unwrap()))
        .collect()
}

fn applied(sequence: u64) -> Answer {
    Answer::Applied(format!("by {sequence}").into_bytes())
}

fn already(sequence: u64) -> Answer {
    Answer::Already(format!("by {sequence}").into_bytes())
}
