//! Long random histories of three nodes, then an end to all faults: everything has an owner, and stays there.
//!
//! Owns: what must hold whatever happens. Next: `rules.rs`.

use crate::events::{Budget, Event, apply, possible};
use crate::rules::broken;
use crate::world::{Setup, World};
use fencepost_core::coordinator::host::io::HostInput;
use proptest::prelude::*;

const ANY: Budget = Budget {
    ticks: u8::MAX,
    skews: 0,
    losses: u8::MAX,
    slow: u8::MAX,
    crashes: 1,
    pauses: 1,
    drains: 1,
    boards: 1,
    rots: 1,
};

fn choose(world: &World, pick: u16, rare: u8) -> Option<Event> {
    let budget = Budget {
        crashes: u8::from(rare == 0),
        pauses: u8::from(rare < 4),
        drains: u8::from(rare == 1),
        boards: u8::from(rare == 2),
        rots: u8::from(rare == 3),
        losses: u8::from(rare < 20),
        ..ANY
    };
    let events = possible(world, &budget);
    events.get(usize::from(pick) % events.len().max(1)).copied()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_one_node_holds_a_shard_and_in_the_end_all_are_open(
        shards in 1..5_u16,
        moves_max in 1..3_usize,
        picks in prop::collection::vec((any::<u16>(), any::<u8>()), 0..250),
    ) {
        let setup = Setup { nodes: 3, shards, length: 4, margin: 1, hold: 6, moves_max, ..Setup::default() };
        let mut world = World::new(setup);
        for number in 0..3 {
            world.host(number, HostInput::Tick);
        }
        for (pick, rare) in picks {
            if let Some(event) = choose(&world, pick, rare) {
                apply(&mut world, event);
                prop_assert_eq!(broken(&world), None, "{:?}", event);
            }
        }
        world.nodes.iter_mut().for_each(|node| node.is_paused = false);
        // Who was told to leave does so first; where all were, the last ones wait for somebody to take over.
        for _ in 0..2 {
            world.run(20);
            for number in 0..3 {
                if world.nodes[number].is_gone {
                    world.nodes[number] = world.start(number);
                    world.host(number, HostInput::Tick);
                }
            }
        }
        world.run(80);
        prop_assert!(world.owners().iter().all(Option::is_some), "{:?}", world.owners());
        let moves = world.store.moves;
        world.run(40);
        prop_assert_eq!(world.store.moves, moves, "a settled cell stays as it is");
        let mut loads = [0; 3];
        world.owners().into_iter().flatten().for_each(|owner| loads[owner] += 1);
        prop_assert!(loads.iter().max().unwrap() - loads.iter().min().unwrap() <= 1, "{:?}", loads);
    }
}
