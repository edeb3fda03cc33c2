//! `fencepost serve` and `fencepost dev`: a server in this process.
//!
//! Owns: their flags, made into `ServeOptions`. Must never: hold a part of the server. Next:
//! `crate::process::serve`.

use super::client::{DATA_DEFAULT, parse_span};
use super::failure::Failure;
use super::output::Format;
use crate::node::NodeConfig;
use crate::problem::Exit;
use crate::process::roles::SECRET_FILE;
use crate::process::serve::{Part, ServeOptions, serve};
use crate::targets::address::AddressRange;
use crate::targets::{HandlerRegistry, TargetsConfig};
use crate::telemetry::logging::LogFormat;
use clap::{Args, ValueEnum};
use fencepost_core::limits::{
    SHARD_COUNT_DEFAULT, SHARD_COUNT_MAX, SHARD_LEASE_MS_MAX, SHARD_LEASE_MS_MIN, WORKER_SLOTS_DEFAULT,
    WORKER_SLOTS_MAX,
};
use fencepost_core::name::Name;
use fencepost_core::time::Span;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// How a server is started.
#[derive(Clone, Debug, Args)]
pub struct ServerOptions {
    /// Folder of the store and the token; made at the first start.
    #[arg(long, value_name = "FOLDER", env = "FENCEPOST_DATA", hide_env_values = true, default_value = DATA_DEFAULT)]
    data: PathBuf,
    /// Where the API listens; loopback only.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "FENCEPOST_LISTEN",
        hide_env_values = true,
        default_value = "127.0.0.1:4480"
    )]
    listen: SocketAddr,
    /// Name of this node; it stays the same for a store.
    #[arg(long, value_name = "NAME", default_value = "local", value_parser = parse_name)]
    node: Name,
    /// Shards of a new store, 16 by default; a store made with another number is refused.
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=i64::from(SHARD_COUNT_MAX)))]
    shards: Option<u16>,
    /// Attempts that run at once.
    #[arg(long, value_name = "N", default_value_t = WORKER_SLOTS_DEFAULT,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(WORKER_SLOTS_MAX)))]
    slots: u32,
    /// Only work on this queue; may be repeated. All by default.
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    queue: Vec<Name>,
    /// Threads for shards; one per processor by default.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
    /// How long a stop waits for attempts that run.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_span)]
    drain: Duration,
    /// Also let http targets reach these addresses, such as 10.1.0.0/16; may be repeated.
    #[arg(long, value_name = "RANGE", value_parser = parse_range)]
    allow_address: Vec<AddressRange>,
    /// Form of log lines.
    #[arg(long, value_enum, default_value_t = LogArg::Text)]
    log: LogArg,
    /// Least important lines to log: error, warn, info, debug or trace; FENCEPOST_LOG wins.
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = ["error", "warn", "info", "debug", "trace"])]
    log_level: String,
}

/// Form of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogArg {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Arguments of `serve`.
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    /// Let jobs run commands on this machine, with this server's rights.
    #[arg(long)]
    allow_commands: bool,
    /// Let jobs send an authorization header.
    #[arg(long)]
    allow_authorization: bool,
    /// What this process does: all, or the store alone, or all others together.
    #[arg(long, value_name = "ROLES", value_delimiter = ',', default_value = "all")]
    roles: Vec<RoleArg>,
    /// Where this node listens for others; loopback only. Without the store role a free port by default.
    #[arg(long, value_name = "ADDRESS")]
    mesh_listen: Option<SocketAddr>,
    /// With the store role: how long a node may be silent before others take its shards.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_shard_lease)]
    shard_lease: Duration,
    /// Where a node without the store role finds it, such as 127.0.0.1:4481.
    #[arg(long, value_name = "HOST:PORT")]
    store_at: Option<String>,
    /// The store's mesh-secret, for a node without the store role; mesh-secret in its own folder by default.
    #[arg(long, value_name = "FILE")]
    mesh_secret: Option<PathBuf>,
    #[command(flatten)]
    options: ServerOptions,
}

/// What a process can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum RoleArg {
    /// Everything.
    All,
    /// Holds the store.
    Store,
    /// Owns shards.
    Scheduler,
    /// Runs attempts.
    Worker,
    /// Serves the API.
    Gateway,
    /// Assigns shards.
    Coordinator,
}

const WITHOUT_STORE: [RoleArg; 4] = [
    RoleArg::Scheduler,
    RoleArg::Worker,
    RoleArg::Gateway,
    RoleArg::Coordinator,
];

/// Arguments of `dev`.
#[derive(Clone, Debug, Args)]
pub struct DevArgs {
    /// Keep everything in memory; it is gone when the server stops.
    #[arg(long)]
    ephemeral: bool,
    #[command(flatten)]
    options: ServerOptions,
}

