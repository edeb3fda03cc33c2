//! A node among others: posts on the board, follows the rows, and decides when it is the coordinator.
//!
//! Owns: carrying out the orders of its `Host` and its `Coordinator`. One loop steps both; every call goes out
//! on its own and comes back as a word. Must never: decide anything itself, or hold up a post for a
//! store that is slow. Next: `fencepost_core::coordinator`, `decider.rs`, `board.rs`.

use crate::chance::{SharedChance, draw_holder};
use crate::clock::SharedClock;
use crate::cluster::counted::{show_coordinator, show_host};
use crate::cluster::decider::{AssignedRows, Decided, Decider};
use crate::cluster::message::{BoardAnswer, BoardCall};
use crate::cluster::owners::Owners;
use crate::cluster::route::Router;
use crate::net::rt;
use crate::shell::messages::ToShard;
use crate::shell::shard_actor::{Ending, Fatal, ShardActor};
use actix::Addr;
use fencepost_core::coordinator::Coordinator;
use fencepost_core::coordinator::host::Host;
use fencepost_core::coordinator::host::io::{HostConfig, HostEffect, HostInput};
use fencepost_core::coordinator::io::{CoordinatorConfig, CoordinatorEffect, CoordinatorInput};
use fencepost_core::ids::{Epoch, Holder};
use fencepost_core::limits::{
    BALANCE_HOLD_MS, BOARD_POST_MS, HANDOVER_MS_MAX, MEMBER_WORDS_MAX, PLANNED_MOVES_MAX, PROGRESS_PROBE_MS,
    RELEASE_MS, SHARD_STALL_MS, YOUNG_DEATH_PAUSE_MS, YOUNG_DEATH_PAUSE_MS_MAX,
};
use fencepost_core::time::Span;
use fencepost_storage::store::{OpenError, StoreError};
use futures_util::future::{BoxFuture, Either, select};
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// The way to the board; an error is for people.
pub type BoardLink = Arc<dyn Fn(BoardCall) -> BoxFuture<'static, Result<BoardAnswer, String>> + Send + Sync>;

const RELEASE_MAX: Span = Span::from_millis(RELEASE_MS);
const PROBE_MAX: Span = Span::from_millis(PROGRESS_PROBE_MS);

/// What a member works with.
pub struct MemberParts {
    /// This start of the node.
    pub boot: u64,
    /// Where other nodes reach it; empty if they do not.
    pub address: Arc<str>,
    /// The way to the board.
    pub board: BoardLink,
    /// The coordinator's calls, and the node's name and map.
    pub decider: Decider,
    /// This node's clocks.
    pub clock: SharedClock,
    /// This node's chance.
    pub chance: SharedChance,
    /// Every shard's actor, by number.
    pub shards: Vec<Addr<ShardActor>>,
    /// Filled in for the gateway.
    pub owners: Arc<Owners>,
    /// The way to them.
    pub router: Arc<Router>,
    /// Ends the process.
    pub fatal: Fatal,
}

/// A running member; it ends when this is dropped.
pub struct Member {
    tell: mpsc::Sender<Word>,
    _here: oneshot::Sender<()>,
}

enum Word {
    Answered(u64, Result<BoardAnswer, String>),
    Rows(Result<AssignedRows, StoreError>),
    Opened(Holder, Result<Epoch, OpenError>),
    CoordinatorRows(Epoch, Result<AssignedRows, StoreError>),
    Decided(Epoch, u64, Decided),
    Closed(u16),
    Stepped(u16),
    Drain(oneshot::Sender<()>),
    GiveUp,
}

struct Running {
    parts: MemberParts,
    host: Host,
    coordinator: Coordinator,
    /// Of the coordinator's scope, as opened last.
    holder: Holder,
    tell: mpsc::Sender<Word>,
    progress: u64,
    drained: Option<oneshot::Sender<()>>,
    /// Others may take shards.
    has_others: bool,
    /// The board was told that this node is gone.
    has_left: bool,
    /// The board has taken a post of this process.
    was_there: bool,
    refusal: Option<String>,
}

