//! What is left of a run: its record, the bundle it lies in, and the pages and files made of it.
//!
//! Owns: everything that a person or another program reads of a run. Must never: influence one. Read `record.rs`
//! (what is kept), `bundle.rs` (the file), `summary.rs` (a set of runs), then `junit.rs`, `json.rs`, `github.rs`
//! and `timeline/`.

pub mod bundle;
pub mod github;
pub mod index;
pub mod json;
pub mod junit;
pub mod leases;
pub mod program;
pub mod promises;
pub mod record;
mod subject;
pub mod summary;
pub mod timeline;
