//! What the active coordinator decides from the board and the rows.
//!
//! Owns: first assignments, takeovers from nodes that are gone, moves away from nodes that leave or stall, and
//! balancing, in this order. Bounded: planned moves by `moves_max`, balancing by `hold`, takeovers of a shard
//! whose owners die young by a growing pause (F9). Must never: take a shard from a node on the board without
//! letting it release, or decide while a batch is in flight. Next: `placement.rs`, `check.rs`.

use super::board::{BoardView, Hold, Session};
use super::io::{Assigned, CoordinatorEffect};
use super::placement::{place, score};
use super::{Coordinator, Standing};
use crate::ids::Epoch;
use crate::name::Name;
use crate::time::{Monotonic, Span};
use std::collections::BTreeMap;

/// What is remembered of a shard while this one decides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ShardBook {
    /// When it moved last.
    moved_at: Option<Monotonic>,
    /// Progress of its owner, and since when it stands there.
    progress: Option<(u64, Monotonic)>,
    /// Owners in a row that were gone soon after they got it.
    young: u32,
    /// No takeover before.
    not_before: Option<Monotonic>,
}

/// Decisions on their way into one batch, and what each node would have then.
struct Draft {
    loads: BTreeMap<Name, usize>,
    under_way: usize,
    rows: Vec<(u16, Assigned)>,
}

impl Coordinator {
    pub(super) fn note_sessions(&mut self, now: Monotonic, view: &BoardView) {
        let here = |node: &Name, boot: u64| view.session(node).is_some_and(|session| session.boot == boot);
        self.length = view.length;
        self.joined.retain(|(node, boot), _| here(node, *boot));
        for session in &view.sessions {
            let start = (session.node.clone(), session.boot);
            self.joined.entry(start).or_insert(now);
        }
        for (number, book) in self.books.iter_mut().enumerate() {
            let row = self.rows.get(number).and_then(Option::as_ref);
            let owner = row.and_then(|row| view.session(&row.node));
            let said = owner.and_then(|owner| owner.shards.get(number));
            book.progress = match (said, book.progress) {
                (Some(said), Some((known, since))) if known == said.progress => Some((known, since)),
                (Some(said), _) => Some((said.progress, now)),
                (None, _) => None,
            };
        }
    }

    pub(super) fn decide(&mut self, now: Monotonic, effects: &mut Vec<CoordinatorEffect>) {
        let Standing::Active(epoch) = self.standing else { return };
        let Some(view) = self.view.take() else { return };
        if self.pending.is_empty() {
            let mut draft = self.draft(&view);
            if !draft.loads.is_empty() {
                self.restate(now, epoch, &view, &mut draft);
                self.place_homeless(now, &view, &mut draft);
                self.move_planned(now, &view, &mut draft);
                self.balance(now, &view, &mut draft);
            }
            if !draft.rows.is_empty() {
                self.pending = draft.rows.iter().cloned().collect();
                effects.push(CoordinatorEffect::Commit {
                    epoch,
                    number: self.decided + 1,
                    rows: draft.rows,
                });
            }
        }
        self.view = Some(view);
    }

    fn draft(&self, view: &BoardView) -> Draft {
        let takers = view.sessions.iter().filter(|session| session.takes);
        let mut loads: BTreeMap<Name, usize> = takers.map(|session| (session.node.clone(), 0)).collect();
        let mut under_way = 0;
        for (shard, row) in self.numbered() {
            let Some(row) = row else { continue };
            if let Some(load) = loads.get_mut(&row.node) {
                *load += 1;
            }
            let owner = view.session(&row.node);
            let is_settled = owner.is_some_and(|owner| {
                let said = owner.report(shard);
                said.hold == Hold::Held && said.version == row.version
            });
            let will_be = owner.is_some_and(|owner| !declines(owner, shard));
            under_way += usize::from(will_be && !is_settled);
        }
        Draft {
            loads,
            under_way,
            rows: Vec::new(),
        }
    }

