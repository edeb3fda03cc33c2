//! The one way in and out of each range: rows, windows and marks change together, in one step.
//!
//! Owns: the writes of place rows and job rows. Must never: decide what becomes of a job (see
//! `decide.rs`). Next: `ready.rs`, `waiting.rs`.

use super::ready::{self, ClassId, ClassName, ReadyEntry, ReadyKey};
use super::waiting::{self, WaitEntry, WaitKey};
use super::window::{Beyond, cost_of};
use super::{LeaseManager, Orders};
use crate::job::{Job, JobState, Place};
use crate::limits::{CLASS_COUNT_MAX, LINE_MOVES_PER_STEP_MAX};
use crate::machine::Expect;
use crate::row::{DeadLetterRow, MarkRange, MarkRow, ParkedRow, Row, RowKey, WaitRow};
use crate::time::{Monotonic, Now, Span, StoreTime};
use std::sync::Arc;

/// Where the place row of a ready job lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Lies {
    /// Nowhere yet: the step that made it ready writes it at its end, unless it was granted by then.
    Nowhere,
    /// In the ready range.
    Ready,
    /// In the wait range, under this instant.
    Waiting(StoreTime),
}

impl LeaseManager {
    /// A job may be granted from now on.
    pub(super) fn enter_ready(&mut self, job: Arc<Job>, order: StoreTime, lies: Lies, out: &mut Orders) {
        let name = (job.spec.line_at(self.level), job.spec.tenant.clone());
        let class = self.class_for(&name, out);
        let key = (job.spec.priority, order, job.id);
        let cost = cost_of(&job);
        let entered = self.ready.insert(class, key, ReadyEntry { job, lies, cost });
        match (lies, entered) {
            (Lies::Nowhere, true) => self.unplaced.push((class, key)),
            (_, false) => self.lay_in_ready(class, key, lies, out),
            (Lies::Waiting(_) | Lies::Ready, true) => {}
        }
        self.fresh = true;
        self.settle_ready_windows(None, out);
    }

    /// Pushes out of the ready windows what is too much; rows that only lay there in memory follow.
    pub(super) fn settle_ready_windows(&mut self, spared: Option<ClassId>, out: &mut Orders) {
        for (class, key, entry) in self.ready.evict(spared) {
            self.lay_in_ready(class, key, entry.lies, out);
        }
    }

    /// Writes the rows of what became ready in this step and was not granted in it.
    pub(super) fn place_rows(&mut self, out: &mut Orders) {
        for (class, key) in std::mem::take(&mut self.unplaced) {
            if self.ready.place(class, &key) {
                self.put_ready_row(class, key, out);
            }
        }
    }

    /// A job waits, from `now` for `length` (between attempts, a delay) or until the instant (other first starts).
    pub(super) fn enter_wait(
        &mut self,
        now: Now,
        job: Arc<Job>,
        at: StoreTime,
        length: Option<Span>,
        out: &mut Orders,
    ) {
        self.lay_in_wait(job, at, length, length.map(|length| now.mono + length), out);
    }

    /// Its row, and its entry if it lies below the horizon.
    pub(super) fn lay_in_wait(
        &mut self,
        job: Arc<Job>,
        at: StoreTime,
        length: Option<Span>,
        ends_at: Option<Monotonic>,
        out: &mut Orders,
    ) {
        let row = WaitRow {
            shard: self.facts.shard,
            at,
            id: job.id,
            length,
        };
        let key = (at, job.id);
        let entry = WaitEntry {
            ends_at,
            cost: cost_of(&job),
            job,
        };
        out.put(Row::Wait(row));
        if let Some(mark) = self.waits.mark().on_insert(key) {
            self.put_wait_mark(mark, out);
            self.waits.window().begins_lower();
        }
        self.waits.insert(key, entry);
    }

    /// Deletes the place row of a job that is not leased, and takes it out of memory.
    pub(super) fn leave_place(&mut self, job: &Job, out: &mut Orders) {
        match job.place {
            Place::Ready { order } => self.delete_ready(job, order, out),
            Place::Wait { at, .. } => {
                let key = (at, job.id);
                let (known, lent) = (self.waits.knows(&key), self.waits.is_lent(&key));
                if lent && self.apart.remove(&key).is_none() {
                    self.take_ready(job, at);
                }
                if !known {
                    // Beyond the wait window, or moved to the ready range: only one of them exists.
                    self.delete_ready(job, at, out);
                }
                self.delete_wait_row(key, out);
            }
            Place::Parked => out.delete(RowKey::Parked(job.id)),
            Place::DeadLetter { .. } => out.delete(RowKey::DeadLetter(job.id)),
            Place::Leased | Place::None => {}
        }
    }

