//! The board of a cell, kept in memory by the node that has its store.
//!
//! Owns: answering posts, late where nothing is new. Must never: write anything; what is lost with this
//! process is said again by those who are there. Next: `message.rs`, `fencepost_core::coordinator::board`.

use crate::clock::SharedClock;
use crate::cluster::member::BoardLink;
use crate::cluster::message::{BoardAnswer, BoardCall, MESSAGE_OLDEST, MESSAGE_VERSION};
use crate::mesh::body::Body;
use crate::mesh::envelope::BOARD;
use crate::mesh::peer::Peer;
use crate::mesh::{NodeFacts, Roles, Service};
use crate::shell::fetch::SharedStore;
use fencepost_core::coordinator::board::{Board, Posted, Session};
use fencepost_core::ids::Scope;
use fencepost_core::limits::{BOARD_ANSWER_MS, BOARD_NODES_MAX, BOARD_POST_MS, SHARD_LEASE_MARGIN_MS};
use fencepost_core::name::Name;
use fencepost_core::time::{Monotonic, Span};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Either, ready, select};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The board of another node, over a connection.
pub fn board_over(peer: Peer) -> BoardLink {
    Arc::new(move |call: BoardCall| {
        let wait = match &call {
            BoardCall::Post { wait_ms, .. } => Span::from_millis(u64::from(*wait_ms)),
            BoardCall::Leave { .. } | BoardCall::Time { .. } => Span::ZERO,
        };
        let body = Body::of(|protocol| form_of(&call, protocol));
        if peer.protocol().is_none() && matches!(call, BoardCall::Time { .. }) {
            // Asked for the time that it is, not for that of a connection to come.
            return ready(Err("there is no connection to the board".to_owned())).boxed();
        }
        let called = peer.call(BOARD, body, wait + Span::from_millis(BOARD_ANSWER_MS));
        called
            .map(|answer| {
                let bytes = answer.map_err(|error| error.to_string())?;
                BoardAnswer::decode(&bytes).map_err(|error| error.to_string())
            })
            .boxed()
    })
}

/// As it is said over a connection of this protocol, if it can be.
fn form_of(call: &BoardCall, protocol: u16) -> Option<Vec<u8>> {
    match (protocol > 1, call) {
        (true, _) => Some(call.encode(MESSAGE_VERSION)),
        (false, BoardCall::Time { .. }) => None,
        (false, BoardCall::Post { .. } | BoardCall::Leave { .. }) => Some(call.encode(MESSAGE_OLDEST)),
    }
}

/// The board of a cell.
#[derive(Clone)]
pub struct BoardService {
    shared: Arc<Shared>,
}

struct Shared {
    board: Mutex<Board>,
    changed: Notify,
    clock: SharedClock,
    /// Asked for its time on behalf of nodes that have no way to it.
    store: Option<SharedStore>,
}

impl BoardService {
    /// Empty and young; sessions last for `length`.
    pub fn new(boot: u64, length: Span, clock: SharedClock) -> BoardService {
        BoardService::beside(boot, length, clock, None)
    }

    /// The same, beside a store whose time it states.
    pub fn beside(boot: u64, length: Span, clock: SharedClock, store: Option<SharedStore>) -> BoardService {
        // A tenth, as far as that is less.
        let margin = Span::from_millis(SHARD_LEASE_MARGIN_MS).min(Span((length.0 / 10).max(1)));
        let board = Board::new(boot, length, margin, clock.mono());
        BoardService {
            shared: Arc::new(Shared {
                board: Mutex::new(board),
                changed: Notify::new(),
                clock,
                store,
            }),
        }
    }

