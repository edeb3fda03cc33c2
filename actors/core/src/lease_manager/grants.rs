//! Offers and grants: who gets which job, under which token.
//!
//! Owns: tokens, the fair turn over classes, repeated offers (F14). Must never: send a grant that is
//! not in a batch of the same step. Next: `ready.rs`, `outcomes.rs`.

use super::io::{Grant, LeaseEffect};
use super::ready::{ClassId, ReadyEntry, ReadyKey, Turn};
use super::waiting_offers::Asked;
use super::workers::{Granted, Known};
use super::{LeaseManager, Orders, is_expired};
use crate::ids::{JobId, OfferId, Token, WorkerId};
use crate::job::Job;
use crate::limits::{LEASED_BYTES_MAX, LEASES_PER_SHARD_MAX, OFFER_SLOTS_MAX, READY_LOADS_MAX};
use crate::row::{LeasedRow, Row};
use crate::time::{Now, StoreTime};
use std::sync::Arc;

impl LeaseManager {
    /// A worker has room.
    pub(super) fn on_offer(&mut self, now: Now, worker: WorkerId, asked: Asked, waits: bool, out: &mut Orders) {
        self.reconcile(&worker, &[], out);
        self.waiting_offers.drop_of(&worker);
        let known = self.workers.recall(&worker, asked.offer);
        let is_new = matches!(known, Known::New);
        let grants = match known {
            Known::New => self.grant_new(now, &worker, &asked, out),
            Known::Given(granted) => self.grants_left(&granted),
            Known::Forgotten => Vec::new(),
        };
        let more = self.more_for(&asked);
        let apart = self.apart.worst(&asked.lines).filter(|_| !self.holds_back);
        let may_grant_later = self.holds_back || self.has_lease_room();
        let keep = waits && is_new && grants.is_empty() && asked.slots > 0 && may_grant_later;
        let (offer, received_at) = (asked.offer, asked.received_at);
        if keep && self.waiting_offers.keep(worker.clone(), asked) {
            return;
        }
        out.effect(LeaseEffect::SendGrants {
            worker,
            offer,
            received_at,
            grants,
            more,
            apart,
        });
    }

    /// Whether its worker has reason to ask again at once. One that has not is owed a hint when something becomes
    /// ready, also if it got all that it asked for.
    pub(super) fn more_for(&mut self, asked: &Asked) -> bool {
        let more = !self.holds_back && self.ready.has_more(&asked.lines);
        self.hungry |= !more;
        more
    }

    /// Grants up to the offer's room, and remembers what it was given.
    pub(super) fn grant_new(&mut self, now: Now, worker: &WorkerId, asked: &Asked, out: &mut Orders) -> Vec<Grant> {
        let slots = asked.slots.min(OFFER_SLOTS_MAX) as usize;
        let mut grants = Vec::new();
        if asked.apart > 0 && slots > 0 && self.has_lease_room() {
            grants.extend(self.grant_apart(now, worker, asked, out));
        }
        let mut vain_turns = 0;
        while grants.len() < slots && vain_turns < READY_LOADS_MAX && self.has_lease_room() && self.may_move() {
            let Some(queue) = self.ready.next_line(&asked.lines) else {
                break;
            };
            match self.ready.take_turn(&queue) {
                Turn::Job(class, key, entry) if self.stands_elsewhere(class, &entry.job) => {
                    self.move_line((class, key, entry), out);
                    vain_turns += 1;
                }
                Turn::Job(class, key, entry) => grants.extend(self.grant(now, worker, (class, key, entry), out)),
                Turn::Load(class) => {
                    self.order_ready_page(class, out);
                    vain_turns += 1;
                }
                Turn::Nothing => {}
            }
        }
        if grants.len() < slots {
            self.hungry = true;
        }
        if !grants.is_empty() {
            let granted: Granted = grants.iter().map(|grant| (grant.job.id, grant.token)).collect();
            // Nobody says any more when these have left: their leases count from now, or never would.
            for (id, token) in self.workers.remember(worker, asked.offer, granted) {
                if self.leases.current(id, token).is_some() {
                    self.leases.release(id);
                }
            }
        }
        grants
    }

    fn grant(
        &mut self,
        now: Now,
        worker: &WorkerId,
        (class, key, entry): (ClassId, ReadyKey, ReadyEntry),
        out: &mut Orders,
    ) -> Option<Grant> {
        self.delete_taken(class, key, entry.lies, out);
        self.order_ready_page(class, out);
        self.give(now, worker, entry.job, key.1, out)
    }

    fn grant_apart(&mut self, now: Now, worker: &WorkerId, asked: &Asked, out: &mut Orders) -> Option<Grant> {
        let (key, job) = self.apart.take(&asked.lines, asked.apart)?;
        self.delete_wait_row(key, out);
        self.give(now, worker, job, key.0, out)
    }

    /// Its place row is gone in this step.
    fn give(
        &mut self,
        now: Now,
        worker: &WorkerId,
        job: Arc<Job>,
        order: StoreTime,
        out: &mut Orders,
    ) -> Option<Grant> {
        if is_expired(&job, now) {
            self.expire(now, job, out);
            return None;
        }
        let token = self.next_token();
        let row = LeasedRow {
            id: job.id,
            job_version: job.version,
            attempt: job.attempt_next,
            token,
            worker: worker.clone(),
            granted_at: now.store,
            length: self.facts.lease,
            begun: false,
            seen: self.facts.epoch,
            unseen_starts: 0,
            order,
        };
        out.put(Row::Leased(Box::new(row.clone())));
        let grant = Grant {
            job: job.clone(),
            attempt: row.attempt,
            token,
            length: row.length,
            granted_at: row.granted_at,
        };
        self.leases.add(row, job, grant.length, false);
        Some(grant)
    }

    /// The grants of a repeated offer that are still current, with what is left of them.
    fn grants_left(&mut self, granted: &Granted) -> Vec<Grant> {
        let mut grants = Vec::with_capacity(granted.len());
        for (id, token) in granted {
            let Some(lease) = self.leases.get(*id).filter(|lease| lease.row.token == *token) else {
                continue;
            };
            grants.push(Grant {
                job: lease.job.clone(),
                attempt: lease.row.attempt,
                token: *token,
                length: self.leases.left(lease),
                granted_at: lease.row.granted_at,
            });
        }
        grants
    }

    /// The shell has sent the grants of an offer: their leases count from now.
    pub(super) fn on_grants_released(&mut self, worker: &WorkerId, offer: OfferId) {
        for (id, token) in self.workers.given(worker, offer).to_vec() {
            if self.leases.current(id, token).is_some() {
                self.leases.release(id);
            }
        }
    }

    /// They found no way to their worker: nobody has them, and nobody will. What left with an earlier answer may be
    /// at work.
    pub(super) fn on_grants_unsent(&mut self, now: Now, items: Vec<(JobId, Token)>, out: &mut Orders) {
        for (id, token) in items {
            if self.leases.current(id, token).is_some() && !self.leases.is_released(id) {
                self.hand_back(now, id, out);
            }
        }
    }

    fn next_token(&mut self) -> Token {
        self.sequence += 1;
        Token {
            generation: self.facts.generation,
            epoch: self.facts.epoch,
            sequence: self.sequence,
        }
    }

    fn has_lease_room(&self) -> bool {
        !self.holds_back && self.leases.len() < LEASES_PER_SHARD_MAX && self.leases.cost() < LEASED_BYTES_MAX
    }
}
