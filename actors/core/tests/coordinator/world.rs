//! A cell in small: nodes with a host and a coordinator each, a board, a store that judges epochs, and wires
//! on which posts, answers and store calls wait until an event lets them through.
//!
//! Owns: the model around the real machines. Must never: help a machine. Next: `rules.rs` (what must hold),
//! `events.rs` (what may happen).

use crate::store::Store;
use fencepost_core::coordinator::Coordinator;
use fencepost_core::coordinator::board::{Board, BoardView, Posted, Session};
use fencepost_core::coordinator::host::Host;
use fencepost_core::coordinator::host::io::{HostConfig, HostEffect, HostInput};
use fencepost_core::coordinator::io::{Assigned, CoordinatorConfig, CoordinatorEffect, CoordinatorInput};
use fencepost_core::ids::{Epoch, ShardMap};
use fencepost_core::name::Name;
use fencepost_core::time::{Monotonic, Span};
use std::collections::{BTreeSet, VecDeque};

/// Lengths in ticks, and the faults that are planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Setup {
    pub nodes: usize,
    pub shards: u16,
    pub length: u64,
    pub margin: u64,
    pub hold: u64,
    pub moves_max: usize,
    pub handover_max: u64,
    pub stall_max: u64,
    pub fault: Option<Fault>,
}

/// What a walk must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The board ends a session after its length alone.
    NoMargin,
    /// The store takes a batch of assignments under an older epoch.
    EpochUnchecked,
    /// A claim does not look at who else holds the shard.
    OpensBeforeRelease,
    /// A node counts its lease longer than the board grants it, by the margin.
    CountsTooLong,
    /// A young board's ignorance is taken for everybody's absence.
    YoungBoardTrusted,
    /// A row that cannot be read is taken for one that is not there.
    UnreadableTakenForAbsent,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            nodes: 2,
            shards: 1,
            length: 2,
            margin: 1,
            hold: 100,
            moves_max: 1,
            handover_max: 1_000,
            stall_max: 1_000,
            fault: None,
        }
    }
}

/// A call on its way to the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// For the host.
    Rows,
    /// The coordinator's open, in its two steps.
    ReadEpoch,
    OpenCoordinator(Epoch),
    CoordinatorRows(Epoch),
    Commit {
        epoch: Epoch,
        number: u64,
        rows: Vec<(u16, Assigned)>,
    },
    OpenShard(u16),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    pub name: Name,
    pub boot: u64,
    pub host: Host,
    pub coordinator: Coordinator,
    /// Ticks that its clock is behind.
    pub lag: u64,
    pub is_paused: bool,
    pub is_gone: bool,
    pub posts: VecDeque<Session>,
    pub answers: VecDeque<(u64, u64, Result<BoardView, ()>)>,
    pub calls: VecDeque<(u64, Call)>,
    pub releasing: BTreeSet<u16>,
    /// Held shards that the store did not open: their shells try again.
    pub unopened: BTreeSet<u16>,
    /// Epochs under which its shells are open.
    pub epochs: Vec<Option<Epoch>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub setup: Setup,
    pub time: u64,
    pub board: Board,
    pub boots: u64,
    pub store: Store,
    pub nodes: Vec<Node>,
}

impl World {
    pub fn new(setup: Setup) -> World {
        let mut world = World {
            setup,
            time: 0,
            board: Board::new(1, Span(setup.length), Span(margin(setup)), Monotonic(0)),
            boots: 1,
            store: Store {
                rows: vec![None; usize::from(setup.shards)],
                highest: vec![0; usize::from(setup.shards)],
                shards: vec![(Epoch(0), 0); usize::from(setup.shards)],
                ..Store::default()
            },
            nodes: Vec::new(),
        };
        for number in 0..setup.nodes {
            let node = world.start(number);
            world.nodes.push(node);
        }
        world
    }

