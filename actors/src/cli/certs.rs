//! `fencepost certs`: the CA of a cell and the certificates of its nodes.
//!
//! Owns: the files. Must never: write over one unasked, or let others read a key. Next:
//! `crate::mesh::tls::make` (what stands in them), `crate::mesh::tls` (who reads them).

use super::failure::Failure;
use super::output::{Format, OutputArgs, put};
use crate::api::text::instant;
use crate::chance::{SystemChance, draw_u64};
use crate::clock::{Clock as _, SystemClock};
use crate::kept_file;
use crate::mesh::Roles;
use crate::mesh::identity::{Identity, parse_cell};
use crate::mesh::tls::TlsFiles;
use crate::mesh::tls::kit::{certificates, ends_at, identity_of};
use crate::mesh::tls::make::{Made, Validity, cell_of_ca, make_ca, make_node};
use crate::problem::{Exit, plain};
use clap::{Args, Subcommand};
use fencepost_core::limits::{CERTIFICATE_DAYS_MAX, MESH_FILE_BYTES_MAX};
use fencepost_core::name::Name;
use fencepost_core::refusal::{Refusal, RefusalKind};
use fencepost_core::time::StoreTime;
use serde_json::json;
use std::fs::{self, File};
use std::io::{self, Read as _, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Certificate of a CA.
const CA: &str = "ca.pem";
/// Its key.
const CA_KEY: &str = "ca-key.pem";
/// Certificate of a node.
const NODE: &str = "node.pem";
/// Its key.
const NODE_KEY: &str = "node-key.pem";

/// Make certificates for connections between nodes.
#[derive(Debug, Subcommand)]
pub enum CertsCommand {
    /// Make the CA of a cell: ca.pem, which every node gets, and ca-key.pem, which stays where it is made.
    #[command(after_help = "Example:\n  fencepost certs ca --out ca")]
    Ca(CaArgs),
    /// Make the certificate of a node: ca.pem, node.pem and node-key.pem, all that the node gets.
    #[command(
        after_help = "Examples:\n  fencepost certs node --ca ca --name store-1 --roles store --out store-1\n  \
                      fencepost certs node --ca ca --name n1 --roles scheduler,worker,gateway,coordinator --out n1"
    )]
    Node(NodeArgs),
    /// Show whom a certificate is for, and until when.
    #[command(after_help = "Example:\n  fencepost certs show n1/node.pem")]
    Show(ShowArgs),
}

/// Where the files go.
#[derive(Debug, Args)]
pub struct OutArgs {
    /// Folder for the files; made if it is not there.
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Write over files that are there.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// Arguments of `certs ca`.
#[derive(Debug, Args)]
pub struct CaArgs {
    /// Number of the cell, 32 hex digits, where its store is there already; 'fencepost doctor' shows it.
    #[arg(long, value_name = "CELL", value_parser = read_cell)]
    cell: Option<u128>,
    /// Days until it ends.
    #[arg(long, value_name = "N", default_value_t = 3_650, value_parser = clap::value_parser!(u64).range(1..=CERTIFICATE_DAYS_MAX))]
    days: u64,
    #[command(flatten)]
    out: OutArgs,
}

/// Arguments of `certs node`.
#[derive(Debug, Args)]
pub struct NodeArgs {
    /// Folder with ca.pem and ca-key.pem.
    #[arg(long, value_name = "FOLDER")]
    ca: PathBuf,
    /// Name of the node, as in serve --node.
    #[arg(long, value_name = "NAME", value_parser = Name::new)]
    name: Name,
    /// What the node may be: store, scheduler, worker, gateway, coordinator.
    #[arg(long, value_name = "ROLES", value_parser = read_roles)]
    roles: Roles,
    /// Days until it ends.
    #[arg(long, value_name = "N", default_value_t = 365, value_parser = clap::value_parser!(u64).range(1..=CERTIFICATE_DAYS_MAX))]
    days: u64,
    #[command(flatten)]
    out: OutArgs,
}

/// Arguments of `certs show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// A file with a certificate.
    file: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

fn read_cell(text: &str) -> Result<u128, &'static str> {
    parse_cell(text).ok_or("a cell is 32 hex digits in lower case")
}

fn read_roles(text: &str) -> Result<Roles, String> {
    match text {
        "all" => Ok(Roles::ALL),
        text => {
            Roles::parse(text).ok_or_else(|| format!("roles are words of {}, with commas between them", Roles::ALL))
        }
    }
}

impl CertsCommand {
    /// The form of output that errors follow.
    pub fn format(&self) -> Format {
        match self {
            CertsCommand::Ca(args) => args.out.output.output,
            CertsCommand::Node(args) => args.out.output.output,
            CertsCommand::Show(args) => args.output.output,
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// A file cannot be read or written, or is there already.
    pub fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        match self {
            CertsCommand::Ca(args) => args.run(out),
            CertsCommand::Node(args) => args.run(out),
            CertsCommand::Show(args) => args.run(out),
        }?;
        Ok(Exit::Ok)
    }
}

fn now() -> u64 {
    u64::try_from(SystemClock::new().wall()).unwrap_or(0) / 1_000_000
}

impl CaArgs {
    fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let drawn = || (u128::from(draw_u64(&SystemChance)) << 64) | u128::from(draw_u64(&SystemChance));
        let cell = self.cell.unwrap_or_else(drawn);
        let Made { cert, key } = make_ca(cell, Validity::days(now(), self.days)).map_err(Failure::of)?;
        self.out.write(&[(CA_KEY, key, true), (CA, cert, false)])?;
        self.out.tell(out, &[CA, CA_KEY], &format!("CA of cell {cell:032x}"))
    }
}

