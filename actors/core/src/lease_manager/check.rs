//! What must always hold in memory: asserted by tests and by the background audit.
//!
//! Owns: the machine-wide invariants. Must never: change anything. Next: `docs/INVARIANTS.md`.

use super::LeaseManager;
use super::places::Lies;
use std::collections::BTreeSet;

impl LeaseManager {
    /// Panics on a contradiction; walks everything in memory, so not for each step in production.
    pub fn check(&self) {
        self.leases.check(self.facts.epoch);
        self.ready.check();
        self.waits.check();
        self.waiting_offers.check();
        self.apart.check();
        assert!(self.unplaced.is_empty(), "rows are placed within their step");
        let mut ready = BTreeSet::new();
        let mut lent = BTreeSet::new();
        for class in self.ready.classes() {
            for (key, entry) in class.window.iter() {
                assert_eq!(key.2, entry.job.id, "a ready job is filed under its id");
                assert!(ready.insert(key.2), "a job is ready once");
                assert!(self.leases.get(key.2).is_none(), "a ready job has no current attempt");
                assert!(!entry.job.state.is_finished(), "a ready job is not finished");
                match entry.lies {
                    Lies::Waiting(at) => _ = lent.insert((at, key.2)),
                    Lies::Ready => {}
                    Lies::Nowhere => panic!("after a step every ready job has a place row"),
                }
            }
        }
        for (key, job) in self.apart.iter() {
            assert_eq!(key.1, job.id, "a job that runs apart is filed under its id");
            assert!(ready.insert(key.1), "a job is ready once");
            let is_free = self.leases.get(key.1).is_none();
            assert!(is_free, "a job that waits to run apart has no current attempt");
            lent.insert(*key);
        }
        assert_eq!(
            &lent,
            self.waits.lent(),
            "a lent row is lent to a job in a ready window"
        );
        for lease in self.leases.iter() {
            let sequence_fits = lease.row.token.epoch < self.facts.epoch || lease.row.token.sequence <= self.sequence;
            assert!(sequence_fits, "a token was drawn before it was granted");
        }
    }
}
