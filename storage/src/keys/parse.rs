//! Bytes back to row names; anything that is not exactly one name is an error, never a panic.
//!
//! Owns: the mirror of `write_key`. Must never: accept what `write_key` would not write.
//! Next: `mod.rs`.

use super::{Kind, write_key};
use fencepost_core::ids::{Epoch, Generation, Incarnation, JobId, Scope, ShardId, Slot};
use fencepost_core::name::Name;
use fencepost_core::row::{MarkRange, ReadyRow, RowKey};
use fencepost_core::time::StoreTime;
use std::sync::Arc;

/// Why bytes are no row's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The first byte names no kind of row.
    #[error("the key names no kind of row this version knows")]
    Kind,
    /// It ends too early, goes on too long or holds a part that cannot be.
    #[error("the key is damaged at byte {0}")]
    Damaged(usize),
}

/// The row that `bytes` name.
pub fn parse_key(bytes: &[u8]) -> Result<RowKey, KeyError> {
    let kind = Kind::of(bytes).ok_or(KeyError::Kind)?;
    let mut parts = Parts { bytes, at: 1 };
    let key = parts.key(kind).ok_or(KeyError::Damaged(parts.at))?;
    if parts.at != bytes.len() {
        return Err(KeyError::Damaged(parts.at));
    }
    debug_assert!({
        let mut again = Vec::new();
        write_key(&key, &mut again);
        again == bytes
    });
    Ok(key)
}

struct Parts<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Parts<'a> {
    fn key(&mut self, kind: Kind) -> Option<RowKey> {
        Some(match kind {
            Kind::Scope | Kind::Chain => return None,
            Kind::Cell => RowKey::Cell,
            Kind::Assignment => RowKey::Assignment(self.scope()?),
            Kind::Cursor => {
                let (slot, tenant, name) = self.schedule()?;
                RowKey::Cursor(slot, tenant, name)
            }
            Kind::Definition => {
                let (slot, tenant, name, life) = self.life()?;
                RowKey::Definition(slot, tenant, name, life, self.u64()?)
            }
            Kind::Backlog => {
                let (slot, tenant, name, life) = self.life()?;
                RowKey::Backlog(slot, tenant, name, life, u32::from_be_bytes(self.array()?))
            }
            Kind::Fate => {
                let (slot, tenant, name, life) = self.life()?;
                RowKey::Fate(slot, tenant, name, life, self.time()?, self.time()?)
            }
            Kind::Edit => {
                let (slot, tenant, name, life) = self.life()?;
                RowKey::Edit(slot, tenant, name, life, self.time()?, self.u64()?)
            }
            Kind::Request => {
                let (slot, tenant, name, life) = self.life()?;
                RowKey::Request(slot, tenant, name, life, self.u64()?)
            }
            Kind::Job => RowKey::Job(self.job()?),
            Kind::Leased => RowKey::Leased(self.job()?),
            Kind::Parked => RowKey::Parked(self.job()?),
            Kind::DeadLetter => RowKey::DeadLetter(self.job()?),
            Kind::Attempts => RowKey::Attempts(self.job()?, u32::from_be_bytes(self.array()?)),
            Kind::Wait => RowKey::Wait(self.shard()?, self.time()?, self.job()?),
            Kind::Ready => RowKey::Ready(ReadyRow {
                shard: self.shard()?,
                queue: self.line()?,
                tenant: self.name()?,
                priority: self.array::<1>()?[0],
                order: self.time()?,
                id: self.job()?,
            }),
            Kind::Key => {
                let (slot, tenant) = (self.slot()?, self.name()?);
                let key = std::str::from_utf8(self.rest()).ok()?;
                if slot != Slot::of_key(&tenant, key) {
                    return None;
                }
                RowKey::Key(slot, tenant, Arc::from(key))
            }
            Kind::Mark => RowKey::Mark(self.shard()?, self.mark()?),
            Kind::Quarantine => RowKey::Quarantine(self.shard()?, Arc::from(self.rest())),
        })
    }

    fn life(&mut self) -> Option<(Slot, Name, Name, Incarnation)> {
        let (slot, tenant, name) = self.schedule()?;
        Some((slot, tenant, name, self.incarnation()?))
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let part = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(part)
    }

    fn rest(&mut self) -> &'a [u8] {
        let part = self.bytes.get(self.at..).unwrap_or(&[]);
        self.at = self.bytes.len();
        part
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_be_bytes(self.array()?))
    }

    fn slot(&mut self) -> Option<Slot> {
        Slot::new(u16::from_be_bytes(self.array()?))
    }

    fn shard(&mut self) -> Option<ShardId> {
        Some(ShardId(u16::from_be_bytes(self.array()?)))
    }

    fn job(&mut self) -> Option<JobId> {
        JobId::from_bytes(self.array()?)
    }

    fn time(&mut self) -> Option<StoreTime> {
        Some(StoreTime(i64::from_be_bytes(self.array()?) ^ i64::MIN))
    }

    fn name(&mut self) -> Option<Name> {
        self.text(|text| Name::new(text).ok())
    }

    /// The name of a line: a queue's, or that of its remote jobs.
    fn line(&mut self) -> Option<Name> {
        self.text(|text| Name::line(text).ok())
    }

    fn text(&mut self, name: impl Fn(&str) -> Option<Name>) -> Option<Name> {
        let tail = self.bytes.get(self.at..)?;
        let length = tail.iter().position(|byte| *byte == 0)?;
        let text = std::str::from_utf8(tail.get(..length)?).ok()?;
        let name = name(text)?;
        self.at += length + 1;
        Some(name)
    }

    fn schedule(&mut self) -> Option<(Slot, Name, Name)> {
        let (slot, tenant, name) = (self.slot()?, self.name()?, self.name()?);
        (slot == Slot::of_schedule(&tenant, &name)).then_some((slot, tenant, name))
    }

    fn incarnation(&mut self) -> Option<Incarnation> {
        Some(Incarnation {
            generation: Generation(u32::from_be_bytes(self.array()?)),
            epoch: Epoch(self.u64()?),
            batch: self.u64()?,
            place: u32::from_be_bytes(self.array()?),
        })
    }

    fn scope(&mut self) -> Option<Scope> {
        match self.array::<1>()?[0] {
            0 => Some(Scope::Coordinator),
            1 => Some(Scope::Shard(self.shard()?)),
            _ => None,
        }
    }

    fn mark(&mut self) -> Option<MarkRange> {
        match self.array::<1>()?[0] {
            0 => Some(MarkRange::Wait),
            1 => Some(MarkRange::Ready(self.line()?, self.name()?)),
            _ => None,
        }
    }
}

/// The scope that a scope row's key names.
#[must_use]
pub(crate) fn parse_scope_key(bytes: &[u8]) -> Option<Scope> {
    let mut parts = Parts { bytes, at: 1 };
    let scope = parts.scope()?;
    (Kind::of(bytes) == Some(Kind::Scope) && parts.at == bytes.len()).then_some(scope)
}
