//! What may happen next, with a budget for the rarer things.
//!
//! Owns: the events of a walk. Must never: choose. Next: `walk.rs`.

use crate::world::{Node, World};
use fencepost_core::coordinator::host::io::HostInput;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A tick of every clock.
    Tick,
    /// A tick that one node's clock misses.
    Skew(usize),
    /// A post, its answer, and the store calls that follow.
    Beat(usize),
    /// The same up to the store calls, which wait.
    SlowBeat(usize),
    /// The post alone; its answer waits.
    Post(usize),
    LosePost(usize),
    Answer(usize),
    LoseAnswer(usize),
    Call(usize),
    Close(usize, u16),
    Crash(usize),
    Pause(usize),
    Resume(usize),
    Drain(usize),
    RestartBoard,
    /// A shard's row cannot be read any more.
    Rot(u16),
}

/// How often the rarer events may still happen in one history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    pub ticks: u8,
    pub skews: u8,
    pub losses: u8,
    /// Beats of which a part waits.
    pub slow: u8,
    pub crashes: u8,
    pub pauses: u8,
    pub drains: u8,
    pub boards: u8,
    pub rots: u8,
}

impl Budget {
    fn spend(&mut self, event: Event) {
        match event {
            Event::Tick => self.ticks -= 1,
            Event::Skew(_) => (self.skews, self.ticks) = (self.skews - 1, self.ticks - 1),
            Event::LosePost(_) | Event::LoseAnswer(_) => self.losses -= 1,
            Event::Post(_) | Event::SlowBeat(_) => self.slow -= 1,
            Event::Crash(_) => self.crashes -= 1,
            Event::Pause(_) => self.pauses -= 1,
            Event::Drain(_) => self.drains -= 1,
            Event::RestartBoard => self.boards -= 1,
            Event::Rot(_) => self.rots -= 1,
            Event::Beat(_) | Event::Answer(_) | Event::Call(_) | Event::Close(..) | Event::Resume(_) => {}
        }
    }
}

/// Everything that may happen now.
pub fn possible(world: &World, budget: &Budget) -> Vec<Event> {
    let mut events = Vec::new();
    if budget.ticks > 0 {
        events.push(Event::Tick);
    }
    if budget.boards > 0 {
        events.push(Event::RestartBoard);
    }
    if budget.rots > 0 {
        events.extend((0..world.setup.shards).map(Event::Rot));
    }
    for (number, node) in world.nodes.iter().enumerate() {
        wires(number, node, budget, &mut events);
        if node.is_gone {
            continue;
        }
        if node.is_paused {
            events.push(Event::Resume(number));
        } else {
            events.extend(node.releasing.iter().map(|shard| Event::Close(number, *shard)));
            let rare = [
                (budget.pauses, Event::Pause(number)),
                (budget.drains, Event::Drain(number)),
            ];
            events.extend(rare.into_iter().filter(|(left, _)| *left > 0).map(|(_, event)| event));
        }
        let rare = [
            (budget.crashes, Event::Crash(number)),
            (budget.skews.min(budget.ticks), Event::Skew(number)),
        ];
        events.extend(rare.into_iter().filter(|(left, _)| *left > 0).map(|(_, event)| event));
    }
    events
}

/// What may arrive. A paused node's words still do, and answers wait for it.
fn wires(number: usize, node: &Node, budget: &Budget, events: &mut Vec<Event>) {
    let is_here = !node.is_paused && !node.is_gone;
    let is_clear = node.answers.is_empty() && node.calls.is_empty();
    if !node.posts.is_empty() {
        if is_here && is_clear {
            events.push(Event::Beat(number));
        }
        if budget.slow > 0 {
            events.push(Event::Post(number));
            if is_here && is_clear {
                events.push(Event::SlowBeat(number));
            }
        }
        if budget.losses > 0 {
            events.push(Event::LosePost(number));
        }
    }
    if is_here && !node.answers.is_empty() {
        events.push(Event::Answer(number));
        if budget.losses > 0 {
            events.push(Event::LoseAnswer(number));
        }
    }
    if !node.calls.is_empty() && !node.is_gone {
        events.push(Event::Call(number));
    }
}

/// Lets it happen.
pub fn happen(world: &mut World, budget: &mut Budget, event: Event) {
    budget.spend(event);
    apply(world, event);
}

pub fn apply(world: &mut World, event: Event) {
    match event {
        Event::Tick => world.tick(None),
        Event::Skew(number) => world.tick(Some(number)),
        Event::Beat(number) => {
            world.deliver_post(number);
            world.deliver_answer(number);
            world.deliver_calls(number);
        }
        Event::SlowBeat(number) => {
            world.deliver_post(number);
            world.deliver_answer(number);
        }
        Event::Post(number) => world.deliver_post(number),
        Event::LosePost(number) => drop(world.nodes[number].posts.pop_front()),
        Event::Answer(number) => world.deliver_answer(number),
        Event::LoseAnswer(number) => drop(world.nodes[number].answers.pop_front()),
        Event::Call(number) => world.deliver_call(number),
        Event::Close(number, shard) => world.close_shard(number, shard),
        Event::Crash(number) => world.crash(number),
        Event::Pause(number) => world.nodes[number].is_paused = true,
        Event::Resume(number) => {
            world.nodes[number].is_paused = false;
            world.host(number, HostInput::Tick);
        }
        Event::Drain(number) => world.host(number, HostInput::Drain),
        Event::RestartBoard => world.restart_board(),
        Event::Rot(shard) => world.store.rot(shard),
    }
}

impl World {
    pub fn deliver_calls(&mut self, number: usize) {
        while !self.nodes[number].calls.is_empty() {
            self.deliver_call(number);
        }
    }

    /// Lets everything that waits through, until `ticks` have passed.
    pub fn run(&mut self, ticks: u64) {
        let until = self.time + ticks;
        loop {
            for _ in 0..6 {
                for number in 0..self.nodes.len() {
                    let is_away = self.nodes[number].is_paused || self.nodes[number].is_gone;
                    if is_away {
                        continue;
                    }
                    self.deliver_post(number);
                    self.deliver_answer(number);
                    self.deliver_calls(number);
                    for shard in 0..self.setup.shards {
                        self.close_shard(number, shard);
                    }
                }
                assert_eq!(crate::rules::broken(self), None);
            }
            if self.time >= until {
                return;
            }
            self.tick(None);
        }
    }

    /// Who has each shard open under its newest epoch.
    pub fn owners(&self) -> Vec<Option<usize>> {
        (0..usize::from(self.setup.shards))
            .map(|shard| {
                let (epoch, _) = self.store.shards[shard];
                let open = |number: &usize| {
                    let node = &self.nodes[*number];
                    !node.is_gone && node.epochs[shard] == Some(epoch) && epoch.0 > 0
                };
                (0..self.nodes.len()).find(open)
            })
            .collect()
    }
}