    /// Shards whose row cannot be read (F9) or came back older. Whoever has the shard keeps it, and the new row is
    /// above every version that anybody knows: a node that missed a decision must not take this one for an older
    /// one. Where neither this coordinator nor the board knows one, epochs are above all that was ever counted.
    fn restate(&mut self, now: Monotonic, epoch: Epoch, view: &BoardView, draft: &mut Draft) {
        let shards = self.rows.len();
        for shard in self.unreadable.clone() {
            let row = self.rows.get(usize::from(shard)).cloned().flatten();
            let said = || view.sessions.iter().map(|session| (session.report(shard), session));
            let holder = said()
                .filter(|(said, session)| said.hold != Hold::Idle && session.takes)
                .max_by_key(|(said, _)| said.version)
                .map(|(_, session)| session.node.clone());
            let here = row.as_ref().map(|row| row.node.clone());
            let here = here.filter(|node| view.is_young || view.session(node).is_some());
            let place = || place(shard, &draft.loads, shards).filter(|_| !view.is_young);
            let Some(node) = here.or(holder).or_else(place) else {
                continue;
            };
            let said = view.newest(shard);
            // What this one knows was read or decided under its own epoch: nothing is above it.
            let known = row.map_or(epoch.0 << 32, |row| row.version);
            self.assign_as(now, shard, node, said.max(known) + 1, draft);
        }
    }

    /// Shards without an owner on the board (on a young board its absence means nothing yet), and those whose
    /// owner is there and says that it will never open them: nobody serves these, so no bound holds them back.
    fn place_homeless(&mut self, now: Monotonic, view: &BoardView, draft: &mut Draft) {
        let shards = self.rows.len();
        for number in 0..shards {
            let shard = number as u16;
            let row = self.rows.get(number).cloned().flatten();
            let owner = row.as_ref().map(|row| view.session(&row.node));
            let is_gone = owner.is_some_and(|owner| owner.is_none());
            match row {
                _ if self.unreadable.contains(&shard) => continue,
                None => {}
                Some(_) if owner.flatten().is_some_and(|owner| declines(owner, shard)) => {}
                Some(_) if is_gone && !view.is_young && self.may_take(now, number) => {}
                Some(_) => continue,
            }
            if let Some(node) = place(shard, &draft.loads, shards) {
                self.assign(now, shard, node, draft);
            }
        }
    }

    /// Away from nodes that leave, and from owners that stand still.
    fn move_planned(&mut self, now: Monotonic, view: &BoardView, draft: &mut Draft) {
        let shards = self.rows.len();
        for number in 0..shards {
            if draft.under_way >= self.config.moves_max {
                return;
            }
            let shard = number as u16;
            let Some(row) = self.rows.get(number).cloned().flatten() else {
                continue;
            };
            let Some(owner) = view.session(&row.node) else { continue };
            let is_stalled = owner.report(shard).hold == Hold::Held && self.is_stalled(now, number);
            if (owner.takes && !is_stalled) || draft.rows.iter().any(|(other, _)| *other == shard) {
                continue;
            }
            let mut others = draft.loads.clone();
            others.remove(&row.node);
            if let Some(node) = place(shard, &others, shards) {
                self.assign(now, shard, node, draft);
                draft.under_way += 1;
            }
        }
    }

    /// From the node with most to the one with least, only where that makes them more alike, and only what has
    /// stood still for a while, to a node that has been there for a while.
    fn balance(&mut self, now: Monotonic, view: &BoardView, draft: &mut Draft) {
        if !draft.rows.is_empty() {
            return;
        }
        while draft.under_way < self.config.moves_max {
            let settled: Vec<&Name> = draft
                .loads
                .keys()
                .filter(|node| self.is_settled(now, view, node))
                .collect();
            let Some(to) = settled.into_iter().min_by_key(|node| draft.loads.get(*node)).cloned() else {
                return;
            };
            let Some((from, most)) = draft.loads.iter().max_by_key(|(_, load)| **load) else {
                return;
            };
            if *most < draft.loads.get(&to).copied().unwrap_or(0) + 2 {
                return;
            }
            let from = from.clone();
            let Some(shard) = self.movable(now, &from, &to, draft) else {
                return;
            };
            self.assign(now, shard, to, draft);
            draft.under_way += 1;
        }
    }

