//! The lease manager against its rules: the histories of the protocol (`histories_*.rs`), the shared cases
//! (`beh.rs`), and random steps (`random.rs`), over durable rows that refuse what a store would.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod attempts;
mod beh;
mod beh_apart;
mod beh_workers;
mod histories_clock;
mod histories_keys;
mod histories_leases;
mod histories_marks;
mod histories_outcomes;
mod histories_rows;
mod histories_windows;
mod late_words;
mod life;
mod lines;
mod random;
mod steps;
mod waiting_offers;
