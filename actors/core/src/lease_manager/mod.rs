//! The LeaseManager machine: owns every job of a shard from its insert to its history.
//!
//! Owns: job, wait, ready, leased, parked, key and dead-letter rows. Must never: read another
//! machine's state. Next: `io.rs`.

pub mod io;
