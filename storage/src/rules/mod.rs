//! The rules that every store applies to a group of opens and commits, in group order.
//!
//! Owns: the check of scope, holder, epoch and number (PROTOCOL F2, F6), of expectations against
//! the state and all earlier writes of the group (F4, F5), and the scope rows that result. Must
//! never: do IO of its own (`State` reads) or know an engine. One rule for all stores: `fjall_store`
//! and `model` differ only in what is under it. Next: `overlay.rs`, `judge.rs`.

mod judge;
mod overlay;
#[cfg(test)]
mod tests;

pub use judge::{Judgement, OpenJudgement, judge_commit, judge_open};

use crate::batch::{Batch, RawExpect, RawWrite};
use crate::codec;
use crate::keys::{Kind, key_bytes};
use crate::store::{Bytes, Commit, Committed, Open, OpenError, Opened, Stated, StoreError};
use fencepost_core::ids::{Epoch, Scope};
use fencepost_core::limits::KEY_BYTES_MAX;
use fencepost_core::row::{AssignmentRow, Row, RowKey, ScopeRow};
use fencepost_core::time::StoreTime;
use overlay::Overlay;
use std::collections::BTreeMap;

/// The durable state that a group starts from.
pub trait State {
    /// The store's record of a scope.
    fn scope(&self, scope: Scope) -> Option<ScopeRow>;
    /// A row's value.
    fn value(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError>;
    /// Whether a row is there.
    fn contains(&self, key: &[u8]) -> Result<bool, StoreError> {
        Ok(self.value(key)?.is_some())
    }
    /// The records of scopes whose last commit lies after this time: store time was lowered since.
    fn scopes_after(&self, time: StoreTime) -> Vec<ScopeRow>;
}

/// A group under way: what its earlier members did, over the state.
pub struct Group<'s, S: State> {
    state: &'s S,
    scopes: BTreeMap<Scope, ScopeRow>,
    rows: Overlay,
    now: Stated,
    is_full: bool,
}

