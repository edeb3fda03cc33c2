//! Bounds of the slots and shards of a cell.
//!
//! Owns: numbers only. Must never: hold logic. Next: `mod.rs`, where they are checked against each other.

/// Slots that routing keys hash to; fixed for ever.
pub const SLOT_COUNT: u32 = 16_384;
/// Shards of a new cell; fixed when the cell is made.
pub const SHARD_COUNT_DEFAULT: u16 = 16;
/// Most shards a cell may have.
pub const SHARD_COUNT_MAX: u16 = 256;
