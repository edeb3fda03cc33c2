//! Settings of a server: where each may be given, which one counts, and what is wrong with them.
//!
//! Owns: the layers (default, file, environment, flag) and their mistakes. Must never: start anything, print
//! a secret, or hold a setting outside of its table. Next: `table.rs` (the one list), `resolve.rs` (the
//! layers), `file.rs` (TOML), `crate::cli::config` (the commands).

pub mod file;
pub mod kind;
pub mod mistake;
pub mod nearest;
pub mod part;
pub mod resolve;
pub mod schema;
pub mod table;

pub use kind::{Kind, Value};
pub use mistake::{Mistake, Place};
pub use resolve::{Effective, Given, resolve};
pub use table::{Preset, SETTINGS, Setting};
