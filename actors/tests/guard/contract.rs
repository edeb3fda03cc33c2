//! What each answer means, one history at a time, on every ledger.

use std::path::Path;

use fencepost::guard::fjall::FjallLedger;
use fencepost::guard::{Answer, Begun, Call, Guard, GuardError};
use fencepost_core::limits::{GUARD_KEY_BYTES_MAX, GUARD_RESULT_BYTES_MAX};
use fencepost_core::time::StoreTime;

use crate::{already, applied, call, note, noted, on_each_ledger, token};

#[test]
fn a_key_is_applied_once_and_its_result_is_kept() {
    on_each_ledger(|guard| {
        assert_eq!(guard.apply(&call("a", None, 1), note("list", 1)), Ok(applied(1)));
        for sequence in [1, 2, 9] {
            assert_eq!(
                guard.apply(&call("a", None, sequence), note("list", sequence)),
                Ok(already(1))
            );
        }
        assert_eq!(guard.apply(&call("b", None, 1), note("list", 1)), Ok(applied(1)));
        assert_eq!(noted(guard, "list"), [1, 1]);
    });
}

#[test]
fn a_newer_attempt_takes_over_and_the_older_can_no_longer_finish() {
    on_each_ledger(|guard| {
        assert_eq!(guard.begin(&call("a", None, 1)), Ok(Begun::Go));
        assert_eq!(guard.begin(&call("a", None, 1)), Ok(Begun::InProgress));
        assert_eq!(
            guard.apply(&call("a", None, 1), note("list", 1)),
            Ok(Answer::InProgress)
        );
        assert_eq!(guard.begin(&call("a", None, 2)), Ok(Begun::Go));
        assert_eq!(guard.finish(&call("a", None, 1), note("list", 1)), Ok(Answer::Stale));
        assert_eq!(guard.begin(&call("a", None, 1)), Ok(Begun::Stale));
        assert_eq!(guard.finish(&call("a", None, 2), note("list", 2)), Ok(applied(2)));
        assert_eq!(guard.finish(&call("a", None, 2), note("list", 2)), Ok(already(2)));
        assert_eq!(guard.begin(&call("a", None, 3)), Ok(Begun::Already(b"by 2".to_vec())));
        assert_eq!(noted(guard, "list"), [2]);
    });
}

#[test]
fn nothing_finishes_that_was_not_begun() {
    on_each_ledger(|guard| {
        assert_eq!(guard.finish(&call("a", None, 1), note("list", 1)), Ok(Answer::Stale));
        assert_eq!(noted(guard, "list"), [0; 0]);
    });
}

#[test]
fn a_refused_effect_changes_nothing_but_the_fence() {
    on_each_ledger(|guard| {
        let refused = guard.apply(&call("a", None, 2), |effects| {
            effects.put(b"list", vec![0; 8]);
            Err(GuardError::Refused("no funds".into()))
        });
        assert_eq!(refused, Err(GuardError::Refused("no funds".into())));
        assert_eq!(noted(guard, "list"), [0; 0]);
        assert_eq!(guard.apply(&call("a", None, 1), note("list", 1)), Ok(Answer::Stale));
        assert_eq!(guard.apply(&call("a", None, 2), note("list", 2)), Ok(applied(2)));
    });
}

#[test]
fn f12_a_zombie_of_one_job_cannot_write_after_a_later_job_of_its_line() {
    on_each_ledger(|guard| {
        let line = Some("report.csv");
        assert_eq!(guard.apply(&call("second", line, 5), note("list", 5)), Ok(applied(5)));
        assert_eq!(guard.apply(&call("first", line, 1), note("list", 1)), Ok(Answer::Stale));
        assert_eq!(guard.apply(&call("first", line, 6), note("list", 6)), Ok(applied(6)));
        assert_eq!(
            guard.apply(&call("elsewhere", None, 1), note("list", 1)),
            Ok(applied(1))
        );
        assert_eq!(noted(guard, "list"), [5, 6, 1]);
    });
}

#[test]
fn f10_a_fence_alone_lets_two_attempts_apply() {
    on_each_ledger(|guard| {
        assert_eq!(guard.apply_by_token("line", token(1), note("list", 1)), Ok(applied(1)));
        assert_eq!(guard.apply_by_token("line", token(2), note("list", 2)), Ok(applied(2)));
        assert_eq!(
            noted(guard, "list"),
            [1, 2],
            "no fence misbehaved, and the effect is there twice"
        );
    });
}

