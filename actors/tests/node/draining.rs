//! The end of a node whose store is away: its shards are waited for together, not one after the other.
//!
//! Owns: that story. Must never: measure time. Next: `../support/stoppable.rs`, `../../src/node/mod.rs`.

use super::*;
use crate::stoppable::{Stoppable, rest};

#[test]
fn the_shards_of_a_draining_node_are_waited_for_together() {
    run(async {
        let world = World::new();
        let clock = Stoppable::new(world.clock.clone());
        let mut config = world.config();
        config.shards = 16;
        config.drain = Span::from_secs(10);
        let parts = NodeParts {
            clock: clock.clone(),
            ..world.parts()
        };
        let node = run_node(config, parts).await.unwrap();
        node.ready().await;
        clock.stop();
        world.store.set_away(true);
        let draining = actix::spawn(async move { node.drain().await });
        let mut seconds = 0;
        while !draining.is_finished() {
            assert!(seconds < 20, "the drain goes on for {seconds} s");
            clock.advance(Span::from_secs(1));
            seconds += 1;
            rest().await;
        }
    });
}
