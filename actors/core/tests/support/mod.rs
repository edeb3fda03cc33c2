//! What several test binaries of the core share: durable rows in memory, and a shell around machines.
//!
//! Owns: the row store with its conditions, the lease manager's harness, makers of small values. Must
//! never: forgive a write that a real store would refuse. Next: `rows.rs`, `lease_harness.rs`.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "test aids, each binary uses a part"
)]

pub mod lease_harness;
pub mod lease_requests;
pub mod make;
pub mod rows;
