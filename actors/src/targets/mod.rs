//! Targets: what a job does, carried out under bounds.
//!
//! Owns: the one entry for a worker (`TargetRunner::run`) and what an operator allows. Must never: retry, or
//! report an outcome that was not seen. Next: `http`, `command`, `handler` for the kinds that run here, `../desk/`
//! for the others; `check` for what is accepted; the guide `docs/guides/targets.md`.

pub mod address;
mod answer;
#[cfg(not(madsim))]
mod asked;
pub mod attempt;
pub mod check;
#[cfg(not(madsim))]
mod command;
pub mod connector;
#[cfg(not(madsim))]
mod gate;
#[cfg(not(madsim))]
mod group;
pub mod handler;
mod header;
mod http;
#[cfg(not(madsim))]
mod leavers;
mod meter;
pub(crate) mod running;
pub mod signal;
#[cfg(not(madsim))]
mod supervise;
#[cfg(not(madsim))]
mod supervised;
pub(crate) mod tail;
#[cfg(not(madsim))]
pub mod tls;
pub mod url;

use std::sync::Arc;

use fencepost_core::ids::{JobId, Token};
use fencepost_core::job::{EffectProof, Outcome, RetryAdvice};
use fencepost_core::lease_manager::io::Recorded;
use fencepost_core::limits::GRACE_MS;
use fencepost_core::target::{CommandTarget, Target};
use fencepost_core::time::Span;
use futures_util::future::BoxFuture;

use self::address::{AddressPolicy, AddressRange};
pub use self::attempt::AttemptContext;
pub use self::check::{TargetProblem, check_target};
use self::connector::{ConnectPolicy, Connector, Resolve};
pub use self::handler::{Handler, HandlerContext, HandlerError, HandlerRegistry, panic_is_a_handlers};
use self::running::Running;
pub use self::signal::{AttemptControl, CancelSignal, StopReason, attempt_signal};
#[cfg(not(madsim))]
pub use self::supervise::{SUPERVISE, supervise_main};
use self::tail::OutputTail;

/// What an operator allows, the same for every job of a node.
#[derive(Clone, Debug)]
pub struct TargetsConfig {
    /// Where `http` targets may connect to.
    pub connect: ConnectPolicy,
    /// Whether jobs may set the `authorization` header.
    pub authorization_header: bool,
    /// Whether `command` targets run at all.
    pub commands: bool,
    /// How long a stopped handler may take to return before it is dropped.
    pub handler_grace: Span,
    /// The program that supervises commands: it must call [`supervise_main`] when its first argument is
    /// [`SUPERVISE`]. `None` is this very program.
    #[cfg(not(madsim))]
    pub supervisor: Option<std::path::PathBuf>,
}

impl Default for TargetsConfig {
    /// What `serve` starts with: no address on the deny list, no commands, no credentials.
    fn default() -> Self {
        Self {
            connect: ConnectPolicy::default(),
            authorization_header: false,
            commands: false,
            handler_grace: Span::from_millis(GRACE_MS),
            #[cfg(not(madsim))]
            supervisor: None,
        }
    }
}

impl TargetsConfig {
    /// What `dev` starts with: loopback, commands and credentials are allowed.
    #[must_use]
    pub fn for_dev() -> Self {
        let addresses = AddressPolicy::allowing_loopback();
        let connect = ConnectPolicy {
            addresses,
            ..ConnectPolicy::default()
        };
        Self {
            connect,
            authorization_header: true,
            commands: true,
            ..Self::default()
        }
    }

    /// Allows further address ranges.
    #[must_use]
    pub fn allowing(mut self, ranges: impl IntoIterator<Item = AddressRange>) -> Self {
        self.connect.addresses.allowed.extend(ranges);
        self
    }

    /// Refuses the ports of this server's own listeners.
    #[must_use]
    pub fn with_own_ports(mut self, ports: impl IntoIterator<Item = u16>) -> Self {
        self.connect.own_ports.extend(ports);
        self
    }
}

/// Carries out attempts of every kind. Cheap to clone.
#[derive(Clone)]
pub struct TargetRunner {
    config: Arc<TargetsConfig>,
    connector: Arc<Connector>,
    handlers: Arc<HandlerRegistry>,
    running: Running,
    /// Who carries out remote jobs; only a claim's runner has one.
    remote: Option<Arc<dyn CarryRemote>>,
}

/// Carries out jobs elsewhere: a claim of a worker over HTTP.
pub trait CarryRemote: Send + Sync {
    /// Stands for one attempt until it has ended.
    fn carry(self: Arc<Self>, attempt: AttemptContext, cancel: CancelSignal) -> BoxFuture<'static, Outcome>;
    /// What the owners said to outcomes.
    fn recorded(&self, items: &[(JobId, Token, Recorded)]);
}

