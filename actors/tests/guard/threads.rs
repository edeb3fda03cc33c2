//! Many threads at one guard, each sending every call in an order of its own.
#![allow(clippy::disallowed_methods, reason = "real threads are what is tested")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use fencepost::guard::{Answer, Begun, Call};

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

fn send_all(guard: &AnyGuard, thread: usize, applied: &AtomicUsize) {
    // Strides without a common factor with the number of calls visit each of them once.
    let stride = [1, 7, 11, 13, 17, 19, 23, 29][thread % 8];
    for at in 0..KEYS * ATTEMPTS {
        let at = (at * stride + thread * 31) % (KEYS * ATTEMPTS);
        let (key, line) = (at % KEYS, LINES[at % LINES.len()]);
        let answer = send(
            guard,
            &call(&format!("key {key}"), Some(line), at as u64 + 1),
            line,
            thread % 2 == 1,
        );
        if let Answer::Applied(_) = answer {
            applied.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn threads_apply_each_key_once_and_each_line_in_the_order_of_its_tokens() {
    on_each_ledger(|guard| {
        let applied = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let applied = &applied;
                scope.spawn(move || send_all(guard, thread, applied));
            }
        });
        let mut count = 0;
        for line in LINES {
            let list = noted(guard, line);
            assert!(list.is_sorted(), "{line}: an older attempt after a newer: {list:?}");
            let keys: BTreeSet<u64> = list.iter().map(|token| (token - 1) % KEYS as u64).collect();
            assert_eq!(keys.len(), list.len(), "{line}: a key twice: {list:?}");
            assert!(!list.is_empty(), "{line}: the highest token is never stale");
            count += list.len();
        }
        assert_eq!(
            applied.into_inner(),
            count,
            "an answer without its effect, or the reverse"
        );
    });
}