    pub fn start(&mut self, number: usize) -> Node {
        self.boots += 1;
        let (setup, boot) = (self.setup, self.boots);
        let name = Name::new(&format!("n{number}")).unwrap();
        let host = Host::new(HostConfig {
            node: name.clone(),
            boot,
            shards: setup.shards,
            address: "".into(),
            interval: Span(1),
            handover_max: Span(setup.handover_max),
        });
        let coordinator = Coordinator::new(CoordinatorConfig {
            boot,
            shards: ShardMap::new(setup.shards).unwrap(),
            hold: Span(setup.hold),
            moves_max: setup.moves_max,
            stall_max: Span(setup.stall_max),
            young_pause: Span(2),
            young_pause_max: Span(16),
        });
        Node {
            name,
            boot,
            host,
            coordinator,
            lag: 0,
            is_paused: false,
            is_gone: false,
            posts: VecDeque::new(),
            answers: VecDeque::new(),
            calls: VecDeque::new(),
            releasing: BTreeSet::new(),
            unopened: BTreeSet::new(),
            epochs: vec![None; usize::from(setup.shards)],
        }
    }

    pub fn clock(&self, number: usize) -> Monotonic {
        Monotonic(1_000 + self.time - self.nodes[number].lag)
    }

    pub fn host(&mut self, number: usize, input: HostInput) {
        let now = self.clock(number);
        let mut effects = Vec::new();
        self.nodes[number].host.step(now, input, &mut effects);
        self.nodes[number].host.check();
        for effect in effects {
            self.order_host(number, effect);
        }
    }

    pub fn coordinator(&mut self, number: usize, input: CoordinatorInput) {
        let now = self.clock(number);
        let mut effects = Vec::new();
        self.nodes[number].coordinator.step(now, input, &mut effects);
        self.nodes[number].coordinator.check();
        let coordinates = self.nodes[number].coordinator.coordinates();
        for effect in effects {
            let boot = self.nodes[number].boot;
            let call = match effect {
                CoordinatorEffect::Open => Call::ReadEpoch,
                CoordinatorEffect::ReadRows { epoch } => Call::CoordinatorRows(epoch),
                CoordinatorEffect::Commit { epoch, number, rows } => Call::Commit { epoch, number, rows },
                CoordinatorEffect::Announce => continue,
            };
            self.nodes[number].calls.push_back((boot, call));
        }
        self.host(number, HostInput::Coordinates(coordinates));
    }

    fn order_host(&mut self, number: usize, effect: HostEffect) {
        let node = &mut self.nodes[number];
        match effect {
            // A post that has not left is replaced by the newer one.
            HostEffect::Post { session, .. } => {
                node.posts.retain(|post| post.boot != session.boot);
                node.posts.push_back(session);
            }
            HostEffect::ReadRows => node.calls.push_back((node.boot, Call::Rows)),
            HostEffect::Open { shard, .. } => node.calls.push_back((node.boot, Call::OpenShard(shard))),
            HostEffect::Release { shard } => drop(node.releasing.insert(shard)),
            HostEffect::Fence { .. } | HostEffect::Unfence { .. } => {}
            HostEffect::Drained => {
                node.is_gone = true;
                let (name, boot) = (node.name.clone(), node.boot);
                self.board.leave(&name, boot);
            }
        }
    }

    /// The oldest post reaches the board, and its answer sets out.
    pub fn deliver_post(&mut self, number: usize) {
        let now = Monotonic(self.time);
        let Some(post) = self.nodes[number].posts.pop_front() else {
            return;
        };
        let (beat, boot) = (post.beat, post.boot);
        let answer = match self.board.post(now, post) {
            Posted::Taken => Ok(self.board.view(now)),
            Posted::Old | Posted::NameTaken => Err(()),
        };
        self.nodes[number].answers.push_back((boot, beat, answer));
    }

    pub fn deliver_answer(&mut self, number: usize) {
        let Some((boot, beat, answer)) = self.nodes[number].answers.pop_front() else {
            return;
        };
        if boot != self.nodes[number].boot {
            return;
        }
        let Ok(mut view) = answer else {
            return self.host(number, HostInput::NotTaken { beat });
        };
        match self.setup.fault {
            Some(Fault::YoungBoardTrusted) => view.is_young = false,
            Some(Fault::CountsTooLong) => view.length = view.length + Span(1),
            _ => {}
        }
        self.coordinator(number, CoordinatorInput::Viewed(view.clone()));
        if self.setup.fault == Some(Fault::OpensBeforeRelease) {
            let name = self.nodes[number].name.clone();
            view.sessions.retain(|session| session.node == name);
        }
        self.host(number, HostInput::Answered { beat, view });
    }