impl Member {
    /// Starts it on the current runtime.
    pub fn start(parts: MemberParts) -> Member {
        let (tell, words) = mpsc::channel(MEMBER_WORDS_MAX);
        let (here, gone) = oneshot::channel();
        let running = Running {
            host: Host::new(host_config(&parts)),
            coordinator: Coordinator::new(coordinator_config(&parts)),
            parts,
            holder: Holder(0),
            tell: tell.clone(),
            progress: 0,
            drained: None,
            has_others: false,
            has_left: false,
            was_there: false,
            refusal: None,
        };
        rt::spawn(running.run(words, gone));
        Member { tell, _here: here }
    }

    /// Gives every shard away; what nobody has taken after `limit` is closed all the same. Then the node
    /// leaves the board.
    pub async fn leave(&self, clock: &SharedClock, limit: Span) {
        let (tell, mut drained) = oneshot::channel();
        if self.tell.send(Word::Drain(tell)).await.is_err() {
            return;
        }
        if let Either::Right(_) = select(&mut drained, clock.sleep(limit)).await {
            let _ = self.tell.send(Word::GiveUp).await;
            select(drained, clock.sleep(RELEASE_MAX + RELEASE_MAX)).await;
        }
    }
}

fn host_config(parts: &MemberParts) -> HostConfig {
    HostConfig {
        node: parts.decider.node.clone(),
        boot: parts.boot,
        shards: parts.decider.map.count(),
        address: parts.address.clone(),
        interval: Span::from_millis(BOARD_POST_MS),
        handover_max: Span::from_millis(HANDOVER_MS_MAX),
    }
}

fn coordinator_config(parts: &MemberParts) -> CoordinatorConfig {
    CoordinatorConfig {
        boot: parts.boot,
        shards: parts.decider.map,
        hold: Span::from_millis(BALANCE_HOLD_MS),
        moves_max: PLANNED_MOVES_MAX,
        stall_max: Span::from_millis(SHARD_STALL_MS),
        young_pause: Span::from_millis(YOUNG_DEATH_PAUSE_MS),
        young_pause_max: Span::from_millis(YOUNG_DEATH_PAUSE_MS_MAX),
    }
}

impl Running {
    async fn run(mut self, mut words: mpsc::Receiver<Word>, mut gone: oneshot::Receiver<()>) {
        self.step_host(HostInput::Tick);
        loop {
            let now = self.parts.clock.mono();
            let wait = self.host.next_wake(now).since(now);
            let hearing = pin!(words.recv());
            let next = select(hearing, self.parts.clock.sleep(wait));
            let word = match select(&mut gone, next).await {
                Either::Left(_) => return,
                Either::Right((Either::Left((word, _)), _)) => word,
                Either::Right((Either::Right(_), _)) => None,
            };
            match word {
                Some(word) => self.hear(word),
                None => self.step_host(HostInput::Tick),
            }
        }
    }

