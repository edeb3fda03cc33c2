//! The histories of PROTOCOL about who owns what, with several nodes.
//!
//! Owns: their names. Next: `world.rs`.

use crate::events::{Event, apply};
use crate::rules::broken;
use crate::world::{Setup, World};
use fencepost_core::coordinator::board::{Board, Posted, Session};
use fencepost_core::coordinator::host::io::HostInput;
use fencepost_core::coordinator::io::Assigned;
use fencepost_core::name::Name;
use fencepost_core::time::{Monotonic, Span};

pub(crate) fn cell(setup: Setup) -> World {
    let mut world = World::new(setup);
    for number in 0..setup.nodes {
        world.host(number, HostInput::Tick);
    }
    world.run(4 * (setup.length + setup.margin));
    assert!(world.owners().iter().all(Option::is_some), "{:?}", world.owners());
    world
}

pub(crate) fn all(world: &mut World, events: &[Event]) {
    for event in events {
        apply(world, *event);
        assert_eq!(broken(world), None, "{event:?}");
    }
}

/// Who decides; exactly one in a settled cell.
pub(crate) fn decider(world: &World) -> usize {
    let deciding: Vec<usize> = (0..world.nodes.len())
        .filter(|number| world.nodes[*number].coordinator.coordinates().is_some())
        .collect();
    assert_eq!(deciding.len(), 1, "one coordinator decides");
    deciding[0]
}

pub(crate) fn setup(nodes: usize, shards: u16) -> Setup {
    Setup {
        nodes,
        shards,
        length: 8,
        margin: 1,
        hold: 20,
        moves_max: 2,
        handover_max: 1_000,
        stall_max: 1_000,
        fault: None,
    }
}

/// F6 (c): one coordinator names the one node, another one names the other; the first one's word comes late.
#[test]
fn f06_a_decision_under_an_older_epoch_changes_no_row() {
    let mut world = cell(setup(2, 2));
    let first = decider(&world);
    let second = 1 - first;
    world.deliver_calls(first);
    all(&mut world, &[Event::Drain(first), Event::SlowBeat(first)]);
    assert!(!world.nodes[first].calls.is_empty(), "its decision is on its way");
    all(&mut world, &[Event::Tick; 9]);
    all(&mut world, &[Event::Beat(second)]);
    let rows = world.store.rows.clone();
    let name = world.nodes[second].name.clone();
    assert!(rows.iter().flatten().all(|row| row.node == name));
    while !world.nodes[first].calls.is_empty() {
        all(&mut world, &[Event::Call(first)]);
    }
    assert_eq!(world.store.rows, rows);
    let standing = world.nodes[first].coordinator.coordinates();
    assert_eq!(standing, None, "it knows that it is no longer the one");
}

/// F8: nobody is told of a decision, and it is followed all the same.
#[test]
fn f08_a_decision_that_nobody_was_told_of_is_found_by_reading() {
    let mut world = cell(setup(2, 1));
    let owner = world.owners()[0].unwrap();
    let version = world.store.rows[0].as_ref().unwrap().version;
    let node = world.nodes[1 - owner].name.clone();
    world.store.rows[0] = Some(Assigned {
        node,
        version: version + 1,
    });
    world.run(2 * 8);
    assert_eq!(world.owners()[0], Some(1 - owner));
}

/// F32: if owners stopped when the coordinator is silent, its failover would stop the cell.
#[test]
fn f32_a_silent_coordinator_stops_nobody_who_owns() {
    let mut world = cell(setup(3, 6));
    let silent = decider(&world);
    let before = world.owners();
    let epochs = world.store.shards.clone();
    all(&mut world, &[Event::Pause(silent)]);
    for _ in 0..8 {
        world.run(1);
        for (shard, owner) in before.iter().enumerate() {
            let owner = owner.unwrap();
            let works = world.nodes[owner].host.may_work(world.clock(owner), shard as u16);
            assert!(owner == silent || works, "shard {shard} of node {owner}");
        }
    }
    world.run(20);
    assert_ne!(decider_among(&world, silent), silent, "a standby decides");
    for (shard, owner) in before.iter().enumerate() {
        let is_same = world.store.shards[shard] == epochs[shard];
        assert!(is_same || owner.unwrap() == silent, "no other shard was opened anew");
    }
}

