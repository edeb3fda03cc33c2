//! Bounds of doubt in the store's clock, and waiting for room.
//!
//! Owns: numbers only. Must never: hold logic. Next: `mod.rs`, where they are checked against each other.

/// A forward step of the store's clock above this is clock doubt.
pub const CLOCK_JUMP_MAX_MS: u64 = 60_000;
/// Clock doubt ends by itself after the clock ran steadily for this long.
pub const CLOCK_DOUBT_MAX_MS: u64 = 300_000;
/// In clock doubt, a shard asks for the time this often.
pub const DOUBT_PACE_MS: u64 = 1_000;
/// On a full disk, a shard asks this often whether what is due has room.
pub const FULL_PACE_MS: u64 = 250;
/// How far a node's clock may be from the store's by default: beyond it the node takes and gives no work.
pub const CLOCK_OFFSET_MS: u64 = 60_000;
/// Least such bound: an answer of the store on another node may take its part of it.
pub const CLOCK_OFFSET_MS_MIN: u64 = 100;
/// Greatest such bound; practically none.
pub const CLOCK_OFFSET_MS_MAX: u64 = 366 * 86_400_000;
/// How much two clocks may drift apart, in parts of a million.
pub const CLOCK_DRIFT_PPM: u64 = 500;
