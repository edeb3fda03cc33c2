//! Leases as the store keeps them: who was granted what under which token, and when that was over.
//!
//! Owns: reading that from accepted batches into the trace. Must never: judge, or read anything but rows. Next:
//! `timeline/`.

use crate::runtime::Sim;
use fencepost_core::job::{AttemptRecord, Job};
use fencepost_core::row::{LeasedRow, Row, RowKey};
use fencepost_storage::batch::{Batch, RawWrite};
use fencepost_storage::codec::decode_row;
use fencepost_storage::keys::{Kind, parse_key};

/// Records what an accepted batch did to leases.
pub fn note(sim: &Sim, batch: &Batch) {
    for write in &batch.writes {
        match write {
            RawWrite::Put { key, value, .. } if is_of_interest(key) => match decode_row(key, value) {
                Ok(Row::Leased(lease)) => note_granted(sim, &lease),
                Ok(Row::Job(job)) => note_ended(sim, &job),
                Ok(_) | Err(_) => {}
            },
            RawWrite::Delete { key } if Kind::of(key) == Some(Kind::Leased) => {
                if let Ok(RowKey::Leased(id)) = parse_key(key) {
                    sim.record("store", "lease over", &id.to_string());
                }
            }
            RawWrite::Put { .. } | RawWrite::Delete { .. } => {}
        }
    }
}

fn is_of_interest(key: &[u8]) -> bool {
    matches!(Kind::of(key), Some(Kind::Leased | Kind::Job))
}

/// Every write of the row is told; one with a token told before is the same lease.
fn note_granted(sim: &Sim, lease: &LeasedRow) {
    let LeasedRow { id, attempt, token, .. } = lease;
    let text = format!("{id} {attempt} {token} {}", lease.length.as_millis());
    sim.record(lease.worker.node.as_str(), "lease", &text);
}

/// How the newest attempt of a job ended, and where the job stands then.
fn note_ended(sim: &Sim, job: &Job) {
    let state = job.state;
    match job.attempts.last() {
        Some(AttemptRecord { no, token, result, .. }) => {
            sim.record(
                "store",
                "attempt",
                &format!("{} {no} {token} {result:?} {state:?}", job.id),
            );
        }
        None => sim.record("store", "attempt", &format!("{} - - - {state:?}", job.id)),
    }
}