    /// The oldest store call is carried out and answered.
    pub fn deliver_call(&mut self, number: usize) {
        let Some((boot, call)) = self.nodes[number].calls.pop_front() else {
            return;
        };
        let is_alive = boot == self.nodes[number].boot;
        match call {
            Call::Rows if is_alive => {
                let (rows, unreadable) = self.read();
                self.host(number, HostInput::RowsRead(rows));
                if !unreadable.is_empty() {
                    self.coordinator(number, CoordinatorInput::Unreadable(unreadable));
                }
            }
            Call::ReadEpoch if is_alive => {
                let expected = self.store.coordinator.0;
                self.nodes[number]
                    .calls
                    .push_front((boot, Call::OpenCoordinator(expected)));
            }
            Call::CoordinatorRows(epoch) if is_alive => {
                let (rows, unreadable) = self.read();
                let input = CoordinatorInput::RowsRead {
                    epoch,
                    rows,
                    unreadable,
                };
                self.coordinator(number, input);
            }
            Call::OpenCoordinator(expected) => {
                let input = self.store.open_coordinator(expected, boot);
                if is_alive {
                    self.coordinator(number, input);
                }
            }
            Call::Commit {
                epoch,
                number: batch,
                rows,
            } => {
                let is_checked = self.setup.fault != Some(Fault::EpochUnchecked);
                let is_taken = self.store.commit(epoch, boot, rows, is_checked);
                if is_alive {
                    self.coordinator(
                        number,
                        match is_taken {
                            true => CoordinatorInput::Committed { epoch, number: batch },
                            false => CoordinatorInput::Refused { epoch },
                        },
                    );
                }
            }
            Call::OpenShard(shard) => {
                let name = self.nodes[number].name.clone();
                let opened = self.store.open_shard(shard, &name, boot);
                if is_alive {
                    self.nodes[number].epochs[usize::from(shard)] = opened;
                    if opened.is_none() && self.nodes[number].host.held().any(|held| held == shard) {
                        self.nodes[number].unopened.insert(shard);
                    }
                }
            }
            Call::Rows | Call::ReadEpoch | Call::CoordinatorRows(_) => {}
        }
    }

    fn read(&self) -> (Vec<Option<Assigned>>, Vec<u16>) {
        let (rows, unreadable) = self.store.read();
        match self.setup.fault {
            Some(Fault::UnreadableTakenForAbsent) => (rows, Vec::new()),
            _ => (rows, unreadable),
        }
    }

    pub fn close_shard(&mut self, number: usize, shard: u16) {
        if self.nodes[number].releasing.remove(&shard) {
            self.nodes[number].unopened.remove(&shard);
            self.nodes[number].epochs[usize::from(shard)] = None;
            self.host(number, HostInput::Closed { shard });
        }
    }

    /// The process ends and starts anew; what it sent is still on its way.
    pub fn crash(&mut self, number: usize) {
        let mut fresh = self.start(number);
        let old = &mut self.nodes[number];
        fresh.lag = old.lag;
        fresh.posts = std::mem::take(&mut old.posts);
        fresh.calls = std::mem::take(&mut old.calls);
        self.nodes[number] = fresh;
        self.host(number, HostInput::Tick);
    }

    pub fn tick(&mut self, but: Option<usize>) {
        self.time += 1;
        if let Some(but) = but {
            self.nodes[but].lag += 1;
        }
        for number in 0..self.nodes.len() {
            let node = &mut self.nodes[number];
            if !node.is_paused && !node.is_gone {
                let unopened = std::mem::take(&mut node.unopened);
                for shard in node.host.held() {
                    // A commit under an older epoch is refused, and the shell opens anew.
                    let is_stale = node.epochs[usize::from(shard)]
                        .is_some_and(|epoch| epoch < self.store.shards[usize::from(shard)].0);
                    let call = (node.boot, Call::OpenShard(shard));
                    if (is_stale || unopened.contains(&shard)) && !node.calls.contains(&call) {
                        node.calls.push_back(call);
                    }
                }
                self.host(number, HostInput::Tick);
            }
        }
    }

    pub fn restart_board(&mut self) {
        let setup = self.setup;
        self.boots += 1;
        self.board = Board::new(
            self.boots,
            Span(setup.length),
            Span(margin(setup)),
            Monotonic(self.time),
        );
    }
}

fn margin(setup: Setup) -> u64 {
    match setup.fault {
        Some(Fault::NoMargin) => 0,
        _ => setup.margin,
    }
}
