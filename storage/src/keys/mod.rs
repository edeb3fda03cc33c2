//! Row names as bytes: a kind byte, then big-endian parts whose byte order is the order of `RowKey`.
//!
//! Owns: the layout of every key, for ever. Names end in a zero byte, which no name contains, so no
//! key is the prefix of a neighbour's. Must never: look at values. Next: `range.rs`, `parse.rs`.

mod parse;
mod range;
#[cfg(test)]
mod tests;

pub(crate) use parse::parse_scope_key;
pub use parse::{KeyError, parse_key};
pub use range::{KeyRange, prefix_end};

use fencepost_core::ids::{Incarnation, JobId, Scope, ShardId, Slot};
use fencepost_core::name::Name;
use fencepost_core::row::{MarkRange, ReadyRow, RowKey};
use fencepost_core::time::StoreTime;

/// The first byte of a key. Kinds of one keyspace are neighbours (see `Space::of`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// The store's own record of a scope.
    Scope = 0x01,
    /// The store's own sequence and chain.
    Chain = 0x02,
    /// See `Row::Cell`.
    Cell = 0x10,
    /// See `Row::Assignment`.
    Assignment = 0x11,
    /// See `Row::Definition`.
    Definition = 0x20,
    /// See `Row::Cursor`.
    Cursor = 0x21,
    /// See `Row::Backlog`.
    Backlog = 0x22,
    /// See `Row::Fate`.
    Fate = 0x23,
    /// See `Row::Edit`.
    Edit = 0x24,
    /// See `Row::Quarantine`.
    Quarantine = 0x25,
    /// See `Row::Request`.
    Request = 0x26,
    /// See `Row::Job`.
    Job = 0x30,
    /// See `Row::Key`.
    Key = 0x31,
    /// See `Row::DeadLetter`.
    DeadLetter = 0x32,
    /// See `Row::Parked`.
    Parked = 0x33,
    /// See `Row::Attempts`.
    Attempts = 0x34,
    /// See `Row::Wait`.
    Wait = 0x40,
    /// See `Row::Ready`.
    Ready = 0x41,
    /// See `Row::Leased`.
    Leased = 0x42,
    /// See `Row::Mark`.
    Mark = 0x43,
}

/// Every kind, in byte order.
pub const KINDS: [Kind; 20] = [
    Kind::Scope,
    Kind::Chain,
    Kind::Cell,
    Kind::Assignment,
    Kind::Definition,
    Kind::Cursor,
    Kind::Backlog,
    Kind::Fate,
    Kind::Edit,
    Kind::Quarantine,
    Kind::Request,
    Kind::Job,
    Kind::Key,
    Kind::DeadLetter,
    Kind::Parked,
    Kind::Attempts,
    Kind::Wait,
    Kind::Ready,
    Kind::Leased,
    Kind::Mark,
];

impl Kind {
    /// Its byte.
    pub const fn byte(self) -> u8 {
        self as u8
    }

    /// From the first byte of a key.
    pub fn of(key: &[u8]) -> Option<Kind> {
        let first = *key.first()?;
        KINDS.iter().copied().find(|kind| kind.byte() == first)
    }

    /// Whether only the store itself writes rows of this kind.
    pub fn is_stores_own(self) -> bool {
        matches!(self, Kind::Scope | Kind::Chain)
    }

    /// The kind of a row's name.
    pub fn of_row(key: &RowKey) -> Kind {
        match key {
            RowKey::Cell => Kind::Cell,
            RowKey::Assignment(_) => Kind::Assignment,
            RowKey::Definition(..) => Kind::Definition,
            RowKey::Cursor(..) => Kind::Cursor,
            RowKey::Backlog(..) => Kind::Backlog,
            RowKey::Fate(..) => Kind::Fate,
            RowKey::Edit(..) => Kind::Edit,
            RowKey::Job(_) => Kind::Job,
            RowKey::Wait(..) => Kind::Wait,
            RowKey::Ready(_) => Kind::Ready,
            RowKey::Leased(_) => Kind::Leased,
            RowKey::Parked(_) => Kind::Parked,
            RowKey::Key(..) => Kind::Key,
            RowKey::DeadLetter(_) => Kind::DeadLetter,
            RowKey::Attempts(..) => Kind::Attempts,
            RowKey::Mark(..) => Kind::Mark,
            RowKey::Quarantine(..) => Kind::Quarantine,
            RowKey::Request(..) => Kind::Request,
        }
    }
}

/// The bytes of a row's name.
pub fn key_bytes(key: &RowKey) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    write_key(key, &mut out);
    out
}

