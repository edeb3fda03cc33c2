//! Words of a worker about leases it holds: renewals, begins, and what it may never have received.
//!
//! Owns: renewals (in memory only) and the `seen` mark, once per lease and epoch (F16). Must never: let a
//! heartbeat cost a write otherwise. Next: `leases.rs`, `outcomes.rs`.

use super::io::{LeaseEffect, Renewal};
use super::{LeaseManager, Orders};
use crate::ids::{BeatId, JobId, Token, WorkerId};
use crate::row::Row;

impl LeaseManager {
    /// A worker still holds these.
    pub(super) fn on_heartbeat(
        &mut self,
        (worker, beat): (WorkerId, BeatId),
        held: Vec<(JobId, Token)>,
        out: &mut Orders,
    ) {
        self.reconcile(&worker, &held, out);
        let mut renewals = Vec::with_capacity(held.len());
        let mut lost = Vec::new();
        for (id, token) in held {
            match self.renew(&worker, id, token, out) {
                Some(renewal) => renewals.push(renewal),
                None => lost.push((id, token)),
            }
        }
        if !lost.is_empty() {
            out.effect(LeaseEffect::SendLost {
                worker: worker.clone(),
                lost,
            });
        }
        if !renewals.is_empty() {
            out.effect(LeaseEffect::SendRenewed {
                worker,
                beat,
                held: renewals,
            });
        }
    }

    fn renew(&mut self, worker: &WorkerId, id: JobId, token: Token, out: &mut Orders) -> Option<Renewal> {
        let epoch = self.facts.epoch;
        let lease = self
            .leases
            .current(id, token)
            .filter(|lease| lease.row.worker == *worker)?;
        if lease.row.seen != epoch {
            lease.row.seen = epoch;
            lease.row.unseen_starts = 0;
            out.put(Row::Leased(Box::new(lease.row.clone())));
        }
        let length = lease.row.length;
        if lease.job.cancel_requested_at.is_some() {
            // Apart from the renewal, which overtakes the batch that may still hold the cancel (F3).
            out.effect(LeaseEffect::SendCancel {
                worker: worker.clone(),
                id,
                token,
            });
        }
        self.leases.renew(id);
        Some(Renewal { id, token, length })
    }

    /// A worker is about to begin an at-most-once attempt: from now on it is unproven (F15).
    pub(super) fn on_begin(&mut self, worker: WorkerId, id: JobId, token: Token, out: &mut Orders) {
        let current = self
            .leases
            .current(id, token)
            .filter(|lease| lease.row.worker == worker);
        let Some(lease) = current else {
            out.effect(LeaseEffect::SendLost {
                worker,
                lost: vec![(id, token)],
            });
            return;
        };
        if !lease.row.begun {
            lease.row.begun = true;
            out.put(Row::Leased(Box::new(lease.row.clone())));
        }
        self.leases.renew(id);
        out.effect(LeaseEffect::SendBegun { worker, id, token });
    }

    /// At a worker's first word in this epoch: asks about grants of earlier owners that it does not name.
    pub(super) fn reconcile(&mut self, worker: &WorkerId, held: &[(JobId, Token)], out: &mut Orders) {
        let mut items = self.workers.greet(worker);
        items.retain(|(id, token)| !held.contains(&(*id, *token)) && self.leases.current(*id, *token).is_some());
        if !items.is_empty() {
            out.effect(LeaseEffect::SendReconcile {
                worker: worker.clone(),
                items,
            });
        }
    }
}
