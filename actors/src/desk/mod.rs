//! The desk: where workers in other languages claim jobs over HTTP, and report them.
//!
//! Owns: the claims of one node and the attempts that were handed out. Each claim is a worker of its own, with as
//! many slots as it asks for, that takes nothing more once it is answered: so leases, late grants, outcomes and
//! hand-backs follow the rules that every worker follows. Must never: hand an attempt to two callers, or say that a
//! report is recorded before it is. Next: `claim.rs` (asking), `attempt.rs` (what was handed out), `clerk.rs` (late
//! words), `seal.rs`, then `../worker/` and `../api/routes/worker.rs`.

mod attempt;
mod claim;
mod clerk;
mod ended;
mod seal;

pub use attempt::{Beat, Report};
pub use claim::{Ask, Handed};
pub use seal::{Grant, GrantKey};

use crate::chance::SharedChance;
use crate::clock::SharedClock;
use crate::cluster::near_workers::GiveBack;
use crate::cluster::work::Ways;
use crate::node::lanes::Lane;
use crate::node::level::CellLevel;
use crate::node::margin_of;
use crate::node::trust::ClockWatch;
use crate::targets::TargetRunner;
use attempt::Attempt;
use claim::Claim;
use clerk::Clerk;
use ended::Ended;
use fencepost_core::ids::{JobId, ShardMap, Token, WorkerId};
use fencepost_core::lease_manager::io::Recorded;
use fencepost_core::limits::LINK_SILENT_MS;
use fencepost_core::name::Name;
use fencepost_core::refusal::{Refusal, RefusalKind};
use fencepost_core::time::{Monotonic, Span};
use futures_util::future::{join_all, select};
use seal::Seal;
use std::collections::BTreeMap;
use std::pin::pin;
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
    /// What its grants are sealed with.
    pub grant_key: GrantKey,
    /// How slots are cut.
    pub map: ShardMap,
    /// What is known of this node's clock: without trust claims ask for nothing.
    pub trust: Arc<ClockWatch>,
    /// The ways to the owners of shards.
    pub ways: Ways,
    /// Where claims live.
    pub lane: Lane,
    /// The cell's, as last seen.
    pub level: Arc<CellLevel>,
    /// Length of an attempt's lease; a worker that is silent for so long is lost.
    pub lease: Span,
    /// Interval of heartbeats to shards.
    pub heartbeat: Span,
}

/// Claims and attempts of one node.
pub struct Desk {
    parts: DeskParts,
    seal: Seal,
    clerk: Clerk,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    claims: BTreeMap<claim::Id, Arc<Claim>>,
    attempts: BTreeMap<Key, Arc<Attempt>>,
    ended: Ended,
    claims_made: u64,
    draining: bool,
}

impl State {
    fn forget(&mut self, now: Monotonic) {
        for key in self.ended.forget(now) {
            self.attempts.remove(&key);
        }
    }
}

impl Desk {
    /// Without claims.
    pub fn new(parts: DeskParts) -> Desk {
        Desk {
            seal: Seal::new(parts.grant_key.clone(), parts.cell),
            parts,
            clerk: Clerk::default(),
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
        let gone = async {
            join_all(claims.iter().map(|claim| claim.gone())).await;
            self.drain_clerk(within).await;
        };
        select(pin!(gone), self.parts.clock.sleep(within)).await;
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
        found.ok_or_else(|| attempt_lost(OF_EARLIER))
    }

    /// The same for a report: what an earlier start of this node handed out, or what was forgotten, has ended here
    /// without a word, and this may be the word.
    ///
    /// # Errors
    /// It is none of ours; or no late word is taken now.
    fn reported(&self, worker: &Name, grant: &str) -> Result<Arc<Attempt>, Refusal> {
        let grant = self.seal.open(worker, grant).ok_or_else(grant_invalid)?;
        let mut state = self.state();
        let key = (grant.job, grant.token);
        if let Some(found) = state.attempts.get(&key) {
            return Ok(found.clone());
        }
        if !self.parts.level.get().hears_late_words() {
            return Err(attempt_lost(OF_EARLIER));
        }
        if state.ended.is_full() {
            return Err(outcome_unknown());
        }
        let attempt = Arc::new(Attempt::of_earlier(self, grant));
        state.attempts.insert(key, attempt.clone());
        Ok(attempt)
    }

    /// Gives back what was granted to claims that are gone.
    pub fn for_the_gone(self: &Arc<Self>) -> GiveBack {
        let desk = Arc::downgrade(self);
        Box::new(move |items| {
            if let Some(desk) = desk.upgrade() {
                desk.give_back(items);
            }
        })
    }

    /// So much earlier than its owner or this node ends an attempt, whoever has it must stop.
    fn lease_margin(&self) -> Span {
        margin_of(self.parts.lease)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An attempt has ended; whether that is recorded is known later, or was before.
    fn note_end(&self, attempt: &Attempt) {
        let mut state = self.state();
        if !attempt.is_recorded() {
            state.ended.end(attempt.key());
        }
    }

    /// Keeps a recorded attempt for repeated reports, and forgets the oldest of these.
    fn note_recorded(&self, key: Key, recorded: Recorded) {
        let mut state = self.state();
        let Some(attempt) = state.attempts.get(&key).cloned() else {
            return;
        };
        if !attempt.note_recorded(recorded) {
            return;
        }
        state.ended.record(key);
        state.forget(self.parts.clock.mono());
    }

    /// Its lease is over, and nothing is said of it: its owner may not know that yet, if it was away itself (F17).
    fn note_forfeited(&self, attempt: &Attempt) {
        let now = self.parts.clock.mono();
        let until = now + self.parts.lease + self.parts.lease + Span::from_millis(LINK_SILENT_MS);
        let mut state = self.state();
        if attempt.note_recorded(Recorded::Stale) {
            state.ended.forfeit(attempt.key(), until);
        }
        state.forget(now);
    }

    /// A late report goes to the owner, or has been answered.
    fn note_late(&self, key: Key, is_answered: bool) {
        let mut state = self.state();
        match is_answered {
            true => state.ended.record(key),
            false => state.ended.reopen(key),
        }
        state.forget(self.parts.clock.mono());
    }
}

/// Why an attempt that is not known here is over.
const OF_EARLIER: &str = "it ended long ago, or with an earlier start of this server";

/// Its report, or what becomes of it, is not settled yet.
fn outcome_unknown() -> Refusal {
    Refusal::new(
        RefusalKind::Unavailable,
        crate::problem::OUTCOME_UNKNOWN,
        "Whether the report is recorded is not known yet.",
        "Send the same report again until it is answered otherwise.",
    )
}

fn grant_invalid() -> Refusal {
    Refusal::new(
        RefusalKind::Forbidden,
        "grant_invalid",
        "This grant was not given to this worker by this server.",
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
