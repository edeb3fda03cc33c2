//! What a worker remembers of one shard: its owner, the open offer, runs, outcomes, hand-backs.
//!
//! Owns: the records. Must never: decide. Next: `offers.rs`, `grants.rs`, `leases.rs`, `outcomes.rs`.

use crate::ids::{BeatId, Epoch, Generation, JobId, OfferId, ShardOwner, Token};
use crate::job::Outcome;
use crate::lease_manager::io::{Grant, Suspect};
use crate::limits;
use crate::time::{Monotonic, Span};
use std::collections::{BTreeMap, VecDeque};

/// An attempt.
pub(super) type Key = (JobId, Token);

/// What a worker remembers of one shard.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct ShardBook {
    /// The newest owner heard of (F17).
    pub(super) owner: (Generation, Epoch),
    /// Said to have work since it was last asked.
    pub(super) hinted: bool,
    /// First of the jobs whose worker was lost that wait there, as last said.
    pub(super) apart_waits: Option<Suspect>,
    /// Left its last offer unanswered; gets small offers until it answers.
    pub(super) slow: bool,
    /// When it was last asked.
    pub(super) asked_at: Option<Monotonic>,
    /// The one offer that waits for its grants.
    pub(super) offer: Option<OpenOffer>,
    /// Which tokens cannot be new.
    pub(super) seen: Seen,
    /// Attempts that use a slot.
    pub(super) runs: BTreeMap<Key, Run>,
    /// Attempts that have ended and are not recorded.
    pub(super) done: BTreeMap<Key, Done>,
    /// Outcomes to send; some may be recorded meanwhile.
    pub(super) unsent: VecDeque<Key>,
    /// Outcomes sent and not recorded.
    pub(super) in_flight: usize,
    /// Delay before they are sent again.
    pub(super) outcome_retry: Span,
    /// Timer.
    pub(super) outcomes_at: Option<Monotonic>,
    /// Handed back and not acknowledged: times sent.
    pub(super) hand_backs: BTreeMap<Key, u32>,
    /// Timer.
    pub(super) hand_backs_at: Option<Monotonic>,
    /// Timer.
    pub(super) heartbeat_at: Option<Monotonic>,
    /// Newest heartbeats and when they were sent, oldest first.
    pub(super) beats: VecDeque<(BeatId, Monotonic)>,
}

/// An offer that waits for its grants.
#[derive(Clone, Debug, Hash)]
pub(super) struct OpenOffer {
    /// Its number.
    pub(super) id: OfferId,
    /// Room it asks for.
    pub(super) slots: u32,
    /// Slots kept free for it; none while its shard cannot be reached.
    pub(super) promised: u32,
    /// Its shard keeps it until something is ready there.
    pub(super) waits: bool,
    /// It has the place for a job that runs apart and lost at most so many workers.
    pub(super) apart: u32,
    /// When it was sent first: leases count from here (F13).
    pub(super) sent_at: Monotonic,
    /// Times sent again.
    pub(super) repeats: u32,
    /// Timer.
    pub(super) repeat_at: Option<Monotonic>,
}

/// An attempt that uses a slot.
#[derive(Clone, Debug, Hash)]
pub(super) struct Run {
    /// How far it is.
    pub(super) phase: Phase,
    /// End of the lease by our own count.
    pub(super) ends_at: Monotonic,
    /// Timer.
    pub(super) lease_at: Option<Monotonic>,
    /// Told to stop because someone cancelled the job.
    pub(super) told_cancel: bool,
    /// Told to stop because the lease is over: held no more.
    pub(super) told_lost: bool,
    /// Told to stop because the drain limit was reached.
    pub(super) told_drain: bool,
}

/// How far an attempt is.
#[derive(Clone, Debug, Hash)]
pub(super) enum Phase {
    /// At-most-once: waits for the durable begin; nothing was started.
    Beginning {
        /// To be started then.
        grant: Box<Grant>,
        /// Timer.
        begin_at: Option<Monotonic>,
    },
    /// Started.
    Running,
}

/// An attempt that has ended.
#[derive(Clone, Debug, Hash)]
pub(super) struct Done {
    /// What came out.
    pub(super) outcome: Outcome,
    /// Renewed until it is recorded (F18); false once the lease is over.
    pub(super) held: bool,
    /// When it was last sent; none while it is in line.
    pub(super) sent_at: Option<Monotonic>,
}

/// The highest sequence granted to us in each of the newest epochs. Sequences grow with each grant,
/// so a token above the mark was never here before, and one that was handed back or run can never
/// be mistaken for new.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Seen {
    marks: BTreeMap<(Generation, Epoch), u64>,
}

impl Seen {
    /// Whether this token was certainly never here.
    pub(super) fn is_new(&self, token: Token) -> bool {
        let epoch = (token.generation, token.epoch);
        match (self.marks.get(&epoch), self.marks.keys().next()) {
            (Some(mark), _) => token.sequence > *mark,
            (None, Some(oldest)) => epoch > *oldest || self.marks.len() < limits::GRANT_EPOCHS_KEPT,
            (None, None) => true,
        }
    }

    /// Remembers it.
    pub(super) fn note(&mut self, token: Token) {
        let mark = self.marks.entry((token.generation, token.epoch)).or_default();
        *mark = token.sequence.max(*mark);
        if self.marks.len() > limits::GRANT_EPOCHS_KEPT {
            self.marks.pop_first();
        }
    }
}

impl ShardBook {
    /// Notes who spoke; false if an older owner did.
    pub(super) fn hear(&mut self, from: ShardOwner) -> bool {
        let heard = (from.generation, from.epoch);
        let current = heard >= self.owner;
        self.owner = self.owner.max(heard);
        current
    }

    /// Whether the attempt is known here.
    pub(super) fn knows(&self, key: &Key) -> bool {
        self.runs.contains_key(key) || self.done.contains_key(key) || self.hand_backs.contains_key(key)
    }

    /// Everything to renew, in order.
    pub(super) fn held(&self) -> impl Iterator<Item = Key> + '_ {
        let runs = self.runs.iter().filter(|(_, run)| !run.told_lost).map(|(key, _)| *key);
        let done = self.done.iter().filter(|(_, done)| done.held).map(|(key, _)| *key);
        runs.chain(done)
    }

    /// When a heartbeat was sent, if its answer is still worth something.
    pub(super) fn beat_sent_at(&self, beat: BeatId) -> Option<Monotonic> {
        self.beats.iter().find(|(id, _)| *id == beat).map(|(_, at)| *at)
    }

    /// Remembers a heartbeat.
    pub(super) fn note_beat(&mut self, beat: BeatId, at: Monotonic) {
        self.beats.push_back((beat, at));
        if self.beats.len() > limits::BEATS_OPEN_MAX {
            self.beats.pop_front();
        }
    }

    /// Whether all that a further offer may bring could be handed back and remembered until it is answered.
    pub(super) fn may_hand_back(&self) -> bool {
        self.hand_backs.len() + limits::OFFER_SLOTS_MAX as usize <= limits::HAND_BACKS_OPEN_MAX
    }

    /// Whether nothing of this shard is left here, nor anything that it does not know yet.
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.done.is_empty() && self.offer.is_none() && self.hand_backs.is_empty()
    }
}

impl Done {
    /// Bytes that it adds to a message, about.
    pub(super) fn bytes(&self) -> usize {
        64 + self.outcome.output.len() + self.outcome.error.as_ref().map_or(0, |text| text.len())
    }
}
