//! The slow walk over all job rows: purges what is old, finds what no message told (F8).
//!
//! Owns: retention, the audit of place rows, the pace. Must never: purge an uncertain job, or a key
//! that names a newer job, or anything in clock doubt. Next: `places.rs`.

use super::create::retention_over;
use super::io::{LeaseEffect, SweptJob};
use super::loads::reject;
use super::places::{Lies, put_job};
use super::ready::{ReadyEntry, ReadyKey};
use super::waiting::WaitEntry;
use super::window::cost_of;
use super::{LeaseManager, Orders, is_expired};
use crate::ids::{JobId, ShardId, Slot};
use crate::job::{Job, JobState, KEY_KEPT, Origin, Place};
use crate::limits::{
    DEAD_LETTER_RETENTION_DAYS, JOB_RETENTION_DAYS, SWEEP_BUSY_PAUSE_MS, SWEEP_CALM_ROWS, SWEEP_PAUSE_MS, SWEEP_ROWS,
    SWEEP_WRITES_MAX,
};
use crate::row::{AttemptsRow, DeadLetterRow, ParkedRow, ReadyRow, Row, RowKey};
use crate::time::{Monotonic, Now, Span};
use std::sync::Arc;

const HOUR: u64 = 3_600;

/// Where the walk is, and when it goes on.
#[derive(Clone, Debug, Hash)]
pub(super) struct Sweep {
    from: Option<JobId>,
    next_at: Monotonic,
    loading: bool,
    /// Most of the last page was purged.
    busy: bool,
}

impl Sweep {
    /// Begins at the head, after a pause.
    pub(super) fn new(now: Monotonic) -> Sweep {
        Sweep {
            from: None,
            next_at: now + Span::from_millis(SWEEP_PAUSE_MS),
            loading: false,
            busy: false,
        }
    }

    /// Orders the next page when its time has come.
    pub(super) fn on_tick(&mut self, now: Monotonic, out: &mut Orders) {
        if !self.loading && now >= self.next_at {
            self.loading = true;
            out.effect(LeaseEffect::LoadSweep {
                from: self.from,
                limit: if self.busy { SWEEP_ROWS } else { SWEEP_CALM_ROWS },
            });
        }
    }

    /// When the next page is to be ordered.
    pub(super) fn next_wake(&self) -> Option<Monotonic> {
        (!self.loading).then_some(self.next_at)
    }

    fn on_page(&mut self, now: Monotonic, next: Option<JobId>, busy: bool) {
        let pause = if busy { SWEEP_BUSY_PAUSE_MS } else { SWEEP_PAUSE_MS };
        self.from = next;
        self.next_at = now + Span::from_millis(pause);
        self.loading = false;
        self.busy = busy;
    }
}

/// The rows that a job's sweep needs: its key's, and every place where it could lie.
pub fn sweep_keys(shard: ShardId, job: &Job) -> Vec<RowKey> {
    let mut keys = vec![
        RowKey::Leased(job.id),
        RowKey::Parked(job.id),
        RowKey::DeadLetter(job.id),
    ];
    let order = match job.place {
        Place::Wait { at, .. } => Some(at),
        Place::Ready { order } => Some(order),
        Place::Leased | Place::Parked | Place::DeadLetter { .. } | Place::None => None,
    };
    if let Some(at) = order {
        keys.push(RowKey::Wait(shard, at, job.id));
        keys.extend(ReadyRow::each_of(shard, job, at).map(RowKey::Ready));
    }
    if let Origin::Request { key: Some(key) } = &job.origin {
        let tenant = &job.spec.tenant;
        keys.push(RowKey::Key(Slot::of_key(tenant, key), tenant.clone(), key.clone()));
    }
    keys
}

impl LeaseManager {
    /// A page of the walk.
    pub(super) fn on_sweep_page(&mut self, now: Now, rows: Vec<SweptJob>, next: Option<JobId>, out: &mut Orders) {
        let (count, mut purged) = (rows.len(), 0);
        for swept in rows {
            if self.sweep_job(now, swept, out) {
                purged += 1;
            }
        }
        self.sweep.on_page(now.mono, next, purged * 2 > count);
    }

