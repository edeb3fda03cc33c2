//! The whole small world, and what must be true in it whatever happens.
//!
//! Owns: what events do, and the invariants. Must never: choose (see `explore.rs`). Next: `events.rs`,
//! `shell.rs`, `nodes.rs`, `store.rs`.

use crate::events::Event;
use crate::nodes::Node;
use crate::resource::{Resource, Run};
use crate::scope::{Budget, HEARTBEAT, MOMENT, STEP, Scope, job_id, shared};
use crate::shell::{Shell, Word};
use crate::store::Store;
use crate::wire::{Packet, Wire};
use fencepost_core::ids::{BeatId, Epoch, ShardId, Token};
use fencepost_core::job::{Delivery, Job, JobState};
use fencepost_core::lease_manager::io::{CreateItem, LeaseInput};
use fencepost_core::machine::ReplyTo;
use fencepost_core::time::{Monotonic, Now, Span, StoreTime};
use fencepost_core::worker::io::WorkerInput;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

/// The world.
#[derive(Clone)]
pub struct World {
    pub scope: Scope,
    pub now: Monotonic,
    pub store: Store,
    /// Oldest first; all but the last are stale and do not know it.
    pub owners: Vec<Shell>,
    pub nodes: [Node; 2],
    pub wire: Wire,
    pub runs: BTreeMap<Token, Run>,
    pub resource: Resource,
    pub watch: Watch,
    pub budget: Budget,
}

/// What was seen so far.
#[derive(Clone, Default, Hash)]
pub struct Watch {
    pub started: BTreeSet<Token>,
    pub answered_cancelled: bool,
    pub beat_last: BeatId,
    pub charged: u32,
    owner_changed: bool,
}

impl World {
    /// One shard with one ready job, and two idle workers whose offers are under way.
    pub fn new(scope: Scope) -> World {
        let mut world = World {
            scope,
            now: Monotonic(1_000_000),
            store: Store::default(),
            owners: Vec::new(),
            nodes: [Node::new(1, scope.slots), Node::new(1, scope.slots)],
            wire: Wire::default(),
            runs: BTreeMap::new(),
            resource: Resource::default(),
            watch: Watch::default(),
            budget: scope.budget,
        };
        world.open_owner().unwrap();
        let epoch = world.newest().unwrap();
        let item = CreateItem {
            id: job_id(),
            spec: shared(scope.spec()),
            due_at: None,
            delay: None,
            grace: None,
            key: None,
            resent: false,
            key_row: None,
            existing: None,
        };
        let input = LeaseInput::CreateJobs {
            reply: ReplyTo(0),
            items: vec![item],
        };
        world.say_to(epoch, input, Vec::new(), false).unwrap();
        for node in world.present() {
            world.step_node(node, WorkerInput::Tick).unwrap();
        }
        world
    }

    /// The workers that are there.
    pub fn present(&self) -> impl Iterator<Item = usize> + use<> {
        0..2 - usize::from(self.scope.lone)
    }

    /// What a step knows of time; store time and monotonic time go together here.
    pub fn time(&self) -> Now {
        Now {
            store: StoreTime(1_700_000_000_000_000 + self.now.0 as i64),
            mono: self.now,
            doubt: false,
        }
    }