fn parse_name(text: &str) -> Result<Name, String> {
    Name::new(text).map_err(|error| error.to_string())
}

fn parse_shard_lease(text: &str) -> Result<Duration, String> {
    let lease = parse_span(text)?;
    let (low, high) = (
        Duration::from_millis(SHARD_LEASE_MS_MIN),
        Duration::from_millis(SHARD_LEASE_MS_MAX),
    );
    match (low..=high).contains(&lease) {
        true => Ok(lease),
        false => Err("use a time from 500ms to 15s: a worker's lease must outlive a shard's move".to_owned()),
    }
}

fn parse_range(text: &str) -> Result<AddressRange, String> {
    text.parse()
        .map_err(|_| "use a range such as 10.1.0.0/16 or fd00::/8".to_owned())
}

impl ServerOptions {
    fn into_serve(self, targets: TargetsConfig, handlers: HandlerRegistry) -> ServeOptions {
        let mut node = NodeConfig::new(self.node);
        node.shards = self.shards.unwrap_or(SHARD_COUNT_DEFAULT);
        node.shards_asked = self.shards.is_some();
        node.slots = self.slots;
        node.queues = self.queue;
        node.drain = Span::from_millis(u64::try_from(self.drain.as_millis()).unwrap_or(u64::MAX));
        ServeOptions {
            folder: Some(self.data),
            part: Part::Whole,
            listen: self.listen,
            node,
            targets: targets.allowing(self.allow_address),
            handlers,
            dev: false,
            lanes: self.threads.map(usize::from),
            log: match self.log {
                LogArg::Text => LogFormat::Text,
                LogArg::Json => LogFormat::Json,
            },
            level: self.log_level,
        }
    }
}

impl ServeArgs {
    /// Serves until it is told to stop.
    pub fn run(self, handlers: HandlerRegistry) -> ExitCode {
        let targets = TargetsConfig {
            commands: self.allow_commands,
            authorization_header: self.allow_authorization,
            ..TargetsConfig::default()
        };
        match self.part() {
            Ok(part) => serve(ServeOptions {
                part,
                ..self.options.into_serve(targets, handlers)
            }),
            Err(failure) => {
                let _ = failure.show(Format::Text, &mut std::io::stderr());
                ExitCode::from(failure.exit as u8)
            }
        }
    }

    /// Which part of a cell this is, from the roles and addresses that were asked for.
    fn part(&self) -> Result<Part, Failure> {
        let mut roles = self.roles.clone();
        roles.sort();
        roles.dedup();
        let wrong = |place: &str, detail: String, hint: &str| {
            let mut failure = Failure::new(Exit::Usage, "roles_invalid", detail, hint);
            failure.problem.field = Some(place.into());
            failure
        };
        match (roles.as_slice(), self.mesh_listen, &self.store_at) {
            ([RoleArg::All], None, None) => Ok(Part::Whole),
            ([RoleArg::Store], Some(listen), None) => Ok(Part::Store(
                listen,
                Span::from_millis(self.shard_lease.as_millis() as u64),
            )),
            ([RoleArg::Store], None, _) => Err(wrong(
                "--mesh-listen",
                "The store role serves other nodes.".to_owned(),
                "Say where: --mesh-listen 127.0.0.1:4481.",
            )),
            (roles, listen, Some(address)) if roles == WITHOUT_STORE => match address.rsplit_once(':') {
                Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
                    let usual = || self.options.data.join(SECRET_FILE);
                    let secret = self.mesh_secret.clone().unwrap_or_else(usual);
                    let listen = listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
                    Ok(Part::WithoutStore(address.clone(), secret, listen))
                }
                _ => Err(wrong(
                    "--store-at",
                    format!("{address} is no HOST:PORT."),
                    "Write it as in 127.0.0.1:4481.",
                )),
            },
            (roles, None, None) if roles == WITHOUT_STORE => Err(wrong(
                "--store-at",
                "These roles need a store on another node.".to_owned(),
                "Say where: --store-at 127.0.0.1:4481.",
            )),
            _ => Err(wrong(
                "--roles",
                "These roles and addresses do not go together.".to_owned(),
                "Use all; or store with --mesh-listen; or scheduler,worker,gateway,coordinator with --store-at.",
            )),
        }
    }
}

impl DevArgs {
    /// Serves until it is told to stop, with sample schedules in an empty store.
    pub fn run(self, handlers: HandlerRegistry) -> ExitCode {
        let mut options = self.options.into_serve(TargetsConfig::for_dev(), handlers);
        options.dev = true;
        if self.ephemeral {
            options.folder = None;
        }
        serve(options)
    }
}
