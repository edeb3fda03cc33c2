//! The actor of one shard: opens it, steps its machines, commits, releases, reloads.
//!
//! Owns: the life of a shard on this node. Must never: decide what a machine decides, release an
//! effect before its batch is durable, or repair after a failed commit (it reloads instead). Next:
//! `open_shard.rs` (one epoch), `gather.rs` (cold rows), `release.rs` (effects).

use crate::chance::{SharedChance, draw_holder};
use crate::clock::SharedClock;
use crate::gateway::{ScheduleRequest, ShardRequest};
use crate::node::level::CellLevel;
use crate::node::notes::Notes;
use crate::node::trust::ClockWatch;
use crate::shell::fetch::SharedStore;
use crate::shell::load::{Loaded, OpenPlan, open_and_load};
use crate::shell::messages::{Answering, FromWorker, ShardProbe, ToShard, WorkerLink, outcome_unknown, shard_away};
use crate::shell::open_shard::OpenShard;
use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, SpawnHandle, WrapFuture};
use fencepost_core::ids::WorkerId;
use fencepost_core::limits;
use fencepost_core::limits::{REOPEN_CAP_MS, REOPEN_FIRST_MS};
use fencepost_core::machine::ReplyTo;
use fencepost_core::refusal::Refusal;
use fencepost_core::scheduler_shard::io::ScheduleInput;
use fencepost_core::shard::ShardInput;
use fencepost_core::time::{Monotonic, Span};
use fencepost_storage::store::{OpenError, StoreError};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Called once when this process must end.
pub type Fatal = Arc<dyn Fn(Ending) + Send + Sync>;

/// Why this process must end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ending {
    /// The store is broken, for this reason.
    #[error("the store is broken: {0}")]
    StoreBroke(String),
    /// Another process has taken the place of this one under its name while it was silent.
    #[error("another process took this node's name while it was silent")]
    NameTaken,
}

/// What a shard's actor works with.
#[derive(Clone)]
pub struct ShardParts {
    /// The store.
    pub store: SharedStore,
    /// This node's clocks.
    pub clock: SharedClock,
    /// This node's chance.
    pub chance: SharedChance,
    /// Ends the process.
    pub fatal: Fatal,
    /// Logs, metrics, waiting clients.
    pub notes: Arc<dyn Notes>,
    /// Which shard, whose.
    pub plan: OpenPlan,
    /// Length of an attempt's lease.
    pub lease: Span,
    /// Interval of heartbeats.
    pub heartbeat: Span,
    /// How long idempotency keys are kept after the end of their jobs.
    pub key_kept: Span,
    /// The cell's level, as last seen.
    pub level: Arc<CellLevel>,
    /// What is known of this node's clock: without trust nothing is granted.
    pub trust: Arc<ClockWatch>,
    /// One trial of a schedule at a time on this node (F9).
    pub trial_turn: Arc<Semaphore>,
    /// Opens when started, and no other node ever owns it; else it opens once it is told to.
    pub hosted: bool,
}

/// The actor of one shard.
pub struct ShardActor {
    pub(crate) parts: ShardParts,
    /// Counts openings: what was begun in an earlier life is ignored.
    pub(crate) life: u64,
    pub(crate) open: Option<Box<OpenShard>>,
    pub(crate) links: BTreeMap<WorkerId, WorkerLink>,
    /// Offers that came while the shard was not open yet, the last of each worker.
    pub(crate) early: BTreeMap<WorkerId, (Monotonic, FromWorker)>,
    pub(crate) replies: BTreeMap<ReplyTo, Answering>,
    next_reply: u64,
    pub(crate) timer: Option<(Monotonic, SpawnHandle)>,
    pub(crate) draining: bool,
    /// This node is to own the shard.
    pub(crate) hosted: bool,
    /// An owner's mark of this process may stand, and no open machine speaks for it (F9).
    pub(crate) is_marked: bool,
    /// That mark is being taken back.
    pub(crate) is_leaving: bool,
    pub(crate) settling: Vec<oneshot::Sender<()>>,
    /// Grows with each reload until a batch is durable: what fails at each load must not spin.
    pub(crate) reopen_delay: Span,
    /// Why it is kept shut, for probes.
    pub(crate) refused: Option<&'static str>,
    /// For as long as this process lives.
    pub(crate) stays_shut: bool,
    /// Held while a trial is made.
    pub(crate) trial: Option<OwnedSemaphorePermit>,
    /// Schedules in quarantine, as last told.
    pub(crate) quarantined: u64,
}