impl NodeArgs {
    fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let [ca, ca_key] = [CA, CA_KEY].map(|name| self.ca.join(name));
        let ca_cert = read(&ca)?;
        let identity = Identity {
            cell: cell_of_ca(ca_cert.as_bytes()).map_err(Failure::of)?,
            node: self.name.clone(),
            roles: self.roles,
        };
        let made = make_node(read(&ca_key)?.as_bytes(), &identity, Validity::days(now(), self.days));
        let Made { cert, key } = made.map_err(Failure::of)?;
        let files = [(NODE_KEY, key, true), (NODE, cert, false), (CA, ca_cert, false)];
        self.out.write(&files)?;
        self.check()?;
        self.out.tell(out, &[CA, NODE, NODE_KEY], &identity.to_string())
    }

    /// Looks at the files as the node will: a key of another CA shows here.
    fn check(&self) -> Result<(), Failure> {
        let [ca, cert, key] = [CA, NODE, NODE_KEY].map(|name| self.out.out.join(name));
        let clock: crate::clock::SharedClock = Arc::new(SystemClock::new());
        let loaded = TlsFiles { ca, cert, key }.load(&clock);
        loaded.map(drop).map_err(Failure::of)
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let beyond = MESH_FILE_BYTES_MAX + 1;
    File::open(path)
        .and_then(|file| file.take(beyond).read_to_end(&mut bytes))
        .map_err(|error| Failure::file(path, &error))?;
    // What is no text is no certificate, which its reader says.
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match bytes.len() as u64 > MESH_FILE_BYTES_MAX {
        false => Ok(text),
        true => {
            let detail = format!("The file {} has more than {MESH_FILE_BYTES_MAX} bytes.", path.display());
            let hint = "Name a file of certificates.";
            Err(Failure::new(Exit::Invalid, "file_too_large", detail, hint))
        }
    }
}

impl ShowArgs {
    fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let pem = read(&self.file)?;
        let read = certificates(pem.as_bytes()).map_err(Failure::of)?;
        let Some((identity, ends_at)) = read.first().map(|one| (identity_of(one), ends_at(one).as_secs())) else {
            return Ok(());
        };
        let cell = match &identity {
            Some(identity) => identity.cell,
            None => cell_of_ca(pem.as_bytes()).map_err(Failure::of)?,
        };
        let cell = format!("{cell:032x}");
        let ends = instant(StoreTime(
            i64::try_from(ends_at).unwrap_or(i64::MAX).saturating_mul(1_000_000),
        ));
        let days = ends_at.saturating_sub(now()) / 86_400;
        let (node, roles) = match &identity {
            Some(identity) => (Some(identity.node.to_string()), Some(identity.roles.to_string())),
            None => (None, None),
        };
        match self.output.output {
            Format::Text => {
                let who = match (&node, &roles) {
                    (Some(node), Some(roles)) => format!("node {node}, {roles}, of cell {cell}"),
                    _ => format!("CA of cell {cell}"),
                };
                put(out, &format!("{who}: ends {ends}, {days} days left"))
            }
            Format::Json | Format::Jsonl => {
                let item = json!({"cell": cell, "node": node, "roles": roles, "ends_at": ends, "days_left": days});
                put(out, &item.to_string())
            }
        }
    }
}

impl OutArgs {
    /// Writes the files, the last one last: all are there or none was there before.
    fn write(&self, files: &[(&str, String, bool)]) -> Result<(), Failure> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.out);
        made.map_err(|error| unwritable(&self.out, &error))?;
        let there = files
            .iter()
            .map(|(name, ..)| self.out.join(name))
            .find(|path| path.exists());
        if let Some(path) = there.filter(|_| !self.force) {
            return Err(exists(&path));
        }
        for (name, text, is_key) in files {
            let path = self.out.join(name);
            self.write_one(&path, text, *is_key)
                .map_err(|error| match error.kind() {
                    io::ErrorKind::AlreadyExists => exists(&path),
                    _ => unwritable(&path, &error),
                })?;
        }
        Ok(())
    }

    fn write_one(&self, path: &Path, text: &str, is_key: bool) -> io::Result<()> {
        let mode = if is_key { 0o600 } else { 0o644 };
        match self.force {
            true => kept_file::replace(path, text.as_bytes(), mode),
            false => kept_file::make(path, text.as_bytes(), mode),
        }
    }

    fn tell(&self, out: &mut dyn Write, names: &[&str], what: &str) -> Result<(), Failure> {
        let files: Vec<_> = names
            .iter()
            .map(|name| self.out.join(name).display().to_string())
            .collect();
        match self.output.output {
            Format::Text => put(out, &format!("{what}: {}", files.join(", "))),
            Format::Json | Format::Jsonl => put(out, &json!({"made": what, "files": files}).to_string()),
        }
    }
}

fn exists(path: &Path) -> Failure {
    let detail = format!("The file {} is there already.", path.display());
    let hint = "Name another folder with --out, or write over it with --force.";
    Failure::of(Refusal::new(RefusalKind::Conflict, "file_exists", detail, hint))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let detail = format!("{} cannot be written: {}.", path.display(), plain(error));
    Failure::new(
        Exit::Failed,
        "file_unwritable",
        detail,
        "Check the path and its rights.",
    )
}
