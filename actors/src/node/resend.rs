//! A creation whose end its shard does not know is sent again, under the same ids (PROTOCOL F26).
//!
//! Owns: for how long, and what is said of what the first sending had made. Must never: draw an id, or take a
//! refusal of a later sending for the end of the first. Next: `gateway.rs`, `../shell/needs.rs` (which looks
//! for the jobs of what was sent before).

use crate::clock::SharedClock;
use crate::gateway::{Answer, ShardReply, ShardRequest};
use crate::shell::messages::{ToShard, outcome_unknown, shard_away};
use crate::shell::shard_actor::ShardActor;
use actix::Addr;
use actix::prelude::SendError;
use fencepost_core::lease_manager::io::CreateItem;
use fencepost_core::limits::{CREATION_REFUSED_MS, FOLLOW_MS, RESEND_MS, RESEND_PAUSE_MS};
use fencepost_core::refusal::{Refusal, RefusalKind};
use fencepost_core::time::{Monotonic, Span};
use futures_util::future::{Either, select};
use tokio::sync::oneshot;

/// Between two sendings.
const RESEND_PAUSE: Span = Span::from_millis(RESEND_PAUSE_MS);

/// Sends a request to a shard.
pub(super) fn send(owner: &Addr<ShardActor>, request: ShardRequest) -> Answer<ShardReply> {
    let (answering, answered) = oneshot::channel();
    match owner.try_send(ToShard::Client(Box::new(request), answering)) {
        Ok(()) => Box::pin(async move { answered.await.unwrap_or_else(|_| Err(outcome_unknown())) }),
        Err(SendError::Full(_)) => Box::pin(async { Err(shard_busy()) }),
        Err(SendError::Closed(_)) => Box::pin(async { Err(shard_away()) }),
    }
}

/// Sends a creation, and again while its end is not known.
pub(super) fn send_until_known(
    owner: &Addr<ShardActor>,
    clock: &SharedClock,
    items: Vec<CreateItem>,
) -> Answer<ShardReply> {
    let refused_at = clock.mono() + Span::from_millis(CREATION_REFUSED_MS);
    let sent = send(owner, ShardRequest::CreateJobs(items.clone()));
    let (owner, clock) = (owner.clone(), clock.clone());
    Box::pin(async move {
        match sent.await {
            Err(refusal) if refusal.code == outcome_unknown().code => {
                send_again(&owner, &clock, items, refused_at).await
            }
            answered => answered,
        }
    })
}

/// Calls a shard's owner wherever it is by then. Where nothing was done because the shard was on its way, the
/// request goes after it for a while; so does a creation whose end is not known.
pub(super) async fn call_after(
    call: impl Fn(&ShardRequest) -> Answer<ShardReply>,
    clock: &SharedClock,
    mut request: ShardRequest,
) -> Result<ShardReply, Refusal> {
    let until = clock.mono() + Span::from_millis(FOLLOW_MS);
    let mut resent = Vec::new();
    loop {
        let reply = call(&request).await;
        let code = reply.as_ref().err().map(|refusal| refusal.code);
        if let (Some(code), ShardRequest::CreateJobs(items)) = (code, &mut request)
            && code == outcome_unknown().code
        {
            items.iter_mut().for_each(|item| item.resent = true);
            resent.clone_from(items);
        }
        let is_over = clock.mono() >= until;
        match reply {
            Ok(reply) if resent.is_empty() => return Ok(reply),
            Ok(reply) => return Ok(as_made(reply, &resent)),
            // What a later sending is told is not the end of the first.
            Err(_) if !resent.is_empty() && is_over => return Err(outcome_unknown()),
            Err(refusal) if resent.is_empty() && (is_over || refusal.code != shard_away().code) => {
                return Err(refusal);
            }
            Err(_) => clock.sleep(RESEND_PAUSE).await,
        }
    }
}

async fn send_again(
    owner: &Addr<ShardActor>,
    clock: &SharedClock,
    mut items: Vec<CreateItem>,
    refused_at: Monotonic,
) -> Result<ShardReply, Refusal> {
    items.iter_mut().for_each(|item| item.resent = true);
    let now = clock.mono();
    let until = now + Span::from_millis(RESEND_MS);
    // Whoever waited for longer than that waited for an owner, not for a store that is away.
    let until = if now < refused_at { until.min(refused_at) } else { until };
    loop {
        clock.sleep(RESEND_PAUSE).await;
        let left = until.since(clock.mono());
        let sent = send(owner, ShardRequest::CreateJobs(items.clone()));
        match select(sent, clock.sleep(left)).await {
            Either::Left((Ok(reply), _)) => return Ok(as_made(reply, &items)),
            Either::Left((Err(_), _)) if left > Span::ZERO => {}
            Either::Left((Err(_), _)) | Either::Right(_) => return Err(outcome_unknown()),
        }
    }
}

/// A job without a key that is there already was made by the first sending: to the caller it is new.
fn as_made(mut reply: ShardReply, items: &[CreateItem]) -> ShardReply {
    if let ShardReply::Created(each) = &mut reply {
        for (made, item) in each.iter_mut().zip(items) {
            if let Ok(made) = made {
                made.replayed &= item.key.is_some();
            }
        }
    }
    reply
}

fn shard_busy() -> Refusal {
    Refusal::new(
        RefusalKind::Limited,
        "shard_busy",
        "the part of the cell that owns this has as many requests waiting as it may hold",
        "send the same request again in a moment; nothing was done",
    )
}