    /// True if something of it was purged.
    fn sweep_job(&mut self, now: Now, swept: SweptJob, out: &mut Orders) -> bool {
        let SweptJob { job, rows } = swept;
        let key_purged = purge_key(now, &job, &rows, out);
        if self.purge_job(now, &job, &rows, out) {
            return true;
        }
        match job.state {
            JobState::Waiting | JobState::Ready | JobState::Leased => self.audit_unfinished(now, job, &rows, out),
            JobState::Uncertain => self.audit_parked(now, &job, &rows, out),
            JobState::Dead => self.audit_dead(now, &job, &rows, out),
            JobState::Succeeded | JobState::Cancelled | JobState::Expired => self.audit_finished(&job, &rows, out),
        }
        key_purged
    }

    fn purge_job(&mut self, now: Now, job: &Job, rows: &[Row], out: &mut Orders) -> bool {
        let days = match job.state {
            JobState::Succeeded | JobState::Cancelled | JobState::Expired => JOB_RETENTION_DAYS,
            JobState::Dead => DEAD_LETTER_RETENTION_DAYS,
            JobState::Waiting | JobState::Ready | JobState::Leased | JobState::Uncertain => return false,
        };
        let Some(ended_at) = job.ended_at.filter(|_| self.leases.get(job.id).is_none()) else {
            return false;
        };
        if !retention_over(now, ended_at, Span::from_secs(days * 24 * HOUR)) {
            return false;
        }
        let pages = AttemptsRow::count_of(job);
        if pages > 0 && out.writes.len() > SWEEP_WRITES_MAX {
            return false;
        }
        for row in rows.iter().filter(|row| !matches!(row, Row::Key(_))) {
            out.delete(row.key());
        }
        for page in 0..pages {
            out.delete(RowKey::Attempts(job.id, page));
        }
        out.delete(RowKey::Job(job.id));
        out.effect(LeaseEffect::JobPurged {
            id: job.id,
            state: job.state,
        });
        true
    }

    fn audit_unfinished(&mut self, now: Now, job: Job, rows: &[Row], out: &mut Orders) {
        if self.leases.get(job.id).is_some() {
            return;
        }
        // A worker may run it: the lease's row was not understood at the opening. Only an opening takes it up.
        if rows.iter().any(|row| matches!(row, Row::Leased(_))) {
            return;
        }
        if is_expired(&job, now) {
            self.leave_place(&job, out);
            self.expire(now, Arc::new(job), out);
            return;
        }
        let wait = rows.iter().find_map(|row| {
            if let Row::Wait(row) = row {
                Some(row.clone())
            } else {
                None
            }
        });
        let ready = rows.iter().find_map(|row| {
            if let Row::Ready(row) = row {
                Some(row.clone())
            } else {
                None
            }
        });
        let what = match (wait, ready) {
            (None, None) => self.restore_place(now, job, out),
            // What a load leaves out is left out here: the load has told of it (F9).
            _ if reject(&job, job.id, true).is_some() => None,
            (Some(row), None) => self.find_waiting(now, job, &row),
            (None, Some(row)) => self.find_ready(job, &row, out),
            (Some(_), Some(row)) => {
                self.delete_wait_row((row.order, job.id), out);
                out.effect(repaired(job.id, "a job lay in two ranges"));
                self.find_ready(job, &row, out)
            }
        };
        if let Some((id, what)) = what {
            out.effect(repaired(id, what));
        }
    }

    /// No range names it: it would never run. It becomes ready now.
    fn restore_place(&mut self, now: Now, mut job: Job, out: &mut Orders) -> Option<(JobId, &'static str)> {
        let id = job.id;
        job.version += 1;
        job.state = JobState::Ready;
        if let Some(reason) = reject(&job, id, true) {
            out.effect(LeaseEffect::JobRejected { id, reason });
            return None;
        }
        match job.place {
            Place::Wait { at, length } if at > now.store => {
                job.state = JobState::Waiting;
                let length = (length != Span::ZERO).then_some(length);
                self.enter_wait(now, Arc::new(job.clone()), at, length, out);
            }
            Place::Wait { .. }
            | Place::Ready { .. }
            | Place::Leased
            | Place::Parked
            | Place::DeadLetter { .. }
            | Place::None => {
                job.place = Place::Ready { order: now.store };
                self.enter_ready(Arc::new(job.clone()), now.store, Lies::Nowhere, out);
            }
        }
        put_job(&job, out);
        Some((id, "a job had no place row"))
    }

