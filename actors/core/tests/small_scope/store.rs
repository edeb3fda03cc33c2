//! The store of one shard: rows, the epoch check, and what a commit may do to the job.
//!
//! Owns: P4, and that each commit is a path in the table of moves. Must never: know how machines
//! decide. Next: `shell.rs`.

use crate::scope::{Fault, Scope, job_id};
use fencepost_core::ids::{Epoch, Token};
use fencepost_core::job::{Job, JobState};
use fencepost_core::machine::{Expect, Write};
use fencepost_core::row::{LeasedRow, Row, RowKey};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

/// Durable rows and what was seen of them.
#[derive(Clone, Default)]
pub struct Store {
    pub rows: BTreeMap<RowKey, Row>,
    pub epoch: Epoch,
    /// A batch whose commit hangs: it lands later, or never.
    pub hanging: Option<Batch>,
    token_max: Token,
}

/// What one step writes.
#[derive(Clone)]
pub struct Batch {
    pub epoch: Epoch,
    pub writes: Vec<Write>,
    /// The tokens that the input spoke for: if none of them is current, it changes nothing.
    pub spoken_for: Vec<Token>,
}

/// Where the job stands, and under which token if an attempt is current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub state: JobState,
    pub token: Option<Token>,
}

impl Store {
    /// Takes the shard over.
    pub fn open(&mut self) -> Epoch {
        self.epoch = Epoch(self.epoch.0 + 1);
        self.epoch
    }

    /// True if the batch is durable, false if it was refused.
    pub fn commit(&mut self, batch: &Batch, scope: &Scope) -> Result<bool, String> {
        if batch.epoch != self.epoch && !scope.has(Fault::EpochNotChecked) {
            return Ok(false);
        }
        let (before, job_before, rows_before) = (self.standing(), self.job().cloned(), self.rows.clone());
        // Each write is checked over those before it, as the store does it.
        for write in &batch.writes {
            if !self.fits(write) {
                self.rows = rows_before;
                let honest = batch.epoch == self.epoch && scope.fault.is_none();
                return if honest {
                    Err("a conflict under the newest epoch".to_owned())
                } else {
                    Ok(false)
                };
            }
            match write {
                Write::Put { row, .. } => self.rows.insert(row.key(), row.clone()),
                Write::Delete(key) => self.rows.remove(key),
            };
        }
        self.check_places()?;
        if let (Some(before), Some(after)) = (before, self.standing()) {
            check_move(before, after, self.has_ended(before, job_before.as_ref()))?;
            check_speaker(&batch.spoken_for, before, after)?;
            self.check_grant(before, after, job_before.as_ref())?;
        }
        Ok(true)
    }

    fn fits(&self, write: &Write) -> bool {
        let Write::Put { row, expect } = write else { return true };
        match (expect, self.rows.get(&row.key())) {
            (Expect::Any, _) | (Expect::Absent, None) => true,
            (Expect::Version(version), Some(Row::Job(job))) => job.version == *version,
            (Expect::Absent | Expect::Version(_), _) => false,
        }
    }

    pub fn job(&self) -> Option<&Job> {
        match self.rows.get(&RowKey::Job(job_id())) {
            Some(Row::Job(job)) => Some(job),
            _ => None,
        }
    }

    pub fn leased(&self) -> Option<&LeasedRow> {
        match self.rows.get(&RowKey::Leased(job_id())) {
            Some(Row::Leased(row)) => Some(row),
            _ => None,
        }
    }

    pub fn standing(&self) -> Option<Standing> {
        let job = self.job()?;
        if let Some(row) = self.leased() {
            let (state, token) = (JobState::Leased, Some(row.token));
            return Some(Standing { state, token });
        }
        let lies_ready = self.rows.values().any(|row| matches!(row, Row::Ready(_)));
        let state = match job.state {
            JobState::Waiting if lies_ready => JobState::Ready,
            state => state,
        };
        Some(Standing { state, token: None })
    }

