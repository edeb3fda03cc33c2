//! What a node counts of itself, as Prometheus reads it.

use super::*;
use fencepost::node::notes::Notes;
use fencepost::telemetry::metrics::{MetricNotes, install};

#[test]
fn jobs_are_counted_by_each_state_they_move_to_and_doubt_is_shown() {
    run(async {
        let world = World::new();
        let render = install();
        let mut parts = world.parts();
        parts.notes.push(Arc::new(MetricNotes));
        let node = run_node(world.config(), parts).await.unwrap();
        node.ready().await;
        for handler in ["noop", "missing"] {
            let id = create(&node, item(fresh(&node), handler)).await;
            node.gateway.wait_job(id, Span::from_secs(10)).await.unwrap().unwrap();
        }
        let shown = async |line: &str| {
            while !render().lines().any(|shown| shown == line) {
                world.clock.sleep(Span::from_millis(5)).await;
            }
        };
        shown("fencepost_jobs_total{state=\"succeeded\"} 1").await;
        shown("fencepost_jobs_total{state=\"dead\"} 1").await;
        shown("fencepost_attempts_total{result=\"failed\"} 2").await;
        shown("fencepost_clock_doubt 0").await;
        world.store_clock.set_wall(3_600);
        shown("fencepost_clock_doubt 1").await;
        assert!(node.gateway.confirm_clock().await.unwrap());
        shown("fencepost_clock_doubt 0").await;
        MetricNotes.job_purged(fresh(&node), JobState::Dead);
        shown("fencepost_jobs_purged_total{state=\"dead\"} 1").await;
        shown("# HELP fencepost_jobs_purged_total Old jobs that were removed, by state.").await;
    });
}
