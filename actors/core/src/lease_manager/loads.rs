//! Pages of the ready and wait ranges: when they are ordered, and how they join a window (F34).
//!
//! Owns: the load orders. Must never: trust a page that does not join on, or a row that left the range
//! meanwhile. Next: `window.rs`.

use super::places::Lies;
use super::ready::{self, ClassId, ClassName, ReadyEntry, ReadyKey};
use super::waiting::{WaitEntry, WaitKey};
use super::window::{Beyond, cost_of};
use super::{LeaseManager, Orders};
use crate::ids::JobId;
use crate::job::{Job, JobState, Place};
use crate::lease_manager::io::LeaseEffect;
use crate::limits::{WAIT_WINDOW_BYTES, WAIT_WINDOW_JOBS};
use crate::row::{ReadyRow, WaitRow};
use crate::time::{Now, StoreTime};
use std::sync::Arc;

/// Half a window: with what was left it does not overflow.
const WAIT_PAGE_ROWS: usize = WAIT_WINDOW_JOBS / 2;

/// Why a row that the job's row does not name is not decided on: whatever moves the job would leave it behind.
const LIES_ELSEWHERE: &str = "the place row is not where the job's row says";

impl LeaseManager {
    /// Orders the next page of a class's range, if its window runs low.
    pub(super) fn order_ready_page(&mut self, class: ClassId, out: &mut Orders) {
        let Some(limit) = self.ready.page_wanted(class) else {
            return;
        };
        // Nothing of the range is known yet: it begins at the mark (F7).
        let from = self.ready.begin_load(class);
        let from = from.or(self.ready.class(class).mark.stored());
        let name = self.ready.class(class).name.clone();
        out.effect(LeaseEffect::LoadReady {
            from: from.map(|key| ready::row_of(self.facts.shard, &name, key)),
            class: name,
            limit,
        });
    }

    /// Orders the next page of the wait range, if its window runs low.
    pub(super) fn order_wait_page(&mut self, out: &mut Orders) {
        let window = self.waits.window();
        let low = if window.cost() <= WAIT_WINDOW_BYTES / 2 {
            WAIT_WINDOW_JOBS / 4
        } else {
            0
        };
        if window.wants_load(low) {
            let from = window.begin_load();
            let from = from.or(self.waits.mark().stored());
            out.effect(LeaseEffect::LoadWait {
                from,
                limit: WAIT_PAGE_ROWS,
            });
        }
    }

    /// A page of a class's range.
    pub(super) fn on_ready_loaded(
        &mut self,
        name: &ClassName,
        rows: Vec<(ReadyRow, Job)>,
        end: bool,
        horizon: Option<ReadyRow>,
        out: &mut Orders,
    ) {
        let Some(class) = self.ready.find(name) else { return };
        let last = rows.last().map(|(row, _)| ready::key_of(row));
        let beyond = beyond_of(end, horizon.as_ref().map(ready::key_of), last);
        if self.ready.join(class, beyond) {
            for (row, job) in rows {
                self.join_ready(class, name, &row, job, out);
            }
            self.ready.class_mut(class).window.end_load();
        } else {
            self.order_ready_page(class, out);
        }
        self.ready.line_up(class);
        self.fresh = true;
        self.settle_ready_windows(Some(class), out);
    }

    fn join_ready(&mut self, class: ClassId, name: &ClassName, row: &ReadyRow, job: Job, out: &mut Orders) {
        let key: ReadyKey = ready::key_of(row);
        let window = &self.ready.class(class).window;
        if window.is_gone(&key) || window.contains(&key) || self.leases.get(row.id).is_some() {
            return;
        }
        let stands = job.spec.lines().any(|line| line == name.0) && job.spec.tenant == name.1;
        let fits = stands && job.spec.priority == row.priority;
        // A job that became due keeps its place in the order when its row follows.
        let lies = match job.place {
            Place::Ready { order } => order == row.order,
            Place::Wait { at, .. } => at == row.order,
            Place::Leased | Place::Parked | Place::DeadLetter { .. } | Place::None => false,
        };
        let reason = reject(&job, row.id, fits).or((!lies).then_some(LIES_ELSEWHERE));
        if let Some(reason) = reason {
            out.effect(LeaseEffect::JobRejected { id: row.id, reason });
            return;
        }
        let entry = ReadyEntry {
            cost: cost_of(&job),
            job: Arc::new(job),
            lies: Lies::Ready,
        };
        self.ready.insert(class, key, entry);
    }

    /// A page of the wait range.
    pub(super) fn on_wait_loaded(
        &mut self,
        now: Now,
        rows: Vec<(WaitRow, Job)>,
        end: bool,
        horizon: Option<(StoreTime, JobId)>,
        out: &mut Orders,
    ) {
        let last = rows.last().map(|(row, _)| (row.at, row.id));
        if self.waits.window().join(beyond_of(end, horizon, last)) {
            for (row, job) in rows {
                self.join_waits(now, &row, job, out);
            }
            self.waits.window().end_load();
        }
        self.order_wait_page(out);
    }

    fn join_waits(&mut self, now: Now, row: &WaitRow, job: Job, out: &mut Orders) {
        let key: WaitKey = (row.at, row.id);
        if self.waits.window().is_gone(&key) || self.waits.knows(&key) || self.leases.get(row.id).is_some() {
            return;
        }
        let lies = matches!(job.place, Place::Wait { at, .. } if at == row.at);
        let reason = reject(&job, row.id, true).or((!lies).then_some(LIES_ELSEWHERE));
        if let Some(reason) = reason {
            out.effect(LeaseEffect::JobRejected { id: row.id, reason });
            return;
        }
        let entry = WaitEntry {
            ends_at: self.elapsed.ends_at(row, now),
            cost: cost_of(&job),
            job: Arc::new(job),
        };
        self.waits.insert(key, entry);
    }
}

/// What follows a page. A page that neither ends nor names what follows ends before its last row.
fn beyond_of<K>(end: bool, horizon: Option<K>, last: Option<K>) -> Beyond<K> {
    match (end, horizon.or(last)) {
        (true, _) => Beyond::Complete,
        (false, Some(key)) => Beyond::From(key),
        (false, None) => Beyond::Unloaded,
    }
}

/// Why a stored job cannot be decided on, if so (F9).
pub(super) fn reject(job: &Job, id: JobId, fits: bool) -> Option<&'static str> {
    if job.id != id {
        return Some("the row holds another job");
    }
    if !fits {
        return Some("the place row does not fit the job's queue, tenant or priority");
    }
    if !matches!(job.state, JobState::Waiting | JobState::Ready) {
        return Some("the job has ended, but its place row is still there");
    }
    (job.spec.retry.attempt_count_max == 0).then_some("the retry policy allows no attempt")
}
