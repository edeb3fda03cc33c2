//! What must hold of every state.
//!
//! Owns: the invariants, by their names. Next: `world.rs`, `docs/INVARIANTS.md`.

use crate::world::World;

/// The first rule that is broken.
pub fn broken(world: &World) -> Option<&'static str> {
    if world.store.went_back {
        return Some("a decision about a shard replaced one that it did not follow");
    }
    for shard in 0..world.setup.shards {
        let working = (0..world.nodes.len()).filter(|number| {
            let node = &world.nodes[*number];
            !node.is_gone && node.host.may_work(world.clock(*number), shard)
        });
        if working.count() > 1 {
            return Some("two nodes hold one shard by their leases");
        }
        let (epoch, _) = world.store.shards[usize::from(shard)];
        let open = world
            .nodes
            .iter()
            .filter(|node| node.epochs[usize::from(shard)] == Some(epoch));
        if epoch.0 > 0 && open.count() > 1 {
            return Some("two nodes may write one shard at one epoch");
        }
    }
    None
}
