//! The lease table: every current attempt, and when its lease ends on this owner's waking time.
//!
//! Owns: ends of leases, absence of the owner (F17), grace after an owner start (F16). Must never:
//! compare clocks of two machines, or decide what becomes of a job. Next: `outcomes.rs`.

use super::window::cost_of;
use crate::ids::{Epoch, JobId, Token};
use crate::job::Job;
use crate::limits::BATCH_BYTES_MAX;
use crate::row::LeasedRow;
use crate::shard::ShardFacts;
use crate::time::{Monotonic, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Time that this owner was awake, counted from its open: the clock that leases end by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Awake(u64);

/// A current attempt.
#[derive(Clone, Debug, Hash)]
pub(super) struct Lease {
    /// As stored.
    pub(super) row: LeasedRow,
    /// As stored.
    pub(super) job: Arc<Job>,
    /// When it ends.
    ends_at: Awake,
    /// Under which end it is filed; renewals move `ends_at` only, so that a heartbeat is cheap.
    filed_at: Awake,
    /// The grant has left this node, as far as this owner knows; until then it does not end.
    released: bool,
    /// Its worker is known dead.
    orphan: bool,
    cost: usize,
}

/// All current attempts of a shard.
#[derive(Clone, Debug, Hash)]
pub(super) struct LeaseTable {
    leases: BTreeMap<JobId, Lease>,
    ends: BTreeSet<(Awake, JobId)>,
    orphans: BTreeSet<JobId>,
    cost: usize,
    /// Last step by this node's clock.
    stepped_at: Monotonic,
    /// Since when it has been stepped without a gap.
    awake_since: Monotonic,
    awake: Awake,
    heartbeat: Span,
}

impl Awake {
    fn plus(self, span: Span) -> Awake {
        Awake(self.0.saturating_add(span.0))
    }

    fn left_until(self, end: Awake) -> Span {
        Span(end.0.saturating_sub(self.0))
    }
}

/// How long a stored lease lives after this owner's start (F16): its full length for the first
/// epoch that has not seen it, half for each further one, never below two heartbeats.
pub(super) fn grace(row: &LeasedRow, facts: &ShardFacts) -> Span {
    let starts = facts.epoch.0.saturating_sub(row.seen.0).saturating_sub(1).min(63);
    Span(row.length.0 >> starts).max(facts.heartbeat + facts.heartbeat)
}

impl LeaseTable {
    /// An empty table.
    pub(super) fn new(heartbeat: Span, now: Monotonic) -> LeaseTable {
        LeaseTable {
            leases: BTreeMap::new(),
            ends: BTreeSet::new(),
            orphans: BTreeSet::new(),
            cost: 0,
            stepped_at: now,
            awake_since: now,
            awake: Awake(0),
            heartbeat,
        }
    }

    /// A step begins: a gap of more than a heartbeat is the owner's own absence and counts against
    /// no lease.
    pub(super) fn on_step(&mut self, now: Monotonic) {
        let gap = now.since(self.stepped_at);
        if gap > self.heartbeat {
            self.awake_since = now;
        } else {
            self.awake = self.awake.plus(gap);
        }
        self.stepped_at = self.stepped_at.max(now);
    }

    /// The store answers again: until now no word of a worker counted but heartbeats, so a reap waits as
    /// after an absence (F17).
    pub(super) fn came_back(&mut self, now: Monotonic) {
        self.awake_since = self.awake_since.max(now);
    }

    /// Adds an attempt whose lease has `length` left.
    pub(super) fn add(&mut self, row: LeasedRow, job: Arc<Job>, length: Span, released: bool) {
        let (id, ends_at, cost) = (row.id, self.awake.plus(length), cost_of(&job));
        self.ends.insert((ends_at, id));
        self.cost += cost;
        let lease = Lease {
            row,
            job,
            ends_at,
            filed_at: ends_at,
            released,
            orphan: false,
            cost,
        };
        let twin = self.leases.insert(id, lease);
        assert!(twin.is_none(), "a job has at most one current attempt");
    }

    /// Its worker is known dead: it ends at the next tick.
    pub(super) fn orphan(&mut self, id: JobId) {
        if let Some(lease) = self.leases.get_mut(&id) {
            lease.orphan = true;
            self.orphans.insert(id);
        }
    }

    /// The current attempt, if this is its token.
    pub(super) fn current(&mut self, id: JobId, token: Token) -> Option<&mut Lease> {
        self.leases.get_mut(&id).filter(|lease| lease.row.token == token)
    }

    /// The current attempt of a job.
    pub(super) fn get(&self, id: JobId) -> Option<&Lease> {
        self.leases.get(&id)
    }

    /// The current attempt of a job.
    pub(super) fn get_mut(&mut self, id: JobId) -> Option<&mut Lease> {
        self.leases.get_mut(&id)
    }

    /// Its end was decided: takes it out.
    pub(super) fn remove(&mut self, id: JobId) -> Option<Lease> {
        let lease = self.leases.remove(&id)?;
        self.ends.remove(&(lease.filed_at, id));
        self.orphans.remove(&id);
        self.cost -= lease.cost;
        Some(lease)
    }

    /// Its grant has left this node: its full length counts from now, once.
    pub(super) fn release(&mut self, id: JobId) {
        if self.leases.contains_key(&id) && !self.is_released(id) {
            self.renew(id);
        }
    }

    /// Whether its grant has left this node, as far as this owner knows.
    pub(super) fn is_released(&self, id: JobId) -> bool {
        self.leases.get(&id).is_some_and(|lease| lease.released)
    }

    /// The worker holds it: its full length counts from now.
    pub(super) fn renew(&mut self, id: JobId) {
        let awake = self.awake;
        if let Some(lease) = self.leases.get_mut(&id) {
            lease.released = true;
            lease.ends_at = awake.plus(lease.row.length);
        }
    }

    /// What is left of a lease; all of it while its grant waits for durability.
    pub(super) fn left(&self, lease: &Lease) -> Span {
        if lease.released {
            self.awake.left_until(lease.ends_at)
        } else {
            lease.row.length
        }
    }

    /// Leases to reap now: those of dead workers, then those that ended, at most `count_max` and about
    /// `BATCH_BYTES_MAX` bytes of jobs, each of which is written anew.
    pub(super) fn take_ended(&mut self, count_max: usize) -> Vec<Lease> {
        let mut ended = Vec::new();
        let mut bytes = 0;
        while ended.len() < count_max && bytes < BATCH_BYTES_MAX {
            let next = self.orphans.first().copied().or_else(|| self.next_ended());
            let Some(lease) = next.and_then(|id| self.remove(id)) else {
                break;
            };
            bytes += lease.cost;
            ended.push(lease);
        }
        ended
    }

    /// A reap is decided only after a full heartbeat interval of being awake (F17).
    fn next_ended(&mut self) -> Option<JobId> {
        if self.stepped_at.since(self.awake_since) < self.heartbeat {
            return None;
        }
        while let Some((filed_at, id)) = self.ends.first().copied().filter(|(at, _)| *at <= self.awake) {
            let (awake, heartbeat) = (self.awake, self.heartbeat);
            let lease = self.leases.get_mut(&id)?;
            if lease.released && lease.ends_at <= awake {
                return Some(id);
            }
            let again_at = if lease.released {
                lease.ends_at
            } else {
                awake.plus(heartbeat)
            };
            lease.filed_at = again_at;
            self.ends.remove(&(filed_at, id));
            self.ends.insert((again_at, id));
        }
        None
    }

    /// When to be stepped again, so that absence is noticed and ends are kept.
    pub(super) fn next_wake(&self) -> Option<Monotonic> {
        let (first, _) = self.ends.first()?;
        if !self.orphans.is_empty() {
            return Some(self.stepped_at);
        }
        let ripe_at = self.awake_since + self.heartbeat;
        let ends_at = (self.stepped_at + self.awake.left_until(*first)).max(ripe_at);
        Some(ends_at.min(self.stepped_at + self.heartbeat.half()))
    }

    /// Current attempts.
    pub(super) fn len(&self) -> usize {
        self.leases.len()
    }

    /// Bytes of their jobs.
    pub(super) fn cost(&self) -> usize {
        self.cost
    }

    /// All current attempts, by id.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Lease> {
        self.leases.values()
    }

    /// Panics on a contradiction.
    pub(super) fn check(&self, epoch: Epoch) {
        assert_eq!(self.ends.len(), self.leases.len(), "each lease is filed once");
        let cost: usize = self.leases.values().map(|lease| lease.cost).sum();
        assert_eq!(cost, self.cost, "the table's cost is the sum of its leases");
        for (id, lease) in &self.leases {
            assert_eq!(*id, lease.row.id, "a lease is filed under its job");
            assert_eq!(*id, lease.job.id, "a lease holds its own job");
            assert!(
                self.ends.contains(&(lease.filed_at, *id)),
                "a lease is filed under its end"
            );
            assert!(
                lease.filed_at <= lease.ends_at || !lease.released,
                "no lease is looked at too late"
            );
            assert!(lease.row.token.epoch <= epoch, "no token is from the future");
            assert_eq!(lease.orphan, self.orphans.contains(id), "orphans are listed");
            assert!(!lease.job.state.is_finished(), "a finished job has no lease");
        }
    }
}
