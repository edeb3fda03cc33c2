//! Commands and the workers that do not run them, in one process.
//!
//! Owns: that a node says what it allows, and that nothing else is granted to it. Next: `../../src/targets/`,
//! `../../core/src/lease_manager/lines.rs`.

use super::*;
use fencepost_core::job::Job;
use fencepost_core::target::{CommandTarget, Target};

async fn start(world: &World, commands: bool) -> Node {
    let targets = TargetsConfig {
        commands,
        supervisor: Some(env!("CARGO_BIN_EXE_fencepost").into()),
        ..TargetsConfig::for_dev()
    };
    let parts = NodeParts {
        runner: TargetRunner::new(targets, HandlerRegistry::default()),
        ..world.parts()
    };
    let node = run_node(world.config(), parts).await.unwrap();
    node.ready().await;
    node
}

async fn ended(world: &World, node: &Node, id: JobId) -> Arc<Job> {
    loop {
        let job = node.gateway.job(id).await.unwrap().unwrap().job;
        if job.state.is_finished() {
            return job;
        }
        world.settle().await;
    }
}

#[test]
fn a_command_waits_for_a_worker_that_runs_commands_and_costs_no_attempt_until_then() {
    run(async {
        let world = World::new();
        let node = start(&world, false).await;
        let mut asked = item(fresh(&node), "noop");
        Arc::make_mut(&mut asked.spec).target = Target::Command(CommandTarget {
            argv: vec!["true".to_owned()],
            shell: false,
            env: Vec::new(),
            directory: None,
            grace: Span::from_secs(1),
        });
        let command = create(&node, asked).await;
        for _ in 0..20 {
            let other = create(&node, item(fresh(&node), "noop")).await;
            assert_eq!(ended(&world, &node, other).await.state, JobState::Succeeded);
        }
        let job = node.gateway.job(command).await.unwrap().unwrap().job;
        assert_eq!((job.state, job.charged, job.refunded), (JobState::Ready, 0, 0));
        node.drain().await;
        let node = start(&world, true).await;
        let job = ended(&world, &node, command).await;
        assert_eq!(
            (job.state, job.charged, job.refunded),
            (JobState::Succeeded, 1, 0),
            "{job:?}"
        );
        node.drain().await;
    });
}
