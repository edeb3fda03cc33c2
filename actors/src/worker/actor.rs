//! The worker's actor: carries out the machine's orders, runs targets, tells what came out.
//!
//! Owns: the runs of one node. Must never: decide whether a lease still holds, or lose an outcome.
//! Next: `ended.rs`, `../targets/`, `../shell/messages.rs`.

use crate::clock::SharedClock;
use crate::cluster::work::Ways;
use crate::net::rt::spawn_local;
use crate::node::trust::ClockWatch;
use crate::shell::messages::{FromWorker, WorkerLink};
use crate::targets::{AttemptContext, AttemptControl, TargetRunner, attempt_signal};
use crate::worker::ended::{End, EndedRuns, Ends};
use actix::{
    Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, SpawnHandle, StreamHandler, WrapFuture,
};
use fencepost_core::duration;
use fencepost_core::ids::{JobId, ShardId, Token, WorkerId};
use fencepost_core::job::{Job, Origin};
use fencepost_core::lease_manager::io::Grant;
use fencepost_core::limits;
use fencepost_core::time::{Monotonic, Span, StoreTime};
use fencepost_core::worker::io::{WorkerEffect, WorkerInput};
use fencepost_core::worker::{WorkerConfig, WorkerMachine};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tokio::sync::oneshot;

/// What a worker's actor works with.
pub struct WorkerParts {
    /// This node's clocks.
    pub clock: SharedClock,
    /// Carries out targets.
    pub runner: TargetRunner,
    /// Who it is.
    pub id: WorkerId,
    /// Settings.
    pub config: WorkerConfig,
    /// What is known of this node's clock: without trust nothing is asked for.
    pub trust: Arc<ClockWatch>,
    /// Length of the leases that this node grants; owners elsewhere are to grant the same.
    pub lease: Span,
    /// The ways to the owners of shards.
    pub ways: Ways,
}

/// A message for the worker.
pub enum ToWorker {
    /// A fact for the machine.
    Input(WorkerInput),
    /// Take nothing new; answer when nothing is left, at the latest after the span and a little.
    Drain(Span, oneshot::Sender<()>),
    /// Ends the actor.
    Stop,
}

impl actix::Message for ToWorker {
    type Result = ();
}

/// The worker's actor.
pub struct WorkerActor {
    parts: WorkerParts,
    machine: WorkerMachine,
    running: BTreeMap<(JobId, Token), AttemptControl>,
    ended: EndedRuns,
    /// The way back to it, once it has started.
    link: Option<WorkerLink>,
    timer: Option<(Monotonic, SpawnHandle)>,
    drained: Vec<oneshot::Sender<()>>,
    /// As the machine was told last.
    holds_back: bool,
    steps: u64,
    /// Another length of leases than this node's, as seen last.
    other_lease: Option<Span>,
    has_told_lease: bool,
}

impl WorkerActor {
    /// Idle.
    pub fn new(parts: WorkerParts) -> WorkerActor {
        let machine = WorkerMachine::new(parts.config.clone());
        WorkerActor {
            parts,
            machine,
            running: BTreeMap::new(),
            ended: EndedRuns::default(),
            link: None,
            timer: None,
            drained: Vec::new(),
            holds_back: false,
            steps: 0,
            other_lease: None,
            has_told_lease: false,
        }
    }

    /// Says once that an owner's setting is another: nothing breaks by it, but neither setting is what holds. A
    /// shorter length may be what is left of a grant that is told again, and is another each time then.
    fn compare_lease(&mut self, grants: &[Grant]) {
        let own = self.parts.lease;
        let Some(other) = grants.first().map(|grant| grant.length).filter(|other| *other != own) else {
            return;
        };
        let was_seen = self.other_lease.replace(other) == Some(other);
        if self.has_told_lease || !(was_seen || other > own) {
            return;
        }
        self.has_told_lease = true;
        let (here, there) = (duration::format(own), duration::format(other));
        tracing::warn!(
            here,
            there,
            "an owner of shards grants leases of another length than this node's: set worker.lease (--lease) the same \
             on every node of the cell"
        );
    }

    fn step(&mut self, input: WorkerInput, ctx: &mut Context<WorkerActor>) {
        #[cfg(feature = "test-switches")]
        crate::process::switches::panic_in("worker");
        let mut inputs = VecDeque::from([input]);
        let holds_back = self.parts.trust.holds_back();
        if std::mem::replace(&mut self.holds_back, holds_back) != holds_back {
            inputs.push_front(WorkerInput::HoldBack(holds_back));
        }
        while let Some(input) = inputs.pop_front() {
            let now = self.parts.clock.mono();
            let mut effects = Vec::new();
            self.machine.step(now, input, &mut effects);
            self.steps += 1;
            if cfg!(debug_assertions) && self.steps.is_multiple_of(16) {
                self.machine.check();
            }
            let mut items = Vec::new();
            for effect in effects {
                items.extend(self.carry_out(effect, &mut inputs));
            }
            if !items.is_empty() {
                inputs.push_back(WorkerInput::AttemptsFinished { items });
            }
        }
        self.arm_timer(ctx);
    }