pub(crate) const REOPEN_FIRST: Span = Span::from_millis(REOPEN_FIRST_MS);
pub(crate) const REOPEN_CAP: Span = Span::from_millis(REOPEN_CAP_MS);
/// Its worker has asked elsewhere by then.
const EARLY_MAX: Span = Span::from_millis(2 * limits::OFFER_REPEAT_MS);

impl ShardActor {
    /// Not open yet; opens when started.
    pub fn new(parts: ShardParts) -> ShardActor {
        ShardActor {
            hosted: parts.hosted,
            parts,
            life: 0,
            open: None,
            links: BTreeMap::new(),
            early: BTreeMap::new(),
            replies: BTreeMap::new(),
            next_reply: 0,
            timer: None,
            draining: false,
            is_marked: false,
            is_leaving: false,
            settling: Vec::new(),
            reopen_delay: REOPEN_FIRST,
            refused: None,
            stays_shut: false,
            trial: None,
            quarantined: 0,
        }
    }

    /// Waits for nothing: starts to own the shard.
    pub(crate) fn begin_open(&mut self, ctx: &mut Context<ShardActor>) {
        if self.draining || !self.hosted {
            return;
        }
        self.life += 1;
        let life = self.life;
        let holder = draw_holder(&*self.parts.chance);
        let opening = open_and_load(self.parts.store.clone(), self.parts.plan.clone(), holder);
        ctx.spawn(opening.into_actor(self).map(move |result, shard, ctx| {
            if shard.life == life {
                shard.on_loaded(result, ctx);
            }
        }));
    }

    fn on_loaded(&mut self, result: Result<Loaded, OpenError>, ctx: &mut Context<ShardActor>) {
        match result {
            Ok(loaded) => {
                self.parts.level.learn(loaded.level);
                self.mark_owner(loaded, ctx);
            }
            Err(OpenError::Store(StoreError::Broken(reason))) => (self.parts.fatal)(Ending::StoreBroke(reason)),
            Err(error) => {
                tracing::warn!(shard = self.parts.plan.shard.0, %error, "shard not opened, trying again");
                self.reopen_later(ctx);
            }
        }
    }

    /// Drops everything of this epoch: callers are told "unknown", and the shard is opened anew, unless it is
    /// to stay shut.
    pub(crate) fn close(&mut self, reason: &str, ctx: &mut Context<ShardActor>) {
        self.close_telling(reason, outcome_unknown, ctx);
    }

    /// As `close`, where what became of the callers' requests is known.
    pub(crate) fn close_telling(&mut self, reason: &str, told: fn() -> Refusal, ctx: &mut Context<ShardActor>) {
        tracing::warn!(shard = self.parts.plan.shard.0, reason, "shard closed");
        self.forget_epoch(told, ctx);
        self.reopen_later(ctx);
    }

    /// Nothing of this epoch is left; callers are told.
    pub(crate) fn forget_epoch(&mut self, told: fn() -> Refusal, ctx: &mut Context<ShardActor>) {
        self.open = None;
        self.trial = None;
        self.life += 1;
        if let Some((_, handle)) = self.timer.take() {
            ctx.cancel_future(handle);
        }
        for (_, answering) in std::mem::take(&mut self.replies) {
            let _ = answering.send(Err(told()));
        }
        self.settling.clear();
    }

    pub(crate) fn reopen_later(&mut self, ctx: &mut Context<ShardActor>) {
        if self.stays_shut {
            return;
        }
        let life = self.life;
        let delay = self.reopen_delay;
        self.reopen_delay = Span((delay.0 * 2).min(REOPEN_CAP.0));
        let wait = self.parts.clock.sleep(delay);
        ctx.spawn(wait.into_actor(self).map(move |(), shard, ctx| {
            if shard.life == life {
                shard.begin_open(ctx);
            }
        }));
    }

    /// A number for a waiting caller.
    pub(crate) fn expect_reply(&mut self, answering: Answering) -> ReplyTo {
        self.next_reply += 1;
        let reply = ReplyTo(self.next_reply);
        self.replies.insert(reply, answering);
        reply
    }

    fn on_client(&mut self, request: ShardRequest, answering: Answering, ctx: &mut Context<ShardActor>) {
        let Some(open) = self.open.as_ref().filter(|open| !open.is_away) else {
            let _ = answering.send(Err(shard_away()));
            return;
        };
        let creates = makes_work(&request);
        let is_behind =
            open.log.backlog() > 8 * limits::BATCH_WRITES_MAX || open.log.backlog_bytes() > 8 * limits::BATCH_BYTES_MAX;
        if creates && (is_behind || self.draining) {
            let _ = answering.send(Err(shard_away()));
            return;
        }
        if creates && self.parts.store.is_full() {
            let _ = answering.send(Err(fencepost_core::refusal::storage_full()));
            return;
        }
        self.gather_client(request, answering, ctx);
    }

