//! Offers that found nothing and are kept: what becomes ready is granted to them in the same step.
//!
//! Owns: at most one offer of each worker, for a bounded time, served in turn. So an idle cell pays one
//! commit from due to started, not two and a round trip. Must never: be a promise: a kept offer that is
//! lost costs only the wait until the worker's next one (PROTOCOL F8); its lease counts from its
//! sending, the wait included (F13). Next: `grants.rs`.

use super::io::LeaseEffect;
use super::lines::Lines;
use super::{LeaseManager, Orders};
use crate::ids::{OfferId, WorkerId};
use crate::limits::{OFFER_KEPT_MS, WORKERS_REMEMBERED_MAX};
use crate::time::{Monotonic, Now, Span};
use std::collections::BTreeMap;
use std::ops::Bound;

/// What a worker asked for.
#[derive(Clone, Debug, Hash)]
pub(super) struct Asked {
    pub(super) offer: OfferId,
    pub(super) slots: u32,
    pub(super) lines: Lines,
    /// The worst of the jobs that run apart may be among the grants if it lost at most so many workers; 0 in an
    /// offer that waits.
    pub(super) apart: u32,
    pub(super) received_at: Monotonic,
}

/// One waiting offer a worker.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct WaitingOffers {
    by_worker: BTreeMap<WorkerId, Asked>,
    /// Who was served last.
    turn: Option<WorkerId>,
}

impl WaitingOffers {
    /// Keeps an offer; false if there is no room for another worker.
    pub(super) fn keep(&mut self, worker: WorkerId, asked: Asked) -> bool {
        let has_room = self.by_worker.len() < WORKERS_REMEMBERED_MAX || self.by_worker.contains_key(&worker);
        if has_room {
            self.by_worker.insert(worker, asked);
        }
        has_room
    }

    /// A worker has one offer at a time: any word about another ends this one.
    pub(super) fn drop_of(&mut self, worker: &WorkerId) {
        self.by_worker.remove(worker);
    }

    /// The next in turn after `last`, once round.
    fn after(&self, last: Option<&WorkerId>) -> Option<WorkerId> {
        let rest = last.and_then(|last| self.by_worker.range((Bound::Excluded(last), Bound::Unbounded)).next());
        rest.or_else(|| self.by_worker.iter().next())
            .map(|(worker, _)| worker.clone())
    }

    /// Panics on a contradiction.
    pub(super) fn check(&self) {
        assert!(
            self.by_worker.len() <= WORKERS_REMEMBERED_MAX,
            "kept offers are bounded"
        );
        assert!(
            self.by_worker.values().all(|asked| asked.slots > 0),
            "a kept offer has room"
        );
    }
}

impl LeaseManager {
    /// Grants what became ready to the offers that wait, each worker in its turn.
    pub(super) fn serve_waiting_offers(&mut self, now: Now, out: &mut Orders) {
        for _ in 0..self.waiting_offers.by_worker.len() {
            if !self.ready.has_any() {
                return;
            }
            let Some(worker) = self.waiting_offers.after(self.waiting_offers.turn.as_ref()) else {
                return;
            };
            self.waiting_offers.turn = Some(worker.clone());
            let Some(asked) = self.waiting_offers.by_worker.remove(&worker) else {
                return;
            };
            // Its sender asks anew by now; a grant would come too late for it.
            if now.mono.since(asked.received_at) > Span::from_millis(OFFER_KEPT_MS) {
                continue;
            }
            let grants = self.grant_new(now, &worker, &asked, out);
            if grants.is_empty() {
                self.waiting_offers.by_worker.insert(worker, asked);
                continue;
            }
            let more = self.more_for(&asked);
            let apart = self.apart.worst(&asked.lines);
            out.effect(LeaseEffect::SendGrants {
                worker,
                offer: asked.offer,
                received_at: asked.received_at,
                grants,
                more,
                apart,
            });
        }
    }
}
