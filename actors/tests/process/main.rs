//! The real binary as real processes on real folders: killed, stopped, filled up, damaged, and used.
//!
//! Owns: evidence that only a process can give. Start at `../support/` (the process, the service that jobs
//! call), then `kill/` (the kill test) and one file per story. Next: `sim/` for what a process cannot show.
#![cfg(not(madsim))]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test of processes and real time"
)]

mod beside;
mod broken;
mod cell;
mod certs;
mod chaos;
mod closed_shard;
mod cluster;
mod dev;
mod drain;
mod folder_gone;
mod full_disk;
#[cfg(feature = "test-switches")]
mod half_restored;
mod handler;
mod interrupted;
mod kill;
mod malformed;
mod managed;
mod off_clock;
mod partitions;
#[cfg(feature = "test-switches")]
mod poison;
mod refusals;
mod restored;
mod small_disk;
mod split;
mod story;
#[path = "../support/mod.rs"]
mod support;
#[cfg(feature = "test-switches")]
mod switched;
mod unsure;
#[cfg(feature = "test-switches")]
mod versions;
mod worker_cases;
mod worker_killer;
mod workers;

use support::{api, pace, server, sink};
