//! Jobs that clients want: drawn from the seed, each under a key of its own.
//!
//! Owns: what a job of this world does and in how many ways it may be asked for. Must never: send
//! anything. Next: `clients.rs`.

use super::{TARGET_IP, TARGET_PORT, World};
use crate::runtime::Stream;
use fencepost_history::rules::text;
use serde_json::{Value, json};

/// A job that a client wants.
#[derive(Clone, Debug)]
pub struct Wish {
    /// What it is known by, also its idempotency key.
    pub intent: String,
    /// The request.
    pub body: Value,
    /// It is cancelled after this long, in microseconds.
    pub cancel_after: Option<u64>,
    /// Somebody waits for its end.
    pub is_awaited: bool,
    /// The request is repeated later on, with the same body.
    pub is_repeated: bool,
    /// The key is used with another body later on.
    pub is_reused: bool,
    /// It may be refused: its time or its expiry may have passed when it arrives.
    pub may_be_late: bool,
}

const QUEUES: &[&str] = &["default", "default", "mail", "reports"];

impl Wish {
    /// Draws one.
    pub fn draw(world: &World, stream: &mut Stream, intent: String) -> Wish {
        let mut body = job_body(stream, &intent);
        let now = world.sim.wall();
        let mut may_be_late = false;
        match stream.between(0, 99) {
            0..=29 => set(&mut body, "delay", json!(format!("{}ms", stream.between(1, 15_000)))),
            30..=39 => {
                let at = now + stream.between(1_000, 15_000_000).cast_signed();
                set(&mut body, "at", json!(text(at)));
            }
            40..=47 => {
                let at = now - stream.between(1_000, 60_000_000).cast_signed();
                set(&mut body, "at", json!(text(at)));
                if stream.percent(40) {
                    may_be_late = true;
                    set(&mut body, "grace", json!(format!("{}ms", stream.between(1, 60_000))));
                }
            }
            _ => {}
        }
        if stream.percent(8) {
            may_be_late = true;
            let at = now + stream.between(500_000, 20_000_000).cast_signed();
            set(&mut body, "expires_at", json!(text(at)));
        }
        let soon = stream.percent(50);
        Wish {
            intent,
            body,
            cancel_after: stream
                .percent(20)
                .then(|| stream.between(0, if soon { 60_000 } else { 3_000_000 })),
            is_awaited: stream.percent(40),
            is_repeated: stream.percent(10),
            is_reused: stream.percent(8),
            may_be_late,
        }
    }
}

/// What a job of this world does: one effect at the target.
pub fn job_body(stream: &mut Stream, intent: &str) -> Value {
    let mode = if stream.percent(50) { "key" } else { "token" };
    let is_frail = stream.percent(12);
    let attempts = if is_frail {
        stream.between(1, 3)
    } else {
        stream.between(20, 60)
    };
    let mut body = json!({
        "target": {"type": "http", "url": format!("http://{TARGET_IP}:{TARGET_PORT}/{mode}")},
        "payload": {"intent": intent},
        "timeout": "3s",
        "retry": {"attempts": attempts, "backoff": "200ms", "cap": "2s"},
        "priority": stream.between(0, 9),
        "queue": stream.pick(QUEUES).copied().unwrap_or("default"),
    });
    if stream.percent(15) {
        set(&mut body, "delivery", json!("at-most-once"));
    }
    body
}

/// Sets a field of an object.
pub fn set(body: &mut Value, field: &str, value: Value) {
    if let Some(object) = body.as_object_mut() {
        object.insert(field.to_owned(), value);
    }
}
