//! Many threads at one guard, each sending every call in a random order of its own.
#![allow(clippy::disallowed_methods, reason = "real threads are what is tested")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use fencepost::guard::{Answer, Begun, Call};
use proptest::prelude::*;

use crate::{AnyGuard, call, note, noted, on_each_ledger};

const THREADS: usize = 8;
const KEYS: usize = 40;
const ATTEMPTS: usize = 3;
const LINES: [&str; 4] = ["line 0", "line 1", "line 2", "line 3"];

/// One call: in one step, or begun and finished.
fn send(guard: &AnyGuard, call: &Call<'_>, line: &'static str, in_two: bool) -> Answer {
    let effect = note(line, call.token.sequence);
    if !in_two {
        return guard.apply(call, effect).unwrap();
    }
    match guard.begin(call).unwrap() {
        Begun::Go => guard.finish(call, effect).unwrap(),
        Begun::Already(result) => Answer::Already(result),
        Begun::InProgress => Answer::InProgress,
        Begun::Stale => Answer::Stale,
    }
}

/// What one thread does: every call once, in an order of its own, and whether in two steps.
type Part = Vec<(usize, bool)>;

fn part() -> impl Strategy<Value = Part> {
    let calls: Vec<usize> = (0..KEYS * ATTEMPTS).collect();
    let in_two = prop::collection::vec(any::<bool>(), calls.len());
    (Just(calls).prop_shuffle(), in_two).prop_map(|(calls, in_two)| calls.into_iter().zip(in_two).collect())
}

fn send_all(guard: &AnyGuard, part: &Part, applied: &AtomicUsize) {
    for &(at, in_two) in part {
        let (key, line) = (at % KEYS, LINES[at % LINES.len()]);
        let key = format!("key {key}");
        let answer = send(guard, &call(&key, Some(line), at as u64 + 1), line, in_two);
        if let Answer::Applied(_) = answer {
            applied.fetch_add(1, Ordering::Relaxed);
        }
    }
}

proptest! {
    // Threads do not repeat themselves: a smaller case would show nothing.
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 0,
        ..ProptestConfig::with_cases(24)
    })]
    #[test]
    fn threads_apply_each_key_once_and_each_line_in_the_order_of_its_tokens(
        parts in prop::collection::vec(part(), THREADS),
    ) {
        on_each_ledger(|guard| {
            let applied = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                for part in &parts {
                    let applied = &applied;
                    scope.spawn(move || send_all(guard, part, applied));
                }
            });
            assert_eq!(
                applied.into_inner(),
                applied_in_order(guard),
                "an answer without its effect, or the reverse"
            );
        });
    }
}

/// The effects of all lines; each line must be in the order of its tokens, with no key twice.
fn applied_in_order(guard: &AnyGuard) -> usize {
    let mut count = 0;
    for line in LINES {
        let list = noted(guard, line);
        assert!(list.is_sorted(), "{line}: an older attempt after a newer: {list:?}");
        let keys: BTreeSet<u64> = list.iter().map(|token| (token - 1) % KEYS as u64).collect();
        assert_eq!(keys.len(), list.len(), "{line}: a key twice: {list:?}");
        assert!(!list.is_empty(), "{line}: the highest token is never stale");
        count += list.len();
    }
    count
}
