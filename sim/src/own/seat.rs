//! A user's handler within the world: it gets the payload that its scenario says, and its calls are known as its own.
//!
//! Owns: what the world adds to a payload and takes off again, and whose attempt a thread is in. Must never: come
//! between a handler and its worker in any other way. Next: `service.rs`.

use crate::world::World;
use fencepost::targets::{Handler, HandlerContext, HandlerError};
use fencepost_core::target::{Payload, PayloadKind};
use fencepost_history::rules::text;
use serde_json::Value;
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

type Running = Pin<Box<dyn Future<Output = Result<Vec<u8>, HandlerError>> + Send>>;

/// The attempt that calls a service.
pub(crate) struct Caller {
    /// Where it lives.
    pub world: World,
    /// What its job was asked for as, with the nominal instant for schedules.
    pub intent: String,
    /// Its idempotency key.
    pub key: String,
    /// Its token, as text.
    pub token: String,
    /// Its number.
    pub attempt: u64,
    /// The nominal instant, as text.
    pub scheduled_for: String,
    /// How long a service works on a call of it, in microseconds.
    pub takes: u64,
    /// Whoever runs it dies of its first call.
    pub kills: bool,
}

impl Caller {
    /// The attempt of this context, and the payload as the scenario says it.
    fn of(world: &World, context: &HandlerContext) -> (Caller, Payload) {
        let told = serde_json::from_slice::<Value>(&context.payload.bytes).unwrap_or_default();
        let intent = told.get("intent").and_then(Value::as_str).unwrap_or("?");
        let scheduled_for = text(context.scheduled_for.0);
        let caller = Caller {
            world: world.clone(),
            intent: match context.schedule {
                Some(_) => format!("{intent}@{scheduled_for}"),
                None => intent.to_owned(),
            },
            key: context.idempotency_key.clone(),
            token: context.token.to_string(),
            attempt: u64::from(context.attempt),
            scheduled_for,
            takes: told.get("takes").and_then(Value::as_u64).unwrap_or_default() * 1_000,
            kills: told.get("kills").and_then(Value::as_bool).unwrap_or_default(),
        };
        let bytes = told.get("payload").unwrap_or(&Value::Null).to_string().into_bytes();
        let kind = PayloadKind::Json;
        (
            caller,
            Payload {
                kind,
                bytes: bytes.into(),
            },
        )
    }
}

/// A handler at its place.
pub(super) struct Seat {
    world: World,
    handler: Box<dyn Handler>,
}

impl Seat {
    pub fn new(world: World, handler: Box<dyn Handler>) -> Seat {
        Seat { world, handler }
    }
}

impl Handler for Seat {
    fn run(&self, mut context: HandlerContext) -> Running {
        let (caller, payload) = Caller::of(&self.world, &context);
        context.payload = payload;
        let caller = Arc::new(caller);
        let running = {
            let _here = Here::enter(&caller);
            self.handler.run(context)
        };
        Box::pin(Seated { caller, running })
    }
}

thread_local! {
    static HERE: RefCell<Option<Arc<Caller>>> = const { RefCell::new(None) };
}

/// The attempt inside whose handler this thread is.
pub(super) fn here() -> Option<Arc<Caller>> {
    HERE.with_borrow(Clone::clone)
}

/// The thread is inside a handler until this is dropped.
struct Here(Option<Arc<Caller>>);

impl Here {
    fn enter(caller: &Arc<Caller>) -> Here {
        Here(HERE.replace(Some(caller.clone())))
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        HERE.set(self.0.take());
    }
}

/// Marks the thread while the handler's future is polled.
struct Seated {
    caller: Arc<Caller>,
    running: Running,
}

impl Future for Seated {
    type Output = Result<Vec<u8>, HandlerError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let _here = Here::enter(&self.caller);
        self.running.as_mut().poll(cx)
    }
}
