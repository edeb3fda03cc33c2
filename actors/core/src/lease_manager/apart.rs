//! Jobs whose worker was lost while they ran: each worker gets a few of them at a time, at first one, so that what
//! kills its workers is charged for it and the innocent beside it is not charged again (BEH-R02).
//!
//! Owns: those of them that are due, in memory; their rows lie in the wait range. Must never: hold more
//! than `APART_JOBS_MAX` or `APART_BYTES_MAX` (what is too much runs among the others). Next: `grants.rs`.

use super::io::Suspect;
use super::lines::Lines;
use super::waiting::WaitKey;
use super::window::cost_of;
use crate::job::{AttemptRecord, AttemptResult, Job};
use crate::level::NEWEST;
use crate::limits::{APART_BYTES_MAX, APART_JOBS_MAX};
use crate::time::{Span, StoreTime};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Due jobs that run apart.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Apart {
    jobs: BTreeMap<WaitKey, Arc<Job>>,
    line: BTreeSet<(Suspicion, WaitKey)>,
    cost: usize,
}

/// Who goes first: what lost most workers; after two losses, what lost them after the most equal times; then
/// what was granted last before it lost one. What kills its worker soon is found before those that had long
/// been running beside it, and does not meet them again. Of those granted together the most urgent goes first,
/// then the one that waits longest.
type Suspicion = (Reverse<Suspect>, u8);

fn suspicion(job: &Job) -> Suspicion {
    let is_lost = |attempt: &&AttemptRecord| attempt.result == AttemptResult::WorkerLost;
    let mut lost = job.attempts.iter().rev().filter(is_lost);
    let ran = |attempt: &AttemptRecord| attempt.ended_at.since(attempt.granted_at);
    let (last, before) = (lost.next(), lost.next());
    let uneven = last.zip(before).map_or(0, |(a, b)| ran(a).0.abs_diff(ran(b).0));
    let suspect = Suspect {
        lost: job.workers_lost(),
        unevenness: Reverse(Span(uneven)),
        granted_at: last.map_or(StoreTime(0), |attempt| attempt.granted_at),
    };
    (Reverse(suspect), job.spec.priority)
}

impl Apart {
    /// Takes a job in if it must run apart and there is room. A remote job runs outside every node and can kill none.
    pub(super) fn insert(&mut self, key: WaitKey, job: &Arc<Job>) -> bool {
        let cost = cost_of(job);
        let fits = self.jobs.len() < APART_JOBS_MAX && self.cost + cost <= APART_BYTES_MAX;
        if !fits || !job.has_lost_a_worker() || job.spec.is_remote() {
            return false;
        }
        self.cost += cost;
        self.line.insert((suspicion(job), key));
        self.jobs.insert(key, Arc::clone(job));
        true
    }

    /// Takes out the first of these lines if it lost at most so many workers. None goes before it: what starts
    /// meanwhile would run beside it.
    pub(super) fn take(&mut self, asked: &Lines, lost_max: u32) -> Option<(WaitKey, Arc<Job>)> {
        let (_, key) = self.first(asked).filter(|(suspect, _)| suspect.lost <= lost_max)?;
        self.remove(&key).map(|job| (key, job))
    }

    /// The first of these lines.
    pub(super) fn worst(&self, asked: &Lines) -> Option<Suspect> {
        self.first(asked).map(|(suspect, _)| suspect)
    }

    /// By their own lines, for they stand in none here.
    fn first(&self, asked: &Lines) -> Option<(Suspect, WaitKey)> {
        let fits = |key: &WaitKey| {
            let job = self.jobs.get(key);
            job.is_some_and(|job| asked.takes(&job.spec.line_at(NEWEST)))
        };
        self.line
            .iter()
            .map(|((Reverse(suspect), _), key)| (*suspect, *key))
            .find(|(_, key)| fits(key))
    }

    /// Takes a job out whose row is being deleted.
    pub(super) fn remove(&mut self, key: &WaitKey) -> Option<Arc<Job>> {
        let job = self.jobs.remove(key)?;
        self.line.remove(&(suspicion(&job), *key));
        self.cost -= cost_of(&job);
        Some(job)
    }

    /// The job's row was rewritten where it stands.
    pub(super) fn refresh(&mut self, key: &WaitKey, job: &Arc<Job>) -> bool {
        let Some(before) = self.jobs.get_mut(key) else {
            return false;
        };
        self.cost = self.cost + cost_of(job) - cost_of(before);
        self.line.remove(&(suspicion(before), *key));
        self.line.insert((suspicion(job), *key));
        *before = Arc::clone(job);
        true
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&WaitKey, &Arc<Job>)> {
        self.jobs.iter()
    }

    /// Panics on a contradiction.
    pub(super) fn check(&self) {
        let cost: usize = self.jobs.values().map(|job| cost_of(job)).sum();
        assert_eq!(cost, self.cost, "the cost is that of the jobs");
        let line: BTreeSet<_> = self.jobs.iter().map(|(key, job)| (suspicion(job), *key)).collect();
        assert_eq!(line, self.line, "each stands in line where its records put it");
        let is_bounded = self.jobs.len() <= APART_JOBS_MAX && self.cost <= APART_BYTES_MAX;
        assert!(is_bounded, "jobs that run apart are bounded in memory");
        for job in self.jobs.values() {
            assert!(job.has_lost_a_worker(), "only what lost a worker runs apart");
            assert!(!job.state.is_finished(), "a finished job runs no more");
        }
    }
}
