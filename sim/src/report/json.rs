//! The report of a set of runs as JSON, for programs; its shape is in docs/guides/simulation.md.
//!
//! Owns: that shape and its version. Must never: change a field's meaning without raising it. Next: `summary.rs`.

use super::summary::{Counted, Outcome, Set};
use serde_json::{Value, json};

/// The version of the shape.
pub const VERSION: u32 = 1;

/// The text of the file.
pub fn text(set: &Set) -> String {
    serde_json::to_string_pretty(&value(set)).unwrap_or_default()
}

fn value(set: &Set) -> Value {
    let failed = set.failed();
    json!({
        "format": "fencepost-sim-report",
        "version": VERSION,
        "commit": set.commit,
        "passed": set.outcomes.len() - failed.len(),
        "failed": failed.len(),
        "failed_seeds": failed,
        "simulated_us": set.simulated_us(),
        "wall_ms": set.wall_ms(),
        "ratio": set.ratio(),
        "faults_felt": set.counted(Counted::Fault),
        "operations": set.counted(Counted::Operation),
        "states_seen": set.counted(Counted::State),
        "below_floor": set.below,
        "evaluations": set.evaluations(),
        "violations": set.violations(),
        "runs": set.outcomes.iter().map(run).collect::<Vec<_>>(),
    })
}

fn run(outcome: &Outcome) -> Value {
    let record = &outcome.record;
    json!({
        "scenario": record.scenario_path(),
        "seed": record.seed,
        "passed": record.is_content(),
        "options": record.options,
        "plant": record.plant,
        "without": record.without,
        "hash": record.hash,
        "events": record.events,
        "simulated_us": record.simulated_us,
        "asleep_us": record.asleep_us,
        "wall_ms": record.wall_ms,
        "violations": record.violations,
        "bundle": outcome.bundle,
        "repeat_with": record.story().command(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::summary::tests::sample;
    use super::*;

    #[test]
    fn the_report_tells_counts_and_each_run() {
        let value = value(&sample());
        assert_eq!(value["failed_seeds"], json!([7]));
        assert_eq!(value["faults_felt"], json!({"crash": 4}));
        assert_eq!(value["states_seen"], json!({"dead": 2}));
        assert_eq!(value["ratio"], json!(2000));
        let failed = &value["runs"][1];
        assert_eq!(failed["violations"][0]["checker"], json!("no_double_effect"));
        assert_eq!(failed["violations"][0]["token"], json!("0f"));
        assert_eq!(failed["scenario"], json!(null));
        assert_eq!(failed["repeat_with"], json!("cargo sim run --seed 7"));
    }
}