    /// Whether the row says that the attempt which was current before is over: recorded, or refunded.
    fn has_ended(&self, before: Standing, job_before: Option<&Job>) -> bool {
        let Some(job) = self.job() else { return false };
        let recorded = job.attempts.iter().any(|attempt| Some(attempt.token) == before.token);
        recorded || job_before.is_some_and(|before| job.refunded > before.refunded)
    }

    /// A job has one place row until it is finished, and none after (but for a dead letter).
    fn check_places(&self) -> Result<(), String> {
        let Some(job) = self.job() else { return Ok(()) };
        let place = |row: &&Row| {
            matches!(
                row,
                Row::Wait(_) | Row::Ready(_) | Row::Leased(_) | Row::Parked(_) | Row::DeadLetter(_)
            )
        };
        let places = self.rows.values().filter(place).count();
        let wanted = match job.state {
            JobState::Succeeded | JobState::Cancelled | JobState::Expired => 0,
            JobState::Waiting | JobState::Ready | JobState::Leased | JobState::Uncertain | JobState::Dead => 1,
        };
        match places == wanted {
            true => Ok(()),
            false => Err(format!("a {:?} job has {places} place rows", job.state)),
        }
    }

    /// Tokens only grow, and nothing is granted once someone asked to cancel.
    fn check_grant(&mut self, before: Standing, after: Standing, job: Option<&Job>) -> Result<(), String> {
        let Some(token) = after.token.filter(|_| before.token != after.token) else {
            return Ok(());
        };
        if token <= self.token_max {
            return Err("a token that does not grow".to_owned());
        }
        self.token_max = token;
        match job.is_some_and(|job| job.cancel_requested_at.is_some()) {
            true => Err("granted after a cancel".to_owned()),
            false => Ok(()),
        }
    }
}

/// `ended`: the attempt that was current before is over. The next may be granted in the same step, to an
/// offer that waits.
fn check_move(before: Standing, after: Standing, ended: bool) -> Result<(), String> {
    let both_leased = before.state == JobState::Leased && after.state == JobState::Leased;
    if both_leased && before.token != after.token && !ended {
        return Err("a second current attempt".to_owned());
    }
    // Nobody sends dead letters back here, so what is finished stays as it is.
    if before.state.is_finished() && before != after {
        return Err(format!("a finished job reverts: {before:?} to {after:?}"));
    }
    // A job whose time has come may be granted in the step that finds it ready.
    let through_ready = (before.state, after.state) == (JobState::Waiting, JobState::Leased);
    match before.state == after.state || before.state.may_become(after.state) || through_ready {
        true => Ok(()),
        false => Err(format!("not a move: {:?} to {:?}", before.state, after.state)),
    }
}

/// A word about an attempt that is not current moves nothing, but may settle an uncertain job.
fn check_speaker(spoken_for: &[Token], before: Standing, after: Standing) -> Result<(), String> {
    let stale = !spoken_for.is_empty() && !spoken_for.iter().any(|token| before.token == Some(*token));
    match stale && before.state != JobState::Uncertain && before != after {
        true => Err(format!(
            "a stale token moved the job from {:?} to {:?}",
            before.state, after.state
        )),
        false => Ok(()),
    }
}

impl Hash for Store {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.epoch, self.token_max, self.rows.len()).hash(state);
        for (key, row) in &self.rows {
            key.hash(state);
            match row {
                Row::Job(row) => row.hash(state),
                Row::Leased(row) => row.hash(state),
                Row::Wait(row) => row.hash(state),
                Row::Parked(row) => row.hash(state),
                Row::Ready(_) | Row::DeadLetter(_) => {}
                other => format!("{other:?}").hash(state),
            }
        }
        if let Some(batch) = &self.hanging {
            (batch.epoch, format!("{:?}", batch.writes)).hash(state);
        }
    }
}
