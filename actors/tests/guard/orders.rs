//! Every order in which the calls of three attempts can arrive, each order on a fresh guard.
//!
//! Attempts get growing tokens; their calls are delayed and overtake each other at will.

use fencepost::guard::{Answer, Begun};

use crate::{AnyGuard, applied, call, in_memory, note, noted, token};

/// Calls `visit` with every merge of `counts.len()` lines of `counts[i]` steps.
fn every_order(counts: &[usize], visit: &mut impl FnMut(&[usize])) {
    fn go(left: &mut Vec<usize>, order: &mut Vec<usize>, visit: &mut impl FnMut(&[usize])) {
        if left.iter().all(|count| *count == 0) {
            return visit(order);
        }
        for line in 0..left.len() {
            if left[line] > 0 {
                left[line] -= 1;
                order.push(line);
                go(left, order, visit);
                order.pop();
                left[line] += 1;
            }
        }
    }
    go(&mut counts.to_vec(), &mut Vec::new(), visit);
}

/// Numbers each attempt's steps along the order: (attempt counted from 1, step counted from 0).
fn steps(order: &[usize]) -> impl Iterator<Item = (u64, usize)> {
    let mut seen = vec![0; 1 + order.iter().max().unwrap_or(&0)];
    order.iter().map(move |line| {
        seen[*line] += 1;
        (*line as u64 + 1, seen[*line] - 1)
    })
}

#[test]
fn calls_with_a_key_apply_once_in_every_order_and_never_an_older_after_a_newer() {
    let mut orders = 0;
    every_order(&[3, 3, 3], &mut |order| {
        orders += 1;
        let guard = in_memory();
        let mut newest_seen = 0;
        for (attempt, step) in steps(order) {
            let call = call("job", None, attempt);
            newest_seen = newest_seen.max(attempt);
            let applied_now = match step {
                0 => guard.begin(&call).map(|_| false),
                // The call is sent twice, as a network does.
                _ => guard
                    .finish(&call, note("list", attempt))
                    .map(|answer| answer == applied(attempt)),
            };
            if applied_now.unwrap() {
                assert_eq!(attempt, newest_seen, "older after newer: {order:?}");
            }
        }
        assert_eq!(noted(&guard, "list").len(), 1, "{order:?}");
    });
    assert_eq!(orders, 1_680);
}

#[test]
fn an_attempt_that_stops_halfway_holds_up_nobody() {
    // Attempts 1 and 2 begin and die; only the third goes on.
    every_order(&[1, 1, 2], &mut |order| {
        let guard = in_memory();
        let mut last = None;
        for (attempt, step) in steps(order) {
            let call = call("job", None, attempt);
            if step == 0 {
                let begun = guard.begin(&call).unwrap();
                assert!(attempt < 3 || begun == Begun::Go, "{order:?}");
            } else {
                last = Some(guard.finish(&call, note("list", attempt)).unwrap());
            }
        }
        assert_eq!(last, Some(applied(3)), "{order:?}");
    });
}

#[test]
fn jobs_of_one_line_are_applied_in_the_order_of_their_tokens() {
    // Attempts 1 and 3 are of job a, 2 and 4 of job b; all of them write the same file.
    every_order(&[2, 2, 2, 2], &mut |order| {
        let guard = in_memory();
        for (attempt, _) in steps(order) {
            let key = if attempt % 2 == 1 { "a" } else { "b" };
            guard
                .apply(&call(key, Some("file"), attempt), note("list", attempt))
                .unwrap();
        }
        let list = noted(&guard, "list");
        assert!(list.is_sorted() && (1..=2).contains(&list.len()), "{order:?} {list:?}");
    });
}

/// The steps of an attempt at a resource that knows tokens only. The first does not seal.
fn token_only_step(guard: &AnyGuard, attempt: u64, step: usize, may_apply: &mut [bool; 4]) {
    match (attempt, step) {
        (1, 0) => may_apply[1] = true,
        (_, 0) => may_apply[attempt as usize] = guard.seal("line", token(attempt)).unwrap(),
        (2.., 1) => may_apply[attempt as usize] &= noted(guard, "list").is_empty(),
        _ if may_apply[attempt as usize] => {
            let answer = guard
                .apply_by_token("line", token(attempt), note("list", attempt))
                .unwrap();
            assert!(matches!(answer, Answer::Applied(_) | Answer::Stale));
        }
        _ => {}
    }
}

#[test]
fn f10_sealing_applies_once_in_every_order() {
    // Per attempt: seal, look, apply, and the last call once more. The first attempt's call is sent thrice.
    every_order(&[4, 4, 4], &mut |order| {
        let guard = in_memory();
        let mut may_apply = [false; 4];
        for (attempt, step) in steps(order) {
            token_only_step(&guard, attempt, step, &mut may_apply);
        }
        assert_eq!(noted(&guard, "list").len(), 1, "{order:?}");
    });
}

#[test]
fn f10_without_sealing_some_order_applies_twice() {
    let mut twice = 0;
    every_order(&[1, 1], &mut |order| {
        let guard = in_memory();
        for (attempt, _) in steps(order) {
            guard
                .apply_by_token("line", token(attempt), note("list", attempt))
                .unwrap();
        }
        twice += usize::from(noted(&guard, "list").len() == 2);
    });
    assert!(
        twice > 0,
        "the promise for token-only targets needs sealing, and the guide says so"
    );
}