    /// Deletes the row of a job that was taken out of a ready window to be granted or expired.
    pub(super) fn delete_taken(&mut self, class: ClassId, key: ReadyKey, lies: Lies, out: &mut Orders) {
        match lies {
            Lies::Waiting(at) => self.delete_wait_row((at, key.2), out),
            Lies::Ready => self.delete_ready_row(class, key, out),
            Lies::Nowhere => {}
        }
    }

    /// Deletes a wait row.
    pub(super) fn delete_wait_row(&mut self, key: WaitKey, out: &mut Orders) {
        self.waits.remove(key);
        out.delete(waiting::row_key(self.facts.shard, key));
        self.waits.mark().on_delete(key);
        if let Some(mark) = self.waits.advance_mark() {
            self.put_wait_mark(mark, out);
        }
    }

    fn delete_ready(&mut self, job: &Job, order: StoreTime, out: &mut Orders) {
        let key = (job.spec.priority, order, job.id);
        match self.take_ready(job, order) {
            Some((_, entry)) if entry.lies == Lies::Nowhere => {}
            Some((class, _)) => self.delete_ready_row(class, key, out),
            // Beyond a window; its row lies in one of them.
            None => {
                for class in self.classes_of(job) {
                    self.delete_ready_row(class, key, out);
                }
            }
        }
    }

    /// Takes a job out of memory, in whichever line it stands.
    fn take_ready(&mut self, job: &Job, order: StoreTime) -> Option<(ClassId, ReadyEntry)> {
        let key = (job.spec.priority, order, job.id);
        let mut taken = None;
        for class in self.classes_of(job) {
            let entry = self.ready.remove(class, &key);
            taken = taken.or(entry.map(|entry| (class, entry)));
        }
        taken
    }

    /// The classes in which a job may be found.
    pub(super) fn classes_of(&self, job: &Job) -> Vec<ClassId> {
        let names = job.spec.lines().map(|line| (line, job.spec.tenant.clone()));
        names.filter_map(|name| self.ready.find(&name)).collect()
    }

    /// Whether it has a line of its own by now and stands in another: who asks for that one may not run it.
    pub(super) fn stands_elsewhere(&self, class: ClassId, job: &Job) -> bool {
        self.level.has_command_lines() && job.spec.is_command() && !self.ready.class(class).name.0.is_command_line()
    }

    /// Whether this step may still move jobs to their own lines. One that may not grants nothing more: what it would
    /// take next may be one of them.
    pub(super) fn may_move(&self) -> bool {
        self.moved < LINE_MOVES_PER_STEP_MAX
    }

    /// A ready job that was taken out of memory goes to its own line, to the same place.
    pub(super) fn move_line(&mut self, (class, key, entry): (ClassId, ReadyKey, ReadyEntry), out: &mut Orders) {
        self.moved += 1;
        self.delete_taken(class, key, entry.lies, out);
        self.order_ready_page(class, out);
        self.enter_ready(entry.job, key.1, Lies::Nowhere, out);
    }

    /// Sees to it that the place row lies in the ready range.
    fn lay_in_ready(&mut self, class: ClassId, key: ReadyKey, lies: Lies, out: &mut Orders) {
        match lies {
            Lies::Ready => return,
            Lies::Waiting(at) => self.delete_wait_row((at, key.2), out),
            Lies::Nowhere => {}
        }
        self.put_ready_row(class, key, out);
    }

    fn put_ready_row(&mut self, id: ClassId, key: ReadyKey, out: &mut Orders) {
        let class = self.ready.class_mut(id);
        out.put(Row::Ready(ready::row_of(self.facts.shard, &class.name, key)));
        if let Some(mark) = class.mark.on_insert(key) {
            class.window.begins_lower();
            self.put_ready_mark(id, mark, out);
        }
    }

