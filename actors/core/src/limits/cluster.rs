//! Bounds of who owns what: sessions, the board, moves of shards, and requests on their way to an owner.
//!
//! Owns: numbers only. Must never: hold logic. Next: `mod.rs`, where they are checked against each other.

/// Length of a node's session: an owner that is not heard of for so long, and a margin, loses its shards.
pub const SHARD_LEASE_MS: u64 = 5_000;
/// Shortest such length that may be asked for.
pub const SHARD_LEASE_MS_MIN: u64 = 500;
/// Longest: an owner's death must cost no living worker its leases.
pub const SHARD_LEASE_MS_MAX: u64 = 15_000;
/// Margin that the board adds to it; a tenth of the length if that is less.
pub const SHARD_LEASE_MARGIN_MS: u64 = 500;
/// Longest pause between a node's posts on the board; a fifth of the session if that is less.
pub const BOARD_POST_MS: u64 = 1_000;
/// Bytes of a post or a view.
pub const BOARD_BYTES_MAX: usize = 4 << 20;
/// Nodes on the board.
pub const BOARD_NODES_MAX: usize = 256;
/// Bytes of the address where other nodes reach a node.
pub const NODE_ADDRESS_BYTES_MAX: usize = 256;
/// How long a node waits for another one to release a shard before it opens it all the same.
pub const HANDOVER_MS_MAX: u64 = 5_000;
/// A shard that moved, and a node that came, is left alone for so long by balancing.
pub const BALANCE_HOLD_MS: u64 = 10_000;
/// Planned moves of shards under way at a time.
pub const PLANNED_MOVES_MAX: usize = 4;
/// A shard whose owner is there and shows no progress for so long moves.
pub const SHARD_STALL_MS: u64 = 60_000;
/// How long a node waits for the reply of an owner on another node.
pub const REQUEST_CALL_MS: u64 = 10_000;
/// How long a request follows a shard that moves, before its caller is told to try again.
pub const FOLLOW_MS: u64 = 1_200;
/// How long a request waits for a connection to its owner before it looks for the owner again.
pub const FOLLOW_CONNECT_MS: u64 = 300;
/// How long a request whose shard stopped under it is sent again: a shard that was taken over opens by then, and a
/// caller waits for no more than that while the store is away.
pub const RESEND_MS: u64 = 500;
/// How much longer than the board may hold an answer its caller waits.
pub const BOARD_ANSWER_MS: u64 = 1_000;
/// Words (rows that changed, shards that ended, replies) that wait for a node's coordinator.
pub const MEMBER_WORDS_MAX: usize = 1_024;
/// Posts that a node remembers until the board has answered them.
pub const POSTS_UNANSWERED_MAX: usize = 8;
/// How long the release of a shard waits for what is in flight in it.
pub const RELEASE_MS: u64 = 400;
/// How long a shard may take to say how far it is, before the board is told of no progress.
pub const PROGRESS_PROBE_MS: u64 = 500;
/// How long a node that drains waits for others to take its shards.
pub const DRAIN_HAND_OVER_MS: u64 = 2_000;
/// How long a drain waits for its shards, all together, and beyond the drain limit for its worker.
pub const DRAIN_SETTLE_MS: u64 = 2_000;
/// Codes of refusals that a node learns from others.
pub const REMOTE_CODES_MAX: usize = 256;
/// A shard that has not answered by then when it is asked how it is, is not well.
pub const SHARD_PROBE_MS: u64 = 5_000;
/// The store is away when it has not said its time by then.
pub const STORE_PROBE_MS: u64 = 2_000;
/// Pause between two looks of a node at its store and its shards.
pub const NODE_WATCH_MS: u64 = 1_000;
/// Pause before a request, an open or a decision whose end is not known is sent again.
pub const RESEND_PAUSE_MS: u64 = 50;
/// A creation is refused within so long while the store is away, sending again included; the rest of the 2 s that
/// are promised is for the way.
pub const CREATION_REFUSED_MS: u64 = 1_800;
/// How often a node tries to make the cell or to read what another one made.
pub const CELL_JOIN_TRIES_MAX: u32 = 20;
/// Pause before a store that does not answer at a start is asked again.
pub const STORE_START_PAUSE_MS: u64 = 200;
/// How long a start that was told to stop may go on; by then its store is away, and so is all it began.
pub const STOP_START_MS: u64 = 2_000;
/// How long a node that serves waits for shards that are not open yet before it tells a service manager that it is
/// ready; one that is kept shut is not waited for.
pub const SERVICE_READY_MS: u64 = 120_000;
/// Pause between two looks at what a service manager is told of a node's state.
pub const SERVICE_STATUS_MS: u64 = 1_000;
/// How much time a start that waits for another node asks a service manager for, again and again.
pub const SERVICE_WAIT_MS: u64 = 30_000;
/// Intervals between posts in a session at least, and between two reads of the assignments that nobody told of.
pub const BOARD_POSTS_PER_SESSION: u64 = 5;
