//! What an owner is told: messages of workers and clients as inputs, and the rows that it fetches.
//!
//! Owns: the translation. Must never: decide. Next: `shell.rs`.

use crate::scope::{job_id, worker_id};
use crate::shell::Word;
use crate::wire::{FromWorker, Life};
use crate::world::World;
use fencepost_core::ids::{Epoch, ShardId, Token};
use fencepost_core::job::Job;
use fencepost_core::lease_manager::io::{AttemptOutcome, LeaseInput, SweptJob};
use fencepost_core::lease_manager::sweep_keys;
use fencepost_core::machine::ReplyTo;
use fencepost_core::row::{ReadyRow, Row, RowKey, WaitRow};

impl World {
    pub fn ready_rows(&self) -> Vec<(ReadyRow, Job)> {
        let job = self.store.job();
        let rows = self.store.rows.values();
        rows.filter_map(|row| match row {
            Row::Ready(row) => Some((row.clone(), job?.clone())),
            _ => None,
        })
        .collect()
    }

    pub fn wait_rows(&self) -> Vec<(WaitRow, Job)> {
        let job = self.store.job();
        let rows = self.store.rows.values();
        rows.filter_map(|row| match row {
            Row::Wait(row) => Some((row.clone(), job?.clone())),
            _ => None,
        })
        .collect()
    }

    pub fn swept_rows(&self) -> Vec<SweptJob> {
        let Some(job) = self.store.job() else { return Vec::new() };
        let keys = sweep_keys(ShardId(0), job);
        let rows = keys.iter().filter_map(|key: &RowKey| self.store.rows.get(key).cloned());
        vec![SweptJob {
            job: job.clone(),
            rows: rows.collect(),
        }]
    }

    /// What an owner is told when a worker's message arrives, and the tokens that it speaks for.
    pub fn word_of(&self, epoch: Epoch, life: Life, said: FromWorker) -> (LeaseInput, Vec<Token>) {
        let worker = worker_id(life.0, life.1);
        match said {
            FromWorker::Offer(offer, slots, waits, apart) => {
                let queues = Vec::new();
                let input = LeaseInput::Offer {
                    worker,
                    offer,
                    slots,
                    queues,
                    commands: true,
                    waits,
                    apart,
                };
                (input, Vec::new())
            }
            FromWorker::Heartbeat(beat, held) => (LeaseInput::Heartbeat { worker, beat, held }, Vec::new()),
            FromWorker::Begin(id, token) => (LeaseInput::Begin { worker, id, token }, vec![token]),
            FromWorker::HandBack(items) => {
                let tokens = items.iter().map(|(_, token)| *token).collect();
                (LeaseInput::HandBack { worker, items }, tokens)
            }
            FromWorker::Outcomes(items) => {
                let tokens = items.iter().map(|(_, token, _)| *token).collect();
                let shell = self.owners.iter().find(|shell| shell.epoch == epoch);
                let items = items.into_iter().map(|(id, token, outcome)| AttemptOutcome {
                    id,
                    token,
                    outcome,
                    job: self
                        .store
                        .job()
                        .filter(|_| shell.is_some_and(|shell| !shell.machine.holds(id, token)))
                        .map(|job| Box::new(job.clone())),
                });
                let items = items.collect();
                (LeaseInput::Outcomes { worker, items }, tokens)
            }
        }
    }

    /// A client cancels the job.
    pub fn cancel(&mut self) -> Result<(), String> {
        let Some(epoch) = self.newest() else { return Ok(()) };
        let input = LeaseInput::CancelJob {
            reply: ReplyTo(1),
            id: job_id(),
            job: self.store.job().map(|job| Box::new(job.clone())),
        };
        let (spoken_for, hangs) = (Vec::new(), false);
        self.step_owner(
            epoch,
            Word {
                input,
                spoken_for,
                hangs,
            },
        )
    }
}