    pub(crate) fn on_worker(&mut self, worker: WorkerId, message: FromWorker, ctx: &mut Context<ShardActor>) {
        if !self.hosted {
            return self.keep_offer(worker, message);
        }
        match (&message, self.open.is_some()) {
            (FromWorker::Offer { .. }, _) if self.draining => {}
            (FromWorker::Offer { .. }, false) => self.keep_early(worker, message),
            (_, false) => {}
            _ if !self.is_taken_while_away(&message) => {}
            (_, true) => self.gather_worker(worker, message, ctx),
        }
    }

    /// Takes up the offers that came before the shard was open: their workers would repeat them only
    /// after a while. The time they lay here makes their leases end early at the worker, which is safe.
    pub(crate) fn take_early_offers(&mut self, ctx: &mut Context<ShardActor>) {
        let now = self.parts.clock.mono();
        for (worker, (came_at, offer)) in std::mem::take(&mut self.early) {
            if now.since(came_at) < EARLY_MAX {
                self.on_worker(worker, offer, ctx);
            }
        }
    }

    pub(crate) fn keep_early(&mut self, worker: WorkerId, offer: FromWorker) {
        self.early.insert(worker, (self.parts.clock.mono(), offer));
    }

    fn probe(&self) -> ShardProbe {
        let refused = self.refused;
        let shut = ShardProbe {
            refused,
            ..ShardProbe::default()
        };
        self.open.as_ref().map_or(shut, |open| ShardProbe {
            open: open.is_audited && !open.machine.scheduler().is_trying(),
            away: open.is_away,
            refused,
            schedules: open.machine.scheduler().len() as u64,
        })
    }

    /// Told to stop: the machine decides what its mark says then; without one it is taken back.
    fn on_drain(&mut self, ctx: &mut Context<ShardActor>) {
        if std::mem::replace(&mut self.draining, true) {
            return;
        }
        match self.open.is_some() {
            true => self.step(ShardInput::Schedule(ScheduleInput::Leaving), ctx),
            false => self.take_back_mark(ctx),
        }
    }

    /// Tells those who wait for it that nothing is stamped and not durable, and no input waits.
    pub(crate) fn settle(&mut self) {
        let is_idle = self.open.as_ref().is_none_or(|open| open.is_idle());
        if is_idle && !self.is_leaving {
            for settled in self.settling.drain(..) {
                let _ = settled.send(());
            }
        }
    }
}

/// Whether a request adds work; what stops or ends work needs no room.
fn makes_work(request: &ShardRequest) -> bool {
    match request {
        ShardRequest::CreateJobs(_) => true,
        ShardRequest::Schedule(_, asked) => !matches!(asked, ScheduleRequest::Pause | ScheduleRequest::Delete),
        ShardRequest::CancelJob(_) | ShardRequest::RetryDead(_) | ShardRequest::SettleUncertain(..) => false,
    }
}

impl Actor for ShardActor {
    type Context = Context<ShardActor>;

    fn started(&mut self, ctx: &mut Context<ShardActor>) {
        ctx.set_mailbox_capacity(limits::MAILBOX_MAX);
        self.begin_open(ctx);
    }
}

impl Handler<ToShard> for ShardActor {
    type Result = ();

    fn handle(&mut self, message: ToShard, ctx: &mut Context<ShardActor>) {
        match message {
            ToShard::Client(request, answering) => self.on_client(*request, answering, ctx),
            ToShard::WorkerHere(worker, link) => self.on_worker_here(worker, link),
            ToShard::WorkerGone(worker) => self.on_worker_gone(worker, ctx),
            ToShard::Worker(worker, link, message) => self.on_worker_said(worker, link, message, ctx),
            ToShard::WorkerUnreached(worker, link) => self.on_worker_unreached(worker, &link, ctx),
            ToShard::Probe(answer) => {
                let _ = answer.send(self.probe());
            }
            ToShard::Drain => self.on_drain(ctx),
            ToShard::Settled(answer) => {
                self.settling.push(answer);
                self.settle();
            }
            ToShard::Host(hosted) => self.on_host(hosted, ctx),
            ToShard::Prove => self.on_prove(ctx),
            ToShard::Stop => ctx.stop(),
        }
    }
}