    fn hear(&mut self, word: Word) {
        match word {
            Word::Answered(beat, answer) => self.on_answer(beat, answer),
            Word::Rows(Ok(rows)) => {
                self.parts.owners.learn_rows(&rows.rows);
                self.step_host(HostInput::RowsRead(rows.rows));
                if !rows.unreadable.is_empty() {
                    self.step_coordinator(CoordinatorInput::Unreadable(rows.unreadable));
                }
            }
            Word::Rows(Err(StoreError::Broken(why))) | Word::CoordinatorRows(_, Err(StoreError::Broken(why))) => {
                (self.parts.fatal)(Ending::StoreBroke(why))
            }
            Word::Rows(Err(_)) => self.step_host(HostInput::RowsNotRead),
            Word::Opened(holder, Ok(epoch)) => {
                self.holder = holder;
                self.step_coordinator(CoordinatorInput::Opened(epoch));
            }
            Word::Opened(_, Err(_)) => self.step_coordinator(CoordinatorInput::NotOpened),
            Word::CoordinatorRows(epoch, Ok(AssignedRows { rows, unreadable })) => {
                self.step_coordinator(CoordinatorInput::RowsRead {
                    epoch,
                    rows,
                    unreadable,
                });
            }
            Word::CoordinatorRows(epoch, Err(_)) => self.step_coordinator(CoordinatorInput::Refused { epoch }),
            Word::Decided(epoch, number, Decided::Yes) => {
                self.step_coordinator(CoordinatorInput::Committed { epoch, number });
            }
            Word::Decided(epoch, _, Decided::No(why)) => {
                tracing::info!(epoch = epoch.0, why, "no longer the coordinator");
                self.step_coordinator(CoordinatorInput::Refused { epoch });
            }
            Word::Closed(shard) => self.step_host(HostInput::Closed { shard }),
            Word::Stepped(shard) => {
                self.progress += 1;
                let progress = self.progress;
                self.step_host(HostInput::Progressed { shard, progress });
            }
            Word::Drain(drained) => {
                self.drained = Some(drained);
                self.step_host(HostInput::Drain);
                if !self.has_others {
                    self.step_host(HostInput::GiveUp);
                }
            }
            Word::GiveUp => self.step_host(HostInput::GiveUp),
        }
    }

    fn on_answer(&mut self, beat: u64, answer: Result<BoardAnswer, String>) {
        let why = match answer {
            Ok(BoardAnswer::Taken(view)) => {
                (self.refusal, self.was_there) = (None, true);
                let here = &self.parts.decider.node;
                self.has_others = view.sessions.iter().any(|other| other.takes && other.node != *here);
                self.parts.owners.learn_view(&view);
                let is_there =
                    |address: &str| view.is_young || view.sessions.iter().any(|session| *session.address == *address);
                self.parts.router.keep(is_there);
                self.step_coordinator(CoordinatorInput::Viewed(view.clone()));
                self.probe();
                return self.step_host(HostInput::Answered { beat, view });
            }
            // The rows name both, so each would open what the other one holds, and take its attempts for dead.
            Ok(BoardAnswer::NameTaken) if self.was_there && !self.has_left => {
                return (self.parts.fatal)(Ending::NameTaken);
            }
            Ok(
                refused @ (BoardAnswer::NameTaken
                | BoardAnswer::Old
                | BoardAnswer::Left
                | BoardAnswer::Stated(_)
                | BoardAnswer::NotUnderstood),
            ) => refused.why_not(),
            Err(why) => why,
        };
        if self.refusal.as_ref() != Some(&why) {
            tracing::warn!(why, "not on the board of the cell");
            self.refusal = Some(why);
        }
        self.step_host(HostInput::NotTaken { beat });
    }

    fn step_host(&mut self, input: HostInput) {
        let mut effects = Vec::new();
        self.host.step(self.parts.clock.mono(), input, &mut effects);
        if cfg!(debug_assertions) {
            self.host.check();
        }
        show_host(&self.host.counts());
        for effect in effects {
            self.order_host(effect);
        }
    }

    fn step_coordinator(&mut self, input: CoordinatorInput) {
        let (mut effects, before) = (Vec::new(), self.coordinator.coordinates());
        self.coordinator.step(self.parts.clock.mono(), input, &mut effects);
        if cfg!(debug_assertions) {
            self.coordinator.check();
        }
        show_coordinator(&self.coordinator.counts());
        for effect in effects {
            self.order_coordinator(effect);
        }
        let after = self.coordinator.coordinates();
        if before != after {
            self.step_host(HostInput::Coordinates(after));
        }
    }

