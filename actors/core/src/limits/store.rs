//! Bounds of rows, groups, marks and the disk.
//!
//! Owns: numbers only. Must never: hold logic. Next: `mod.rs`, where they are checked against each other.

/// Bytes of one stored row.
pub const ROW_BYTES_MAX: usize = 2 << 20;
/// Bytes of disk kept back so that complete, cancel and drain work on a full disk.
pub const DISK_RESERVE_BYTES: u64 = 16 << 20;
/// Bytes of rows in one journal write, soft: what waits beyond goes into the next.
pub const GROUP_BYTES_MAX: usize = 16 << 20;
/// How long nobody may have written before the store looks by itself whether its folder is there.
pub const IDLE_LOOK_MS: u64 = 1_000;
/// Bytes of waiting rows from which a group is written at once, without waiting for more callers.
pub const GROUP_ENOUGH_BYTES: usize = 64 << 10;
/// Microseconds between the beginnings of two small groups: callers that the first one answered come back
/// within this time, and one sync for all of them costs less than two. After a pause nothing waits.
pub const GROUP_SPACING_US: u64 = 300;
/// The part of a group's own time that the next one waits after its end, as one in so many: callers that a
/// slow disk kept waiting come back together, too.
pub const GROUP_PATIENCE_PART: u64 = 4;
/// Microseconds after which callers that were answered are back; a shorter wait for them is none.
pub const GROUP_RETURN_US: u64 = 250;
/// Batches of one shard on their way to the store at once: what comes while one is being synced need not
/// wait for its answer. More would only make smaller batches.
pub const BATCH_FLIGHTS_MAX: usize = 4;
/// Bytes of rows that a small group may keep with its high-water mark; a larger group goes to the journal first.
pub const MARK_ROWS_BYTES_MAX: usize = 30 << 10;
/// High-water marks in the ring: the journal is synced after as many small groups.
pub const MARK_SLOTS: u64 = 16;
/// Bytes of all block caches of the store together.
pub const STORE_CACHE_BYTES: u64 = 16 << 20;
/// Bytes of journals from which the store flushes rows to its tables.
pub const STORE_JOURNAL_BYTES: u64 = 64 << 20;
/// Files that the store keeps open.
pub const STORE_FILES_MAX: usize = 256;
/// Free bytes of the store's disk below which work is not created any more (507).
pub const DISK_FREE_MIN_BYTES: u64 = 64 << 20;
/// Bytes of a key; no row has a longer one.
pub const KEY_BYTES_MAX: usize = 2_048;
/// Bytes of one value in a journal; a longer one is damage.
pub const JOURNAL_VALUE_BYTES_MAX: u32 = 16 << 20;
/// Rows of the first and of the smallest page that a replay reads for their classes.
pub const CLASS_PAGE_ROWS: usize = 4;
