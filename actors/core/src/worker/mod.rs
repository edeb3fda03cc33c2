//! The Worker machine: holds leases, fences itself, reports outcomes until they are recorded.
//!
//! Owns: one node's slots. Must never: run a target itself. Next: `io.rs`.

pub mod io;