impl TargetRunner {
    /// A runner that uses the system's resolver and roots.
    #[must_use]
    pub fn new(config: TargetsConfig, handlers: HandlerRegistry) -> Self {
        let connector = Connector::new(config.connect.clone());
        Self::with_connector(config, handlers, connector)
    }

    /// A runner with a resolver of the caller's: the simulator's, or a test's.
    #[must_use]
    pub fn with_resolver(config: TargetsConfig, handlers: HandlerRegistry, resolver: Arc<dyn Resolve>) -> Self {
        let connector = Connector::with_resolver(config.connect.clone(), resolver);
        Self::with_connector(config, handlers, connector)
    }

    /// A runner over a ready connector; its policy, not the config's, decides about addresses.
    #[must_use]
    pub fn with_connector(config: TargetsConfig, handlers: HandlerRegistry, connector: Connector) -> Self {
        Self {
            config: Arc::new(config),
            connector: Arc::new(connector),
            handlers: Arc::new(handlers),
            running: Running::default(),
            remote: None,
        }
    }

    /// The same, for one claim.
    #[must_use]
    pub(crate) fn carrying(self, remote: Arc<dyn CarryRemote>) -> Self {
        let remote = Some(remote);
        Self { remote, ..self }
    }

    /// What runs here, claims of workers over HTTP included.
    pub(crate) fn running(&self) -> Running {
        self.running.clone()
    }

    /// Whether it runs commands at all.
    #[must_use]
    pub fn runs_commands(&self) -> bool {
        self.config.commands
    }

    /// Tells a claim what became of its reports.
    pub(crate) fn note_recorded(&self, items: &[(JobId, Token, Recorded)]) {
        if let Some(remote) = &self.remote {
            remote.recorded(items);
        }
    }

    /// Carries out one attempt and says how it ended, within its time-out plus the grace of its kind.
    ///
    /// Dropping the future stops the attempt: connections close, a command's supervisor sees its pipe end.
    /// The kinds with large futures are boxed, so that a handler's attempt is not as large as theirs.
    pub async fn run(&self, attempt: AttemptContext, cancel: CancelSignal) -> Outcome {
        match &attempt.target {
            Target::Http(target) => {
                let authorization = self.config.authorization_header;
                let run = http::run_http(&self.connector, authorization, target, &attempt, &cancel);
                Box::pin(run).await
            }
            Target::Command(target) => Box::pin(self.run_command(target, &attempt, &cancel)).await,
            Target::Handler(name) => {
                let _place = self.running.enter(attempt.job, attempt.token, &cancel);
                self.handlers
                    .run(name, &attempt, cancel, self.config.handler_grace)
                    .await
            }
            Target::Remote(_) => match &self.remote {
                Some(remote) => {
                    let _place = self.running.enter(attempt.job, attempt.token, &cancel);
                    remote.clone().carry(attempt, cancel).await
                }
                None => not_claimed(),
            },
        }
    }

    /// The outcome of a target that does nothing and ends at once (the built-in `noop`): no future is
    /// needed for it.
    #[must_use]
    pub fn instant_outcome(&self, target: &Target) -> Option<Outcome> {
        match target {
            Target::Handler(name) if name.as_str() == handler::NOOP => Some(attempt::succeeded(OutputTail::default())),
            Target::Handler(_) | Target::Remote(_) | Target::Http(_) | Target::Command(_) => None,
        }
    }

    #[cfg(not(madsim))]
    async fn run_command(&self, target: &CommandTarget, attempt: &AttemptContext, cancel: &CancelSignal) -> Outcome {
        if !self.config.commands {
            return commands_off();
        }
        command::run_command(self.config.supervisor.as_deref(), target, attempt, cancel).await
    }

    #[cfg(madsim)]
    async fn run_command(&self, _: &CommandTarget, _: &AttemptContext, _: &CancelSignal) -> Outcome {
        commands_off()
    }
}

/// A remote job that came to a worker of a node. Owners grant those to claims only.
pub(crate) fn not_claimed() -> Outcome {
    let error = "remote_not_claimed: remote jobs are carried out by workers that claim them over HTTP";
    attempt::failed(
        RetryAdvice::ByPolicy,
        EffectProof::NoEffect,
        error,
        OutputTail::default(),
    )
}

/// Not permanent: another worker may allow commands, or this one after its next start.
fn commands_off() -> Outcome {
    let error = "command_not_allowed: command targets are off on this worker; an operator can allow them";
    attempt::failed(
        RetryAdvice::ByPolicy,
        EffectProof::NoEffect,
        error,
        OutputTail::default(),
    )
}
