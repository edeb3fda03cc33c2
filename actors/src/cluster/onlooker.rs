//! A node that owns nothing: it says on the board that it is there, and reads there who owns what.
//!
//! Owns: its session, so that no other process takes its name, and the table of owners filled in from what the
//! owners say of themselves: it needs nothing of the store. Must never: take a shard or decide. A board that
//! does not answer changes nothing. Next: `member.rs` (a node that owns), `owners.rs`.

use crate::clock::SharedClock;
use crate::cluster::member::BoardLink;
use crate::cluster::message::{BoardAnswer, BoardCall};
use crate::cluster::owners::Owners;
use crate::cluster::route::Router;
use crate::net::rt;
use crate::node::trust::ClockWatch;
use crate::shell::shard_actor::{Ending, Fatal};
use fencepost_core::coordinator::board::{BoardView, Session};
use fencepost_core::ids::ShardMap;
use fencepost_core::level;
use fencepost_core::limits::{BOARD_POST_MS, BOARD_POSTS_PER_SESSION};
use fencepost_core::name::Name;
use fencepost_core::time::Span;
use futures_util::future::{Either, select};
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::{oneshot, watch};

/// What an onlooker works with.
pub struct OnlookerParts {
    /// Its name.
    pub node: Name,
    /// This start of it.
    pub boot: u64,
    /// The way to the board.
    pub board: BoardLink,
    /// This node's clocks.
    pub clock: SharedClock,
    /// Filled in.
    pub owners: Arc<Owners>,
    /// The way to owners.
    pub router: Arc<Router>,
    /// What is known of this node's clock; the board states the store's time.
    pub trust: Arc<ClockWatch>,
    /// Ends the process.
    pub fatal: Fatal,
}

/// A running onlooker; it ends when this is dropped.
pub struct Onlooker {
    node: Name,
    boot: u64,
    board: BoardLink,
    _here: oneshot::Sender<()>,
}

struct Running {
    parts: OnlookerParts,
    beat: u64,
    seen: u64,
    interval: Span,
    was_there: bool,
    refusal: Option<String>,
    tell_map: watch::Sender<Option<ShardMap>>,
}

impl Onlooker {
    /// Starts it on the current runtime; the cell's shards are told once an owner has named them.
    pub fn start(parts: OnlookerParts) -> (Onlooker, watch::Receiver<Option<ShardMap>>) {
        let (here, gone) = oneshot::channel();
        let (tell_map, map) = watch::channel(None);
        let onlooker = Onlooker {
            node: parts.node.clone(),
            boot: parts.boot,
            board: parts.board.clone(),
            _here: here,
        };
        let running = Running {
            parts,
            beat: 0,
            seen: 0,
            interval: Span::from_millis(BOARD_POST_MS),
            was_there: false,
            refusal: None,
            tell_map,
        };
        rt::spawn(running.run(gone));
        (onlooker, map)
    }

    /// Takes its session off the board.
    pub async fn leave(self) {
        let (node, boot) = (self.node.clone(), self.boot);
        let board = self.board.clone();
        // No post may follow.
        drop(self);
        let _ = board(BoardCall::Leave { node, boot }).await;
    }
}

impl Running {
    async fn run(mut self, mut gone: oneshot::Receiver<()>) {
        loop {
            if let Either::Left(_) = select(&mut gone, Box::pin(self.measure())).await {
                return;
            }
            let post = self.post();
            let posted = pin!((self.parts.board)(post));
            let answer = match select(&mut gone, posted).await {
                Either::Left(_) => return,
                Either::Right((answer, _)) => answer,
            };
            if self.on_answer(answer) {
                continue;
            }
            let pause = pin!(self.parts.clock.sleep(self.interval));
            if let Either::Left(_) = select(&mut gone, pause).await {
                return;
            }
        }
    }

    /// What a board of the version before does not state cannot be judged: then nothing is held back.
    async fn measure(&self) {
        let trust = &self.parts.trust;
        let asked = trust.reading();
        let (node, boot) = (self.parts.node.clone(), self.parts.boot);
        match (self.parts.board)(BoardCall::Time { node, boot }).await {
            Ok(BoardAnswer::Stated(time)) => {
                trust.enforce();
                trust.measure(asked, trust.reading(), time);
            }
            Ok(_) | Err(_) => trust.judge(),
        }
    }

    fn post(&mut self) -> BoardCall {
        self.beat += 1;
        BoardCall::Post {
            session: Session {
                node: self.parts.node.clone(),
                boot: self.parts.boot,
                beat: self.beat,
                takes: false,
                coordinates: None,
                decided: 0,
                shards: Vec::new(),
                address: "".into(),
                level: level::known(),
            },
            seen: self.seen,
            wait_ms: u32::try_from(self.interval.as_millis()).unwrap_or(u32::MAX),
        }
    }

    /// Whether the post was taken.
    fn on_answer(&mut self, answer: Result<BoardAnswer, String>) -> bool {
        let why = match answer {
            Ok(BoardAnswer::Taken(view)) => {
                self.on_view(&view);
                return true;
            }
            Ok(BoardAnswer::NameTaken) if self.was_there => {
                (self.parts.fatal)(Ending::NameTaken);
                return false;
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
        false
    }

    fn on_view(&mut self, view: &BoardView) {
        (self.refusal, self.was_there) = (None, true);
        self.seen = view.number;
        self.interval = Span::from_millis(BOARD_POST_MS).min(Span((view.length.0 / BOARD_POSTS_PER_SESSION).max(1)));
        self.parts.owners.learn_board(view);
        let is_there =
            |address: &str| view.is_young || view.sessions.iter().any(|session| *session.address == *address);
        self.parts.router.keep(is_there);
        let shards = view.sessions.iter().map(|session| session.shards.len()).max();
        let map = shards
            .and_then(|count| u16::try_from(count).ok())
            .and_then(ShardMap::new);
        if map.is_some() && self.tell_map.borrow().is_none() {
            let _ = self.tell_map.send(map);
        }
    }
}