    fn delete_ready_row(&mut self, id: ClassId, key: ReadyKey, out: &mut Orders) {
        let class = self.ready.class_mut(id);
        out.delete(RowKey::Ready(ready::row_of(self.facts.shard, &class.name, key)));
        class.mark.on_delete(key);
        if class.mark.is_due() && class.window.beyond() != Beyond::Unloaded {
            let first = class.window.first_possible();
            if let Some(mark) = class.mark.advance(first) {
                self.put_ready_mark(id, mark, out);
            }
        }
    }

    fn put_ready_mark(&self, id: ClassId, mark: ReadyKey, out: &mut Orders) {
        let name = &self.ready.class(id).name;
        out.put(Row::Mark(MarkRow {
            shard: self.facts.shard,
            range: MarkRange::Ready(name.0.clone(), name.1.clone()),
            from: RowKey::Ready(ready::row_of(self.facts.shard, name, mark)),
        }));
    }

    fn put_wait_mark(&self, mark: WaitKey, out: &mut Orders) {
        out.put(Row::Mark(MarkRow {
            shard: self.facts.shard,
            range: MarkRange::Wait,
            from: waiting::row_key(self.facts.shard, mark),
        }));
    }

    /// The class of this name; a new queue in a full directory first drops classes without rows, and their marks.
    pub(super) fn class_for(&mut self, name: &ClassName, out: &mut Orders) -> ClassId {
        if let Some(class) = self.ready.find(name) {
            return class;
        }
        if !self.ready.has_queue(&name.0, &name.1) && self.ready.queue_count() >= CLASS_COUNT_MAX {
            for ((queue, tenant), marked) in self.ready.drop_idle() {
                if marked {
                    out.delete(RowKey::Mark(self.facts.shard, MarkRange::Ready(queue, tenant)));
                }
            }
        }
        self.ready.class_id(name, Beyond::Complete)
    }

    /// Ends a job that has no current attempt, and whose place row is gone in this step.
    pub(super) fn finish(&mut self, now: Now, mut job: Job, states: (JobState, JobState), reason: Option<&str>) -> Job {
        move_job(&mut job, states.0, states.1);
        job.place = Place::None;
        job.reason = reason.map(Arc::from);
        job.end(now.store, self.facts.key_kept);
        job
    }

    /// Gives a job up.
    pub(super) fn give_up(&mut self, now: Now, mut job: Job, from: JobState, reason: &str, out: &mut Orders) -> Job {
        move_job(&mut job, from, JobState::Dead);
        job.place = Place::DeadLetter { at: now.store };
        job.reason = Some(Arc::from(reason));
        job.end(now.store, self.facts.key_kept);
        out.put(Row::DeadLetter(DeadLetterRow {
            id: job.id,
            at: now.store,
        }));
        job
    }

    /// Parks a job whose effect is unproven.
    pub(super) fn park(&mut self, now: Now, mut job: Job, reason: &str, out: &mut Orders) -> Job {
        move_job(&mut job, JobState::Leased, JobState::Uncertain);
        job.place = Place::Parked;
        job.reason = Some(Arc::from(reason));
        out.put(Row::Parked(ParkedRow {
            id: job.id,
            at: now.store,
        }));
        job
    }

    /// Makes a job ready again, ordered as given.
    pub(super) fn revive(&mut self, mut job: Job, from: JobState, order: StoreTime, out: &mut Orders) -> Job {
        move_job(&mut job, from, JobState::Ready);
        job.place = Place::Ready { order };
        job.reason = None;
        (job.ended_at, job.key_kept) = (None, None);
        self.enter_ready(Arc::new(job.clone()), order, Lies::Nowhere, out);
        job
    }
}

/// Puts a job row over the version before.
pub(super) fn put_job(job: &Job, out: &mut Orders) {
    let expect = Expect::Version(job.version - 1);
    let row = Row::Job(Box::new(job.clone()));
    out.writes.push(crate::machine::Write::Put { row, expect });
}

/// One move of the table, one version. `from` is where the job really stands: its row may say
/// waiting or ready while it is leased.
pub(super) fn move_job(job: &mut Job, from: JobState, to: JobState) {
    assert!(from.may_become(to), "a job does not move from {from:?} to {to:?}");
    job.state = to;
    job.version += 1;
}
