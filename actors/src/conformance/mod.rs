//! The conformance kit: does a worker in another language keep the rules of `docs/guides/workers.md`?
//!
//! Owns: the cases. Each is played against the worker's own process by a real node in memory, through a proxy that
//! loses what the network may lose. Must never: look into the worker; what it does is seen from outside. Next:
//! `world.rs` (the node), `proxy.rs` (the network), `crate::cli::worker` (the command).

mod cases;
mod proxy;
mod world;

use cases::CASES;
use std::process::ExitStatus;
use world::World;

/// The queue whose jobs the worker is asked to claim.
pub const QUEUE: &str = "conformance";
/// The name of the work that it is asked to know.
pub const WORK: &str = "conformance";

/// What became of one case.
pub struct Verdict {
    /// Its name.
    pub case: &'static str,
    /// What the worker must do.
    pub rule: &'static str,
    /// What it did instead.
    pub fault: Option<String>,
}

/// The names of the cases, in order.
pub fn cases() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|case| case.name)
}

/// Starts the worker with this command and plays these cases (all, if none is named); `tell` hears of each as it ends.
///
/// # Errors
/// The kit itself, or the worker, could not be started.
pub async fn check(
    command: &[String],
    only: &[String],
    mut tell: impl FnMut(&Verdict),
) -> Result<Vec<Verdict>, String> {
    let mut world = World::start(command).await?;
    let mut verdicts = Vec::new();
    let is_wanted = |name: &str| only.is_empty() || only.iter().any(|wanted| wanted == name);
    for case in CASES.iter().filter(|case| is_wanted(case.name)) {
        let fault = (case.play)(&mut world).await.err();
        let verdict = Verdict {
            case: case.name,
            rule: case.rule,
            fault,
        };
        tell(&verdict);
        verdicts.push(verdict);
        world.calm_down().await;
    }
    world.stop().await;
    Ok(verdicts)
}

/// How a process ended, for people.
fn ended(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("it ended with exit code {code}"),
        None => "it was ended by a signal".to_owned(),
    }
}