    /// Of a node's shards that may move, the one whose place is most at `to`.
    fn movable(&self, now: Monotonic, from: &Name, to: &Name, draft: &Draft) -> Option<u16> {
        let of_node = self
            .numbered()
            .filter(|(_, row)| row.is_some_and(|row| row.node == *from));
        let rested = of_node.filter(|(shard, _)| {
            let book = self.books.get(usize::from(*shard));
            let moved_at = book.and_then(|book| book.moved_at);
            moved_at.is_none_or(|at| now.since(at) >= self.hold()) && draft.rows.iter().all(|(other, _)| other != shard)
        });
        rested.map(|(shard, _)| shard).max_by_key(|shard| score(to, *shard))
    }

    fn is_settled(&self, now: Monotonic, view: &BoardView, node: &Name) -> bool {
        let Some(session) = view.session(node) else {
            return false;
        };
        let joined = self.joined.get(&(node.clone(), session.boot));
        joined.is_some_and(|at| now.since(*at) >= self.hold())
    }

    /// Two sessions where those are short.
    fn hold(&self) -> Span {
        Span(self.length.0.saturating_mul(2)).min(self.config.hold)
    }

    fn is_stalled(&self, now: Monotonic, number: usize) -> bool {
        let book = self.books.get(number);
        let stands = book.and_then(|book| book.progress);
        stands.is_some_and(|(_, since)| now.since(since) >= self.config.stall_max)
    }

    /// Owners that die young may die of the shard: the next one waits longer each time (F9).
    fn may_take(&mut self, now: Monotonic, number: usize) -> bool {
        let (first, cap, hold) = (self.config.young_pause, self.config.young_pause_max, self.hold());
        let Some(book) = self.books.get_mut(number) else {
            return false;
        };
        if let Some(at) = book.not_before {
            return now >= at;
        }
        let is_young = book.moved_at.is_some_and(|at| now.since(at) < hold);
        book.young = if is_young { book.young.saturating_add(1) } else { 0 };
        if book.young < 2 {
            return true;
        }
        let pause = first.0.saturating_mul(1 << (book.young - 2).min(20)).min(cap.0);
        book.not_before = Some(now + Span(pause));
        false
    }

    fn assign(&mut self, now: Monotonic, shard: u16, node: Name, draft: &mut Draft) {
        let before = self.rows.get(usize::from(shard)).and_then(Option::as_ref);
        let version = before.map_or(0, |row| row.version) + 1;
        self.assign_as(now, shard, node, version, draft);
    }

    fn assign_as(&mut self, now: Monotonic, shard: u16, node: Name, version: u64, draft: &mut Draft) {
        let number = usize::from(shard);
        let before = self.rows.get(number).cloned().flatten();
        if let Some(load) = before.as_ref().and_then(|row| draft.loads.get_mut(&row.node)) {
            *load = load.saturating_sub(1);
        }
        if let Some(load) = draft.loads.get_mut(&node) {
            *load += 1;
        }
        if let Some(book) = self.books.get_mut(number) {
            book.moved_at = Some(now);
            book.not_before = None;
            book.progress = None;
        }
        draft.rows.push((shard, Assigned { node, version }));
    }

    pub(super) fn numbered(&self) -> impl Iterator<Item = (u16, Option<&Assigned>)> {
        self.rows.iter().enumerate().map(|(at, row)| (at as u16, row.as_ref()))
    }
}

/// A node that takes nothing more and has nothing of this shard: a decision that named it came too late.
fn declines(owner: &Session, shard: u16) -> bool {
    !owner.takes && owner.report(shard).hold == Hold::Idle
}
