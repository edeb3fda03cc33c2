//! What was seen of a cell from outside, and the checkers that judge it. The simulator records its runs here, and so
//! do tests of real processes.
//!
//! Owns: the record (`seen.rs`), what was asked for (`spec.rs`, `rules.rs`, `zones.rs`), the circumstances of a run
//! (`setting.rs`) and what must hold (`checkers/`). Must never: call the product's deciding code, or read a clock.

pub mod checkers;
pub mod rules;
pub mod seen;
pub mod setting;
pub mod spec;
pub mod zones;
