//! What a job is, as flags: target, payload, queue, retry and so on, made into the request's JSON.
//!
//! Owns: the flags. Must never: check what the server checks (its words are the ones people see). Next:
//! `job.rs`, `schedule_args.rs`.

use super::failure::Failure;
use crate::api::dto::job::RetryBody;
use crate::api::dto::target::{CommandBody, HandlerBody, HttpBody, RemoteBody, TargetBody};
use crate::problem::Exit;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, ValueEnum};
use fencepost_core::limits::CLI_FILE_BYTES_MAX;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Fields of a JSON object, each as it will be sent.
pub type Body = BTreeMap<String, Box<RawValue>>;

/// What a job does and how.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct JobArgs {
    /// Call this URL.
    #[arg(long, value_name = "URL", conflicts_with_all = ["handler", "command"], help_heading = "Target")]
    pub http: Option<String>,
    /// Method of the call; POST by default.
    #[arg(long, value_name = "METHOD", conflicts_with_all = ["handler", "command"], help_heading = "Target")]
    pub method: Option<String>,
    /// Header of the call; may be repeated.
    #[arg(long, value_name = "NAME:VALUE", conflicts_with_all = ["handler", "command"], value_parser = parse_header, help_heading = "Target")]
    pub header: Vec<(String, String)>,
    /// Call the Rust handler of this name; "noop" is built in.
    #[arg(long, value_name = "NAME", conflicts_with = "command", help_heading = "Target")]
    pub handler: Option<String>,
    /// Wait for a worker that claims it over HTTP and knows this name.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["http", "handler", "command"], help_heading = "Target")]
    pub remote: Option<String>,
    /// Run this program; put it last, behind --.
    #[arg(last = true, value_name = "COMMAND", help_heading = "Target")]
    pub command: Vec<String>,
    /// Give the command to /bin/sh -c.
    #[arg(long, requires = "command", conflicts_with_all = ["http", "handler"], help_heading = "Target")]
    pub shell: bool,
    /// Variable for the command; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", conflicts_with_all = ["http", "handler"], value_parser = parse_variable, help_heading = "Target")]
    pub env: Vec<(String, String)>,
    /// Working folder of the command.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["http", "handler"], help_heading = "Target")]
    pub directory: Option<String>,
    /// Time between TERM and KILL of the command.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["http", "handler"], help_heading = "Target")]
    pub kill_after: Option<String>,

    /// Input as JSON, kept byte for byte.
    #[arg(long, value_name = "JSON", conflicts_with = "payload_file", help_heading = "Job")]
    pub payload: Option<String>,
    /// Input from a file, as bytes; - is standard input.
    #[arg(long, value_name = "FILE", help_heading = "Job")]
    pub payload_file: Option<PathBuf>,
    /// The line it waits in; "default" unless said.
    #[arg(long, value_name = "NAME", help_heading = "Job")]
    pub queue: Option<String>,
    /// 0 first, 9 last; 5 unless said.
    #[arg(long, value_name = "N", help_heading = "Job")]
    pub priority: Option<u8>,
    /// Word to filter by; may be repeated.
    #[arg(long, value_name = "WORD", help_heading = "Job")]
    pub tag: Vec<String>,
    /// Limit of one attempt, after which it is stopped and counts as failed; 5m unless said, 7d at most.
    #[arg(long = "attempt-timeout", value_name = "TIME", help_heading = "Job")]
    pub attempt_timeout: Option<String>,
    /// Attempts in all; 5 unless said.
    #[arg(long, value_name = "N", help_heading = "Job")]
    pub attempts: Option<u32>,
    /// Delay before the second attempt, doubled with each; 1s unless said. Of each, chance takes up to a half off.
    #[arg(long, value_name = "TIME", help_heading = "Job")]
    pub backoff: Option<String>,
    /// Longest delay between attempts; 1h unless said.
    #[arg(long, value_name = "TIME", help_heading = "Job")]
    pub backoff_cap: Option<String>,
    /// What to do with an attempt that began and has no proven outcome; at-least-once unless said.
    #[arg(long, value_enum, help_heading = "Job")]
    pub delivery: Option<DeliveryArg>,
    /// Not started by then: never starts.
    #[arg(long, value_name = "RFC3339", help_heading = "Job")]
    pub expires_at: Option<String>,
}

/// What to do with an attempt that began and has no proven outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DeliveryArg {
    /// Try it again.
    AtLeastOnce,
    /// Park it as uncertain.
    AtMostOnce,
}

