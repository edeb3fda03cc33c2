//! One shard at its host: idle, claimed, held, or on its way out.
//!
//! Owns: these moves. Must never: hold a shard that another node on the board holds, unless that node did not
//! let go of it for `handover_max` (then the store's epoch decides, as always). Next: `mod.rs`, `check.rs`.

use super::Host;
use super::io::HostEffect;
use crate::coordinator::board::{BoardView, Hold, ShardReport};
use crate::coordinator::io::Assigned;
use crate::time::Monotonic;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum State {
    #[default]
    Idle,
    /// Since when, and with which post the board was told.
    Claiming {
        since: Monotonic,
        posted: Option<u64>,
    },
    Held {
        fenced: bool,
    },
    Leaving {
        fenced: bool,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct HostShard {
    /// Of the newest row that was read.
    pub(super) version: u64,
    /// That row names this node.
    pub(super) is_ours: bool,
    /// There was no row when this process first looked: nobody can have held it before the first row.
    was_absent: bool,
    pub(super) state: State,
    progress: u64,
}

impl HostShard {
    pub(super) fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    pub(super) fn forget_claim(&mut self) {
        if matches!(self.state, State::Claiming { .. }) {
            self.state = State::Idle;
        }
    }

    /// What a post says of it; a claim counts from the post that first says so.
    pub(super) fn post(&mut self, beat: u64) -> ShardReport {
        if let State::Claiming { posted, .. } = &mut self.state {
            posted.get_or_insert(beat);
        }
        ShardReport {
            version: self.version,
            hold: match self.state {
                State::Idle => Hold::Idle,
                State::Claiming { .. } => Hold::Claiming,
                State::Held { .. } => Hold::Held,
                State::Leaving { .. } => Hold::Leaving,
            },
            progress: self.progress,
        }
    }
}

impl Host {
    /// Whether this node may take up new work of a shard, as far as its own lease goes.
    pub fn may_work(&self, now: Monotonic, shard: u16) -> bool {
        let state = self.shards.get(usize::from(shard)).map(|shard| shard.state);
        let is_unfenced = matches!(
            state,
            Some(State::Held { fenced: false } | State::Leaving { fenced: false })
        );
        is_unfenced && self.is_leased(now)
    }

    /// The shards that it holds.
    pub fn held(&self) -> impl Iterator<Item = u16> {
        let held = self.shards.iter().enumerate();
        held.filter(|(_, shard)| matches!(shard.state, State::Held { .. }))
            .map(|(number, _)| number as u16)
    }

    pub(super) fn end_lease(&mut self, now: Monotonic, effects: &mut Vec<HostEffect>) {
        if self.is_leased(now) {
            return;
        }
        for (number, shard) in self.shards.iter_mut().enumerate() {
            if let State::Held { fenced } | State::Leaving { fenced } = &mut shard.state
                && !std::mem::replace(fenced, true)
            {
                self.counts.fenced += 1;
                effects.push(HostEffect::Fence { shard: number as u16 });
            }
        }
    }

    pub(super) fn on_rows(&mut self, now: Monotonic, rows: &[Option<Assigned>], effects: &mut Vec<HostEffect>) {
        self.is_reading = false;
        for (number, row) in rows.iter().enumerate() {
            let Some(shard) = self.shards.get_mut(number) else {
                continue;
            };
            let Some(row) = row else {
                shard.was_absent = shard.version == 0;
                continue;
            };
            let is_ours = row.node == self.config.node;
            if row.version < shard.version {
                self.counts.old_rows += 1;
                continue;
            }
            self.has_news |= row.version != shard.version;
            shard.version = row.version;
            shard.is_ours = is_ours;
            match (&shard.state, is_ours) {
                (State::Idle, true) if !self.is_draining => {
                    shard.state = State::Claiming {
                        since: now,
                        posted: None,
                    };
                    self.has_news = true;
                }
                (State::Claiming { .. }, false) => shard.state = State::Idle,
                (State::Held { fenced }, false) => {
                    shard.state = State::Leaving { fenced: *fenced };
                    effects.push(HostEffect::Release { shard: number as u16 });
                }
                (State::Idle | State::Claiming { .. } | State::Held { .. }, _) | (State::Leaving { .. }, _) => {}
            }
        }
    }

    pub(super) fn on_closed(&mut self, now: Monotonic, number: u16) {
        let is_draining = self.is_draining;
        let Some(shard) = self.shards.get_mut(usize::from(number)) else {
            return;
        };
        if matches!(shard.state, State::Leaving { .. }) {
            // A later row may name this node again.
            shard.state = match shard.is_ours && !is_draining {
                true => State::Claiming {
                    since: now,
                    posted: None,
                },
                false => State::Idle,
            };
            self.has_news = true;
        }
    }

    pub(super) fn on_progress(&mut self, number: u16, progress: u64) {
        if let Some(shard) = self.shards.get_mut(usize::from(number)) {
            shard.progress = progress;
        }
    }

    /// The board after one of our posts: claims that nobody stands against are held, those of an older
    /// decision are given up, and what the end of a lease had fenced goes on where nobody was named since.
    /// A young board does not know who holds what: under it only a shard's very first owner opens, and nothing
    /// that was fenced goes on.
    pub(super) fn look_at(&mut self, beat: u64, view: &BoardView, effects: &mut Vec<HostEffect>) {
        let others: Vec<_> = view
            .sessions
            .iter()
            .filter(|other| other.node != self.config.node)
            .collect();
        for (at, shard) in self.shards.iter_mut().enumerate() {
            let number = at as u16;
            let said = others.iter().map(|other| other.report(number));
            let against: Vec<ShardReport> = said.filter(|said| said.hold != Hold::Idle).collect();
            let is_older = against.iter().any(|other| other.version > shard.version);
            match &mut shard.state {
                State::Claiming { posted, .. } if posted.is_some_and(|posted| posted <= beat) => {
                    if is_older {
                        shard.state = State::Idle;
                        self.counts.yielded += 1;
                        (self.has_news, self.read_again) = (true, true);
                    } else if against.is_empty() && (!view.is_young || (shard.was_absent && shard.version == 1)) {
                        shard.state = State::Held { fenced: false };
                        self.has_news = true;
                        let version = shard.version;
                        effects.push(HostEffect::Open { shard: number, version });
                    }
                }
                State::Held { fenced } if *fenced && !is_older && !view.is_young => {
                    *fenced = false;
                    effects.push(HostEffect::Unfence { shard: number });
                }
                State::Held { .. } | State::Leaving { .. } => self.read_again |= is_older,
                State::Idle | State::Claiming { .. } => {}
            }
        }
    }

    /// A node that is there and does not let go is wedged: its shard moves all the same (F32).
    pub(super) fn force_claims(&mut self, now: Monotonic, effects: &mut Vec<HostEffect>) {
        if !self.is_leased(now) {
            return;
        }
        for (number, shard) in self.shards.iter_mut().enumerate() {
            if let State::Claiming { since, posted: Some(_) } = shard.state
                && now.since(since) >= self.config.handover_max
            {
                shard.state = State::Held { fenced: false };
                self.has_news = true;
                self.counts.forced += 1;
                effects.push(HostEffect::Open {
                    shard: number as u16,
                    version: shard.version,
                });
            }
        }
    }

    pub(super) fn next_forced(&self) -> Option<Monotonic> {
        let claims = self.shards.iter().filter_map(|shard| match shard.state {
            State::Claiming { since, .. } => Some(since + self.config.handover_max),
            State::Idle | State::Held { .. } | State::Leaving { .. } => None,
        });
        claims.min()
    }

    pub(super) fn on_give_up(&mut self, effects: &mut Vec<HostEffect>) {
        for (number, shard) in self.shards.iter_mut().enumerate() {
            if let State::Held { fenced } = shard.state {
                shard.state = State::Leaving { fenced };
                self.has_news = true;
                effects.push(HostEffect::Release { shard: number as u16 });
            }
        }
    }
}
