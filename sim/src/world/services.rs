//! Services of users on the target's machine: calls of handlers cross the simulated network, and are treated there.
//!
//! Owns: what is on its way, and that an answer can be lost after the effect. Must never: do a call's work before it
//! has arrived. Next: `target.rs` for the manners, `../own/service.rs` for the caller's end.

use super::target::{Manner, Target};
use super::{TARGET_IP, World};
use crate::own::{Caller, Effects};
use crate::runtime::sleep_here;
use fencepost::net::rt::spawn_local;
use fencepost_history::seen::{Call, Honours};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Where services listen.
const SERVICES_PORT: u16 = 8081;

/// What a call does at its service.
pub type Work = Box<dyn FnOnce(&mut Effects) + Send>;

/// Calls that were sent. Clones share them.
#[derive(Clone, Default)]
pub struct Sent(Arc<Mutex<Posted>>);

#[derive(Default)]
struct Posted {
    last: u64,
    calls: BTreeMap<u64, (Arc<Caller>, Work)>,
}

impl Sent {
    fn lock(&self) -> MutexGuard<'_, Posted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, caller: Arc<Caller>, work: Work) -> u64 {
        let mut posted = self.lock();
        posted.last += 1;
        let number = posted.last;
        posted.calls.insert(number, (caller, work));
        number
    }

    fn take(&self, number: u64) -> Option<(Arc<Caller>, Work)> {
        self.lock().calls.remove(&number)
    }
}

/// Sends a call from the machine that this is polled on; ready once it is answered.
///
/// # Errors
/// No answer came.
pub(crate) async fn send(caller: Arc<Caller>, work: Work) -> io::Result<()> {
    let sent = caller.world.sent.clone();
    if let Some(here) = caller.world.sim.here() {
        caller.world.links.sent(here.ip(), TARGET_IP);
    }
    let number = sent.put(caller, work);
    let mut stream = TcpStream::connect((TARGET_IP, SERVICES_PORT)).await?;
    stream.write_all(&number.to_be_bytes()).await?;
    stream.flush().await?;
    stream.read_exact(&mut [0]).await.map(|_| ())
}

/// Takes calls, on the target's machine.
pub(super) async fn listen(target: Target) {
    let Ok(listener) = TcpListener::bind((TARGET_IP, SERVICES_PORT)).await else {
        return;
    };
    while let Ok((stream, caller)) = listener.accept().await {
        let target = target.clone();
        let IpAddr::V4(ip) = caller.ip() else { continue };
        spawn_local(async move {
            let _running = target.world().work.begin(ip);
            let _ = serve(&target, stream, ip).await;
        });
    }
}

async fn serve(target: &Target, mut stream: TcpStream, from: Ipv4Addr) -> io::Result<()> {
    let mut number = [0; 8];
    stream.read_exact(&mut number).await?;
    let Some((caller, work)) = target.world().sent.take(u64::from_be_bytes(number)) else {
        return Ok(());
    };
    let call = call_of(target.world(), &caller);
    if caller.kills {
        target.strike(call, from);
        return std::future::pending().await;
    }
    if caller.takes > 0 {
        sleep_here(caller.takes).await;
    }
    let is_answered = treat(target, call, work).await;
    target.world().links.sent(TARGET_IP, from);
    if is_answered {
        stream.write_all(&[1]).await?;
        stream.flush().await?;
    }
    Ok(())
}

fn call_of(world: &World, caller: &Caller) -> Call {
    Call {
        at: world.sim.now(),
        intent: caller.intent.clone(),
        key: caller.key.clone(),
        token: caller.token.clone(),
        attempt: caller.attempt,
        scheduled_for: caller.scheduled_for.clone(),
        honours: Honours::ItsOwn,
        applied: false,
    }
}

/// Does the work, unless the manner of this call is against it; whether to answer.
async fn treat(target: &Target, call: Call, work: Work) -> bool {
    let manner = target.manner_felt();
    match manner {
        Manner::FailsBefore | Manner::DropsBefore => {
            target.note(call, false);
            return false;
        }
        Manner::Slow(micros) => sleep_here(micros).await,
        Manner::Prompt | Manner::FailsAfter | Manner::DropsAfter | Manner::Hangs => {}
    }
    let mut effects = Effects::default();
    work(&mut effects);
    note_effects(target, call, effects.into_names());
    match manner {
        Manner::FailsAfter | Manner::DropsAfter => false,
        Manner::Hangs => {
            sleep_here(10_000_000).await;
            true
        }
        Manner::Prompt | Manner::Slow(_) | Manner::FailsBefore | Manner::DropsBefore => true,
    }
}

/// Each effect under a name of its own; a call without one is noted, too.
fn note_effects(target: &Target, call: Call, names: Vec<String>) {
    if names.is_empty() {
        return target.note(call, false);
    }
    for name in names {
        let word = name.split_whitespace().collect::<Vec<_>>().join("-");
        let intent = format!("{}/{word}", call.intent);
        target.note(Call { intent, ..call.clone() }, true);
    }
}
