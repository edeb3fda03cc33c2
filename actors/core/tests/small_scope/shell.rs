//! A shard's shell around the real LeaseManager: step, commit, then release.
//!
//! Owns: durable before visible, and the faults of an owner. Must never: decide. Next: `nodes.rs`.

use crate::scope::{Fault, HEARTBEAT, LEASE, worker_id};
use crate::store::Batch;
use crate::wire::Packet;
use crate::world::World;
use fencepost_core::ids::{Epoch, Generation, Holder, ShardId, ShardMap, ShardOwner, Token, WorkerId};
use fencepost_core::lease_manager::LeaseManager;
use fencepost_core::lease_manager::io::{CancelAnswer, LeaseEffect, LeaseInput, LeaseOpened, LeaseReply};
use fencepost_core::machine::{Expect, Out, Write};
use fencepost_core::row::{LeasedRow, Row};
use fencepost_core::shard::ShardFacts;
use fencepost_core::time::{Span, StoreTime};
use fencepost_core::worker::io::WorkerInput;

/// An owner's shell.
#[derive(Clone)]
pub struct Shell {
    pub epoch: Epoch,
    pub machine: LeaseManager,
    /// Set while its commit hangs: it takes nothing, and these wait.
    pub waiting: Option<Vec<LeaseEffect>>,
}

/// What is stepped, the tokens that it speaks for, and whether its commit hangs.
pub struct Word {
    pub input: LeaseInput,
    pub spoken_for: Vec<Token>,
    pub hangs: bool,
}

impl World {
    /// A new owner opens the shard.
    pub fn open_owner(&mut self) -> Result<(), String> {
        let epoch = self.store.open();
        self.load_owner(epoch)
    }

    fn load_owner(&mut self, epoch: Epoch) -> Result<(), String> {
        let facts = ShardFacts {
            shard: ShardId(0),
            map: ShardMap::new(1).unwrap(),
            generation: Generation(1),
            epoch,
            holder: Holder(u128::from(epoch.0)),
            lease: LEASE,
            heartbeat: HEARTBEAT,
            key_kept: fencepost_core::job::KEY_KEPT,
        };
        let mut opened = LeaseOpened::default();
        for row in self.store.rows.values() {
            match row {
                Row::Leased(row) => opened
                    .leased
                    .push((row.as_ref().clone(), self.store.job().unwrap().clone())),
                Row::Ready(row) => opened.classes.push((row.queue.clone(), row.tenant.clone())),
                Row::Mark(row) => opened.marks.push(row.clone()),
                _ => {}
            }
        }
        let mut out = Out::default();
        let machine = LeaseManager::open(facts, opened, self.time(), &mut out);
        self.owners.push(Shell {
            epoch,
            machine,
            waiting: None,
        });
        self.carry_out(epoch, out, Vec::new(), false)
    }

    /// The newest owner's epoch.
    pub fn newest(&self) -> Option<Epoch> {
        self.owners.last().map(|shell| shell.epoch)
    }

    fn shell(&mut self, epoch: Epoch) -> Option<&mut Shell> {
        self.owners.iter_mut().find(|shell| shell.epoch == epoch)
    }

    /// One step of an owner, if it is there and takes inputs.
    pub fn step_owner(&mut self, epoch: Epoch, word: Word) -> Result<(), String> {
        let (now, scope) = (self.time(), self.scope);
        let current = self.store.leased().map(|row| row.token);
        let Some(shell) = self.shell(epoch).filter(|shell| shell.waiting.is_none()) else {
            return Ok(());
        };
        let is_tick = matches!(word.input, LeaseInput::Tick);
        let is_cancel = matches!(word.input, LeaseInput::CancelJob { .. });
        let mut input = word.input;
        if let (true, LeaseInput::Outcomes { items, .. }, Some(token)) =
            (scope.has(Fault::TokenNotChecked), &mut input, current)
        {
            items.iter_mut().for_each(|item| item.token = token);
        }
        let mut out = Out::default();
        shell.machine.step(now, input, &mut out);
        shell.machine.check();
        if is_tick && scope.has(Fault::CrashNotCounted) {
            out.writes.iter_mut().for_each(uncharge);
        }
        if scope.has(Fault::RenewsReaped) {
            let revived: Vec<Write> = out.effects.iter().filter_map(revive).collect();
            out.writes.extend(revived);
        }
        if is_cancel && scope.has(Fault::CancelNotWritten) {
            out.writes.clear();
        }
        self.carry_out(epoch, out, word.spoken_for, word.hangs)
    }