fn parse_header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("use NAME:VALUE")?;
    Ok((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
}

fn parse_variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("use NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Puts a field, as JSON.
///
/// # Errors
/// It cannot be written as JSON.
pub fn put_field<T: Serialize + ?Sized>(body: &mut Body, name: &str, value: &T) -> Result<(), Failure> {
    let raw = to_raw_value(value).map_err(|error| Failure::unreadable(&error))?;
    body.insert(name.to_owned(), raw);
    Ok(())
}

/// Puts these over those of the same names.
fn put_pairs(body: &mut Body, name: &str, given: &[(String, String)]) -> Result<(), Failure> {
    if given.is_empty() {
        return Ok(());
    }
    let before = body.get(name).map(|raw| serde_json::from_str::<Body>(raw.get()));
    let before = before.transpose().map_err(|error| Failure::unreadable(&error))?;
    let mut pairs = before.unwrap_or_default();
    given
        .iter()
        .try_for_each(|(name, value)| put_field(&mut pairs, name, value))?;
    put_field(body, name, &pairs)
}

/// Puts a field if it was given.
///
/// # Errors
/// It cannot be written as JSON.
pub fn put_given<T: Serialize>(body: &mut Body, name: &str, value: &Option<T>) -> Result<(), Failure> {
    match value {
        Some(value) => put_field(body, name, value),
        None => Ok(()),
    }
}

impl JobArgs {
    /// The target, if one was given.
    fn target(&self) -> Option<TargetBody> {
        if let Some(url) = &self.http {
            return Some(TargetBody::Http(HttpBody {
                method: self.method.clone(),
                url: url.clone(),
                headers: self.header.iter().cloned().collect(),
            }));
        }
        if let Some(name) = &self.handler {
            return Some(TargetBody::Handler(HandlerBody { name: name.clone() }));
        }
        if let Some(name) = &self.remote {
            return Some(TargetBody::Remote(RemoteBody { name: name.clone() }));
        }
        (!self.command.is_empty()).then(|| {
            TargetBody::Command(CommandBody {
                argv: self.command.clone(),
                shell: self.shell,
                env: self.env.iter().cloned().collect(),
                directory: self.directory.clone(),
                grace: self.kill_after.clone(),
            })
        })
    }

    /// Puts what was given over what is in `body`.
    ///
    /// # Errors
    /// The payload is no JSON, or its file cannot be read.
    pub fn put_into(&self, body: &mut Body) -> Result<(), Failure> {
        if !self.shell && matches!(&self.command[..], [word] if word.contains(' ')) {
            eprintln!(
                "note: that command is one word with blanks in it, so a program of that name; --shell has it read"
            );
        }
        self.put_target(body)?;
        self.put_payload(body)?;
        put_given(body, "queue", &self.queue)?;
        put_given(body, "priority", &self.priority)?;
        put_given(body, "tags", &(!self.tag.is_empty()).then_some(&self.tag))?;
        put_given(body, "timeout", &self.attempt_timeout)?;
        let delivery = self.delivery.map(|delivery| match delivery {
            DeliveryArg::AtLeastOnce => "at-least-once",
            DeliveryArg::AtMostOnce => "at-most-once",
        });
        put_given(body, "delivery", &delivery)?;
        put_given(body, "expires_at", &self.expires_at)?;
        self.put_retry(body)
    }

    /// What is not named of a target of the same kind stays, also single headers and variables.
    fn put_target(&self, body: &mut Body) -> Result<(), Failure> {
        let read = |raw: &RawValue| serde_json::from_str::<Body>(raw.get()).ok();
        let before = body.get("target").and_then(|raw| read(raw)).unwrap_or_default();
        let named = match self.target() {
            Some(target) => {
                put_field(body, "target", &target)?;
                body.get("target").and_then(|raw| read(raw)).unwrap_or_default()
            }
            None => Body::new(),
        };
        let kind = |target: &Body| target.get("type").map(|raw| raw.get().trim_matches('"').to_owned());
        let of_kind = kind(&named).or_else(|| kind(&before));
        self.parts_fit(of_kind.as_deref())?;
        if of_kind.is_none() {
            return Ok(());
        }
        let mut target = match kind(&before) == of_kind {
            true => before,
            false => Body::new(),
        };
        // Whether words are a shell's goes with the words.
        if named.contains_key("argv") {
            target.remove("shell");
        }
        for (name, value) in named {
            if !matches!(&*name, "headers" | "env") {
                target.insert(name, value);
            }
        }
        put_given(&mut target, "method", &self.method)?;
        put_given(&mut target, "directory", &self.directory)?;
        put_given(&mut target, "grace", &self.kill_after)?;
        put_pairs(&mut target, "headers", &self.header)?;
        put_pairs(&mut target, "env", &self.env)?;
        put_field(body, "target", &target)
    }

    /// A flag that is a part of a target needs one of its kind, beside it or in the schedule that is edited.
    fn parts_fit(&self, kind: Option<&str>) -> Result<(), Failure> {
        let parts = [
            ("--method", "http", self.method.is_some()),
            ("--header", "http", !self.header.is_empty()),
            ("--env", "command", !self.env.is_empty()),
            ("--directory", "command", self.directory.is_some()),
            ("--kill-after", "command", self.kill_after.is_some()),
        ];
        let wrong = parts
            .into_iter()
            .find(|(_, of, is_given)| *is_given && Some(*of) != kind);
        let Some((flag, of, _)) = wrong else {
            return Ok(());
        };
        let (detail, hint) = match of {
            "http" => ("a call", "Give its URL with --http."),
            _ => ("a command", "Give the command last, behind --."),
        };
        let detail = format!("{flag} is for {detail}, and this is none.");
        Err(Failure::new(Exit::Usage, "target_part_alone", detail, hint).at(&flag[2..]))
    }

    fn put_retry(&self, body: &mut Body) -> Result<(), Failure> {
        if self.attempts.is_none() && self.backoff.is_none() && self.backoff_cap.is_none() {
            return Ok(());
        }
        let mut retry: Body = match body.get("retry") {
            Some(raw) => serde_json::from_str(raw.get()).map_err(|error| Failure::unreadable(&error))?,
            None => Body::new(),
        };
        let given = RetryBody {
            attempts: self.attempts,
            backoff: self.backoff.clone(),
            cap: self.backoff_cap.clone(),
        };
        put_given(&mut retry, "attempts", &given.attempts)?;
        put_given(&mut retry, "backoff", &given.backoff)?;
        put_given(&mut retry, "cap", &given.cap)?;
        put_field(body, "retry", &retry)
    }

    fn put_payload(&self, body: &mut Body) -> Result<(), Failure> {
        if self.payload.is_some() || self.payload_file.is_some() {
            body.remove("payload");
            body.remove("payload_base64");
        }
        if let Some(text) = &self.payload {
            let raw = RawValue::from_string(text.clone()).map_err(|error| {
                let detail = format!("The payload is no JSON: {error}.");
                Failure::new(
                    Exit::Invalid,
                    "payload_malformed",
                    detail,
                    "Quote it for the shell, or use --payload-file.",
                )
                .at("payload")
            })?;
            body.insert("payload".to_owned(), raw);
        }
        if let Some(path) = &self.payload_file {
            put_field(body, "payload_base64", &STANDARD.encode(read_file(path)?))?;
        }
        Ok(())
    }
}

/// Reads a file, or standard input for `-`.
///
/// # Errors
/// It cannot be read, or is too large.
pub fn read_file(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().lock().take(CLI_FILE_BYTES_MAX).read_to_end(&mut bytes),
        false => std::fs::File::open(path).and_then(|file| file.take(CLI_FILE_BYTES_MAX).read_to_end(&mut bytes)),
    };
    match read {
        Ok(count) if (count as u64) < CLI_FILE_BYTES_MAX => Ok(bytes),
        Ok(_) => {
            let detail = format!("The file {} is larger than {CLI_FILE_BYTES_MAX} bytes.", path.display());
            Err(Failure::new(
                Exit::Invalid,
                "file_too_large",
                detail,
                "Send less at once.",
            ))
        }
        Err(error) => Err(Failure::file(path, &error)),
    }
}

/// Reads a JSON object from a file.
///
/// # Errors
/// It cannot be read, or is none.
pub fn read_body(path: &Path) -> Result<Body, Failure> {
    serde_json::from_slice(&read_file(path)?).map_err(|error| {
        let detail = format!("The file {} holds no JSON object: {error}.", path.display());
        Failure::new(
            Exit::Invalid,
            "file_malformed",
            detail,
            "See /openapi.json for its form.",
        )
    })
}

/// A body as it is sent.
///
/// # Errors
/// It cannot be written as JSON.
pub fn to_bytes(body: &Body) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(body).map_err(|error| Failure::unreadable(&error))
}
