//! Counters and histograms of a node, named for Prometheus.
//!
//! Owns: the names under `fencepost_`. Must never: carry a label with as many values as there are
//! jobs, schedules or URLs. Next: the `/metrics` route in `../api/`.

use crate::cluster::work::WorkCounts;
use crate::mesh::counts::{Count, MeshCounts};
use crate::node::notes::Notes;
use crate::telemetry::{last_attempt, lateness, result_word, state_word};
use fencepost_core::ids::{JobId, ShardId};
use fencepost_core::job::{Job, JobState};
use fencepost_core::name::Name;
use fencepost_core::scheduler_shard::audit::AuditFault;
use fencepost_core::scheduler_shard::io::FireNote;
use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::PrometheusBuilder;
use std::sync::Arc;

/// Counts news.
#[derive(Debug, Default)]
pub struct MetricNotes;

/// Installs the recorder of this process and returns what renders its page.
pub fn install() -> Arc<dyn Fn() -> String + Send + Sync> {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    // A second start in one process keeps the first recorder; its page then stays empty.
    let _ = metrics::set_global_recorder(recorder);
    describe();
    Arc::new(move || handle.render())
}

/// Names and units, once per process.
fn describe() {
    describe_counter!("fencepost_jobs_total", "Jobs by the state that they moved to.");
    describe_counter!("fencepost_jobs_purged_total", "Old jobs that were removed, by state.");
    describe_gauge!(
        "fencepost_clock_doubt",
        "1 while the store's clock is in doubt and nothing fires, else 0."
    );
    describe_gauge!(
        "fencepost_clock_offset_seconds",
        metrics::Unit::Seconds,
        "This node's wall clock less the store's time, the middle of what it may be."
    );
    describe_gauge!(
        "fencepost_clock_offset_error_seconds",
        metrics::Unit::Seconds,
        "How far the true offset may be from that."
    );
    describe_gauge!(
        "fencepost_clock_holds_back",
        "1 while this node takes and gives no work because its clock is not trusted, else 0."
    );
    describe_counter!("fencepost_attempts_total", "Ended attempts by result.");
    describe_histogram!(
        "fencepost_start_delay_seconds",
        metrics::Unit::Seconds,
        "From due to grant, first attempts."
    );
    describe_histogram!(
        "fencepost_attempt_duration_seconds",
        metrics::Unit::Seconds,
        "From grant to outcome."
    );
    describe_histogram!(
        "fencepost_http_request_duration_seconds",
        metrics::Unit::Seconds,
        "From the head of a request to its answer, by route and status."
    );
    describe_cell();
    describe_counter!("fencepost_occurrences_total", "Occurrences by fate.");
    describe_gauge!(
        "fencepost_schedules_quarantined",
        "Schedules that are not evaluated, by shard."
    );
    describe_counter!(
        "fencepost_rows_quarantined_total",
        "Rows that could not be read, by shard."
    );
    describe_counter!(
        "fencepost_mesh_refused_total",
        "Connections between nodes that were not made, by reason."
    );
    describe_gauge!(
        "fencepost_mesh_certificate_expires_timestamp_seconds",
        metrics::Unit::Seconds,
        "When this node's certificate ends."
    );
    describe_gauge!(
        "fencepost_mesh_certificate_stale",
        "1 while new certificate files are no good and the ones before go on, else 0."
    );
    describe_counter!(
        "fencepost_mesh_certificate_looks_total",
        "New certificate files by what became of them, taken or kept out."
    );
    describe_counter!(
        "fencepost_audit_faults_total",
        "Faults that the auditor found in histories."
    );
}

/// What several nodes add to it; shown from the start, for an alarm on what has not happened yet.
fn describe_cell() {
    describe_counter!(
        "fencepost_mesh_connections_total",
        "Connections with other nodes, by what became of them."
    );
    describe_counter!(
        "fencepost_mesh_frames_refused_total",
        "Frames, calls and messages of other nodes that were not taken, by reason."
    );
    describe_counter!(
        "fencepost_mesh_work_refused_total",
        "Words of workers and shard owners on other nodes that were not taken, by reason."
    );
    describe_counter!(
        "fencepost_directives_refused_total",
        "Assignments, views and answers that were stale or given up, by reason."
    );
    describe_counter!(
        "fencepost_shard_leases_ended_total",
        "Shard leases of this node that ended before they were extended."
    );
    describe_counter!(
        "fencepost_shard_claims_forced_total",
        "Shards opened although another node had not released them in time."
    );
    describe_counter!(
        "fencepost_assignments_restated_total",
        "Assignment rows that could not be read and were decided anew."
    );
    describe_counter!(
        "fencepost_commits_refused_total",
        "Batches that the store refused for good, by reason."
    );
    MeshCounts::default().all().into_iter().for_each(Count::show);
    WorkCounts::default().all().into_iter().for_each(Count::show);
    for reason in ["stale", "conflict"] {
        counter!("fencepost_commits_refused_total", "reason" => reason).increment(0);
    }
}

impl Notes for MetricNotes {
    fn job_changed(&self, job: &Job) {
        counter!("fencepost_jobs_total", "state" => state_word(job.state)).increment(1);
    }

    fn attempt_ended(&self, job: &Job) {
        self.job_changed(job);
        let Some(attempt) = last_attempt(job) else { return };
        counter!("fencepost_attempts_total", "result" => result_word(attempt.result)).increment(1);
        let took = attempt.ended_at.since(attempt.granted_at);
        histogram!("fencepost_attempt_duration_seconds").record(took.0 as f64 / 1e6);
        if attempt.no == 1 {
            histogram!("fencepost_start_delay_seconds").record(lateness(job, attempt).0 as f64 / 1e6);
        }
    }

    fn job_purged(&self, _: JobId, state: JobState) {
        counter!("fencepost_jobs_purged_total", "state" => state_word(state)).increment(1);
    }

    fn fired(&self, note: &FireNote) {
        counter!("fencepost_occurrences_total", "fate" => note.kind.as_str()).increment(note.count.unwrap_or(1));
    }

    fn quarantined(&self, shard: ShardId, schedules: u64) {
        gauge!("fencepost_schedules_quarantined", "shard" => shard.0.to_string()).set(schedules as f64);
    }

    fn row_quarantined(&self, shard: ShardId) {
        counter!("fencepost_rows_quarantined_total", "shard" => shard.0.to_string()).increment(1);
    }

    fn clock_doubt(&self, doubt: bool) {
        gauge!("fencepost_clock_doubt").set(f64::from(u8::from(doubt)));
    }

    fn audit_fault(&self, _: &Name, fault: &AuditFault) {
        counter!("fencepost_audit_faults_total", "fault" => fault.kind.as_str()).increment(1);
    }
}