    /// Answers a call. What it says is on the board when this returns.
    pub fn answer(&self, call: BoardCall) -> BoxFuture<'static, BoardAnswer> {
        match call {
            BoardCall::Post { session, seen, wait_ms } => self.post(session, seen, wait_ms),
            BoardCall::Leave { node, boot } => {
                self.leave(&node, boot);
                ready(BoardAnswer::Left).boxed()
            }
            BoardCall::Time { .. } => self.time(),
        }
    }

    fn post(&self, session: Session, seen: u64, wait_ms: u32) -> BoxFuture<'static, BoardAnswer> {
        let (now, node, beat) = (self.shared.clock.mono(), session.node.clone(), session.beat);
        let mut board = self.shared.lock();
        let is_known = board.view(now).session(&node).is_some();
        if !is_known && board.view(now).sessions.len() >= BOARD_NODES_MAX {
            return ready(BoardAnswer::Old).boxed();
        }
        let before = board.number(now);
        let posted = board.post(now, session);
        let is_news = board.number(now) != before;
        drop(board);
        match posted {
            Posted::Old => return ready(BoardAnswer::Old).boxed(),
            Posted::NameTaken => return ready(BoardAnswer::NameTaken).boxed(),
            Posted::Taken => {}
        }
        if is_news {
            self.shared.changed.notify_waiters();
        }
        let wait = Span::from_millis(u64::from(wait_ms).min(BOARD_POST_MS));
        let (shared, until) = (self.shared.clone(), now + wait);
        async move { shared.wait_for_news((node, beat), seen, until).await }.boxed()
    }

    fn time(&self) -> BoxFuture<'static, BoardAnswer> {
        let Some(store) = &self.shared.store else {
            return ready(BoardAnswer::NotUnderstood).boxed();
        };
        let asked = store.now(Scope::Coordinator);
        async move {
            match asked.await {
                Ok(stated) => BoardAnswer::Stated(stated.time),
                Err(_) => BoardAnswer::NotUnderstood,
            }
        }
        .boxed()
    }

    fn leave(&self, node: &Name, boot: u64) {
        self.shared.lock().leave(node, boot);
        self.shared.changed.notify_waiters();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The board once its number is another than the one seen, or the node has posted again, or time is up.
    async fn wait_for_news(&self, (node, beat): (Name, u64), seen: u64, until: Monotonic) -> BoardAnswer {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            let now = self.clock.mono();
            let (view, wake_at) = {
                let mut board = self.lock();
                (board.view(now), board.next_wake(now))
            };
            let is_latest = view.session(&node).is_some_and(|session| session.beat == beat);
            if view.number != seen || !is_latest || now >= until {
                return BoardAnswer::Taken(view);
            }
            // A session that ends is news too, at the microsecond after its end.
            let wake_at = wake_at.map_or(until, |at| (at + Span(1)).min(until));
            match select(changed, self.clock.sleep(wake_at.since(now))).await {
                Either::Left(_) | Either::Right(_) => {}
            }
        }
    }
}

/// A node that only works may look, and be there; it owns nothing and decides nothing.
fn may_say(roles: Roles, call: &BoardCall) -> bool {
    let owns = Roles::SCHEDULER.with(Roles::GATEWAY).with(Roles::COORDINATOR);
    match call {
        BoardCall::Post { session, .. } => {
            let says_nothing = !session.takes && session.shards.is_empty() && session.coordinates.is_none();
            says_nothing || roles.has_any(owns)
        }
        BoardCall::Leave { .. } | BoardCall::Time { .. } => true,
    }
}

impl Service for BoardService {
    /// Whoever may own, decide or look.
    fn is_open_to(&self, roles: Roles) -> bool {
        let owners = Roles::SCHEDULER.with(Roles::COORDINATOR);
        roles.has_any(owners.with(Roles::GATEWAY).with(Roles::WORKER))
    }

    /// A node speaks for itself only.
    fn call(&self, from: &NodeFacts, body: &[u8]) -> BoxFuture<'static, Vec<u8>> {
        let version = BoardCall::version_of(body);
        let call = match BoardCall::decode(body) {
            Ok(call) => call,
            Err(_) => return ready(BoardAnswer::NotUnderstood.encode(version)).boxed(),
        };
        let (BoardCall::Post {
            session: Session { node, boot, .. },
            ..
        }
        | BoardCall::Leave { node, boot }
        | BoardCall::Time { node, boot }) = &call;
        if *node != from.node || *boot != from.boot || !may_say(from.roles, &call) {
            return ready(BoardAnswer::NotUnderstood.encode(version)).boxed();
        }
        self.answer(call).map(move |answer| answer.encode(version)).boxed()
    }

    fn tell(&self, _from: &NodeFacts, _back: &Peer, _body: &[u8]) {}
}