impl<'s, S: State> Group<'s, S> {
    /// A group at this time. On a full disk, batches that create work are refused unless they were
    /// committed before.
    pub fn new(state: &'s S, now: Stated, is_full: bool) -> Group<'s, S> {
        Group {
            state,
            scopes: BTreeMap::new(),
            rows: Overlay::default(),
            now,
            is_full,
        }
    }

    /// The scope rows that the group leaves behind, to be written with it. Those of other scopes that
    /// lie above a lowered store time come down with them, so that no later start raises it again (F20).
    pub fn into_scopes(mut self) -> BTreeMap<Scope, ScopeRow> {
        if !self.scopes.is_empty() {
            for row in self.state.scopes_after(self.now.time) {
                let at = self.now.time;
                self.scopes.entry(row.scope).or_insert(ScopeRow { at, ..row });
            }
        }
        self.scopes
    }

    /// A scope as the group's members so far left it.
    pub fn state_scope(&self, scope: Scope) -> Option<ScopeRow> {
        self.scopes.get(&scope).cloned().or_else(|| self.state.scope(scope))
    }

    fn value(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        match self.rows.get(key) {
            Some(write) => Ok(write.cloned()),
            None => self.state.value(key),
        }
    }

    fn contains(&self, key: &[u8]) -> Result<bool, StoreError> {
        match self.rows.get(key) {
            Some(write) => Ok(write.is_some()),
            None => self.state.contains(key),
        }
    }

    fn assignment(&self, scope: Scope) -> Result<Option<AssignmentRow>, StoreError> {
        let key = key_bytes(&RowKey::Assignment(scope));
        let Some(value) = self.value(&key)? else {
            return Ok(None);
        };
        match codec::decode_row(&key, &value) {
            Ok(Row::Assignment(row)) => Ok(Some(row)),
            _ => Ok(None),
        }
    }

    /// Judges an open and remembers what it changed.
    pub fn open(&mut self, request: &Open) -> Result<Opened, OpenError> {
        let current = self.state_scope(request.scope);
        let is_assigned = match request.scope {
            Scope::Coordinator => true,
            Scope::Shard(_) => self
                .assignment(request.scope)?
                .is_some_and(|row| row.node == request.node),
        };
        match judge_open(current.as_ref(), is_assigned, request) {
            OpenJudgement::Raise(epoch) => {
                let row = judge::opened_row(request, epoch, self.now.time);
                let opened = Opened { epoch, at: row.at };
                self.scopes.insert(request.scope, row);
                Ok(opened)
            }
            OpenJudgement::Same(row) => Ok(Opened {
                epoch: row.epoch,
                at: row.at,
            }),
            OpenJudgement::Moved => Err(OpenError::Moved {
                current: current.map_or(Epoch(0), |row| row.epoch),
            }),
            OpenJudgement::NotAssigned => Err(OpenError::NotAssigned),
        }
    }

    /// Judges a commit. After `Committed::Committed` its writes are part of the group; after
    /// anything else it has left no trace.
    pub fn commit(&mut self, request: &Commit) -> Result<Committed, StoreError> {
        let scope = self.state_scope(request.scope);
        let row = match judge_commit(scope.as_ref(), request) {
            Judgement::Apply(row) => row,
            Judgement::Already(row) => {
                return Ok(Committed::Already(Stated {
                    time: row.at,
                    doubt: self.now.doubt,
                }));
            }
            Judgement::Stale => return Ok(Committed::Stale),
            Judgement::Conflict(why) => return Ok(Committed::Conflict(why)),
        };
        if self.is_full && request.batch.creates {
            return Ok(Committed::Full);
        }
        self.apply(row, request)
    }

    /// Applies a commit that was judged to fit, unless an expectation fails.
    pub(crate) fn apply(&mut self, row: ScopeRow, request: &Commit) -> Result<Committed, StoreError> {
        let mark = self.rows.mark();
        match self.expectations(&request.batch) {
            Ok(None) => {}
            Ok(Some(why)) => {
                self.rows.undo(mark);
                return Ok(Committed::Conflict(why));
            }
            Err(error) => {
                self.rows.undo(mark);
                return Err(error);
            }
        }
        self.scopes.insert(
            request.scope,
            ScopeRow {
                batch: request.number,
                digest: request.batch.digest,
                at: self.now.time,
                ..row
            },
        );
        Ok(Committed::Committed(self.now))
    }

    /// Checks each write in order and lays it over the state; the reason of the first that fails.
    fn expectations(&mut self, batch: &Batch) -> Result<Option<String>, StoreError> {
        for write in &batch.writes {
            let (key, value, expect) = match write {
                RawWrite::Put { key, value, expect } => (key, Some(value), *expect),
                RawWrite::Delete { key } => (key, None, RawExpect::Any),
            };
            if let Some(why) = refuse_key(key) {
                return Ok(Some(why));
            }
            if let Some(why) = self.unmet(key, expect)? {
                return Ok(Some(why));
            }
            self.rows.insert(key.clone(), value.cloned());
        }
        Ok(None)
    }

    fn unmet(&self, key: &[u8], expect: RawExpect) -> Result<Option<String>, StoreError> {
        match expect {
            RawExpect::Any => Ok(None),
            RawExpect::Absent => Ok(self
                .contains(key)?
                .then(|| format!("row {} is there, but had to be absent", shown(key)))),
            RawExpect::Version(wanted) => {
                let found = self.value(key)?.and_then(|value| codec::version_of(key, &value));
                Ok(match found {
                    Some(version) if version == wanted => None,
                    Some(version) => Some(format!(
                        "row {} has version {version}, but had to have {wanted}",
                        shown(key)
                    )),
                    None => Some(format!(
                        "row {} is absent, but had to have version {wanted}",
                        shown(key)
                    )),
                })
            }
        }
    }
}

fn refuse_key(key: &[u8]) -> Option<String> {
    let is_writable = Kind::of(key).is_some_and(|kind| !kind.is_stores_own());
    if is_writable && key.len() <= KEY_BYTES_MAX {
        None
    } else {
        Some(format!("a batch may not write row {}", shown(key)))
    }
}

/// A key for people: its kind, then hexadecimal digits, bounded.
pub fn shown(key: &[u8]) -> String {
    use std::fmt::Write as _;
    let kind = Kind::of(key).map_or_else(|| "?".to_owned(), |kind| format!("{kind:?}").to_lowercase());
    let mut text = format!("{kind}:");
    for byte in key.iter().skip(1).take(64) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