    /// Its row is below the horizon, but memory does not know it.
    fn find_waiting(&mut self, now: Now, job: Job, row: &crate::row::WaitRow) -> Option<(JobId, &'static str)> {
        let key = (row.at, job.id);
        if self.waits.knows(&key) || !self.waits.window().admits(&key) {
            return None;
        }
        let id = job.id;
        let entry = WaitEntry {
            ends_at: self.elapsed.ends_at(row, now),
            cost: cost_of(&job),
            job: Arc::new(job),
        };
        self.waits.insert(key, entry);
        Some((id, "a waiting job was missing in memory"))
    }

    fn find_ready(&mut self, job: Job, row: &ReadyRow, out: &mut Orders) -> Option<(JobId, &'static str)> {
        let key: ReadyKey = (row.priority, row.order, job.id);
        let name = (row.queue.clone(), row.tenant.clone());
        let class = match self.ready.find(&name) {
            Some(class) if self.ready.class(class).window.contains(&key) => return None,
            Some(class) if !self.ready.class(class).window.admits(&key) => return None,
            Some(class) => class,
            None => self.class_for(&name, out),
        };
        let id = job.id;
        let entry = ReadyEntry {
            cost: cost_of(&job),
            job: Arc::new(job),
            lies: Lies::Ready,
        };
        self.ready.insert(class, key, entry);
        self.fresh = true;
        self.settle_ready_windows(None, out);
        Some((id, "a ready job was missing in memory"))
    }

    fn audit_parked(&mut self, now: Now, job: &Job, rows: &[Row], out: &mut Orders) {
        if !rows.iter().any(|row| matches!(row, Row::Parked(_))) {
            out.put(Row::Parked(ParkedRow {
                id: job.id,
                at: now.store,
            }));
            out.effect(repaired(job.id, "an uncertain job was not parked"));
        }
    }

    fn audit_dead(&mut self, now: Now, job: &Job, rows: &[Row], out: &mut Orders) {
        if !rows.iter().any(|row| matches!(row, Row::DeadLetter(_))) {
            out.put(Row::DeadLetter(DeadLetterRow {
                id: job.id,
                at: job.ended_at.unwrap_or(now.store),
            }));
            out.effect(repaired(job.id, "a dead job had no dead letter"));
        }
    }

    fn audit_finished(&mut self, job: &Job, rows: &[Row], out: &mut Orders) {
        for row in rows.iter().filter(|row| !matches!(row, Row::Key(_))) {
            out.delete(row.key());
            out.effect(repaired(job.id, "a finished job had a place row"));
        }
    }
}

/// A key goes when it was kept as long as its job's end promised, unless a newer job took it over meanwhile.
fn purge_key(now: Now, job: &Job, rows: &[Row], out: &mut Orders) -> bool {
    let kept = job.key_kept.unwrap_or(KEY_KEPT);
    if !job.ended_at.is_some_and(|at| retention_over(now, at, kept)) {
        return false;
    }
    let key = rows
        .iter()
        .find(|row| matches!(row, Row::Key(key) if key.job == job.id));
    if let Some(row) = key {
        out.delete(row.key());
    }
    key.is_some()
}

fn repaired(id: JobId, what: &'static str) -> LeaseEffect {
    LeaseEffect::JobRepaired { id, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_ordered(sweep: &mut Sweep, now: Monotonic) -> Option<usize> {
        let mut out = Orders::default();
        sweep.on_tick(now, &mut out);
        out.effects.iter().find_map(|effect| match effect {
            LeaseEffect::LoadSweep { limit, .. } => Some(*limit),
            _ => None,
        })
    }

    #[test]
    fn the_walk_takes_small_pages_at_rest_and_large_ones_soon_while_it_purges() {
        let mut sweep = Sweep::new(Monotonic(0));
        let calm = Span::from_millis(SWEEP_PAUSE_MS);
        let busy = Span::from_millis(SWEEP_BUSY_PAUSE_MS);
        let mut now = Monotonic(0) + calm;
        assert_eq!(page_ordered(&mut sweep, now), Some(SWEEP_CALM_ROWS));
        sweep.on_page(now, None, true);
        now = now + busy;
        assert_eq!(page_ordered(&mut sweep, now), Some(SWEEP_ROWS));
        sweep.on_page(now, None, false);
        assert_eq!(page_ordered(&mut sweep, now + busy), None);
        assert_eq!(page_ordered(&mut sweep, now + calm), Some(SWEEP_CALM_ROWS));
    }
}
