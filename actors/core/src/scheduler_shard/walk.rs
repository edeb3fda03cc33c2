//! A walk over the rows of one kind, page by page, once a round of the auditor.
//!
//! Owns: where it is. Must never: know what the rows are. Next: `requests.rs`, `past_edits.rs` (what is dropped),
//! `sweep.rs` (the round).

use crate::row::RowKey;

/// Where a walk is.
#[derive(Clone, Debug, Default)]
pub(super) struct Walk {
    /// Of the next page; `None` for the first.
    from: Option<RowKey>,
    is_ordered: bool,
    /// All were met in this round.
    is_over: bool,
    /// Most of the last page was dropped.
    is_busy: bool,
}

impl Walk {
    pub(super) fn is_waiting(&self) -> bool {
        self.is_ordered
    }

    /// Whether there is so much to drop that the next page is to be larger, and to come sooner.
    pub(super) fn is_busy(&self) -> bool {
        self.is_busy
    }

    pub(super) fn begin_round(&mut self) {
        *self = Walk {
            is_busy: self.is_busy,
            ..Walk::default()
        };
    }

    /// Where the next page begins, which is ordered now; `None` when the round is over.
    pub(super) fn order(&mut self) -> Option<Option<RowKey>> {
        if self.is_over {
            return None;
        }
        self.is_ordered = true;
        Some(self.from.clone())
    }

    /// A page was walked over.
    pub(super) fn on_page(&mut self, next: Option<RowKey>, (dropped, count): (usize, usize)) {
        *self = Walk {
            is_over: next.is_none(),
            from: next,
            is_ordered: false,
            is_busy: dropped * 2 > count,
        };
    }
}
