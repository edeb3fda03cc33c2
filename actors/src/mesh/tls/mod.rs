//! TLS between nodes: version 1.3, a certificate at both ends, the cell's own CA.
//!
//! Owns: the files, what was read of them last, and taking up new ones while the node runs. Must never: go
//! on with less than what a first start asks for. Next: `kit.rs` (settings and checks), `refusal.rs` (codes),
//! `make.rs` (making certificates).

pub mod kit;
pub mod make;
pub mod refusal;

use crate::clock::SharedClock;
use crate::mesh::MeshSecret;
use crate::mesh::identity::Identity;
use crate::mesh::wire::{Wire, WireError, linger};
use crate::problem::plain;
use fencepost_core::limits::{MESH_FILE_BYTES_MAX, MESH_FILES_LOOK_MS};
use fencepost_core::refusal::{Refusal, RefusalKind};
use fencepost_core::time::Span;
use kit::{Kit, Pem};
use refusal::{Side, refused_by};
use rustls::CommonState;
use rustls::pki_types::ServerName;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpStream;

/// Where a node's certificate lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificates of the CAs that are trusted.
    pub ca: PathBuf,
    /// This node's certificate, and any between it and a CA.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// A node's certificate, as it is now.
pub struct MeshTls {
    files: TlsFiles,
    clock: SharedClock,
    held: Mutex<Held>,
}

struct Held {
    kit: Arc<Kit>,
    /// Digest of what was looked at last.
    seen: [u8; 32],
}

/// What a look at the files brought.
#[derive(Debug, PartialEq, Eq)]
pub enum Looked {
    /// Nothing new.
    Same,
    /// A new certificate, for new connections.
    Taken,
    /// Nothing that can be used; the one before goes on.
    Kept(Refusal),
}

pub(super) fn refuse(code: &'static str, detail: impl Into<String>, hint: impl Into<String>) -> Refusal {
    Refusal::new(RefusalKind::Forbidden, code, detail, hint)
}

