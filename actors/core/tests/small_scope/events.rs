//! What may happen next.
//!
//! Owns: the events, and which of them are possible. Must never: leave out an order of common events
//! (the rarer ones are bounded by the scope's budget). Next: `world.rs`.

use crate::nodes::Ending;
use crate::resource::Call;
use crate::wire::{FromWorker, Packet};
use crate::world::World;
use fencepost_core::ids::{Epoch, Token};

/// What may happen next.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A worker with room is hinted and its offer arrives.
    Ask(usize),
    /// A worker with room asks until it has the job that lost a worker: the shard says that it waits, a moment
    /// passes in which all shards can say so, and the place is offered.
    AskApart(usize),
    /// A moment passes; what is sent is under way.
    Moment,
    /// A message arrives at its worker, or at the newest owner.
    Deliver(u64),
    /// The same, and it will come once more.
    DeliverTwice(u64),
    /// A message arrives at an owner that is stale.
    DeliverToOld(u64),
    /// A message arrives at the newest owner, whose commit hangs.
    DeliverHanging(u64),
    /// The hanging commit reaches the store.
    Land,
    /// A run's call reaches the resource.
    Call(Token),
    /// A run ends.
    Finish(Token, Ending),
    /// A heartbeat interval passes; what is sent is under way.
    Beat,
    /// Longer than a lease passes; what is sent is lost.
    Silence,
    /// The same, while a worker stands still.
    PauseWorker(usize),
    /// The same, while all owners stand still.
    PauseOwners,
    /// The owner is replaced and gone.
    Restart,
    /// The owner is replaced and does not know it.
    TakeOver,
    /// A node dies and starts anew.
    Die(usize),
    /// A client cancels.
    Cancel,
    /// A node drains.
    Drain(usize),
}

impl World {
    /// Everything that may happen next.
    pub fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        self.events_of_messages(&mut events);
        self.events_of_runs(&mut events);
        events.extend(self.store.hanging.is_some().then_some(Event::Land));
        let budget = &self.budget;
        let mut rare = |left: u8, event: Event| events.extend((left.min(budget.all) > 0).then_some(event));
        rare(budget.beats, Event::Beat);
        rare(budget.silences, Event::Silence);
        rare(budget.restarts, Event::Restart);
        rare(budget.takeovers, Event::TakeOver);
        rare(budget.cancels, Event::Cancel);
        rare(budget.pauses, Event::PauseOwners);
        for node in self.present() {
            // Nodes are alike: the second one is interesting once the first one was asked.
            let met = node == 0 || !self.watch.started.is_empty();
            rare(budget.pauses * u8::from(met), Event::PauseWorker(node));
            rare(budget.deaths * u8::from(met), Event::Die(node));
            let working = met && !self.nodes[node].draining;
            rare(budget.drains * u8::from(working), Event::Drain(node));
        }
        events
    }

    fn events_of_messages(&self, events: &mut Vec<Event>) {
        let left = self.budget.all;
        let (hangs, doubles) = (self.budget.hangs.min(left) > 0, self.budget.doubles.min(left) > 0);
        for (id, packet) in self.wire.packets() {
            match packet {
                Packet::ToWorker(..) => {
                    events.push(Event::Deliver(id));
                    events.extend(doubles.then_some(Event::DeliverTwice(id)));
                }
                Packet::ToOwner(life, said) => {
                    let offer = matches!(said, FromWorker::Offer(..));
                    if offer && life.0 == 1 && self.store.epoch == Epoch(1) && self.store.leased().is_none() {
                        // Nodes are alike: the first offer to arrive is the first node's.
                        if self.watch.charged == 0 && self.watch.started.is_empty() {
                            continue;
                        }
                    }
                    events.push(Event::Deliver(id));
                    events.extend(doubles.then_some(Event::DeliverTwice(id)));
                    events.extend((self.owners.len() > 1).then_some(Event::DeliverToOld(id)));
                    events.extend(hangs.then_some(Event::DeliverHanging(id)));
                }
            }
        }
        for node in self.present() {
            let may_ask = self.may_ask(node);
            events.extend(may_ask.then_some(Event::Ask(node)));
            events.extend((may_ask && self.waits_apart()).then_some(Event::AskApart(node)));
        }
        events.extend(self.waits_for_a_moment().then_some(Event::Moment));
    }

    fn events_of_runs(&self, events: &mut Vec<Event>) {
        for (token, run) in &self.runs {
            events.extend(run.is_open().then_some(Event::Call(*token)));
            if run.node.is_none() {
                continue;
            }
            if run.has_effect() {
                events.push(Event::Finish(*token, Ending::Success));
            }
            events.push(Event::Finish(*token, Ending::Failure));
            if run.call == Call::Away {
                events.push(Event::Finish(*token, Ending::NoEffect));
            }
        }
    }

    /// An event in words.
    pub fn tell(&self, event: Event) -> String {
        let (Event::Deliver(id) | Event::DeliverTwice(id) | Event::DeliverToOld(id) | Event::DeliverHanging(id)) =
            event
        else {
            return format!("{event:?}");
        };
        let kind = format!("{event:?}");
        let kind = kind.split('(').next().unwrap_or_default();
        match self.wire.get(id) {
            Some(packet) => format!("{kind} {}", packet.tell()),
            None => kind.to_owned(),
        }
    }
}
