//! Waits of a length in a range that is ordered by store time, when the store's clock is set (PROTOCOL F20 b).
//!
//! A wait row says when its wait ends by the store's clock, and the range is loaded in that order. So its order is
//! wrong, and what is left of a wait is, once the clock was set back or a leap of it was believed. While an owner
//! lives it knows by how much: store time is compared with the monotonic clock at each step. New rows are written,
//! and loaded ones read, with that difference; when it is more than a minute, a walk moves the rows of all waits that
//! began before (docs/decisions/0038).
//!
//! Owns: the difference, and which rows the walk has moved. Must never: hold anything per job, or move a row twice.
//! Next: `waiting.rs`, `loads.rs`.

use super::loads::reject;
use super::places::put_job;
use super::waiting::WaitKey;
use super::{LeaseManager, Orders};
use crate::ids::JobId;
use crate::job::{Job, Place};
use crate::lease_manager::io::LeaseEffect;
use crate::limits::{CLOCK_DOUBT_MAX_MS, CLOCK_JUMP_MAX_MS, SWEEP_BUSY_PAUSE_MS, SWEEP_ROWS, WAIT_WALK_PAGES};
use crate::row::WaitRow;
use crate::time::{Monotonic, Now, Shift, Span, StoreTime};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

const JUMP_MAX: Shift = Shift::later(Span::from_millis(CLOCK_JUMP_MAX_MS));
/// A clock that is held back is lowered, or right again, within this; beyond, it is slow.
const HELD_MAX: Shift = Shift::later(Span::from_millis(2 * CLOCK_DOUBT_MAX_MS));
const PAUSE: Span = Span::from_millis(SWEEP_BUSY_PAUSE_MS);

/// Elapsed time beside store time, for one owner.
#[derive(Clone, Debug)]
pub(super) struct Elapsed {
    last: (StoreTime, Monotonic),
    /// By how much store time is behind elapsed time; below zero, ahead of it.
    behind: Shift,
    /// Store time was lowered: it will not catch up.
    is_lowered: bool,
    walk: Option<WaitWalk>,
}

/// One walk over the wait range.
#[derive(Clone, Copy, Debug, Hash)]
struct WaitWalk {
    /// Ends of waits are moved back by so much; below zero, ahead.
    by: Shift,
    which: Which,
    /// The page to come begins here.
    from: Option<WaitKey>,
    next_at: Monotonic,
    is_loading: bool,
    /// So many it has gone over.
    pages: u32,
}

/// Which rows are still to be moved.
#[derive(Clone, Copy, Debug, Hash)]
enum Which {
    /// All that the walk has not come to: rows move towards the head, behind it.
    NotPassed,
    /// Those whose waits began before: rows move ahead of the walk, which meets them again.
    BegunBefore(StoreTime),
}

impl Elapsed {
    pub(super) fn new(now: Now) -> Elapsed {
        Elapsed {
            last: (now.store, now.mono),
            behind: Shift::ZERO,
            is_lowered: false,
            walk: None,
        }
    }

    /// When the last step was.
    pub(super) fn stepped_at(&self) -> Monotonic {
        self.last.1
    }

    /// Compares the clocks.
    pub(super) fn on_step(&mut self, now: Now) {
        let (store, mono) = std::mem::replace(&mut self.last, (now.store, now.mono));
        let passed = Shift::later(now.mono.since(mono));
        let stated = now.store.shift_from(store);
        let before = self.behind;
        self.behind = before + (passed - stated);
        self.is_lowered |= stated < Shift::ZERO;
        // While the store is away steps are made at the time stated last, and after a freeze one may be made at a time
        // that was stated before: that is no slow clock.
        if self.walk.is_none() && stated != Shift::ZERO {
            self.begin_walk(now, before.min(self.behind));
        }
    }

    fn begin_walk(&mut self, now: Now, behind_for_long: Shift) {
        let which = match self.behind {
            behind if behind > JUMP_MAX && (self.is_lowered || behind_for_long > HELD_MAX) => Which::NotPassed,
            behind if -behind > JUMP_MAX => Which::BegunBefore(now.store),
            _ => return,
        };
        self.is_lowered = false;
        self.walk = Some(WaitWalk {
            by: std::mem::take(&mut self.behind),
            which,
            from: None,
            next_at: now.mono,
            is_loading: false,
            pages: 0,
        });
    }

    /// Where to file a wait of this length that begins now. Never sooner than by the store's clock: an owner that comes
    /// after this one knows nothing of the difference, and must not be early.
    pub(super) fn end_of(&self, now: Now, length: Span, id: JobId) -> StoreTime {
        let end = now.store + length + self.behind.max(Shift::ZERO);
        match self.walk.filter(|walk| walk.is_to_move((end, id), length)) {
            Some(walk) => end + walk.by,
            None => end,
        }
    }

    /// Store time as it would be for the row of a wait of a length, had nobody set it. A difference that no walk
    /// makes up for makes a wait longer and never shorter: whoever filed the row may not have had it.
    fn time_of(&self, key: WaitKey, length: Span, now: Now) -> StoreTime {
        let walk = self.walk.filter(|walk| walk.is_to_move(key, length));
        now.store + (self.behind.min(Shift::ZERO) + walk.map_or(Shift::ZERO, |walk| walk.by))
    }