fn decider_among(world: &World, but: usize) -> usize {
    (0..world.nodes.len())
        .find(|number| *number != but && world.nodes[*number].coordinator.coordinates().is_some())
        .unwrap()
}

/// F32: a fresh coordinator has no sessions and would evict everyone; so would one with a fresh board.
#[test]
fn f32_a_board_that_knows_of_nobody_evicts_nobody() {
    let mut world = cell(setup(3, 6));
    let (rows, epochs) = (world.store.rows.clone(), world.store.shards.clone());
    let decides = decider(&world);
    world.nodes[decides].posts.clear();
    all(&mut world, &[Event::RestartBoard, Event::Crash(decides)]);
    for number in (0..3).filter(|number| *number != decides) {
        world.nodes[number].is_paused = true;
    }
    world.run(3);
    assert_eq!(world.store.rows, rows, "their absence means nothing yet");
    for node in &mut world.nodes {
        node.is_paused = false;
    }
    world.run(30);
    assert_eq!(world.store.rows, rows, "they came in time, and none was moved");
    for (shard, row) in rows.iter().enumerate() {
        let is_the_crashed = row.as_ref().unwrap().node == world.nodes[decides].name;
        assert!(is_the_crashed || world.store.shards[shard] == epochs[shard]);
    }
}

/// F32: a wedged shard on a live node is moved.
#[test]
fn f32_a_shard_that_stands_still_moves_from_a_live_node() {
    let mut world = cell(Setup {
        stall_max: 10,
        handover_max: 5,
        ..setup(2, 2)
    });
    let owner = world.owners()[0].unwrap();
    let stuck = world.nodes[owner].host.held().next().unwrap();
    let before = world.store.rows[usize::from(stuck)].clone();
    let steps = |world: &mut World, but: Option<(usize, u16)>| {
        for number in 0..2 {
            for shard in 0..2 {
                if Some((number, shard)) != but {
                    let progress = world.time;
                    world.host(number, HostInput::Progressed { shard, progress });
                }
            }
        }
    };
    for _ in 0..12 {
        steps(&mut world, Some((owner, stuck)));
        world.run(1);
    }
    assert_ne!(world.store.rows[usize::from(stuck)], before);
}

/// The owner is gone without a word: all it had is open elsewhere soon after its lease.
#[test]
fn f32_after_a_death_every_shard_is_open_within_a_lease_and_a_margin() {
    let mut world = cell(setup(3, 9));
    let dead = decider(&world);
    world.nodes[dead].posts.clear();
    world.nodes[dead].is_gone = true;
    world.run(8 + 1 + 3);
    assert!(
        world
            .owners()
            .iter()
            .all(|owner| owner.is_some_and(|owner| owner != dead))
    );
}

/// A pause shorter than the lease moves nothing; a longer one costs the shards and nothing else.
#[test]
fn f32_a_pause_of_half_a_lease_moves_nothing() {
    let mut world = cell(setup(3, 9));
    let moves = world.store.moves;
    all(&mut world, &[Event::Pause(1)]);
    world.run(4);
    all(&mut world, &[Event::Resume(1)]);
    world.run(30);
    assert_eq!(world.store.moves, moves);
}

/// A node that leaves gives everything away before it goes, and nobody waits for a lease.
#[test]
fn a_node_that_leaves_hands_over_at_once() {
    let mut world = cell(setup(3, 9));
    all(&mut world, &[Event::Drain(1)]);
    world.run(3);
    assert!(world.nodes[1].is_gone, "it held nothing any more");
    assert!(world.owners().iter().all(|owner| owner.is_some_and(|owner| owner != 1)));
}