    /// Lets it happen, and says what broke.
    pub fn apply(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Ask(node) => self.ask(node)?,
            Event::AskApart(node) => self.ask_apart(node)?,
            Event::Moment => self.pass(MOMENT, |_| true, true)?,
            Event::Deliver(id) => self.deliver(id, self.newest(), false)?,
            Event::DeliverTwice(id) => {
                self.spend(|budget| &mut budget.doubles);
                let again = self.wire.get(id).cloned();
                self.deliver(id, self.newest(), false)?;
                again.into_iter().for_each(|packet| self.wire.send(packet));
            }
            Event::DeliverToOld(id) => self.deliver(id, self.owners.first().map(|shell| shell.epoch), false)?,
            Event::DeliverHanging(id) => {
                self.spend(|budget| &mut budget.hangs);
                self.deliver(id, self.newest(), true)?;
            }
            Event::Land => self.land()?,
            Event::Call(token) => self.call(token),
            Event::Finish(token, ending) => self.finish(token, ending)?,
            Event::Beat => {
                self.spend(|budget| &mut budget.beats);
                self.pass(HEARTBEAT, |_| true, true)?;
            }
            Event::Silence => {
                self.spend(|budget| &mut budget.silences);
                self.lose(World::long(), |_| true, true)?;
            }
            Event::PauseWorker(node) => {
                self.spend(|budget| &mut budget.pauses);
                self.lose(World::long(), |other| other != node, true)?;
            }
            Event::PauseOwners => {
                self.spend(|budget| &mut budget.pauses);
                self.lose(World::long(), |_| true, false)?;
            }
            Event::Restart => self.replace(true)?,
            Event::TakeOver => self.replace(false)?,
            Event::Die(node) => {
                self.spend(|budget| &mut budget.deaths);
                self.die(node)?;
            }
            Event::Cancel => {
                self.spend(|budget| &mut budget.cancels);
                self.cancel()?;
            }
            Event::Drain(node) => {
                self.spend(|budget| &mut budget.drains);
                self.drain(node)?;
            }
        }
        self.check()
    }

    fn spend(&mut self, kind: impl Fn(&mut Budget) -> &mut u8) {
        *kind(&mut self.budget) -= 1;
        self.budget.all -= 1;
    }

    fn ask(&mut self, node: usize) -> Result<(), String> {
        self.step_node(node, WorkerInput::ReadyHint(ShardId(0)))?;
        match self.wire.offer_of((node, self.nodes[node].boot)) {
            Some(id) => self.deliver(id, self.newest(), false),
            None => Ok(()),
        }
    }

    /// The job is held back because it lost a worker.
    pub fn waits_apart(&self) -> bool {
        let lost = self.store.job().is_some_and(Job::has_lost_a_worker);
        lost && self.store.standing().is_some_and(|now| now.state == JobState::Waiting)
    }

    /// Within a moment it is due, or a worker with room has waited for long enough to ask for it.
    pub fn waits_for_a_moment(&self) -> bool {
        let soon = self.now + MOMENT;
        let wakes = |node: usize| self.nodes[node].machine.next_wake().is_some_and(|at| at <= soon);
        self.waits_apart() && (self.lies_ahead() || self.present().any(|node| self.may_ask(node) && wakes(node)))
    }

    /// It has room, and no offer of it is under way.
    pub fn may_ask(&self, node: usize) -> bool {
        let life = (node, self.nodes[node].boot);
        let idle = self.nodes[node].machine.used() == 0 && !self.nodes[node].draining;
        idle && self.wire.offer_of(life).is_none()
    }

    fn lies_ahead(&self) -> bool {
        let now = self.time().store;
        self.wait_rows().iter().any(|(row, _)| row.at > now)
    }

    fn ask_apart(&mut self, node: usize) -> Result<(), String> {
        for _ in 0..3 {
            self.ask(node)?;
            let life = (node, self.nodes[node].boot);
            if let Some(answer) = self.wire.answer_of(life).filter(|_| self.waits_apart()) {
                self.deliver(answer, None, false)?;
            }
            if !self.waits_apart() {
                break;
            }
            self.pass(MOMENT, |_| true, true)?;
        }
        Ok(())
    }

    fn deliver(&mut self, id: u64, owner: Option<Epoch>, hangs: bool) -> Result<(), String> {
        match (self.wire.take(id), owner) {
            (Some(Packet::ToWorker(life, input)), _) => self.step_node(life.0, input),
            (Some(Packet::ToOwner(life, said)), Some(epoch)) => {
                let (input, spoken_for) = self.word_of(epoch, life, said);
                self.say_to(epoch, input, spoken_for, hangs)
            }
            (Some(Packet::ToOwner(..)), None) | (None, _) => Ok(()),
        }
    }

    fn say_to(&mut self, epoch: Epoch, input: LeaseInput, spoken_for: Vec<Token>, hangs: bool) -> Result<(), String> {
        self.step_owner(
            epoch,
            Word {
                input,
                spoken_for,
                hangs,
            },
        )
    }

    fn call(&mut self, token: Token) {
        let Some(run) = self.runs.get_mut(&token) else { return };
        self.resource.call(token, run, &self.scope);
        self.runs.retain(|_, run| run.node.is_some() || run.is_open());
    }

    fn replace(&mut self, gone: bool) -> Result<(), String> {
        self.watch.owner_changed = true;
        if gone {
            self.spend(|budget| &mut budget.restarts);
            self.owners.clear();
        } else {
            self.spend(|budget| &mut budget.takeovers);
        }
        self.open_owner()
    }

    /// Time passes in small steps for those who are awake.
    fn pass(&mut self, span: Span, nodes: impl Fn(usize) -> bool, owners: bool) -> Result<(), String> {
        let end = self.now + span;
        while self.now < end {
            self.now = self.now + STEP.min(span);
            if owners {
                for epoch in self.owners.iter().map(|shell| shell.epoch).collect::<Vec<_>>() {
                    self.tick_owner(epoch)?;
                }
            }
            for node in self.present().filter(|node| nodes(*node)) {
                self.step_node(node, WorkerInput::Tick)?;
            }
        }
        Ok(())
    }

    fn lose(&mut self, span: Span, nodes: impl Fn(usize) -> bool, owners: bool) -> Result<(), String> {
        let before = self.wire.clone();
        self.pass(span, nodes, owners)?;
        self.wire = before;
        Ok(())
    }

    /// What must be true in every state.
    pub fn check(&mut self) -> Result<(), String> {
        let Some(job) = self.store.job() else { return Ok(()) };
        let (charged, finished) = (job.charged, job.state);
        let leased = u32::from(self.store.leased().is_some());
        if charged > self.scope.attempt_count_max || charged + leased > self.scope.attempt_count_max {
            return Err(format!(
                "{charged} charged and {leased} current attempts are more than the policy allows"
            ));
        }
        if charged < self.watch.charged {
            return Err("a charge vanished".to_owned());
        }
        self.watch.charged = charged;
        if self.watch.started.len() as u32 > charged + leased {
            return Err(format!(
                "{} attempts started, {charged} charged",
                self.watch.started.len()
            ));
        }
        if self.resource.applied > 1 {
            return Err("the effect was applied twice".to_owned());
        }
        if finished == JobState::Succeeded && self.resource.applied == 0 {
            return Err("succeeded without an effect".to_owned());
        }
        self.check_fences()
    }

    /// A worker that is awake and believes in its lease is right, as long as the owner has not
    /// changed: then early expiry is possible and safe.
    fn check_fences(&self) -> Result<(), String> {
        let current = self.store.leased().map(|row| row.token);
        let watched = !self.watch.owner_changed && self.scope.delivery == Delivery::AtLeastOnce;
        let believes = |token: &Token, run: &Run| run.node.is_some() && !run.told && Some(*token) != current;
        match watched && self.runs.iter().any(|(token, run)| believes(token, run)) && self.budget_untouched_pauses() {
            true => Err("a worker goes on although its lease was ended".to_owned()),
            false => Ok(()),
        }
    }

    fn budget_untouched_pauses(&self) -> bool {
        self.budget.pauses == self.scope.budget.pauses
    }
}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.now, &self.store, &self.nodes, &self.wire).hash(state);
        (&self.runs, &self.resource, &self.watch, &self.budget).hash(state);
        for shell in &self.owners {
            (shell.epoch, &shell.machine).hash(state);
            if let Some(waiting) = &shell.waiting {
                format!("{waiting:?}").hash(state);
            }
        }
    }
}
