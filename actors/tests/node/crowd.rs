//! More requests at once than a shard's mailbox holds.
//!
//! Owns: that the rest is refused at once and the shard goes on. Next: `../../src/node/resend.rs`.

use super::*;
use fencepost_core::ids::ShardId;
use fencepost_core::limits::MAILBOX_MAX;
use fencepost_core::refusal::RefusalKind;
use futures_util::future::join_all;

/// Slots of the mailbox that a sender has beside its length.
const SENDERS: usize = 64;

#[test]
fn what_a_full_mailbox_does_not_hold_is_refused_at_once_and_all_else_is_done() {
    run(async {
        let world = World::new();
        let node = world.start().await;
        let shard = ShardId(0);
        let is_its_own = |id: &JobId| node.gateway.shard_map().shard_of(id.slot()) == shard;
        let ids = (0..).map(|_| fresh(&node)).filter(is_its_own);
        let ids: Vec<JobId> = ids.take(2 * MAILBOX_MAX).collect();
        // All are sent before the shard gets to run.
        let creation = |id: &JobId| ShardRequest::CreateJobs(vec![item(*id, "noop")]);
        let sent: Vec<_> = ids.iter().map(|id| node.gateway.call(shard, creation(id))).collect();
        let (mut made, mut refused) = (Vec::new(), 0);
        for (id, answer) in ids.iter().zip(join_all(sent).await) {
            match answer {
                Ok(_) => made.push(*id),
                Err(refusal) => {
                    assert_eq!((refusal.kind, refusal.code), (RefusalKind::Limited, "shard_busy"));
                    refused += 1;
                }
            }
        }
        assert!(
            made.len() >= MAILBOX_MAX && made.len() <= MAILBOX_MAX + SENDERS,
            "{}",
            made.len()
        );
        assert!(refused > 0);
        for id in &made {
            assert!(
                node.gateway.job(*id).await.unwrap().is_some(),
                "acknowledged and not there"
            );
        }
        let later = fresh(&node);
        assert_eq!(create(&node, item(later, "noop")).await, later, "there is room again");
    });
}
