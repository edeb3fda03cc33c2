//! What a job does, as JSON.
//!
//! Owns: the four shapes of a target and the masking of secrets in answers. Must never: judge what is
//! allowed (that is `targets::check`). Next: `job.rs`.

use crate::api::fields::{Fields, sentence};
use crate::api::text;
use crate::targets::{TargetProblem, TargetsConfig, check_target};
use fencepost_core::limits::{ARGV_COUNT_MAX, GRACE_MS, GRACE_MS_MAX};
use fencepost_core::refusal::{Refusal, RefusalKind};
use fencepost_core::target::{CommandTarget, HttpTarget, Target};
use fencepost_core::time::Span;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;

/// Shown instead of a secret; refused when it is sent back, but for an edit that keeps what is stored
/// (`kept_secrets.rs`).
pub const MASK: &str = "********";

/// What a job does.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum TargetBody {
    /// Calls a URL.
    Http(HttpBody),
    /// Runs a program.
    Command(CommandBody),
    /// Calls a Rust handler registered under this name; `noop` is built in.
    Handler(HandlerBody),
    /// Waits for a worker that claims it over HTTP.
    Remote(RemoteBody),
}

/// An HTTP call.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct HttpBody {
    /// `GET POST PUT PATCH DELETE HEAD`; `POST`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Absolute, http or https.
    pub url: String,
    /// Allowed headers, lower-case names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(required = false)]
    pub headers: BTreeMap<String, String>,
}

/// A program to run.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CommandBody {
    /// Program and arguments; with `shell` the words are joined and given to `/bin/sh -c`.
    pub argv: Vec<String>,
    /// Run through the shell.
    #[schema(required = false)]
    pub shell: bool,
    /// Added to the environment.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(required = false)]
    pub env: BTreeMap<String, String>,
    /// Working folder, absolute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Time between TERM and KILL; `10s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace: Option<String>,
}

/// A Rust handler.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct HandlerBody {
    /// Registered name.
    pub name: String,
}

/// Work for a worker over HTTP.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RemoteBody {
    /// What the worker is asked to do.
    pub name: String,
}

#[derive(Clone, Copy)]
enum Kind {
    Http,
    Command,
    Handler,
    Remote,
}

const KINDS: &[(&str, Kind)] = &[
    ("http", Kind::Http),
    ("command", Kind::Command),
    ("handler", Kind::Handler),
    ("remote", Kind::Remote),
];

/// Reads a target and has it checked against what the server allows.
///
/// # Errors
/// The first field that is wrong.
pub fn read_target(mut fields: Fields, config: &TargetsConfig) -> Result<Target, Refusal> {
    let place = fields.name_of("");
    let kind = fields
        .word("type", KINDS)?
        .ok_or_else(|| fields.missing("type", "Use http, command, handler or remote."))?;
    let target = match kind {
        Kind::Http => Target::Http(read_http(&mut fields)?),
        Kind::Command => Target::Command(read_command(&mut fields)?),
        Kind::Handler => {
            let name = fields.name("name")?;
            Target::Handler(name.ok_or_else(|| fields.missing("name", "Name the handler, such as noop."))?)
        }
        Kind::Remote => {
            let name = fields.name("name")?;
            Target::Remote(
                name.ok_or_else(|| fields.missing("name", "Give the name by which its worker knows what to do."))?,
            )
        }
    };
    fields.end()?;
    check_target(&target, config).map_err(|problem| refusal_of(&target, problem, &place))?;
    Ok(target)
}

fn read_http(fields: &mut Fields) -> Result<HttpTarget, Refusal> {
    let hint = "Give the address to call, such as https://example.org/hook.";
    let url = fields.text("url")?.ok_or_else(|| fields.missing("url", hint))?;
    let headers = fields.text_map("headers")?;
    refuse_masked(fields, "headers", &headers)?;
    Ok(HttpTarget {
        method: fields.text("method")?.unwrap_or_else(|| "POST".to_owned()).into(),
        url: url.into(),
        headers,
    })
}

