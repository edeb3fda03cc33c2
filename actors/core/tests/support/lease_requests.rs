//! What clients and workers ask of a shard, with what the shell fetches for each.
//!
//! Owns: the requests of `Leases`. Must never: hand in a row that the store does not hold.

use super::lease_harness::Leases;
use super::make::job_id;
use fencepost_core::ids::{BeatId, JobId, OfferId, Slot, Token, WorkerId};
use fencepost_core::job::{Job, Outcome};
use fencepost_core::lease_manager::io::{
    AttemptOutcome, CancelAnswer, CreateItem, Created, Grant, LeaseEffect, LeaseInput, LeaseReply, Recorded, Renewal,
    Settlement,
};
use fencepost_core::machine::ReplyTo;
use fencepost_core::name::Name;
use fencepost_core::refusal::Refusal;
use fencepost_core::row::RowKey;

impl Leases {
    fn reply_to(&mut self) -> ReplyTo {
        self.replies += 1;
        ReplyTo(self.replies)
    }

    fn reply(&mut self, to: ReplyTo) -> LeaseReply {
        let found = self.effects.iter().rev().find_map(|effect| match effect {
            LeaseEffect::Reply(reply, answer) if *reply == to => Some(answer.clone()),
            _ => None,
        });
        found.expect("every request is answered in its step")
    }

    /// Creates jobs; key rows and existing jobs are fetched as the shell does.
    pub fn create_all(&mut self, mut items: Vec<CreateItem>) -> Vec<Result<Created, Refusal>> {
        for item in &mut items {
            let key = item.key.as_ref().map(|(key, _)| {
                RowKey::Key(
                    Slot::of_key(&item.spec.tenant, key),
                    item.spec.tenant.clone(),
                    key.clone(),
                )
            });
            item.key_row = key.and_then(|key| self.rows.key(&key)).map(Box::new);
            let id = item.key_row.as_ref().map_or(item.id, |row| row.job);
            item.existing = self.rows.job(id).map(Box::new);
        }
        let reply = self.reply_to();
        self.step(LeaseInput::CreateJobs { reply, items });
        match self.reply(reply) {
            LeaseReply::Created(answers) => answers,
            other => panic!("{other:?}"),
        }
    }

    pub fn create(&mut self, item: CreateItem) -> Result<Created, Refusal> {
        self.create_all(vec![item]).remove(0)
    }

