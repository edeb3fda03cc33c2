//! Histories of edits: each entry is kept as long as fates are, the newest of a life for as long as that lasts.
//!
//! Owns: which entries are old. Must never: drop the newest of a schedule that lives, which no later one may share its
//! instant with, or anything in clock doubt. Next: `walk.rs`, `create.rs` (what an entry is).

use super::SchedulerShard;
use super::io::ScheduleEffect;
use super::past_lives::horizon;
use super::step::Step;
use crate::limits::EDIT_SWEEP_ROWS;
use crate::row::RowKey;
use crate::time::Now;

impl SchedulerShard {
    /// Orders the next page of entries; `false` when the round is over.
    pub(super) fn order_edits(&mut self, step: &mut Step<'_>) -> bool {
        let Some(after) = self.edits.order() else {
            return false;
        };
        let limit = EDIT_SWEEP_ROWS;
        step.out.effect(ScheduleEffect::LoadEdits { after, limit });
        true
    }

    pub(super) fn on_edits_loaded(&mut self, step: &mut Step<'_>, edits: Vec<RowKey>, next: Option<RowKey>) {
        let count = edits.len();
        let old: Vec<RowKey> = edits.into_iter().filter(|key| self.is_old(step.now, key)).collect();
        self.edits.on_page(next, (old.len(), count));
        self.page_came(step.now, false);
        old.into_iter().for_each(|key| step.out.delete(key));
    }

    fn is_old(&self, now: Now, key: &RowKey) -> bool {
        let RowKey::Edit(_, tenant, name, incarnation, at, _) = key else {
            return false;
        };
        let live = self.index.find(&(tenant.clone(), name.clone()));
        let live = live.and_then(|place| self.index.get(place));
        let live = live.filter(|live| live.cursor.incarnation == *incarnation);
        let is_newest = live.is_some_and(|live| live.recorded_at.is_none_or(|newest| newest <= *at));
        !now.doubt && *at <= horizon(now.store) && !is_newest
    }
}
