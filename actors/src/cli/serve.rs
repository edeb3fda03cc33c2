//! `fencepost serve` and `fencepost dev`: a server in this process.
//!
//! Owns: their flags, made into `ServeOptions`. Must never: hold a part of the server. Next:
//! `crate::process::serve`.

use super::client::{DATA_DEFAULT, parse_span};
use crate::node::NodeConfig;
use crate::process::serve::{ServeOptions, serve};
use crate::targets::address::AddressRange;
use crate::targets::{HandlerRegistry, TargetsConfig};
use crate::telemetry::logging::LogFormat;
use clap::{Args, ValueEnum};
use fencepost_core::limits::{SHARD_COUNT_DEFAULT, SHARD_COUNT_MAX, WORKER_SLOTS_DEFAULT, WORKER_SLOTS_MAX};
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
    #[command(flatten)]
    options: ServerOptions,
}

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

fn parse_range(text: &str) -> Result<AddressRange, String> {
    text.parse()
        .map_err(|_| "use a range such as 10.1.0.0/16 or fd00::/8".to_owned())
}

impl ServerOptions {
    fn into_serve(self, targets: TargetsConfig) -> ServeOptions {
        let mut node = NodeConfig::new(self.node);
        node.shards = self.shards.unwrap_or(SHARD_COUNT_DEFAULT);
        node.shards_asked = self.shards.is_some();
        node.slots = self.slots;
        node.queues = self.queue;
        node.drain = Span::from_millis(u64::try_from(self.drain.as_millis()).unwrap_or(u64::MAX));
        ServeOptions {
            folder: Some(self.data),
            listen: self.listen,
            node,
            targets: targets.allowing(self.allow_address),
            handlers: HandlerRegistry::default(),
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
    pub fn run(self) -> ExitCode {
        let targets = TargetsConfig {
            commands: self.allow_commands,
            authorization_header: self.allow_authorization,
            ..TargetsConfig::default()
        };
        serve(self.options.into_serve(targets))
    }
}

impl DevArgs {
    /// Serves until it is told to stop, with sample schedules in an empty store.
    pub fn run(self) -> ExitCode {
        let mut options = self.options.into_serve(TargetsConfig::for_dev());
        options.dev = true;
        if self.ephemeral {
            options.folder = None;
        }
        serve(options)
    }
}
