//! The desk: where workers in other languages claim jobs over HTTP, and report them.
//!
//! Owns: the claims of one node and the attempts that were handed out. Each claim is a worker of its own, with as
//! many slots as it asks for, that takes nothing more once it is answered: so leases, late grants, outcomes and
//! hand-backs follow the rules that every worker follows. Must never: hand an attempt to two callers, or say that a
//! report is recorded before it is. Next: `claim.rs` (asking), `attempt.rs` (what was handed out), `seal.rs`, then
//! `../worker/` and `../api/routes/worker.rs`.

mod attempt;
mod claim;
mod seal;

pub use attempt::{Beat, Report};
pub use claim::{Ask, Handed};
pub use seal::Grant;

use crate::chance::SharedChance;
use crate::clock::SharedClock;
use crate::cluster::owners::{Owner, Owners};
use crate::node::lanes::Lane;
use crate::shell::shard_actor::ShardActor;
use crate::targets::TargetRunner;
use actix::Addr;
use attempt::Attempt;
use claim::Claim;
use fencepost_core::ids::{JobId, ShardMap, Token, WorkerId};
use fencepost_core::limits;
use fencepost_core::name::Name;
use fencepost_core::refusal::{Refusal, RefusalKind};
use fencepost_core::time::Span;
use seal::Seal;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An attempt.
type Key = (JobId, Token);

/// What a desk works with.
pub struct DeskParts {
    /// This node's clocks.
    pub clock: SharedClock,
    /// Its chance.
    pub chance: SharedChance,
    /// Its runner; claims use their own.
    pub runner: TargetRunner,
    /// The node's own worker: claims are numbered beside it.
    pub worker: WorkerId,
    /// Which cell.
    pub cell: u128,
    /// How slots are cut.
    pub map: ShardMap,
    /// Owners of shards, by number.
    pub shards: Vec<Addr<ShardActor>>,
    /// Where claims live.
    pub lane: Lane,
    /// Who owns what, where there are other nodes.
    pub owners: Option<Arc<Owners>>,
    /// Length of an attempt's lease; a worker that is silent for so long is lost.
    pub lease: Span,
    /// Interval of heartbeats to shards.
    pub heartbeat: Span,
}

/// Claims and attempts of one node.
pub struct Desk {
    parts: DeskParts,
    seal: Seal,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    claims: BTreeMap<claim::Id, Arc<Claim>>,
    attempts: BTreeMap<Key, Arc<Attempt>>,
    /// Ended ones, oldest first.
    ended: VecDeque<Key>,
    claims_made: u64,
    draining: bool,
}

impl Desk {
    /// Without claims.
    pub fn new(parts: DeskParts) -> Desk {
        Desk {
            seal: Seal::new(&*parts.chance, parts.cell),
            parts,
            state: Mutex::default(),
        }
    }

    /// Claims that wait, or whose attempts have not all ended.
    pub fn open_claims(&self) -> usize {
        self.state().claims.len()
    }

    /// No claims from now on. Answers when what was handed out has ended and is recorded, at the latest after the
    /// span; what is left then is lost to its workers.
    pub async fn drain(&self, within: Span) {
        let claims: Vec<Arc<Claim>> = {
            let mut state = self.state();
            state.draining = true;
            state.claims.values().cloned().collect()
        };
        claims.iter().for_each(|claim| claim.abandon());
        let gone = futures_util::future::join_all(claims.iter().map(|claim| claim.gone()));
        futures_util::future::select(Box::pin(gone), self.parts.clock.sleep(within)).await;
        let left: Vec<Arc<Attempt>> = self.state().attempts.values().cloned().collect();
        left.iter().for_each(|attempt| attempt.lose("the server went away"));
    }

    /// What stands behind a grant of this worker's.
    ///
    /// # Errors
    /// It is none of ours, or too old.
    fn attempt(&self, worker: &Name, grant: &str) -> Result<Arc<Attempt>, Refusal> {
        let grant = self.seal.open(worker, grant).ok_or_else(grant_invalid)?;
        let found = self.state().attempts.get(&(grant.job, grant.token)).cloned();
        found.ok_or_else(|| attempt_lost("it ended long ago"))
    }

    /// Whether an attempt is over, or has ended and its shard is another node's.
    fn is_cut_off(&self, attempt: &Attempt) -> bool {
        let shard = self.parts.map.shard_of(attempt.grant.job.slot());
        let owners = self.parts.owners.as_ref();
        let is_elsewhere = owners.is_some_and(|owners| matches!(owners.owner(shard), Owner::There(_)));
        attempt.is_recorded() || attempt.is_untold() && is_elsewhere
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an ended attempt for repeated reports, and forgets the oldest.
    fn note_end(&self, key: Key) {
        let mut state = self.state();
        state.ended.push_back(key);
        if state.ended.len() > limits::REPORTS_KEPT_MAX
            && let Some(oldest) = state.ended.pop_front()
        {
            state.attempts.remove(&oldest);
        }
    }
}

fn grant_invalid() -> Refusal {
    Refusal::new(
        RefusalKind::Forbidden,
        "grant_invalid",
        "This grant was not given to this worker by this server since its start.",
        "Send worker and grant as the claim answered them, to the server that answered it; else stop this attempt.",
    )
    .at("grant")
}

/// The attempt is not this worker's any more.
fn attempt_lost(why: &str) -> Refusal {
    Refusal::new(
        RefusalKind::Conflict,
        "attempt_lost",
        format!("The attempt is not this worker's any more: {why}."),
        "Stop it, and do not report it again; the job goes on by its retry policy.",
    )
    .at("grant")
}