    /// When the wait of a row ends, if it is one of a length: never later than its whole length from now.
    pub(super) fn ends_at(&self, row: &WaitRow, now: Now) -> Option<Monotonic> {
        row.length.map(|length| {
            let store = self.time_of((row.at, row.id), length, now);
            now.mono + Span(row.at.since(store).0.min(length.0))
        })
    }

    /// When the next page of a walk is to be ordered.
    pub(super) fn next_wake(&self) -> Option<Monotonic> {
        self.walk.filter(|walk| !walk.is_loading).map(|walk| walk.next_at)
    }

    /// Orders it when its time has come.
    /// Nothing of the range lies below its mark (F7).
    pub(super) fn on_tick(&mut self, now: Monotonic, mark: Option<WaitKey>, out: &mut Orders) {
        let due = self
            .walk
            .as_mut()
            .filter(|walk| !walk.is_loading && walk.next_at <= now);
        if let Some(walk) = due {
            walk.is_loading = true;
            walk.from = walk.from.or(mark);
            out.effect(LeaseEffect::LoadMoved {
                from: walk.from,
                limit: SWEEP_ROWS,
            });
        }
    }
}

impl WaitWalk {
    /// The pause before the next page halves again and again: however many waits there are, and however many are made
    /// ahead of the walk meanwhile, it comes to their end.
    fn pause(&self) -> Span {
        Span(PAUSE.0.checked_shr(self.pages / WAIT_WALK_PAGES).unwrap_or(0))
    }

    fn is_to_move(&self, key: WaitKey, length: Span) -> bool {
        match self.which {
            Which::NotPassed => self.from.is_none_or(|from| key >= from),
            Which::BegunBefore(then) => key.0 - length < then,
        }
    }
}

impl LeaseManager {
    /// A page of the wait range, of rows to be moved.
    pub(super) fn on_moved_page(
        &mut self,
        now: Now,
        rows: Vec<(WaitRow, Job)>,
        next: Option<WaitKey>,
        out: &mut Orders,
    ) {
        let Some(mut walk) = self.elapsed.walk.filter(|walk| walk.is_loading) else {
            return;
        };
        for (row, job) in rows {
            self.move_row(now, walk, &row, job, out);
        }
        (walk.is_loading, walk.next_at, walk.from) = (false, now.mono + walk.pause(), next);
        walk.pages = walk.pages.saturating_add(1);
        self.elapsed.walk = next.map(|_| walk);
        self.order_wait_page(out);
    }

    /// The row of a wait of a length follows the clock; when the wait ends stays as it is. An instant of the calendar
    /// is meant as it is.
    fn move_row(&mut self, now: Now, walk: WaitWalk, row: &WaitRow, mut job: Job, out: &mut Orders) {
        let key = (row.at, row.id);
        let Some(length) = row.length.filter(|length| walk.is_to_move(key, *length)) else {
            return;
        };
        let lies_here = matches!(job.place, Place::Wait { at, .. } if at == row.at) && job.id == row.id;
        if !lies_here || self.leases.get(row.id).is_some() || reject(&job, row.id, true).is_some() {
            return;
        }
        let is_due = self.waits.is_lent(&key);
        let known = self.waits.window().get_mut(&key).and_then(|entry| entry.ends_at);
        let known = known.or(is_due.then_some(now.mono));
        let Some(ends_at) = known.or_else(|| self.elapsed.ends_at(row, now)) else {
            return;
        };
        let left = match walk.which {
            Which::NotPassed => length,
            // It begins anew with what is left, so that the walk knows it when it meets it again.
            Which::BegunBefore(_) => Span(ends_at.since(now.mono).0.min(length.0).max(1)),
        };
        let at = match walk.which {
            Which::NotPassed => row.at + -walk.by,
            Which::BegunBefore(_) => now.store + left + self.elapsed.behind.max(Shift::ZERO),
        };
        match (is_due, walk.which) {
            // An owner to come reads that it is due.
            (true, Which::BegunBefore(_)) => return,
            // To it, what is due in a ready window would wait anew: it is promoted again under the row's new instant.
            (true, Which::NotPassed) => self.leave_place(&job, out),
            (false, _) => self.delete_wait_row(key, out),
        }
        job.version += 1;
        job.place = Place::Wait { at, length: left };
        put_job(&job, out);
        self.lay_in_wait(Arc::new(job), at, Some(left), Some(ends_at), out);
    }
}

/// Equal histories are equal whenever they were last stepped.
impl Hash for Elapsed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.behind, self.is_lowered, self.walk).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p7_the_pauses_of_a_walk_end_however_many_rows_it_meets() {
        let mut walk = WaitWalk {
            by: Shift::ZERO,
            which: Which::NotPassed,
            from: None,
            next_at: Monotonic(0),
            is_loading: false,
            pages: 0,
        };
        assert_eq!(walk.pause(), PAUSE);
        let mut sum = Span::ZERO;
        for pages in (0..1_000_000).chain([u32::MAX]) {
            walk.pages = pages;
            sum = sum + walk.pause();
        }
        assert!(sum <= Span(2 * u64::from(WAIT_WALK_PAGES) * PAUSE.0), "{sum:?}");
    }
}