#[test]
fn f10_sealing_first_makes_it_one() {
    on_each_ledger(|guard| {
        // The second attempt seals before the first one's late call arrives.
        assert_eq!(guard.seal("early", token(2)), Ok(true));
        assert_eq!(
            guard.apply_by_token("early", token(1), note("early", 1)),
            Ok(Answer::Stale)
        );
        assert!(noted(guard, "early").is_empty());
        assert_eq!(
            guard.apply_by_token("early", token(2), note("early", 2)),
            Ok(applied(2))
        );
        assert_eq!(
            guard.apply_by_token("early", token(2), note("early", 2)),
            Ok(Answer::Stale)
        );
        assert_eq!(noted(guard, "early"), [2]);
        // The first one's call had arrived: the second sees the effect and leaves it at that.
        assert_eq!(guard.apply_by_token("late", token(1), note("late", 1)), Ok(applied(1)));
        assert_eq!(guard.seal("late", token(2)), Ok(true));
        assert_eq!(noted(guard, "late"), [1]);
        assert_eq!(guard.seal("late", token(1)), Ok(false));
        // Sealing twice does not open a used token again.
        assert_eq!(guard.apply_by_token("late", token(3), note("late", 3)), Ok(applied(3)));
        assert_eq!(guard.seal("late", token(3)), Ok(true));
        assert_eq!(
            guard.apply_by_token("late", token(3), note("late", 3)),
            Ok(Answer::Stale)
        );
    });
}

#[test]
fn keys_and_results_have_bounds() {
    on_each_ledger(|guard| {
        let long = "k".repeat(GUARD_KEY_BYTES_MAX + 1);
        for key in ["", &long] {
            assert_eq!(
                guard.apply(&call(key, None, 1), note("list", 1)),
                Err(GuardError::Input)
            );
            assert_eq!(guard.begin(&call("a", Some(key), 1)), Err(GuardError::Input));
            assert_eq!(guard.seal(key, token(1)), Err(GuardError::Input));
        }
        let big = guard.apply(&call("a", None, 1), |_| Ok(vec![0; GUARD_RESULT_BYTES_MAX + 1]));
        assert_eq!(big, Err(GuardError::Input));
        assert_eq!(
            guard.apply(&call("a", None, 1), note("list", 1)),
            Ok(applied(1)),
            "nothing was stored"
        );
    });
}

#[test]
fn an_effect_sees_its_own_changes() {
    on_each_ledger(|guard| {
        guard
            .apply(&call("a", None, 1), |effects| {
                effects.put(b"row", b"one".to_vec());
                assert_eq!(effects.get(b"row")?.as_deref(), Some(&b"one"[..]));
                effects.delete(b"row");
                assert_eq!(effects.get(b"row")?, None);
                Ok(vec![])
            })
            .unwrap();
        assert_eq!(guard.read(b"row"), Ok(None));
    });
}

#[test]
fn old_keys_are_purged_page_by_page() {
    on_each_ledger(|guard| {
        for (key, secs) in [("a", 10), ("b", 30), ("c", 10), ("d", 10), ("e", 30)] {
            let call = Call {
                now: StoreTime::from_secs(secs),
                ..call(key, None, 1)
            };
            guard.apply(&call, note("list", 1)).unwrap();
        }
        let (mut after, mut pages) = (None, 0);
        loop {
            pages += 1;
            after = guard.purge(StoreTime::from_secs(20), after.as_deref(), 2).unwrap();
            if after.is_none() {
                break;
            }
        }
        assert_eq!(pages, 3);
        let is_kept = |key| guard.apply(&call(key, None, 1), note("list", 1)).unwrap() == already(1);
        assert_eq!(
            ["a", "b", "c", "d", "e"].map(is_kept),
            [false, true, false, false, true]
        );
    });
}

fn open(folder: &Path) -> Guard<FjallLedger> {
    Guard::new(FjallLedger::open(folder).unwrap())
}

#[test]
fn keys_fences_and_effects_survive_a_restart_together() {
    let folder = tempfile::tempdir().unwrap();
    {
        let guard = open(folder.path());
        guard.apply(&call("a", Some("line"), 2), note("list", 2)).unwrap();
        guard.begin(&call("b", None, 3)).unwrap();
        guard.seal("sealed", token(7)).unwrap();
    }
    let guard = open(folder.path());
    assert_eq!(
        guard.apply(&call("a", Some("line"), 3), note("list", 3)),
        Ok(already(2))
    );
    assert_eq!(
        guard.apply(&call("c", Some("line"), 1), note("list", 1)),
        Ok(Answer::Stale)
    );
    assert_eq!(guard.begin(&call("b", None, 3)), Ok(Begun::InProgress));
    assert_eq!(
        guard.apply_by_token("sealed", token(6), note("list", 6)),
        Ok(Answer::Stale)
    );
    assert_eq!(guard.read(b"list").unwrap().map(|list| list.len()), Some(8));
}