    /// Answers the end of a run that ended in the very moment it began.
    fn carry_out(&mut self, effect: WorkerEffect, inputs: &mut VecDeque<WorkerInput>) -> Option<End> {
        match effect {
            WorkerEffect::SendOffer {
                shard,
                offer,
                slots,
                queues,
                commands,
                waits,
                apart,
            } => {
                let message = FromWorker::Offer {
                    offer,
                    slots,
                    queues,
                    commands,
                    waits,
                    apart,
                };
                self.send(shard, message, inputs);
            }
            WorkerEffect::SendHeartbeat { shard, beat, held } => {
                self.send(shard, FromWorker::Heartbeat { beat, held }, inputs);
            }
            WorkerEffect::SendBegin { shard, id, token } => self.send(shard, FromWorker::Begin { id, token }, inputs),
            WorkerEffect::SendOutcomes { shard, items } => self.send(shard, FromWorker::Outcomes { items }, inputs),
            WorkerEffect::SendHandBack { shard, items } => self.send(shard, FromWorker::HandBack { items }, inputs),
            WorkerEffect::StartAttempt { grant, left, .. } => return self.start(grant, left),
            WorkerEffect::ExtendAttempt { id, token, left } => {
                if let Some(control) = self.running.get(&(id, token)) {
                    control.extend_lease(left);
                }
            }
            WorkerEffect::StopAttempt { id, token, reason } => {
                if let Some(control) = self.running.get(&(id, token)) {
                    control.stop(reason);
                }
            }
            WorkerEffect::TellRecorded { items } => self.parts.runner.note_recorded(&items),
            WorkerEffect::Drained => {
                for drained in self.drained.drain(..) {
                    let _ = drained.send(());
                }
            }
        }
        None
    }

    /// Sends to a shard's owner; what does not leave is told to the machine, which sends again later.
    fn send(&mut self, shard: ShardId, message: FromWorker, inputs: &mut VecDeque<WorkerInput>) {
        let sent = self
            .link
            .as_ref()
            .is_some_and(|link| self.parts.ways.send(shard, (&self.parts.id, link), message));
        if !sent {
            inputs.push_back(WorkerInput::ShardAway(shard));
        }
    }

    /// Begins a run; answers its end if it has none.
    fn start(&mut self, grant: Grant, left: Span) -> Option<End> {
        let (id, token) = (grant.job.id, grant.token);
        if let Some(outcome) = self.parts.runner.instant_outcome(&grant.job.spec.target) {
            return Some((id, token, outcome));
        }
        let (control, signal) = attempt_signal(Some(left));
        self.running.insert((id, token), control);
        let attempt = attempt_context(&grant);
        let (runner, ended) = (self.parts.runner.clone(), self.ended.clone());
        spawn_local(async move {
            let outcome = runner.run(attempt, signal).await;
            ended.push((id, token, outcome));
        });
        None
    }

    fn arm_timer(&mut self, ctx: &mut Context<WorkerActor>) {
        let Some(at) = self.machine.next_wake() else { return };
        if let Some((armed, handle)) = self.timer {
            if armed <= at {
                return;
            }
            ctx.cancel_future(handle);
        }
        let sleeping = self.parts.clock.sleep(at.since(self.parts.clock.mono()));
        let handle = ctx.spawn(sleeping.into_actor(self).map(|(), worker, ctx| {
            worker.timer = None;
            worker.step(WorkerInput::Tick, ctx);
        }));
        self.timer = Some((at, handle));
    }

    fn drain(&mut self, within: Span, drained: oneshot::Sender<()>, ctx: &mut Context<WorkerActor>) {
        self.drained.push(drained);
        let limit = self.parts.clock.sleep(within);
        ctx.spawn(
            limit
                .into_actor(self)
                .map(|(), worker, ctx| worker.step(WorkerInput::DrainExpired, ctx)),
        );
        self.step(WorkerInput::Drain, ctx);
    }
}

impl Actor for WorkerActor {
    type Context = Context<WorkerActor>;

    fn started(&mut self, ctx: &mut Context<WorkerActor>) {
        ctx.set_mailbox_capacity(limits::MAILBOX_MAX);
        let worker = ctx.address();
        let link: WorkerLink = Arc::new(move |input| worker.try_send(ToWorker::Input(input)).is_ok());
        self.parts.ways.join(&self.parts.id, &link, &ctx.address());
        self.link = Some(link);
        let ended = self.ended.groups();
        WorkerActor::add_stream(ended, ctx);
        self.step(WorkerInput::Tick, ctx);
    }
}

impl StreamHandler<Ends> for WorkerActor {
    fn handle(&mut self, Ends(items): Ends, ctx: &mut Context<WorkerActor>) {
        for (id, token, _) in &items {
            self.running.remove(&(*id, *token));
        }
        self.step(WorkerInput::AttemptsFinished { items }, ctx);
    }
}

impl Handler<ToWorker> for WorkerActor {
    type Result = ();

    fn handle(&mut self, message: ToWorker, ctx: &mut Context<WorkerActor>) {
        match message {
            ToWorker::Input(input) => {
                if let WorkerInput::Granted { grants, .. } = &input {
                    self.compare_lease(grants);
                }
                self.step(input, ctx);
            }
            ToWorker::Drain(within, drained) => self.drain(within, drained, ctx),
            ToWorker::Stop => ctx.stop(),
        }
    }
}

fn attempt_context(grant: &Grant) -> AttemptContext {
    let job = &grant.job;
    AttemptContext {
        job: job.id,
        tenant: job.spec.tenant.clone(),
        queue: job.spec.queue.clone(),
        schedule: schedule_of(job),
        token: grant.token,
        attempt: grant.attempt,
        scheduled_for: scheduled_for(job),
        timeout: job.spec.timeout,
        target: job.spec.target.clone(),
        payload: job.spec.payload.clone(),
    }
}

fn schedule_of(job: &Job) -> Option<fencepost_core::name::Name> {
    match &job.origin {
        Origin::Occurrence { schedule, .. } => Some(schedule.clone()),
        Origin::Request { .. } => None,
    }
}

fn scheduled_for(job: &Job) -> StoreTime {
    match &job.origin {
        Origin::Occurrence { nominal, .. } => *nominal,
        Origin::Request { .. } => job.due_at,
    }
}