    fn carry_out(
        &mut self,
        epoch: Epoch,
        out: Out<LeaseEffect>,
        spoken_for: Vec<Token>,
        hangs: bool,
    ) -> Result<(), String> {
        let (writes, effects) = (out.writes, out.effects);
        if writes.is_empty() {
            return self.release(epoch, effects);
        }
        let batch = Batch {
            epoch,
            writes,
            spoken_for,
        };
        if hangs {
            return self.hang(epoch, batch, effects);
        }
        if self.store.commit(&batch, &self.scope)? {
            return self.release(epoch, effects);
        }
        self.owners.retain(|shell| shell.epoch != epoch);
        Ok(())
    }

    fn hang(&mut self, epoch: Epoch, batch: Batch, effects: Vec<LeaseEffect>) -> Result<(), String> {
        self.store.hanging = Some(batch);
        if self.scope.has(Fault::ReadsBack) {
            // "It is not there, so it has failed": loads again under the same epoch and goes on.
            self.owners.retain(|shell| shell.epoch != epoch);
            return self.load_owner(epoch);
        }
        let early = self.scope.has(Fault::ReleasesEarly);
        if let Some(shell) = self.shell(epoch) {
            shell.waiting = Some(if early { Vec::new() } else { effects.clone() });
        }
        if early { self.release(epoch, effects) } else { Ok(()) }
    }

    /// The hanging batch reaches the store at last.
    pub fn land(&mut self) -> Result<(), String> {
        let Some(batch) = self.store.hanging.take() else {
            return Ok(());
        };
        let durable = self.store.commit(&batch, &self.scope)?;
        let Some(shell) = self.shell(batch.epoch) else {
            return Ok(());
        };
        let Some(effects) = shell.waiting.take() else {
            return Ok(());
        };
        if durable {
            return self.release(batch.epoch, effects);
        }
        self.owners.retain(|shell| shell.epoch != batch.epoch);
        Ok(())
    }

    /// A stale owner must not decide on rows that another wrote: what is fetched counts only if the
    /// epoch still stands after the fetch. False if the shell ended over it.
    fn may_fetch(&mut self, epoch: Epoch) -> bool {
        let stands = epoch == self.store.epoch || self.scope.has(Fault::EpochNotChecked);
        if !stands {
            self.owners.retain(|shell| shell.epoch != epoch);
        }
        stands
    }

    fn release(&mut self, epoch: Epoch, effects: Vec<LeaseEffect>) -> Result<(), String> {
        for effect in effects {
            let fetches = matches!(
                effect,
                LeaseEffect::LoadReady { .. }
                    | LeaseEffect::LoadWait { .. }
                    | LeaseEffect::LoadMoved { .. }
                    | LeaseEffect::LoadSweep { .. }
            );
            if !fetches || self.may_fetch(epoch) {
                self.release_one(epoch, effect)?;
            }
        }
        Ok(())
    }

    fn answer_load(&mut self, epoch: Epoch, load: LeaseEffect) -> Result<(), String> {
        match load {
            LeaseEffect::LoadReady { class, .. } => {
                let rows = self.ready_rows();
                let (end, horizon) = (true, None);
                self.hear(
                    epoch,
                    LeaseInput::ReadyLoaded {
                        class,
                        rows,
                        end,
                        horizon,
                    },
                )?;
            }
            LeaseEffect::LoadWait { .. } => {
                let rows = self.wait_rows();
                let (end, horizon) = (true, None);
                self.hear(epoch, LeaseInput::WaitLoaded { rows, end, horizon })?;
            }
            LeaseEffect::LoadMoved { .. } => {
                let rows = self.wait_rows();
                self.hear(epoch, LeaseInput::MovedPage { rows, next: None })?;
            }
            LeaseEffect::LoadSweep { .. } => {
                let rows = self.swept_rows();
                self.hear(epoch, LeaseInput::SweepPage { rows, next: None })?;
            }
            other => return Err(format!("not a load: {other:?}")),
        }
        Ok(())
    }