/// Appends the bytes of a row's name.
pub fn write_key(key: &RowKey, out: &mut Vec<u8>) {
    out.push(Kind::of_row(key).byte());
    match key {
        RowKey::Cell => {}
        RowKey::Assignment(scope) => put_scope(out, *scope),
        RowKey::Definition(slot, tenant, name, incarnation, version) => {
            put_life(out, *slot, tenant, name, incarnation);
            out.extend_from_slice(&version.to_be_bytes());
        }
        RowKey::Cursor(slot, tenant, name) => put_schedule(out, *slot, tenant, name),
        RowKey::Backlog(slot, tenant, name, incarnation, number) => {
            put_life(out, *slot, tenant, name, incarnation);
            out.extend_from_slice(&number.to_be_bytes());
        }
        RowKey::Fate(slot, tenant, name, incarnation, to, from) => {
            put_life(out, *slot, tenant, name, incarnation);
            put_time(out, *to);
            put_time(out, *from);
        }
        RowKey::Edit(slot, tenant, name, incarnation, at, version) => {
            put_life(out, *slot, tenant, name, incarnation);
            put_time(out, *at);
            out.extend_from_slice(&version.to_be_bytes());
        }
        RowKey::Job(id) | RowKey::Leased(id) | RowKey::Parked(id) | RowKey::DeadLetter(id) => put_job(out, id),
        RowKey::Attempts(id, page) => {
            put_job(out, id);
            out.extend_from_slice(&page.to_be_bytes());
        }
        RowKey::Wait(shard, at, id) => {
            put_shard(out, *shard);
            put_time(out, *at);
            put_job(out, id);
        }
        RowKey::Ready(row) => put_ready(out, row),
        RowKey::Key(slot, tenant, key) => {
            put_slot(out, *slot);
            put_name(out, tenant);
            out.extend_from_slice(key.as_bytes());
        }
        RowKey::Mark(shard, range) => put_mark(out, *shard, range),
        RowKey::Quarantine(shard, raw) => {
            put_shard(out, *shard);
            out.extend_from_slice(raw);
        }
        RowKey::Request(slot, tenant, name, incarnation, number) => {
            put_life(out, *slot, tenant, name, incarnation);
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
}

/// The key of a scope's own row.
pub fn scope_key(scope: Scope) -> Vec<u8> {
    let mut out = vec![Kind::Scope.byte()];
    put_scope(&mut out, scope);
    out
}

/// The key of the store's sequence and chain in a keyspace.
pub fn chain_key(space: u8) -> Vec<u8> {
    vec![Kind::Chain.byte(), space]
}

fn put_slot(out: &mut Vec<u8>, slot: Slot) {
    out.extend_from_slice(&slot.number().to_be_bytes());
}

fn put_shard(out: &mut Vec<u8>, shard: ShardId) {
    out.extend_from_slice(&shard.0.to_be_bytes());
}

fn put_job(out: &mut Vec<u8>, id: &JobId) {
    out.extend_from_slice(id.as_bytes());
}

fn put_name(out: &mut Vec<u8>, name: &Name) {
    out.extend_from_slice(name.as_bytes());
    out.push(0);
}

/// Signed time with its sign bit flipped: byte order is time order.
fn put_time(out: &mut Vec<u8>, at: StoreTime) {
    out.extend_from_slice(&(at.0 ^ i64::MIN).to_be_bytes());
}

fn put_scope(out: &mut Vec<u8>, scope: Scope) {
    match scope {
        Scope::Coordinator => out.push(0),
        Scope::Shard(shard) => {
            out.push(1);
            put_shard(out, shard);
        }
    }
}

fn put_schedule(out: &mut Vec<u8>, slot: Slot, tenant: &Name, name: &Name) {
    put_slot(out, slot);
    put_name(out, tenant);
    put_name(out, name);
}

fn put_life(out: &mut Vec<u8>, slot: Slot, tenant: &Name, name: &Name, incarnation: &Incarnation) {
    put_schedule(out, slot, tenant, name);
    out.extend_from_slice(&incarnation.to_bytes());
}

fn put_class(out: &mut Vec<u8>, shard: ShardId, queue: &Name, tenant: &Name) {
    put_shard(out, shard);
    put_name(out, queue);
    put_name(out, tenant);
}

fn put_ready(out: &mut Vec<u8>, row: &ReadyRow) {
    put_class(out, row.shard, &row.queue, &row.tenant);
    out.push(row.priority);
    put_time(out, row.order);
    put_job(out, &row.id);
}

fn put_mark(out: &mut Vec<u8>, shard: ShardId, range: &MarkRange) {
    put_shard(out, shard);
    match range {
        MarkRange::Wait => out.push(0),
        MarkRange::Ready(queue, tenant) => {
            out.push(1);
            put_name(out, queue);
            put_name(out, tenant);
        }
    }
}