fn read_command(fields: &mut Fields) -> Result<CommandTarget, Refusal> {
    let env = fields.text_map("env")?;
    refuse_masked(fields, "env", &env)?;
    Ok(CommandTarget {
        argv: fields.texts("argv", ARGV_COUNT_MAX)?,
        shell: fields.flag("shell")?,
        env,
        directory: fields.text("directory")?,
        grace: fields
            .span("grace", Span::from_millis(GRACE_MS_MAX))?
            .unwrap_or(Span::from_millis(GRACE_MS)),
    })
}

fn refuse_masked(fields: &Fields, field: &str, pairs: &[(String, String)]) -> Result<(), Refusal> {
    let Some((name, _)) = pairs.iter().find(|(_, value)| value == MASK) else {
        return Ok(());
    };
    Err(fields.refuse(
        &format!("{field}.{name}"),
        "secret_masked",
        "This is the mask that answers show instead of a secret.",
        "Send the secret itself again: a mask stands for it only in an edit that leaves what it is sent to as it is.",
    ))
}

/// What the check of targets found, by the field's name in this body.
fn refusal_of(target: &Target, problem: TargetProblem, place: &str) -> Refusal {
    let field = match (problem.field.split_once('/'), target) {
        (Some(("headers", at)), Target::Http(http)) => {
            let name = at.parse::<usize>().ok().and_then(|at| http.headers.get(at));
            name.map_or_else(|| "headers".to_owned(), |(name, _)| format!("headers.{name}"))
        }
        (Some((list, at)), _) if at.bytes().all(|b| b.is_ascii_digit()) => format!("{list}[{at}]"),
        (Some((map, key)), _) => format!("{map}.{key}"),
        (None, _) => problem.field,
    };
    let kind = match problem.code {
        "command_not_allowed" => RefusalKind::Forbidden,
        _ => RefusalKind::Invalid,
    };
    let hint = match problem.code {
        "command_not_allowed" => "Start every node that takes requests or runs jobs with --allow-commands, or use dev.",
        "url_scheme" => "Begin the address with http:// or https://.",
        "url_port_not_allowed" => "Use 80, 443 or a port from 1024, and none of this server's own.",
        "method_not_allowed" => "Use one of GET, POST, PUT, PATCH, DELETE and HEAD.",
        "header_name" => {
            "Write it in lower case, such as x-request-id; docs/guides/targets.md lists those that may be set."
        }
        "header_value" => "Leave out line ends and all that is not visible ASCII.",
        "command_env" => "Give the variable another name, or leave the zero byte out.",
        "command_nul" => "Leave the zero byte out of the command.",
        "command_argv_count" => "Give the program and its arguments, within the bound that docs/limits.md names.",
        _ => "Correct this part of the target.",
    };
    Refusal::new(kind, problem.code, sentence(&problem.message), hint).at(format!("{place}{field}"))
}

/// Words in a header's or variable's name that say its value is a secret.
const SECRET_WORDS: &[&str] = &[
    "auth",
    "token",
    "secret",
    "passw",
    "api-key",
    "api_key",
    "apikey",
    "cookie",
    "credential",
];

/// Whether a header's or variable's name says that its value is a secret.
pub fn is_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| lower.contains(word))
}

fn masked(pairs: &[(String, String)]) -> BTreeMap<String, String> {
    let mask = |(name, value): &(String, String)| {
        (
            name.clone(),
            if is_secret(name) {
                MASK.to_owned()
            } else {
                value.clone()
            },
        )
    };
    pairs.iter().map(mask).collect()
}

impl TargetBody {
    /// The body that would make this target, secrets masked.
    pub fn of(target: &Target) -> TargetBody {
        match target {
            Target::Http(http) => TargetBody::Http(HttpBody {
                method: Some(http.method.to_string()),
                url: without_credentials(&http.url),
                headers: masked(&http.headers),
            }),
            Target::Command(command) => TargetBody::Command(CommandBody {
                argv: command.argv.clone(),
                shell: command.shell,
                env: masked(&command.env),
                directory: command.directory.clone(),
                grace: Some(text::span(command.grace)),
            }),
            Target::Handler(name) => TargetBody::Handler(HandlerBody { name: name.to_string() }),
            Target::Remote(name) => TargetBody::Remote(RemoteBody { name: name.to_string() }),
        }
    }
}

/// The address without a password in front of the host (the check refuses those; this is a second net).
fn without_credentials(url: &Arc<str>) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_string();
    };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match host.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://{MASK}@{host}{path}"),
        None => url.to_string(),
    }
}