    fn order_host(&mut self, effect: HostEffect) {
        match effect {
            HostEffect::Post { .. } if self.has_left => {}
            HostEffect::Post { session, seen, wait } => {
                let wait_ms = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
                let beat = session.beat;
                let answered = (self.parts.board)(BoardCall::Post { session, seen, wait_ms });
                self.call(async move { Word::Answered(beat, answered.await) });
            }
            HostEffect::ReadRows => {
                let decider = self.parts.decider.clone();
                self.call(async move { Word::Rows(decider.rows().await) });
            }
            HostEffect::Open { shard, version } => {
                tracing::info!(shard, version, "this node owns the shard");
                self.send(shard, ToShard::Host(true));
            }
            HostEffect::Release { shard } => self.release(shard),
            HostEffect::Fence { shard } => {
                tracing::warn!(shard, "the lease of the shard is over; asking the store");
                self.send(shard, ToShard::Prove);
            }
            HostEffect::Unfence { shard } => tracing::info!(shard, "the lease of the shard holds again"),
            HostEffect::Drained => self.on_drained(),
        }
    }

    fn on_drained(&mut self) {
        let Some(drained) = self.drained.take() else { return };
        self.has_left = true;
        let node = self.parts.decider.node.clone();
        let left = (self.parts.board)(BoardCall::Leave {
            node,
            boot: self.parts.boot,
        });
        rt::spawn(async move {
            let _ = left.await;
            let _ = drained.send(());
        });
    }

    fn order_coordinator(&mut self, effect: CoordinatorEffect) {
        let decider = self.parts.decider.clone();
        match effect {
            CoordinatorEffect::Open => {
                let holder = draw_holder(&*self.parts.chance);
                self.call(async move { Word::Opened(holder, decider.open(holder).await) });
            }
            CoordinatorEffect::ReadRows { epoch } => {
                tracing::info!(epoch = epoch.0, "coordinates the cell");
                self.call(async move { Word::CoordinatorRows(epoch, decider.rows().await) });
            }
            CoordinatorEffect::Commit { epoch, number, rows } => {
                for (shard, row) in &rows {
                    tracing::info!(shard, node = %row.node, version = row.version, "assigns");
                }
                let by = (self.holder, epoch);
                self.call(async move { Word::Decided(epoch, number, decider.commit(by, number, rows).await) });
            }
            // The number of durable batches changes with it, and is posted.
            CoordinatorEffect::Announce => {}
        }
    }

    /// Carries out a call, and comes back with what became of it.
    fn call(&self, call: impl Future<Output = Word> + Send + 'static) {
        let tell = self.tell.clone();
        rt::spawn(async move {
            let word = call.await;
            let _ = tell.send(word).await;
        });
    }

    fn send(&self, shard: u16, message: ToShard) {
        let Some(shard) = self.parts.shards.get(usize::from(shard)).cloned() else {
            return;
        };
        rt::spawn(async move {
            let _ = shard.send(message).await;
        });
    }

    /// What is in flight becomes durable, or is settled by the next owner: its callers are told that they do
    /// not know.
    fn release(&self, number: u16) {
        let Some(shard) = self.parts.shards.get(usize::from(number)).cloned() else {
            return;
        };
        tracing::info!(shard = number, "releases the shard");
        let limit = self.parts.clock.sleep(RELEASE_MAX);
        self.call(async move {
            let (tell, settled) = oneshot::channel();
            let _ = shard.send(ToShard::Drain).await;
            if shard.send(ToShard::Settled(tell)).await.is_ok() {
                select(settled, limit).await;
            }
            let _ = shard.send(ToShard::Host(false)).await;
            Word::Closed(number)
        });
    }

    /// Asks the shards that are held whether they step.
    fn probe(&self) {
        for number in self.host.held() {
            let Some(shard) = self.parts.shards.get(usize::from(number)) else {
                continue;
            };
            let (answer, answered) = oneshot::channel();
            // One that cannot even be asked is no progress.
            if shard.try_send(ToShard::Probe(answer)).is_err() {
                continue;
            }
            let (limit, tell) = (self.parts.clock.sleep(PROBE_MAX), self.tell.clone());
            rt::spawn(async move {
                let Either::Left((Ok(probe), _)) = select(answered, limit).await else {
                    return;
                };
                if probe.open || probe.away {
                    let _ = tell.send(Word::Stepped(number)).await;
                }
            });
        }
    }
}
