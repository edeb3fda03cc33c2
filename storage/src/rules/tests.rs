//! The judgements, one by one. The conformance suite repeats them on whole stores.

use super::*;
use fencepost_core::ids::{BatchNo, Holder, ShardId};
use fencepost_core::name::Name;
use fencepost_core::time::StoreTime;
use std::sync::Arc;

const SCOPE: Scope = Scope::Shard(ShardId(1));

fn row(epoch: u64, holder: u128, batch: u64) -> ScopeRow {
    ScopeRow {
        scope: SCOPE,
        epoch: Epoch(epoch),
        holder: Holder(holder),
        batch: BatchNo(batch),
        digest: [7; 32],
        at: StoreTime(9),
    }
}

fn commit(epoch: u64, holder: u128, number: u64, digest: u8) -> Commit {
    Commit {
        scope: SCOPE,
        holder: Holder(holder),
        epoch: Epoch(epoch),
        number: BatchNo(number),
        batch: Arc::new(Batch {
            digest: [digest; 32],
            ..Batch::default()
        }),
    }
}

fn open(expected: u64, holder: u128) -> Open {
    Open {
        scope: SCOPE,
        holder: Holder(holder),
        expected: Epoch(expected),
        node: Name::new("n").unwrap(),
    }
}

#[test]
fn f02_only_the_next_number_of_this_holder_is_applied() {
    let now = row(3, 5, 10);
    let judge = |request: Commit| judge_commit(Some(&now), &request);
    assert_eq!(judge(commit(3, 5, 11, 0)), Judgement::Apply(now.clone()));
    assert_eq!(judge(commit(3, 5, 10, 7)), Judgement::Already(now.clone()));
    assert_eq!(judge(commit(3, 5, 9, 0)), Judgement::Already(now.clone()));
    assert_eq!(judge(commit(3, 5, 12, 0)), Judgement::Stale);
    assert_eq!(judge(commit(3, 5, 0, 0)), Judgement::Stale);
    assert_eq!(judge(commit(2, 5, 11, 0)), Judgement::Stale);
    assert_eq!(judge(commit(4, 5, 11, 0)), Judgement::Stale);
    assert_eq!(judge(commit(3, 6, 11, 0)), Judgement::Stale);
    assert!(matches!(judge(commit(3, 5, 10, 8)), Judgement::Conflict(_)));
    assert_eq!(judge_commit(None, &commit(0, 5, 1, 0)), Judgement::Stale);
}

#[test]
fn f06_an_open_is_a_compare_and_set_with_one_answer_per_nonce() {
    let now = row(3, 5, 10);
    assert_eq!(judge_open(None, true, &open(0, 1)), OpenJudgement::Raise(Epoch(1)));
    assert_eq!(judge_open(None, true, &open(1, 1)), OpenJudgement::Moved);
    assert_eq!(judge_open(None, false, &open(0, 1)), OpenJudgement::NotAssigned);
    assert_eq!(
        judge_open(Some(&now), true, &open(3, 9)),
        OpenJudgement::Raise(Epoch(4))
    );
    assert_eq!(judge_open(Some(&now), true, &open(2, 9)), OpenJudgement::Moved);
    assert_eq!(
        judge_open(Some(&now), false, &open(2, 5)),
        OpenJudgement::Same(now.clone())
    );
    assert_eq!(judge_open(Some(&now), true, &open(1, 5)), OpenJudgement::Moved);
    let full = row(u64::MAX, 5, 1);
    assert_eq!(judge_open(Some(&full), true, &open(u64::MAX, 9)), OpenJudgement::Moved);
}

#[test]
fn a_key_is_shown_with_its_kind_and_bounded() {
    assert_eq!(shown(&[0x30, 1, 255]), "job:01ff");
    assert_eq!(shown(&[0xee]), "?:");
    assert!(shown(&[0x30; 500]).len() < 140);
}
