//! What must hold of a host after each step.
//!
//! Owns: assertions only. Next: `mod.rs`, `shards.rs`.

use super::Host;
use super::shards::State;
use crate::limits::POSTS_UNANSWERED_MAX;

impl Host {
    /// Panics if it contradicts itself.
    pub fn check(&self) {
        assert_eq!(self.shards.len(), usize::from(self.config.shards));
        assert!(self.sent.len() <= POSTS_UNANSWERED_MAX, "posts are bounded");
        assert!(
            self.sent.keys().all(|beat| *beat <= self.beat),
            "no post from the future"
        );
        for shard in &self.shards {
            assert!(shard.version > 0 || shard.is_idle(), "nothing is claimed without a row");
            match shard.state {
                State::Claiming { posted, .. } => {
                    assert!(shard.is_ours, "a claim rests on a row that names this node");
                    assert!(!self.is_draining, "a node that leaves claims nothing");
                    assert!(posted.is_none_or(|posted| posted <= self.beat), "posted before");
                }
                State::Held { .. } => assert!(shard.is_ours, "what another node was named for is let go"),
                State::Idle | State::Leaving { .. } => {}
            }
        }
        if self.is_drained {
            assert!(self.is_draining, "drained after a drain");
        }
    }
}
