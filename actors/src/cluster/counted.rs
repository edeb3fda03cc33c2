//! What a node saw of the cell's decisions and did not follow, for `/metrics`.
//!
//! Owns: the names. Must never: decide anything. Next: `member.rs`.

use fencepost_core::coordinator::host::io::HostCounts;
use fencepost_core::coordinator::io::CoordinatorCounts;
use metrics::counter;

/// Directives, and answers about them, that were stale or given up, by reason.
pub(crate) const DIRECTIVES: &str = "fencepost_directives_refused_total";

/// As the host has counted since its start.
pub(super) fn show_host(counts: &HostCounts) {
    let refused = [
        ("old_row", counts.old_rows),
        ("old_answer", counts.old_answers),
        ("yielded", counts.yielded),
    ];
    for (reason, count) in refused {
        counter!(DIRECTIVES, "reason" => reason).absolute(count);
    }
    counter!("fencepost_shard_leases_ended_total").absolute(counts.fenced);
    counter!("fencepost_shard_claims_forced_total").absolute(counts.forced);
}

/// As the coordinator has counted since its start.
pub(super) fn show_coordinator(counts: &CoordinatorCounts) {
    let refused = [
        ("old_view", counts.old_views),
        ("stale_answer", counts.stale),
        ("deposed", counts.deposed),
    ];
    for (reason, count) in refused {
        counter!(DIRECTIVES, "reason" => reason).absolute(count);
    }
    counter!("fencepost_assignments_restated_total").absolute(counts.restated);
}

#[cfg(all(test, not(madsim)))]
mod tests {
    use super::*;
    use metrics_exporter_prometheus::PrometheusBuilder;

    #[test]
    fn directives_that_are_not_followed_are_on_the_page_of_metrics() {
        let recorder = PrometheusBuilder::new().build_recorder();
        metrics::with_local_recorder(&recorder, || {
            show_host(&HostCounts {
                old_rows: 3,
                ..HostCounts::default()
            });
            show_coordinator(&CoordinatorCounts {
                deposed: 1,
                ..CoordinatorCounts::default()
            });
        });
        let page = recorder.handle().render();
        for line in [
            "fencepost_directives_refused_total{reason=\"old_row\"} 3",
            "fencepost_directives_refused_total{reason=\"deposed\"} 1",
            "fencepost_directives_refused_total{reason=\"yielded\"} 0",
        ] {
            assert!(page.lines().any(|shown| shown == line), "{line} in {page}");
        }
    }
}
