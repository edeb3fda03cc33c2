//! Identities: slots and shards, jobs, epochs, tokens, incarnations, workers.
//!
//! Owns: how an id is made and ordered. Must never: draw randomness (a fresh id's random part is
//! handed in). Next: `name.rs`, `job.rs`.

use crate::limits::SLOT_COUNT;
use crate::name::Name;
use crate::time::StoreTime;
use std::fmt;

/// A slice of the key space; routing keys hash to one of 16,384.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u16);

/// A range of slots with one owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u16);

/// How slots are cut into shards: a durable fact of the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShardMap {
    shards: u16,
}

/// One unit of work: slot (2 bytes), then 14 bytes of hash or chance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId([u8; 16]);

/// Raised from outside the data by every restore and promotion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u32);

/// The ever-growing number of a scope's owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

/// The number of a batch within its scope and epoch, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchNo(pub u64);

/// The nonce of one holder of a scope: a fresh one for each shell start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder(pub u128);

/// What an epoch is counted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The coordinator's own scope: cell facts and assignments.
    Coordinator,
    /// One shard's rows.
    Shard(ShardId),
}

/// The fencing token of a grant: ordered as its 20 bytes, ever-growing per scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token {
    /// Of the cell.
    pub generation: Generation,
    /// Of the shard's owner.
    pub epoch: Epoch,
    /// Counted per epoch.
    pub sequence: u64,
}

/// One life of a schedule name: the place of its creation, unique without tombstones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation {
    /// Of the cell.
    pub generation: Generation,
    /// Of the shard's owner.
    pub epoch: Epoch,
    /// Number that the machine counts per epoch, one for each creating step.
    pub batch: u64,
    /// Place within that step.
    pub place: u32,
}

/// A worker: a node's name and the nonce of that node's start.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId {
    /// Node name.
    pub node: Name,
    /// Drawn anew at each start of the node; the low bits number the workers of one start.
    pub boot: u64,
}

/// Low bits of a boot, which number a node's workers; its own has zero.
const WORKER_BITS: u32 = 24;
/// The highest of these numbers.
const LAST_WORKER: u64 = (1 << WORKER_BITS) - 1;

impl WorkerId {
    /// The worker of a node that starts now, with what was drawn for the start.
    pub fn of_start(node: Name, drawn: u64) -> WorkerId {
        let boot = drawn >> WORKER_BITS << WORKER_BITS;
        WorkerId { node, boot }
    }

    /// Another worker of the same start; numbers beyond the low bits begin anew at one.
    pub fn beside(&self, number: u64) -> WorkerId {
        self.numbered(number % (LAST_WORKER - 1) + 1)
    }

    /// The one beside it that takes no work; no number is its.
    pub fn clerk(&self) -> WorkerId {
        self.numbered(LAST_WORKER)
    }

    fn numbered(&self, low: u64) -> WorkerId {
        WorkerId {
            node: self.node.clone(),
            boot: (self.boot >> WORKER_BITS << WORKER_BITS) + low,
        }
    }

    /// Whether it is one of those beside the node's own.
    pub fn is_beside(&self) -> bool {
        self.boot >> WORKER_BITS << WORKER_BITS != self.boot
    }

    /// Whether it belongs to that start of its node: if not, it is gone.
    pub fn is_of_start(&self, boot: u64) -> bool {
        self.boot >> WORKER_BITS == boot >> WORKER_BITS
    }
}

/// An offer of one worker; repeating it returns the same grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfferId(pub u64);

/// A heartbeat of one worker. A renewal names it, so that the worker counts from when it was sent,
/// also when answers are lost or come in another order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BeatId(pub u64);

/// Who speaks for a shard. The owner's shell stamps it on each message to a worker: leases outlive
/// epochs, so the token of a renewed lease does not tell which owner renews it (F17).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardOwner {
    /// Which shard.
    pub shard: ShardId,
    /// Of the cell.
    pub generation: Generation,
    /// Of the owner.
    pub epoch: Epoch,
}

impl Slot {
    /// The slot of a routing key.
    pub fn of(parts: &[&[u8]]) -> Slot {
        let digest = digest("slot", parts);
        Slot(u16::from_be_bytes([digest[0], digest[1]]) % (SLOT_COUNT as u16))
    }

    /// From its number; `None` beyond the last slot.
    pub fn new(number: u16) -> Option<Slot> {
        (u32::from(number) < SLOT_COUNT).then_some(Slot(number))
    }

    /// Its number.
    pub fn number(self) -> u16 {
        self.0
    }

    /// The slot of a schedule name.
    pub fn of_schedule(tenant: &Name, name: &Name) -> Slot {
        Slot::of(&[b"schedule", tenant.as_bytes(), name.as_bytes()])
    }

    /// The slot of an idempotency key.
    pub fn of_key(tenant: &Name, key: &str) -> Slot {
        Slot::of(&[b"key", tenant.as_bytes(), key.as_bytes()])
    }
}

