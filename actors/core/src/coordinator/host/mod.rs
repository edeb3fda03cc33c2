//! The host: which shards this node claims, holds and releases, and until when it may.
//!
//! The row is the directive: it names the node that may open a shard, and its version numbers the decision.
//! A node that a row names says so on the board before it opens, and opens once nobody else on the board holds
//! the shard; a node that a later row does not name lets go of it. So two claims meet on the board, where one
//! of them comes second and sees the other.
//!
//! Owns: what is posted, and this node's own lease: counted on its own clock, from before each post was sent,
//! and shorter than the board's by the margin. Must never: open because of a message, or go back to an older
//! row. Next: `io.rs`, `shards.rs`, `../board.rs`.

mod check;
pub mod io;
mod shards;

use crate::coordinator::board::{BoardView, Session};
use crate::ids::Epoch;
use crate::level;
use crate::limits::{BOARD_POSTS_PER_SESSION, POSTS_UNANSWERED_MAX};
use crate::time::{Monotonic, Span};
use io::{HostConfig, HostCounts, HostEffect, HostInput};
use shards::HostShard;
use std::collections::BTreeMap;

/// The host of one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Host {
    config: HostConfig,
    shards: Vec<HostShard>,
    /// Longest pause between posts: the configured one, or a part of the session's length.
    interval: Span,
    /// Until when the node's session holds, by this node's clock.
    until: Option<Monotonic>,
    beat: u64,
    /// When each unanswered post was sent.
    sent: BTreeMap<u64, Monotonic>,
    last_sent_at: Option<Monotonic>,
    /// The last post was answered, so the next may go.
    is_answered: bool,
    /// Something changed that the board does not know.
    has_news: bool,
    /// (board, number) of the newest view.
    seen: (u64, u64),
    /// Newest decision that was heard of: rows were read after it, or are being read.
    heard: Option<(Epoch, u64)>,
    is_reading: bool,
    read_again: bool,
    read_at: Option<Monotonic>,
    coordinates: Option<(Epoch, u64)>,
    is_draining: bool,
    is_drained: bool,
    counts: HostCounts,
}

impl Host {
    /// Holds nothing yet.
    pub fn new(config: HostConfig) -> Host {
        Host {
            shards: vec![HostShard::default(); usize::from(config.shards)],
            interval: config.interval,
            config,
            until: None,
            beat: 0,
            sent: BTreeMap::new(),
            last_sent_at: None,
            is_answered: false,
            has_news: true,
            seen: (0, 0),
            heard: None,
            is_reading: false,
            read_again: false,
            read_at: None,
            coordinates: None,
            is_draining: false,
            is_drained: false,
            counts: HostCounts::default(),
        }
    }

    /// Takes a fact in and gives orders, all to be carried out at once. Time that has passed is seen first: no
    /// order rests on a lease that has ended meanwhile.
    pub fn step(&mut self, now: Monotonic, input: HostInput, effects: &mut Vec<HostEffect>) {
        self.end_lease(now, effects);
        match input {
            HostInput::Tick => {}
            HostInput::Answered { beat, view } => self.on_answered(now, beat, &view, effects),
            HostInput::NotTaken { beat } => drop(self.sent.remove(&beat)),
            HostInput::RowsRead(rows) => self.on_rows(now, &rows, effects),
            HostInput::RowsNotRead => self.is_reading = false,
            HostInput::Closed { shard } => self.on_closed(now, shard),
            HostInput::Progressed { shard, progress } => self.on_progress(shard, progress),
            HostInput::Coordinates(coordinates) => {
                self.has_news |= self.coordinates != coordinates;
                self.coordinates = coordinates;
            }
            HostInput::Drain => self.on_drain(),
            HostInput::GiveUp => self.on_give_up(effects),
        }
        self.force_claims(now, effects);
        self.read(now, effects);
        self.post(now, effects);
        self.tell_drained(effects);
    }

    /// When it wants to be stepped again, at the latest.
    pub fn next_wake(&self, now: Monotonic) -> Monotonic {
        let post = self.last_sent_at.map_or(now, |at| at + self.interval);
        let lease = self.until.filter(|until| *until > now);
        [Some(post), lease, self.next_forced().filter(|at| *at > now)]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(post)
    }

    /// What it ignored or gave up.
    pub fn counts(&self) -> HostCounts {
        self.counts
    }

    /// Whether the session holds at this moment by this node's clock.
    pub fn is_leased(&self, now: Monotonic) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    fn on_answered(&mut self, now: Monotonic, beat: u64, view: &BoardView, effects: &mut Vec<HostEffect>) {
        let Some(sent_at) = self.sent.remove(&beat) else {
            self.counts.old_answers += 1;
            return;
        };
        self.until = self.until.max(Some(sent_at + view.length));
        self.interval = self
            .config
            .interval
            .min(Span((view.length.0 / BOARD_POSTS_PER_SESSION).max(1)));
        self.is_answered |= beat == self.beat;
        self.note_view(view);
        if self.is_leased(now) {
            self.look_at(beat, view, effects);
        }
    }

    fn note_view(&mut self, view: &BoardView) {
        let number = if self.seen.0 == view.board { self.seen.1 } else { 0 };
        self.seen = (view.board, number.max(view.number));
        let said = view.sessions.iter();
        let newest = said
            .filter_map(|session| Some((session.coordinates?, session.decided)))
            .max();
        if newest > self.heard {
            self.heard = newest;
            self.read_again = true;
        }
    }

    /// Rows are read when somebody decided, and once in a while: a word may be lost (F8).
    fn read(&mut self, now: Monotonic, effects: &mut Vec<HostEffect>) {
        let is_due = self
            .read_at
            .is_none_or(|at| now.since(at) >= Span(self.interval.0.saturating_mul(BOARD_POSTS_PER_SESSION)));
        if self.is_reading || self.shards.is_empty() || !(is_due || self.read_again) {
            return;
        }
        self.is_reading = true;
        self.read_again = false;
        self.read_at = Some(now);
        effects.push(HostEffect::ReadRows);
    }

    fn post(&mut self, now: Monotonic, effects: &mut Vec<HostEffect>) {
        let is_due = self.last_sent_at.is_none_or(|at| now.since(at) >= self.interval);
        if !(self.has_news || self.is_answered || is_due) {
            return;
        }
        self.beat += 1;
        self.has_news = false;
        self.is_answered = false;
        self.last_sent_at = Some(now);
        self.sent.insert(self.beat, now);
        while self.sent.len() > POSTS_UNANSWERED_MAX {
            self.sent.pop_first();
        }
        effects.push(HostEffect::Post {
            session: self.session(),
            seen: self.seen.1,
            wait: self.interval,
        });
    }

    fn session(&mut self) -> Session {
        let beat = self.beat;
        Session {
            node: self.config.node.clone(),
            boot: self.config.boot,
            beat,
            takes: !self.is_draining && !self.shards.is_empty(),
            coordinates: self.coordinates.map(|(epoch, _)| epoch),
            decided: self.coordinates.map_or(0, |(_, decided)| decided),
            shards: self.shards.iter_mut().map(|shard| shard.post(beat)).collect(),
            address: self.config.address.clone(),
            level: level::known(),
        }
    }

    fn on_drain(&mut self) {
        self.is_draining = true;
        self.has_news = true;
        for shard in &mut self.shards {
            shard.forget_claim();
        }
    }

    fn tell_drained(&mut self, effects: &mut Vec<HostEffect>) {
        if self.is_draining && !self.is_drained && self.shards.iter().all(HostShard::is_idle) {
            self.is_drained = true;
            effects.push(HostEffect::Drained);
        }
    }
}
