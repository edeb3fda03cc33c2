//! Scenario files: a story, a topology, workloads, faults, what must hold and what must have been seen.
//!
//! Owns: the format. A file is read whole and every mistake in it is told, with its place and what was probably
//! meant. Must never: run anything, or draw chance beyond `plan.rs`. Read `keys.rs` (what may stand in a file),
//! `reader.rs` (how it is read), `whole.rs` (what must fit together), `plan.rs` (what a seed makes of it).

pub mod files;
pub mod keys;
pub mod measure;
mod mistake;
mod nearest;
pub mod plan;
mod reader;
pub mod states;
mod values;
mod whole;

pub use mistake::Mistakes;
pub use plan::Plan;

pub(crate) use values::payload;

use reader::{Fields, Reader};

/// A file that makes sense.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Where it was read.
    pub name: String,
    pub(crate) story: String,
    pub(crate) topology: Fields,
    pub(crate) workloads: Vec<Fields>,
    pub(crate) faults: Vec<Fields>,
    pub(crate) expect: Fields,
}

impl Scenario {
    /// Reads a file's text; `name` is what messages call it.
    ///
    /// # Errors
    /// Every mistake in it.
    pub fn parse(name: &str, text: &str) -> Result<Scenario, Mistakes> {
        let mut reader = Reader::default();
        let scenario = reader.document(name, text);
        if !reader.is_unsure() {
            whole::check(&scenario, &mut reader);
        }
        match reader.is_content() {
            true => Ok(scenario),
            false => Err(reader.mistakes(name, text)),
        }
    }
}
