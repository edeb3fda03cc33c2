//! What a job does: http, command, handler or remote.
//!
//! Owns: the description, checked when made. Must never: do it. Next: `job.rs`.

use crate::name::Name;
use crate::time::Span;
use std::sync::Arc;

/// What a job does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// Calls a URL.
    Http(HttpTarget),
    /// Runs a program.
    Command(CommandTarget),
    /// Calls a Rust handler registered under this name (`noop` is built in).
    Handler(Name),
    /// Carried out by a worker that claims it over HTTP; this is what it is asked to do.
    Remote(Name),
}

/// An HTTP call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HttpTarget {
    /// `GET POST PUT PATCH DELETE HEAD`.
    pub method: Arc<str>,
    /// Absolute, http or https.
    pub url: Arc<str>,
    /// Allow-listed headers, lower-case names.
    pub headers: Vec<(String, String)>,
}

/// A program to run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CommandTarget {
    /// Program and arguments; with `shell` the words are joined and given to `/bin/sh -c`.
    pub argv: Vec<String>,
    /// Run through the shell.
    pub shell: bool,
    /// Added to the environment.
    pub env: Vec<(String, String)>,
    /// Working folder.
    pub directory: Option<String>,
    /// Time between TERM and KILL.
    pub grace: Span,
}

/// A job's input, kept and returned byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Payload {
    /// JSON text or plain bytes.
    pub kind: PayloadKind,
    /// At most 1 MiB.
    pub bytes: Arc<[u8]>,
}

/// How a payload was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PayloadKind {
    /// Nothing.
    Empty,
    /// JSON, as sent.
    Json,
    /// Base64 in the API, bytes here.
    Bytes,
}

impl Payload {
    /// No payload.
    pub fn empty() -> Payload {
        Payload {
            kind: PayloadKind::Empty,
            bytes: Arc::from([].as_slice()),
        }
    }
}
