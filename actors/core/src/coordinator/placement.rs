//! Who gets a shard: the highest hash of (node, shard) among those with room.
//!
//! Owns: the choice. The same nodes give the same places, and a node that comes or goes moves few others.
//! Must never: move anything by itself. Next: `decide.rs`.

use crate::ids::hash64;
use crate::name::Name;
use std::collections::BTreeMap;

/// How much a node is the place for a shard.
pub fn score(node: &Name, shard: u16) -> u64 {
    hash64("fencepost placement 1", &[node.as_bytes(), &shard.to_be_bytes()])
}

/// Most shards of one node when all are spread evenly.
pub fn share(shards: usize, nodes: usize) -> usize {
    shards.div_ceil(nodes.max(1))
}

/// The place for a shard, given what each node has; `None` without nodes.
pub fn place(shard: u16, loads: &BTreeMap<Name, usize>, shards: usize) -> Option<Name> {
    let room = share(shards, loads.len());
    let with_room = loads.iter().filter(|(_, load)| **load < room);
    let best = with_room.max_by_key(|(node, _)| score(node, shard));
    best.or_else(|| loads.iter().min_by_key(|(_, load)| **load))
        .map(|(node, _)| node.clone())
}