/// F32: a takeover names a node that has begun to leave. It opens nothing more, and its row looked like a move
/// under way for ever: with as many of them as may move at once, nothing moved any more and the node never left.
#[test]
fn f32_a_shard_that_falls_to_a_node_that_leaves_goes_on_at_once() {
    let mut found = 0;
    for (dead, leaver) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
        let other = 3 - dead - leaver;
        let mut world = cell(Setup {
            moves_max: 1,
            ..setup(3, 6)
        });
        let before = world.store.moves;
        all(&mut world, &[Event::Pause(dead)]);
        for _ in 0..40 {
            if world.store.moves != before {
                break;
            }
            // The leaver is there, and hears nothing.
            all(
                &mut world,
                &[
                    Event::Tick,
                    Event::Post(leaver),
                    Event::LoseAnswer(leaver),
                    Event::Beat(other),
                ],
            );
        }
        let leaver_name = &world.nodes[leaver].name;
        let fallen = |row: &Option<Assigned>| {
            row.as_ref()
                .is_some_and(|row| row.node == *leaver_name && row.version > 1)
        };
        found += usize::from(world.store.rows.iter().any(fallen));
        all(&mut world, &[Event::Drain(leaver)]);
        world.run(20);
        assert!(world.nodes[leaver].is_gone, "{leaver} has nothing any more");
        assert!(
            world.owners().iter().all(|owner| *owner == Some(other)),
            "{:?}",
            world.owners()
        );
    }
    assert!(found >= 2, "a shard fell to a node that leaves in {found} of 6");
}

/// Balance without flapping: shards move to a node once it has been there for a while, each at most once.
#[test]
fn a_node_that_comes_gets_its_share_once_and_one_that_comes_and_goes_gets_none() {
    let mut world = cell(setup(3, 9));
    all(&mut world, &[Event::Drain(2)]);
    world.run(3);
    let moves = world.store.moves;
    for _ in 0..4 {
        world.nodes[2] = world.start(2);
        world.host(2, HostInput::Tick);
        world.run(6);
        all(&mut world, &[Event::Drain(2)]);
        world.run(2);
    }
    assert_eq!(world.store.moves, moves, "nothing moved for a node that does not stay");
    world.nodes[2] = world.start(2);
    world.host(2, HostInput::Tick);
    world.run(60);
    assert_eq!(world.store.moves, moves + 3);
    assert_eq!(world.owners().iter().filter(|owner| **owner == Some(2)).count(), 3);
    world.run(100);
    assert_eq!(world.store.moves, moves + 3, "and there they stay");
}

/// A late or repeated heartbeat extends nothing, and a second process of a name waits for the first's end.
#[test]
fn a_late_heartbeat_extends_nothing_and_a_name_has_one_session() {
    let mut board = Board::new(1, Span(8), Span(1), Monotonic(0));
    let post = |boot, beat| Session {
        node: Name::new("a").unwrap(),
        boot,
        beat,
        takes: true,
        coordinates: None,
        decided: 0,
        shards: Vec::new(),
        address: "".into(),
        level: fencepost_core::level::NEWEST,
    };
    assert_eq!(board.post(Monotonic(10), post(7, 2)), Posted::Taken);
    assert_eq!(board.post(Monotonic(18), post(7, 2)), Posted::Old);
    assert_eq!(board.post(Monotonic(18), post(7, 1)), Posted::Old);
    assert_eq!(board.post(Monotonic(18), post(8, 1)), Posted::NameTaken);
    assert_eq!(board.view(Monotonic(18)).sessions.len(), 1);
    assert!(
        board.view(Monotonic(19)).sessions.is_empty(),
        "nothing of it extended the lease"
    );
    assert_eq!(board.post(Monotonic(19), post(8, 1)), Posted::Taken);
    assert_eq!(board.refused(), 3);
}