/// A file's bytes; a key that everyone may read is refused.
fn read(path: &Path, is_key: bool) -> Result<Vec<u8>, Refusal> {
    let shown = path.display();
    let failed = |error: io::Error| {
        let hint = "Check the path and its rights; 'fencepost certs' makes these files.";
        refuse(
            "mesh_file_unreadable",
            format!("The file {shown} cannot be read: {}.", plain(&error)),
            hint,
        )
    };
    let file = File::open(path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.mode();
    if is_key && mode & 0o027 != 0 {
        let detail = format!(
            "The key {shown} can be read by everyone, or changed by others (mode {:o}).",
            mode & 0o777
        );
        return Err(refuse("mesh_key_mode", detail, format!("Run: chmod 600 {shown}")));
    }
    let mut bytes = Vec::new();
    file.take(MESH_FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    match bytes.len() as u64 > MESH_FILE_BYTES_MAX {
        true => Err(failed(io::Error::other("it is too large"))),
        false => Ok(bytes),
    }
}

impl TlsFiles {
    fn read(&self) -> Result<Pem, Refusal> {
        Ok(Pem {
            ca: read(&self.ca, false)?,
            cert: read(&self.cert, false)?,
            key: read(&self.key, true)?,
        })
    }

    /// What a start would make of them.
    ///
    /// # Errors
    /// They cannot be read, do not belong together, or hold today for nothing.
    pub fn load(&self, clock: &SharedClock) -> Result<Kit, Refusal> {
        self.kit(&self.read()?, clock)
    }

    /// The same of what was read; what is wrong is told with its file.
    fn kit(&self, pem: &Pem, clock: &SharedClock) -> Result<Kit, Refusal> {
        Kit::of(pem, clock).map_err(|refusal| {
            let file = match refusal.field.as_deref() {
                Some(kit::CA) => &self.ca,
                Some(kit::KEY) => &self.key,
                _ => &self.cert,
            };
            let detail = format!("{}: {}", file.display(), refusal.detail);
            Refusal { detail, ..refusal }
        })
    }
}

impl MeshTls {
    /// Reads the files.
    ///
    /// # Errors
    /// As `TlsFiles::load`.
    pub fn load(files: TlsFiles, clock: SharedClock) -> Result<MeshTls, Refusal> {
        let pem = files.read()?;
        let held = Held {
            kit: Arc::new(files.kit(&pem, &clock)?),
            seen: pem.digest(),
        };
        Ok(MeshTls {
            files,
            clock,
            held: Mutex::new(held),
        })
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What new connections get.
    pub fn kit(&self) -> Arc<Kit> {
        self.held().kit.clone()
    }

    /// Looks at the files, and takes up what is new and sound.
    pub fn look(&self) -> Looked {
        let pem = self.files.read();
        let seen = match &pem {
            Ok(pem) => pem.digest(),
            // An error is news once, too.
            Err(refusal) => *blake3::hash(refusal.detail.as_bytes()).as_bytes(),
        };
        if std::mem::replace(&mut self.held().seen, seen) == seen {
            return Looked::Same;
        }
        let before = self.kit();
        let kit = pem.and_then(|pem| self.files.kit(&pem, &self.clock));
        match kit.and_then(|kit| kit.continues(&before).map(|()| kit)) {
            Ok(kit) => {
                self.held().kit = Arc::new(kit);
                Looked::Taken
            }
            Err(refusal) => Looked::Kept(refusal),
        }
    }

    /// Looks again and again, for as long as the process runs.
    pub async fn watch(&self) {
        loop {
            self.show();
            self.clock.sleep(Span::from_millis(MESH_FILES_LOOK_MS)).await;
            match self.look() {
                Looked::Same => {}
                Looked::Taken => {
                    let days = self.kit().days_left(&self.clock);
                    tracing::info!(days, "new certificate for connections between nodes");
                    metrics::counter!("fencepost_mesh_certificate_looks_total", "result" => "taken").increment(1);
                    metrics::gauge!("fencepost_mesh_certificate_stale").set(0.0);
                }
                Looked::Kept(refusal) => {
                    let (code, hint) = (refusal.code, &refusal.hint);
                    tracing::warn!(code, %refusal, hint, "new certificate files are no good; the certificate before goes on");
                    metrics::counter!("fencepost_mesh_certificate_looks_total", "result" => "kept").increment(1);
                    metrics::gauge!("fencepost_mesh_certificate_stale").set(1.0);
                }
            }
        }
    }

    fn show(&self) {
        let at = self.kit().expires_at().as_secs();
        metrics::gauge!("fencepost_mesh_certificate_expires_timestamp_seconds").set(at as f64);
    }

    pub(super) async fn dialed(&self, stream: TcpStream) -> Result<Wire, WireError> {
        let kit = self.kit();
        let name = ServerName::try_from("node.fencepost.invalid").map_err(io::Error::other)?;
        let connecting = kit.connector.connect(name, stream).await;
        let stream = connecting.map_err(|error| refused_by(error, Side::Dialer))?;
        let (secret, proven) = proven(stream.get_ref().1, |out| {
            stream.get_ref().1.export_keying_material(out, EXPORT_LABEL, None)
        })?;
        Ok(Wire {
            stream: Box::new(stream),
            secret,
            proven: Some(proven),
        })
    }

    pub(super) async fn accepted(&self, stream: TcpStream) -> Result<Wire, WireError> {
        let kit = self.kit();
        let stream = match kit.acceptor.accept(stream).into_fallible().await {
            Ok(stream) => stream,
            Err((error, mut stream)) => {
                // Its alert has been written; the other side may still be sending.
                linger(&mut stream).await;
                return Err(refused_by(error, Side::Listener));
            }
        };
        let (secret, proven) = proven(stream.get_ref().1, |out| {
            stream.get_ref().1.export_keying_material(out, EXPORT_LABEL, None)
        })?;
        Ok(Wire {
            stream: Box::new(stream),
            secret,
            proven: Some(proven),
        })
    }
}

/// Sets the greeting's proof apart from any other use of a connection's keys.
const EXPORT_LABEL: &[u8] = b"EXPORTER-fencepost-greeting";

/// What only the two ends of this connection know, and whom the other end's certificate names.
fn proven(
    connection: &CommonState,
    export: impl FnOnce([u8; 32]) -> Result<[u8; 32], rustls::Error>,
) -> Result<(MeshSecret, Identity), WireError> {
    let certificate = connection.peer_certificates().and_then(<[_]>::first);
    let identity = certificate
        .and_then(kit::identity_of)
        .ok_or_else(refusal::no_identity)?;
    let secret = export([0; 32]).map_err(io::Error::other)?;
    Ok((MeshSecret(secret), identity))
}
