//! Histories of PROTOCOL that one coordinator shows alone, with two nodes that it sees and one shard.
//!
//! Owns: their names, and the bench. Next: `histories.rs` for several nodes.

use crate::histories::setup;
use crate::world::World;
use fencepost_core::coordinator::Coordinator;
use fencepost_core::coordinator::board::{BoardView, Hold, Session, ShardReport};
use fencepost_core::coordinator::io::{Assigned, CoordinatorEffect, CoordinatorInput};
use fencepost_core::ids::Epoch;
use fencepost_core::name::Name;
use fencepost_core::time::{Monotonic, Span};

/// F9: a shard that kills its owners does not walk through the cell at once.
#[test]
fn f09_a_shard_whose_owners_die_young_is_taken_over_ever_later() {
    let mut bench = Bench::new();
    let mut waits = Vec::new();
    for _ in 0..6 {
        let from = bench.now;
        let dead = bench.row.node.clone();
        bench.gone = Some(dead);
        while bench.view().is_none() {
            bench.now += 1;
        }
        waits.push(bench.now - from);
        bench.gone = None;
        bench.now += 1;
        assert!(bench.view().is_none(), "who is there keeps it");
    }
    assert_eq!(
        waits,
        [0, 0, 2, 4, 8, 16],
        "no pause for one death, then ever longer ones"
    );
}

/// F6, F32: another one opened the scope, moved a shard and left. One that has nothing to commit is not refused
/// and took the moved shard for a move under way: nothing was balanced and nobody could leave any more.
#[test]
fn f32_a_coordinator_that_was_overtaken_hears_of_it_from_the_board() {
    let mut bench = Bench::new();
    let moved = Assigned {
        node: Name::new("b").unwrap(),
        version: 2,
    };
    bench.row = moved.clone();
    assert!(bench.view().is_none());
    assert_eq!(bench.coordinator.coordinates(), None, "it no longer decides");
    assert_eq!(bench.coordinator.counts().deposed, 1);
    assert!(bench.view().is_none());
    bench.say(CoordinatorInput::Opened(Epoch(3)));
    let read = CoordinatorInput::RowsRead {
        epoch: Epoch(3),
        rows: vec![Some(moved)],
        unreadable: Vec::new(),
    };
    assert_eq!(bench.say(read), None, "what it reads now is what the nodes have read");
    assert!(bench.view().is_none());
    assert_eq!(bench.coordinator.coordinates(), Some((Epoch(3), 0)));
}

/// F11: a store that was restored has older rows than its nodes have read. They would follow none of them, and
/// the coordinator would open its scope again with every look at the board.
#[test]
fn f11_a_row_that_came_back_older_is_said_again_above_what_was_read() {
    let mut bench = Bench::new();
    bench.row.version = 7;
    assert!(bench.view().is_none());
    assert!(bench.view().is_none());
    bench.say(CoordinatorInput::Opened(Epoch(2)));
    let read = CoordinatorInput::RowsRead {
        epoch: Epoch(2),
        rows: vec![Some(Assigned {
            node: Name::new("b").unwrap(),
            version: 3,
        })],
        unreadable: Vec::new(),
    };
    let said = bench.say(read).expect("a decision");
    assert_eq!(said.version, 8);
}

/// A coordinator alone, with two nodes that it sees and one shard.
struct Bench {
    coordinator: Coordinator,
    row: Assigned,
    gone: Option<Name>,
    now: u64,
    number: u64,
    decided: u64,
}

impl Bench {
    fn new() -> Bench {
        let coordinator = World::new(setup(1, 1)).nodes[0].coordinator.clone();
        let row = Assigned {
            node: Name::new("a").unwrap(),
            version: 1,
        };
        let mut bench = Bench {
            coordinator,
            row: row.clone(),
            gone: None,
            now: 100,
            number: 0,
            decided: 0,
        };
        assert!(bench.view().is_none());
        bench.say(CoordinatorInput::Opened(Epoch(1)));
        let rows = vec![Some(row)];
        assert!(
            bench
                .say(CoordinatorInput::RowsRead {
                    epoch: Epoch(1),
                    rows,
                    unreadable: Vec::new()
                })
                .is_none()
        );
        bench
    }

    fn say(&mut self, input: CoordinatorInput) -> Option<Assigned> {
        let mut effects = Vec::new();
        self.coordinator.step(Monotonic(self.now), input, &mut effects);
        self.coordinator.check();
        let decided = effects.into_iter().find_map(|effect| match effect {
            CoordinatorEffect::Commit { mut rows, .. } => rows.pop(),
            _ => None,
        });
        decided.map(|(_, row)| row)
    }

    /// Shows it the board; a decision is durable at once.
    fn view(&mut self) -> Option<Assigned> {
        self.number += 1;
        let row = self.row.clone();
        let session = |name: &str| Session {
            node: Name::new(name).unwrap(),
            boot: 77,
            beat: self.number,
            takes: true,
            coordinates: None,
            decided: 0,
            shards: vec![ShardReport {
                version: row.version,
                hold: if row.node.as_str() == name {
                    Hold::Held
                } else {
                    Hold::Idle
                },
                progress: self.number,
            }],
            address: "".into(),
            level: fencepost_core::level::NEWEST,
        };
        let sessions = [session("a"), session("b")];
        let gone = self.gone.clone();
        let view = BoardView {
            board: 1,
            number: self.number,
            is_young: false,
            length: Span(8),
            sessions: sessions
                .into_iter()
                .filter(|here| Some(&here.node) != gone.as_ref())
                .collect(),
        };
        let decided = self.say(CoordinatorInput::Viewed(view))?;
        self.decided += 1;
        let (epoch, number) = (Epoch(1), self.decided);
        self.row = decided.clone();
        assert!(self.say(CoordinatorInput::Committed { epoch, number }).is_none());
        Some(decided)
    }
}
