//! The occurrences of a run as a picture shows them: when each was due, and what became of it.
//!
//! Owns: that list, from the plain rules and the rows. Must never: judge (see `no_missed_fire.rs`). Next: `lives.rs`.

use super::Evidence;
use super::lives::{Life, lives};
use fencepost_core::ids::JobId;

/// One occurrence that a definition asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Schedule.
    pub schedule: String,
    /// Its nominal instant, in microseconds since the Unix epoch.
    pub nominal: i64,
    /// Up to when a start is on time.
    pub until: i64,
    /// Its fate, as rows tell it; none where no fate was given.
    pub fate: Option<String>,
    /// A later edit may have taken it back.
    pub is_optional: bool,
    /// Its jobs.
    pub jobs: Vec<JobId>,
}

/// Every occurrence, by schedule and instant.
pub fn windows(evidence: &Evidence<'_>) -> Vec<Window> {
    lives(evidence).iter().flat_map(of_life).collect()
}

fn of_life(life: &Life<'_>) -> Vec<Window> {
    let asked = life.asked().into_iter();
    asked
        .map(|(nominal, asked)| {
            let newest = asked.by.keys().next_back();
            let spec = newest.and_then(|version| life.spec(*version));
            let tile = life.tiles.iter().find(|tile| tile.from < nominal && nominal <= tile.to);
            let jobs = life.jobs.get(&nominal).map_or(&[] as &[_], Vec::as_slice);
            Window {
                schedule: life.name.clone(),
                nominal,
                until: nominal + spec.map_or(0, |spec| spec.jitter + spec.tolerance),
                fate: tile.map(|tile| match tile.kind {
                    Some(kind) => format!("{kind:?}"),
                    None => "Backlog".to_owned(),
                }),
                is_optional: asked.is_optional,
                jobs: jobs.iter().map(|job| job.id).collect(),
            }
        })
        .collect()
}
