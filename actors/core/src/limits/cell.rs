//! Bounds of the slots and shards of a cell.
//!
//! Owns: numbers only. Must never: hold logic. Next: `mod.rs`, where they are checked against each other.

/// Slots that routing keys hash to; fixed for ever.
pub const SLOT_COUNT: u32 = 16_384;
/// Shards of a new cell; fixed when the cell is made.
pub const SHARD_COUNT_DEFAULT: u16 = 16;
/// Most shards a cell may have.
pub const SHARD_COUNT_MAX: u16 = 256;
/// Most threads for shards that may be asked for.
pub const THREAD_COUNT_MAX: u16 = 256;
/// Bytes of a file of settings.
pub const CONFIG_BYTES_MAX: usize = 256 << 10;
/// Mistakes in settings that are told at once.
pub const CONFIG_MISTAKES_MAX: usize = 100;
/// Letters of a word in settings that is compared with the known ones.
pub const CONFIG_WORD_CHARS_MAX: usize = 64;
/// Fewest bytes of a secret, as in its file.
pub const SECRET_BYTES_MIN: usize = 16;
/// Signs of life that the service manager gets in the time that it allows between two.
pub const MANAGER_BEATS: u64 = 3;
