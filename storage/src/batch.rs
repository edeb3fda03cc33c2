//! A batch: encoded row writes with their conditions and a digest.
//!
//! Owns: the shape that travels to the store. Must never: hold typed rows (encoded once, by the
//! caller's thread). Next: `store.rs`.

use crate::store::Bytes;

/// One encoded write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawWrite {
    /// Insert or replace.
    Put {
        /// Key.
        key: Bytes,
        /// Value.
        value: Bytes,
        /// Condition.
        expect: RawExpect,
    },
    /// Delete.
    Delete {
        /// Key.
        key: Bytes,
    },
}

/// An encoded condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawExpect {
    /// None.
    Any,
    /// Absent.
    Absent,
    /// A row with this version number (job rows carry it at a fixed place of their value).
    Version(u64),
}

/// Encoded writes of one or more steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// In order.
    pub writes: Vec<RawWrite>,
    /// Over all writes and conditions.
    pub digest: [u8; 32],
    /// Bytes of keys and values.
    pub bytes: usize,
    /// Whether it creates work (refused on a full disk) or only frees it.
    pub creates: bool,
}