impl ShardMap {
    /// A map of `shards` equal ranges; `None` for zero or more than the limit.
    pub fn new(shards: u16) -> Option<ShardMap> {
        (shards > 0 && shards <= crate::limits::SHARD_COUNT_MAX).then_some(ShardMap { shards })
    }

    /// How many shards.
    pub fn count(self) -> u16 {
        self.shards
    }

    /// The shard that owns `slot`.
    pub fn shard_of(self, slot: Slot) -> ShardId {
        ShardId((u32::from(slot.0) * u32::from(self.shards) / SLOT_COUNT) as u16)
    }

    /// All shards in order.
    pub fn shards(self) -> impl Iterator<Item = ShardId> {
        (0..self.shards).map(ShardId)
    }

    /// First slot of `shard`, and the first slot after it (16,384 for the last).
    pub fn slots_of(self, shard: ShardId) -> (u32, u32) {
        let first = |s: u32| (s * SLOT_COUNT).div_ceil(u32::from(self.shards));
        (first(u32::from(shard.0)), first(u32::from(shard.0) + 1))
    }
}

impl JobId {
    /// From a slot and 14 bytes that nobody drew before.
    pub fn fresh(slot: Slot, chance: [u8; 14]) -> JobId {
        let mut bytes = [0; 16];
        bytes[..2].copy_from_slice(&slot.0.to_be_bytes());
        bytes[2..].copy_from_slice(&chance);
        JobId(bytes)
    }

    /// The id of a fired job: the same occurrence cannot make two. `discriminator` is empty for a
    /// regular fire and names the request for run-now and backfill re-runs.
    pub fn of_occurrence(
        slot: Slot,
        schedule: (&Name, &Name),
        incarnation: Incarnation,
        nominal: StoreTime,
        discriminator: &[u8],
    ) -> JobId {
        let digest = digest(
            "occurrence",
            &[
                schedule.0.as_bytes(),
                schedule.1.as_bytes(),
                &incarnation.to_bytes(),
                &nominal.0.to_be_bytes(),
                discriminator,
            ],
        );
        let mut chance = [0; 14];
        chance.copy_from_slice(&digest[..14]);
        JobId::fresh(slot, chance)
    }

    /// From stored bytes; `None` if the slot does not exist.
    pub fn from_bytes(bytes: [u8; 16]) -> Option<JobId> {
        Slot::new(u16::from_be_bytes([bytes[0], bytes[1]])).map(|_| JobId(bytes))
    }

    /// Its bytes, in key order.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The slot it lives in.
    pub fn slot(self) -> Slot {
        Slot(u16::from_be_bytes([self.0[0], self.0[1]]))
    }

    /// From the text form `job_` and 32 hexadecimal digits.
    pub fn parse(text: &str) -> Option<JobId> {
        let hex = text.strip_prefix("job_")?;
        if hex.len() != 32 || !hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
            return None;
        }
        JobId::from_bytes(u128::from_str_radix(hex, 16).ok()?.to_be_bytes())
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job_{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Token {
    /// Fixed width, ordered like the token.
    pub fn to_bytes(self) -> [u8; 20] {
        let mut bytes = [0; 20];
        bytes[..4].copy_from_slice(&self.generation.0.to_be_bytes());
        bytes[4..12].copy_from_slice(&self.epoch.0.to_be_bytes());
        bytes[12..].copy_from_slice(&self.sequence.to_be_bytes());
        bytes
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:08x}{:016x}{:016x}",
            self.generation.0, self.epoch.0, self.sequence
        )
    }
}

impl std::str::FromStr for Token {
    type Err = ();
    fn from_str(text: &str) -> Result<Token, ()> {
        if text.len() != 40 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(());
        }
        let part = |from: usize, to: usize| u64::from_str_radix(text.get(from..to).unwrap_or(""), 16).map_err(|_| ());
        let generation = u32::try_from(part(0, 8)?).map_err(|_| ())?;
        Ok(Token {
            generation: Generation(generation),
            epoch: Epoch(part(8, 24)?),
            sequence: part(24, 40)?,
        })
    }
}

impl Incarnation {
    /// Fixed width, ordered like the incarnation.
    pub fn to_bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..4].copy_from_slice(&self.generation.0.to_be_bytes());
        bytes[4..12].copy_from_slice(&self.epoch.0.to_be_bytes());
        bytes[12..20].copy_from_slice(&self.batch.to_be_bytes());
        bytes[20..].copy_from_slice(&self.place.to_be_bytes());
        bytes
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{:016x}", self.node, self.boot)
    }
}

/// A stable 32-byte digest of length-prefixed parts under a purpose.
pub fn digest(purpose: &str, parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(purpose.len() as u64).to_be_bytes());
    hasher.update(purpose.as_bytes());
    for part in parts {
        hasher.update(&(part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    *hasher.finalize().as_bytes()
}

/// A stable 64-bit hash, for jitter, backoff and `H`.
pub fn hash64(purpose: &str, parts: &[&[u8]]) -> u64 {
    let d = digest(purpose, parts);
    u64::from_be_bytes([d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7]])
}
