//! `fencepost serve` and `fencepost dev`: a server in this process.
//!
//! Owns: settings made into `ServeOptions`. Must never: hold a part of the server, or a setting of its own.
//! Next: `settings.rs`, `crate::config`, `crate::process::serve`.

use super::output::Format;
use super::settings::{FileArgs, Flags, Refused};
use crate::api::token::TokenDigest;
use crate::config::part::{check_certificates, check_part, has_worker};
use crate::config::{Effective, Mistake, table};
use crate::mesh::MeshSecret;
use crate::mesh::tls::TlsFiles;
use crate::node::NodeConfig;
use crate::process::serve::{Part, ServeOptions, serve};
use crate::targets::{HandlerRegistry, TargetsConfig};
use crate::telemetry::logging::LogFormat;
use clap::Args;
use fencepost_core::limits::{HEARTBEAT_MS, LEASE_MS, LEASE_MS_MIN, SHARD_COUNT_DEFAULT};
use fencepost_core::time::Span;
use std::process::ExitCode;

/// Arguments of `serve`.
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    file: FileArgs,
    #[command(flatten)]
    flags: Flags<false>,
}

/// Arguments of `dev`.
#[derive(Clone, Debug, Args)]
pub struct DevArgs {
    /// Keep everything in memory; it is gone when the server stops.
    #[arg(long, conflicts_with = "data")]
    ephemeral: bool,
    #[command(flatten)]
    flags: Flags<true>,
}

const PRESET: &str = "the table has a default, and a test reads every one";

fn into_serve(
    settings: &Effective,
    (part, mesh_tls): (Part, Option<TlsFiles>),
    targets: TargetsConfig,
    handlers: HandlerRegistry,
) -> ServeOptions {
    let mut node = NodeConfig::new(settings.name(&table::NODE).expect(PRESET));
    let shards = settings.number(&table::SHARDS);
    node.shards = shards.unwrap_or(SHARD_COUNT_DEFAULT);
    node.shards_asked = shards.is_some();
    node.slots = match has_worker(settings) {
        true => settings.number(&table::WORKER_SLOTS).expect(PRESET),
        false => 0,
    };
    node.queues = settings.names(&table::WORKER_QUEUES);
    node.lease = settings.span(&table::WORKER_LEASE).expect(PRESET);
    node.heartbeat = heartbeat_of(node.lease);
    // Not for `dev`, whose store is its own.
    if let Some(most) = settings.span(&table::CLOCK_OFFSET_MAX) {
        node.clock_offset_max = most;
    }
    node.drain = settings.span(&table::WORKER_DRAIN).expect(PRESET);
    node.key_kept = settings.span(&table::KEY_RETENTION).expect(PRESET);
    let secret = settings.secret(&table::MESH_SECRET);
    ServeOptions {
        folder: settings.path(&table::DATA),
        part,
        mesh_tls,
        mesh_secret: secret.map(|secret| MeshSecret::of(secret.reveal())),
        listen: settings.address(&table::API_LISTEN).expect(PRESET),
        token: settings
            .secret(&table::API_TOKEN)
            .map(|secret| TokenDigest::of(secret.reveal())),
        node,
        targets: targets.allowing(settings.ranges(&table::ALLOW_ADDRESSES)),
        handlers,
        dev: false,
        lanes: settings.number(&table::THREADS),
        log: match settings.text(&table::LOG_FORM) {
            Some("json") => LogFormat::Json,
            _ => LogFormat::Text,
        },
        level: settings.text(&table::LOG_LEVEL).expect(PRESET).to_owned(),
    }
}

impl ServeArgs {
    /// Serves until it is told to stop.
    pub fn run(self, handlers: HandlerRegistry) -> ExitCode {
        let told = self.flags.resolve(self.file.config.as_deref()).and_then(|settings| {
            let one = |mistake: Mistake| Refused::Mistakes(vec![mistake]);
            let part = check_part(&settings).map_err(one)?;
            let files = check_certificates(&settings).map_err(one)?;
            Ok((settings, (part, files)))
        });
        let (settings, part) = match told {
            Ok(told) => told,
            Err(refused) => return ExitCode::from(refused.tell(Format::Text) as u8),
        };
        let targets = TargetsConfig {
            commands: settings.switch(&table::ALLOW_COMMANDS),
            authorization_header: settings.switch(&table::ALLOW_AUTHORIZATION),
            ..TargetsConfig::default()
        };
        serve(into_serve(&settings, part, targets, handlers))
    }
}

impl DevArgs {
    /// Serves until it is told to stop, with sample schedules in an empty store.
    pub fn run(self, handlers: HandlerRegistry) -> ExitCode {
        let settings = match self.flags.resolve(None) {
            Ok(settings) => settings,
            Err(refused) => return ExitCode::from(refused.tell(Format::Text) as u8),
        };
        let mut options = into_serve(&settings, (Part::Whole, None), TargetsConfig::for_dev(), handlers);
        options.dev = true;
        if self.ephemeral {
            options.folder = None;
        }
        serve(options)
    }
}

/// Three beats and more within a lease; the usual one for the usual lease.
fn heartbeat_of(lease: Span) -> Span {
    Span(lease.0 / LEASE_MS * HEARTBEAT_MS)
}

const _: () = assert!(LEASE_MS_MIN * 1_000 / LEASE_MS * HEARTBEAT_MS > 100_000);