    pub fn cancel(&mut self, number: u64) -> Result<CancelAnswer, Refusal> {
        let (reply, id) = (self.reply_to(), job_id(number));
        let job = self.rows.job(id).map(Box::new);
        self.step(LeaseInput::CancelJob { reply, id, job });
        match self.reply(reply) {
            LeaseReply::Cancel(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    pub fn retry_dead(&mut self, number: u64) -> Result<Box<Job>, Refusal> {
        let (reply, id) = (self.reply_to(), job_id(number));
        let job = self.rows.job(id).map(Box::new);
        self.step(LeaseInput::RetryDead { reply, id, job });
        match self.reply(reply) {
            LeaseReply::Job(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    pub fn settle(&mut self, number: u64, verdict: Settlement) -> Result<Box<Job>, Refusal> {
        let (reply, id) = (self.reply_to(), job_id(number));
        let job = self.rows.job(id).map(Box::new);
        self.step(LeaseInput::SettleUncertain {
            reply,
            id,
            job,
            verdict,
        });
        match self.reply(reply) {
            LeaseReply::Job(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    /// A fresh offer for all queues.
    pub fn offer(&mut self, worker: &WorkerId, slots: u32) -> Vec<Grant> {
        self.offers += 1;
        self.offer_as(worker, self.offers, slots, &[])
    }

    /// From a worker that runs a job apart already.
    pub fn offer_without_place(&mut self, worker: &WorkerId, slots: u32) -> Vec<Grant> {
        self.offers += 1;
        self.offer_with(worker, (self.offers, 0), slots, &[])
    }

    pub fn offer_as(&mut self, worker: &WorkerId, offer: u64, slots: u32, queues: &[&str]) -> Vec<Grant> {
        self.offer_with(worker, (offer, u32::MAX), slots, queues)
    }

    fn offer_with(&mut self, worker: &WorkerId, (offer, apart): (u64, u32), slots: u32, queues: &[&str]) -> Vec<Grant> {
        let (worker, offer) = (worker.clone(), OfferId(offer));
        let queues = queues.iter().map(|queue| Name::line(queue).unwrap()).collect();
        self.step(LeaseInput::Offer {
            worker: worker.clone(),
            offer,
            slots,
            queues,
            commands: self.commands,
            waits: false,
            apart,
        });
        let found = self.effects.iter().rev().find_map(|effect| match effect {
            LeaseEffect::SendGrants {
                offer: answered,
                grants,
                ..
            } if *answered == offer => Some(grants.clone()),
            _ => None,
        });
        if self.release {
            self.step(LeaseInput::GrantsReleased { worker, offer });
        }
        found.expect("every offer is answered in its step")
    }

    /// Whether the newest answer to an offer said that more is there.
    pub fn more(&self) -> bool {
        let newest = self.effects.iter().rev().find_map(|effect| match effect {
            LeaseEffect::SendGrants { more, .. } => Some(*more),
            _ => None,
        });
        newest.unwrap_or(false)
    }

    /// Renewals and losses.
    pub fn heartbeat(&mut self, worker: &WorkerId, held: &[(JobId, Token)]) -> (Vec<Renewal>, Vec<(JobId, Token)>) {
        let from = self.effects.len();
        self.step(LeaseInput::Heartbeat {
            worker: worker.clone(),
            beat: BeatId(1),
            held: held.to_vec(),
        });
        let (mut renewed, mut gone) = (Vec::new(), Vec::new());
        for effect in &self.effects[from..] {
            match effect {
                LeaseEffect::SendRenewed { held, .. } => renewed.extend(held.iter().copied()),
                LeaseEffect::SendLost { lost, .. } => gone.extend(lost.iter().copied()),
                _ => {}
            }
        }
        (renewed, gone)
    }

    /// Whether the attempt may begin.
    pub fn begin(&mut self, worker: &WorkerId, id: JobId, token: Token) -> bool {
        let from = self.effects.len();
        self.step(LeaseInput::Begin {
            worker: worker.clone(),
            id,
            token,
        });
        self.effects[from..]
            .iter()
            .any(|effect| matches!(effect, LeaseEffect::SendBegun { .. }))
    }

    /// Reports an outcome; the shell fetches the row when the attempt is not current.
    pub fn report(&mut self, worker: &WorkerId, id: JobId, token: Token, outcome: Outcome) -> Recorded {
        let job = (!self.machine.holds(id, token))
            .then(|| self.rows.job(id).map(Box::new))
            .flatten();
        let from = self.effects.len();
        self.step(LeaseInput::Outcomes {
            worker: worker.clone(),
            items: vec![AttemptOutcome {
                id,
                token,
                outcome,
                job,
            }],
        });
        self.recorded_since(from)
    }

    /// Reports several outcomes in one message.
    pub fn report_all(&mut self, worker: &WorkerId, items: Vec<(JobId, Token, Outcome)>) {
        let fill = |(id, token, outcome)| {
            let job = (!self.machine.holds(id, token))
                .then(|| self.rows.job(id).map(Box::new))
                .flatten();
            AttemptOutcome {
                id,
                token,
                outcome,
                job,
            }
        };
        let items = items.into_iter().map(fill).collect();
        self.step(LeaseInput::Outcomes {
            worker: worker.clone(),
            items,
        });
    }

    pub fn hand_back(&mut self, worker: &WorkerId, id: JobId, token: Token) -> Recorded {
        let from = self.effects.len();
        self.step(LeaseInput::HandBack {
            worker: worker.clone(),
            items: vec![(id, token)],
        });
        self.recorded_since(from)
    }

    fn recorded_since(&self, from: usize) -> Recorded {
        let found = self.effects[from..].iter().find_map(|effect| match effect {
            LeaseEffect::SendRecorded { items, .. } => items.first().map(|(_, _, answer)| *answer),
            _ => None,
        });
        found.expect("every report is answered in its step")
    }
}
