//! The SchedulerShard machine: turns due occurrences into jobs and gives every occurrence a fate.
//!
//! Owns: definitions, cursors, backlogs, fates. Must never: write a job's rows but by a fire.
//! Next: `io.rs`.

pub mod io;
