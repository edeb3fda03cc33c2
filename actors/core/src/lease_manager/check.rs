//! What must always hold in memory: asserted by tests and by the background audit.
//!
//! Owns: the machine-wide invariants. Must never: change anything. Next: `docs/INVARIANTS.md`.

use super::LeaseManager;
use super::places::Lies;
use crate::ids::{JobId, Token};
use crate::job::Job;
use std::collections::BTreeSet;

impl LeaseManager {
    /// Panics on a contradiction; walks everything in memory, so not for each step in production.
    pub fn check(&self) {
        self.leases.check(self.facts.epoch);
        self.ready.check();
        self.waits.check();
        self.waiting_offers.check();
        self.apart.check();
        if let Err(what) = self.find_contradiction() {
            panic!("{what}");
        }
    }

    /// Whether the first pages of the wait range and of its classes are in.
    pub(crate) fn is_replayed(&self) -> bool {
        self.waits.is_loaded() && !self.ready.is_loading()
    }

    /// What jobs, places and leases in memory cannot say together.
    pub(crate) fn find_contradiction(&self) -> Result<(), &'static str> {
        if !self.unplaced.is_empty() {
            return Err("rows are placed within their step");
        }
        let (mut ready, mut lent) = (BTreeSet::new(), BTreeSet::new());
        for (key, entry) in self.ready.classes().flat_map(|class| class.window.iter()) {
            self.find_in_ready(key.2, &entry.job, &mut ready)?;
            match entry.lies {
                Lies::Waiting(at) => _ = lent.insert((at, key.2)),
                Lies::Ready => {}
                Lies::Nowhere => return Err("after a step every ready job has a place row"),
            }
        }
        for (key, job) in self.apart.iter() {
            self.find_in_ready(key.1, job, &mut ready)?;
            lent.insert(*key);
        }
        if lent != *self.waits.lent() {
            return Err("a lent row is lent to a job in a ready window");
        }
        let owner = (self.facts.generation, self.facts.epoch);
        let drawn = |token: Token| (token.generation, token.epoch) < owner || token.sequence <= self.sequence;
        match self.leases.iter().all(|lease| drawn(lease.row.token)) {
            true => Ok(()),
            false => Err("a token was drawn before it was granted"),
        }
    }

    fn find_in_ready(&self, id: JobId, job: &Job, seen: &mut BTreeSet<JobId>) -> Result<(), &'static str> {
        if id != job.id {
            return Err("a ready job is filed under its id");
        }
        if !seen.insert(id) {
            return Err("a job is ready once");
        }
        if self.leases.get(id).is_some() {
            return Err("a ready job has no current attempt");
        }
        match job.state.is_finished() {
            true => Err("a ready job is not finished"),
            false => Ok(()),
        }
    }
}
