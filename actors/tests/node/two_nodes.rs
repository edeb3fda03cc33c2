//! Histories of PROTOCOL with several nodes over one store: what one was shown or opened, and another did.
//!
//! Owns: F5, F6 and F28 where nodes meet. Next: `two_owners.rs` (both at one slot), `../process/` (real ones).

use super::*;
use fencepost_core::ids::{Epoch, Holder, Scope, ShardId};
use fencepost_storage::model::Crash;
use fencepost_storage::store::{Open, OpenError, Store};

async fn named(world: &World, node: &str, set: impl FnOnce(&mut NodeConfig)) -> Node {
    let mut config = world.config();
    config.name = name(node);
    set(&mut config);
    let node = run_node(config, world.parts()).await.unwrap();
    node.ready().await;
    node
}

/// What a gateway on another node has shown is there after every machine has lost its power.
#[test]
fn f5_what_another_nodes_gateway_showed_survives_power_loss() {
    run(async {
        let world = World::new();
        let (a, b) = (world.start().await, world.start().await);
        let mut shown = Vec::new();
        for _ in 0..20 {
            let id = create(&a, item(fresh(&a), "noop")).await;
            let view = b.gateway.job(id).await.unwrap().expect("acknowledged, so it is shown");
            shown.push((id, view.job.version));
        }
        world.store.crash(Crash::Power { kept: 0 });
        let c = world.start().await;
        for (id, version) in shown {
            let view = c.gateway.job(id).await.unwrap().expect("shown, so it is there");
            assert!(view.job.version >= version, "no less than what was shown");
            let view = c.gateway.wait_job(id, Span::from_secs(20)).await.unwrap().unwrap();
            assert_eq!(view.job.state, JobState::Succeeded);
        }
    });
}

/// A late or a stranger's `open` raises no epoch: the owner goes on under its own.
#[test]
fn f6_an_open_that_comes_late_or_from_another_node_disturbs_no_owner() {
    run(async {
        let world = World::new();
        let a = named(&world, "a", |_| {}).await;
        let b = named(&world, "b", |_| {}).await;
        let scope = Scope::Shard(ShardId(0));
        let epoch = world.store.epoch(scope).await.unwrap();
        let open = |node: &str, expected| Open {
            scope,
            holder: Holder(99),
            expected,
            node: name(node),
        };
        // The rows name b now. A's own opening comes once more, and a tries it anew.
        for late in [open("a", Epoch(0)), open("b", Epoch(0))] {
            let refused = world.store.open(late).await.unwrap_err();
            assert!(
                matches!(refused, OpenError::Moved { .. } | OpenError::NotAssigned),
                "{refused}"
            );
        }
        let refused = world.store.open(open("a", epoch)).await.unwrap_err();
        assert!(matches!(refused, OpenError::NotAssigned), "{refused}");
        let id = create(&b, item(fresh(&b), "noop")).await;
        let view = b.gateway.wait_job(id, Span::from_secs(20)).await.unwrap().unwrap();
        assert_eq!(view.job.state, JobState::Succeeded);
        assert_eq!(world.store.epoch(scope).await.unwrap(), epoch, "nobody opened again");
        drop(a);
    });
}

/// A second node that was told another number of shards does not join, and the first notices nothing.
#[test]
fn f28_a_node_with_another_number_of_shards_joins_no_cell() {
    run(async {
        let world = World::new();
        let a = world.start().await;
        let scope = Scope::Shard(ShardId(0));
        let before = (
            world.store.durable_rows().len(),
            world.store.epoch(scope).await.unwrap(),
        );
        for shards in [1, 8] {
            let mut config = world.config();
            config.name = name("b");
            (config.shards, config.shards_asked) = (shards, true);
            let refused = run_node(config, world.parts()).await.err().unwrap();
            assert!(refused.to_string().contains("made with 4 shards"), "{refused}");
        }
        let after = (
            world.store.durable_rows().len(),
            world.store.epoch(scope).await.unwrap(),
        );
        assert_eq!(after, before, "nothing was written");
        let id = create(&a, item(fresh(&a), "noop")).await;
        let view = a.gateway.wait_job(id, Span::from_secs(20)).await.unwrap().unwrap();
        assert_eq!(view.job.state, JobState::Succeeded);
    });
}
