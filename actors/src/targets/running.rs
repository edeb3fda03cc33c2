//! What runs on this node and may say how far it is.
//!
//! Owns: the attempts of handlers and of workers over HTTP that run now, with the newest word of each. Nothing of it is
//! stored, and no other node knows it. Must never: outlive the run, or be asked whether something still runs: rows say
//! that. Next: `signal` (where the word comes in), `../node/reads.rs` (who shows it).

use super::signal::CancelSignal;
use crate::watched::Watched;
use fencepost_core::ids::{JobId, Token};
use std::collections::BTreeMap;
use std::sync::Arc;

type Key = (JobId, Token);

/// The attempts that run now.
#[derive(Clone, Default)]
pub(crate) struct Running(Arc<Watched<BTreeMap<Key, CancelSignal>>>);

/// A run's place in it, which goes with the run.
pub(super) struct Place {
    running: Running,
    key: Key,
}

impl Running {
    /// A run begins.
    pub(super) fn enter(&self, job: JobId, token: Token, signal: &CancelSignal) -> Place {
        self.0.lock().insert((job, token), signal.clone());
        Place {
            running: self.clone(),
            key: (job, token),
        }
    }

    /// How far an attempt says that it is.
    pub(crate) fn progress(&self, job: JobId, token: Token) -> Option<String> {
        let signal = self.0.lock().get(&(job, token)).cloned()?;
        signal.progress()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.running.0.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_says_is_known_while_it_runs() {
        let (running, signal) = (Running::default(), CancelSignal::never());
        let (job, token) = (JobId::from_bytes([1; 16]).unwrap(), Token::default());
        assert_eq!(running.progress(job, token), None);
        let place = running.enter(job, token, &signal);
        assert_eq!(running.progress(job, token), None);
        signal.set_progress("half");
        signal.set_progress("most");
        assert_eq!(running.progress(job, token).as_deref(), Some("most"));
        drop(place);
        assert_eq!(running.progress(job, token), None);
    }
}
