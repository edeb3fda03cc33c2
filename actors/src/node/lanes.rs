//! Lanes: the threads that a node's actors live on, as its starter made them.
//!
//! Owns: starting an actor on a lane. Must never: make a thread (only production's `main` does; the
//! simulator has one lane, its own). See `docs/decisions/` on how shards run in parallel.

use crate::net::rt::start_actor;
use actix::{Actor, Addr, Context};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Something to do on a lane's thread.
pub type OnLane = Box<dyn FnOnce() + Send>;

/// A thread with a local executor: runs what it is given there.
pub type Lane = Arc<dyn Fn(OnLane) + Send + Sync>;

/// The lane of the current thread, also for what runs there beside actors.
#[cfg(not(madsim))]
pub fn local_lane() -> Lane {
    let here = actix::Arbiter::current();
    Arc::new(move |work| {
        here.spawn_fn(work);
    })
}

/// The lane of the current thread.
#[cfg(madsim)]
pub fn local_lane() -> Lane {
    Arc::new(|work| work())
}

/// Starts an actor on a lane; `None` when the lane is gone.
pub async fn start_on<A>(lane: &Lane, make: impl FnOnce() -> A + Send + 'static) -> Option<Addr<A>>
where
    A: Actor<Context = Context<A>>,
{
    let (tell, told) = oneshot::channel();
    lane(Box::new(move || {
        let _ = tell.send(start_actor(make()));
    }));
    told.await.ok()
}
