//! Bounds of frames, connections and calls between nodes.
//!
//! Owns: numbers only. Must never: hold logic. Next: `mod.rs`, where they are checked against each other.

use super::CLAIMS_OPEN_MAX;

/// Bytes of one frame between nodes: a batch and the step that passed its bound.
pub const FRAME_BYTES_MAX: usize = 32 << 20;
/// Silence after which a connection between nodes is closed and made anew.
pub const LINK_SILENT_MS: u64 = 5_000;
/// Pause between two signs of life on a silent connection.
pub const LINK_PING_MS: u64 = 1_000;
/// Time for one frame, from its head to its last byte.
pub const FRAME_MS_MAX: u64 = 60_000;
/// Time for a connection between nodes to be made, its greeting included.
pub const GREETING_MS: u64 = 5_000;
/// First pause before a lost connection is made anew; it doubles, and half of it is drawn.
pub const REDIAL_MS: u64 = 50;
/// Longest such pause.
pub const REDIAL_MS_MAX: u64 = 2_000;
/// Frames that wait to be sent to one node.
pub const SEND_QUEUE_FRAMES_MAX: usize = 4_096;
/// Bytes of them.
pub const SEND_QUEUE_BYTES_MAX: usize = 64 << 20;
/// Calls of one connection that are in work at once, answers not yet written included; further ones are not read.
pub const CALLS_IN_WORK_MAX: usize = 128;
/// Connections from other nodes at once.
pub const LINK_COUNT_MAX: usize = 1_024;
/// Workers of one node that are heard over one connection: its own, and the claims beside it.
pub const LINK_WORKERS_MAX: usize = CLAIMS_OPEN_MAX + 1;
/// Workers that one shard can reach, from which on further claims find no room there.
pub const WORKER_LINKS_MAX: usize = 16 * LINK_WORKERS_MAX;
/// Bytes of a frame before its sender has proved where it belongs.
pub const GREETING_BYTES_MAX: usize = 4 << 10;
/// Bytes of a file with certificates or a key for connections between nodes.
pub const MESH_FILE_BYTES_MAX: u64 = 256 << 10;
/// Pause between two looks at these files.
pub const MESH_FILES_LOOK_MS: u64 = 5_000;
/// Days before its end from which a certificate is worth a warning.
pub const CERTIFICATE_WARN_DAYS: u64 = 14;
/// Days of a certificate that is made here, at most.
pub const CERTIFICATE_DAYS_MAX: u64 = 36_500;
/// Time in which a reason for refusing a connection is told once.
pub const REFUSAL_TELL_MS: u64 = 60_000;
/// Time for a store call to another node, its wait for a connection included.
pub const STORE_CALL_MS: u64 = 1_500;
/// Keys of one read from a store on another node.
pub const REMOTE_KEYS_MAX: usize = 1_024;
/// Row writes of one batch for a store on another node.
pub const REMOTE_WRITES_MAX: usize = 64 << 10;
/// Bytes of keys and values of one such batch; the rest of its frame is for conditions and lengths.
pub const REMOTE_BATCH_BYTES_MAX: usize = FRAME_BYTES_MAX - (4 << 20);
/// Bytes of a reason or fact that a store on another node tells.
pub const REMOTE_TEXT_BYTES_MAX: usize = 4 << 10;
/// Pause after a connection between nodes could not be accepted: out of file handles, say.
pub const LINK_ACCEPT_PAUSE_MS: u64 = 100;
/// Commits of one scope from other nodes that are remembered while they are in work: more than an owner sends.
pub const REMOTE_COMMITS_MAX: usize = 8;
/// Bytes that are read of a stream that was refused, so that its end hears why.
pub const REFUSED_LINGER_BYTES_MAX: u64 = 64 << 10;
