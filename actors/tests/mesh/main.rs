//! The mesh over real sockets and over streams in memory, with a clock that the test moves.
//!
//! Owns: the programs' modules. Start at `calls.rs` (calls between two nodes), `frames.rs` (what
//! strangers and broken peers send), `store.rs` (the store's rules over the mesh), `tls.rs` (certificates).
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
#![cfg(not(madsim))]

mod calls;
mod cluster_messages;
mod frames;
mod golden;
mod hand_clock;
mod pair;
mod proxy;
mod store;
mod tls;
mod tls_strangers;
mod versions;
mod work;
mod work_messages;
mod written;
