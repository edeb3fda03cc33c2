//! Notes of done jobs as the simulation knows them: a second service, with a state of its own.
//!
//! Owns: that a note is no effect. Next: `noted.rs`, which asks.

use crate::noted::Notes;
use fencepost::targets::HandlerError;
use fencepost_sim::Service;
use std::collections::BTreeSet;

/// The notes.
#[derive(Clone)]
pub struct SimulatedNotes(Service<BTreeSet<String>>);

impl SimulatedNotes {
    /// None yet.
    pub fn new() -> SimulatedNotes {
        SimulatedNotes(Service::new(BTreeSet::new()))
    }
}

impl Notes for SimulatedNotes {
    async fn note(&self, key: String) -> Result<bool, HandlerError> {
        Ok(self.0.call(move |noted, _| noted.insert(key)).await?)
    }
}
