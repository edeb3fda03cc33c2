//! The self-audit of an opening: what was loaded is held against its owner and against itself.
//!
//! Owns: what no owner may build upon, whatever else is right; such a shard stays shut, by name, and the
//! others go on. Must never: walk over more than was loaded, or judge one schedule by its rows
//! (`scheduler_shard/contradiction.rs` does, and puts that one aside). Next: `shard.rs`, and
//! `scheduler_shard/audit.rs` for the slow walk over all of history that begins after it.

use crate::ids::{Epoch, Generation, JobId, Token};
use crate::name::Name;
use crate::shard::{ShardFacts, ShardOpened};
use std::collections::BTreeMap;

/// Why a shard that was loaded must not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelfAuditFault {
    /// Tokens of this owner would not be newer: an older attempt could win over a newer one (P4).
    #[error("job {job} is leased under generation {}, epoch {}, which is not before this owner's: the \
             data is older than what was granted from it; restore it anew, with the restore command", .token.generation.0, .token.epoch.0)]
    LaterToken {
        /// Whose lease.
        job: JobId,
        /// Its token.
        token: Token,
    },
    /// Two attempts hold one token: their target cannot tell them apart (P4).
    #[error("jobs {first} and {second} are leased with the same token; restore the data from a backup")]
    SharedToken {
        /// One.
        first: JobId,
        /// The other.
        second: JobId,
    },
    /// A life that this owner could make again, with the same job ids (F27).
    #[error("schedule '{name}' was made under generation {}, epoch {}, which is not before this owner's: \
             restore the data anew, with the restore command", .generation.0, .epoch.0)]
    LaterLife {
        /// The schedule.
        name: Name,
        /// Of its life.
        generation: Generation,
        /// Of its life.
        epoch: Epoch,
    },
    /// What was built in memory contradicts itself.
    #[error("{0}")]
    Memory(&'static str),
}

/// Holds loaded rows against their owner, before anything is built from them. A sound shard never fails it,
/// however often its processes start: each open raises the epoch by one in the step that makes it the owner's,
/// and what an owner grants is of its own epoch, so all that the next one finds is of an earlier one.
pub(crate) fn audit_loaded(facts: &ShardFacts, opened: &ShardOpened) -> Result<(), SelfAuditFault> {
    let owner = (facts.generation, facts.epoch);
    let mut holders: BTreeMap<Token, JobId> = BTreeMap::new();
    for (row, _) in &opened.leases.leased {
        let (job, token) = (row.id, row.token);
        if (token.generation, token.epoch) >= owner {
            return Err(SelfAuditFault::LaterToken { job, token });
        }
        if let Some(first) = holders.insert(token, job) {
            return Err(SelfAuditFault::SharedToken { first, second: job });
        }
    }
    for cursor in &opened.schedules.cursors {
        let (generation, epoch) = (cursor.incarnation.generation, cursor.incarnation.epoch);
        if (generation, epoch) >= owner {
            let name = cursor.name.clone();
            return Err(SelfAuditFault::LaterLife {
                name,
                generation,
                epoch,
            });
        }
    }
    Ok(())
}