    fn release_one(&mut self, epoch: Epoch, effect: LeaseEffect) -> Result<(), String> {
        let from = ShardOwner {
            shard: ShardId(0),
            generation: Generation(1),
            epoch,
        };
        match effect {
            LeaseEffect::Reply(_, LeaseReply::Cancel(answer)) => {
                let answer = answer.map_err(|refusal| refusal.to_string())?;
                self.watch.answered_cancelled |= answer == CancelAnswer::Cancelled;
            }
            LeaseEffect::SendGrants {
                worker,
                offer,
                received_at,
                grants,
                more,
                apart,
            } => {
                let granted = WorkerInput::Granted {
                    from,
                    offer,
                    grants,
                    waited: self.now.since(received_at),
                    more,
                    apart,
                };
                self.send(&worker, granted);
                self.hear(epoch, LeaseInput::GrantsReleased { worker, offer })?;
            }
            LeaseEffect::SendRenewed { worker, beat, held } => {
                self.send(&worker, WorkerInput::Renewed { from, beat, held });
            }
            LeaseEffect::SendLost { worker, lost } => self.send(&worker, WorkerInput::Lost { from, lost }),
            LeaseEffect::SendCancel { worker, id, token } => {
                self.send(&worker, WorkerInput::CancelRequested { from, id, token });
            }
            LeaseEffect::SendBegun { worker, id, token } => self.send(&worker, WorkerInput::Begun { id, token }),
            LeaseEffect::SendRecorded { worker, items } => self.send(&worker, WorkerInput::Recorded { from, items }),
            LeaseEffect::SendReconcile { worker, items } => self.send(&worker, WorkerInput::Reconcile { from, items }),
            load @ (LeaseEffect::LoadReady { .. }
            | LeaseEffect::LoadWait { .. }
            | LeaseEffect::LoadMoved { .. }
            | LeaseEffect::LoadSweep { .. }) => self.answer_load(epoch, load)?,
            LeaseEffect::JobRepaired { what, .. } => return Err(format!("a job had to be mended: {what}")),
            LeaseEffect::JobRejected { reason, .. } => return Err(format!("a job was rejected: {reason}")),
            LeaseEffect::Reply(..)
            | LeaseEffect::HintReady
            | LeaseEffect::JobChanged(_)
            | LeaseEffect::AttemptEnded(_)
            | LeaseEffect::JobPurged { .. } => {}
        }
        Ok(())
    }

    /// A word of the shell itself.
    fn hear(&mut self, epoch: Epoch, input: LeaseInput) -> Result<(), String> {
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

    /// Time has passed for an owner.
    pub fn tick_owner(&mut self, epoch: Epoch) -> Result<(), String> {
        self.hear(epoch, LeaseInput::Tick)
    }

    fn send(&mut self, worker: &WorkerId, input: WorkerInput) {
        for node in [0, 1] {
            let life = (node, self.nodes[node].boot);
            if *worker == worker_id(life.0, life.1) {
                self.wire.send(Packet::ToWorker(life, input.clone()));
            }
        }
    }

    /// Length of a lease's silence.
    pub fn long() -> Span {
        Span(LEASE.0 + LEASE.0 / 2)
    }
}

fn uncharge(write: &mut Write) {
    if let Write::Put { row: Row::Job(job), .. } = write {
        job.charged = job.charged.saturating_sub(1);
    }
}

/// The leased row of an attempt that was found to be lost.
fn revive(effect: &LeaseEffect) -> Option<Write> {
    let LeaseEffect::SendLost { worker, lost } = effect else {
        return None;
    };
    let (id, token) = *lost.first()?;
    let row = LeasedRow {
        id,
        job_version: 1,
        attempt: 1,
        token,
        worker: worker.clone(),
        granted_at: StoreTime(0),
        length: LEASE,
        begun: false,
        seen: token.epoch,
        unseen_starts: 0,
        order: StoreTime(0),
    };
    let (row, expect) = (Row::Leased(Box::new(row)), Expect::Any);
    Some(Write::Put { row, expect })
}
