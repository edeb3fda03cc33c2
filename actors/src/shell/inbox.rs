//! What waits for the store's time before a step: inputs, and rows that were read for one.
//!
//! Owns: their order, and reading for one beside the steps. Rows are looked up when the step is made, not when they
//! came: what was stepped meanwhile may have changed them (PROTOCOL F4). Must never: hand in what it has looked up
//! before it waited. Next: `open_shard.rs`, `gather.rs`.

use crate::shell::fates::Spans;
use crate::shell::gather::Gathering;
use crate::shell::requests::RequestsRead;
use crate::shell::shard_actor::ShardActor;
use crate::shell::sweep::Swept;
use crate::shell::window::Page;
use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};
use fencepost_core::shard::ShardInput;
use fencepost_storage::store::StoreError;

/// What a shard steps next, in its order.
pub(crate) enum Waiting {
    /// Needs no row.
    Input(ShardInput),
    /// An input and the rows that it needs, as far as they are there.
    Gathering(Box<Gathering>),
    /// A page for a window.
    Page(Box<Page>),
    /// Closed fate spans.
    Spans(Box<Spans>),
    /// A page of the sweep.
    Swept(Box<Swept>),
    /// A page of requests about schedules.
    Requests(Box<RequestsRead>),
}

impl Waiting {
    /// Renewals go on while there is no store time.
    pub(crate) fn is_heartbeat(&self) -> bool {
        match self {
            Waiting::Gathering(gathering) => gathering.needs.is_heartbeat(),
            Waiting::Input(_) | Waiting::Page(_) | Waiting::Spans(_) | Waiting::Swept(_) | Waiting::Requests(_) => {
                false
            }
        }
    }
}

impl ShardActor {
    /// Takes it up as soon as a fresh stated time is there.
    pub(crate) fn take_up_later(&mut self, waiting: Waiting, ctx: &mut Context<ShardActor>) {
        let Some(open) = self.open.as_mut() else { return };
        open.inbox.push_back(waiting);
        self.pump(ctx);
    }

    /// Reads beside the shard's steps; what was read is handed in if the shard lives the same life then.
    pub(crate) fn read_aside<T: 'static>(
        &mut self,
        reading: impl Future<Output = Result<T, StoreError>> + 'static,
        hand_in: impl FnOnce(&mut ShardActor, T, &mut Context<ShardActor>) + 'static,
        ctx: &mut Context<ShardActor>,
    ) {
        let life = self.life;
        ctx.spawn(reading.into_actor(self).map(move |read, shard, ctx| {
            if shard.life != life {
                return;
            }
            match read {
                Ok(read) => hand_in(shard, read, ctx),
                Err(error) => shard.on_store_error(error, ctx),
            }
        }));
    }

    /// Looks at the rows as they are now, and steps or reads on.
    pub(super) fn take_up(&mut self, waiting: Waiting, ctx: &mut Context<ShardActor>) {
        match waiting {
            Waiting::Input(input) => self.step_now(input, ctx),
            Waiting::Gathering(gathering) => self.go_on(*gathering, ctx),
            Waiting::Page(page) => self.on_page(*page, ctx),
            Waiting::Spans(spans) => self.on_fates(*spans, ctx),
            Waiting::Swept(swept) => self.on_swept(*swept, ctx),
            Waiting::Requests(read) => self.on_requests(*read, ctx),
        }
    }
}
