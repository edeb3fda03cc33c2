//! One mapping from refusals to what callers see: HTTP status, problem document, exit code.
//!
//! Owns: the table, the problem document (RFC 9457) and the refusals that only HTTP knows. Must never:
//! show Debug output, a secret or a path of the machine. Next: `api/` (writes it), `cli/` (reads it).

use crate::api::fields::sentence;
#[cfg(madsim)]
use crate::planted::{Bug, is_planted};
use fencepost_core::refusal::{Refusal, RefusalKind};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Exit codes of the command line; `docs/cli.md` shows the same table (a test compares them).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Ok = 0,
    /// The operation failed.
    Failed = 1,
    /// The command line itself is wrong.
    Usage = 2,
    /// Nothing of that name.
    NotFound = 3,
    /// No permission.
    Permission = 4,
    /// It clashes with what is there.
    Conflict = 5,
    /// The server cannot be reached, or takes nothing now.
    Unreachable = 6,
    /// Timed out: the outcome is unknown.
    Unknown = 7,
    /// An expression, zone, file or field did not validate.
    Invalid = 8,
    /// Interrupted by Ctrl-C.
    Interrupted = 130,
}

/// The code of a request whose end is not known: other than "not now", it may be done.
pub const OUTCOME_UNKNOWN: &str = "outcome_unknown";

/// Every exit code with its meaning, in order.
pub const EXITS: &[(Exit, &str)] = &[
    (Exit::Ok, "done"),
    (
        Exit::Failed,
        "the operation failed; or a job did not succeed, a server is not ready, its clock is still in doubt, a check of \
         `doctor` failed (a warning is none), a node is older (`upgrade status`), a worker broke a rule",
    ),
    (Exit::Usage, "the command line itself is wrong"),
    (Exit::NotFound, "nothing of that name or id"),
    (
        Exit::Permission,
        "the token is missing or wrong, or the server does not allow it",
    ),
    (
        Exit::Conflict,
        "it clashes with what is there: taken name, changed version, reused key, wrong state",
    ),
    (
        Exit::Unreachable,
        "the server cannot be reached, or takes nothing at the moment",
    ),
    (
        Exit::Unknown,
        "timed out, or the connection broke after the request was sent: the outcome is unknown",
    ),
    (
        Exit::Invalid,
        "an expression, zone, file or field did not validate; or jobs of a batch were refused",
    ),
    (Exit::Interrupted, "interrupted by Ctrl-C"),
];

/// One row: what a refusal of this kind becomes.
struct Mapping {
    kind: RefusalKind,
    status: u16,
    exit: Exit,
    retryable: bool,
    title: &'static str,
}

const fn row(kind: RefusalKind, status: u16, exit: Exit, retryable: bool, title: &'static str) -> Mapping {
    Mapping {
        kind,
        status,
        exit,
        retryable,
        title,
    }
}

/// The one table.
const MAPPINGS: &[Mapping] = &[
    row(
        RefusalKind::Invalid,
        400,
        Exit::Invalid,
        false,
        "The request did not validate",
    ),
    row(
        RefusalKind::NotFound,
        404,
        Exit::NotFound,
        false,
        "Nothing of that name",
    ),
    row(RefusalKind::Forbidden, 403, Exit::Permission, false, "Not allowed"),
    row(
        RefusalKind::Conflict,
        409,
        Exit::Conflict,
        false,
        "It clashes with what is there",
    ),
    row(
        RefusalKind::Precondition,
        412,
        Exit::Conflict,
        false,
        "It has changed since",
    ),
    row(
        RefusalKind::KeyReused,
        422,
        Exit::Conflict,
        false,
        "The idempotency key was used with another body",
    ),
    row(RefusalKind::TooLarge, 413, Exit::Invalid, false, "Too large"),
    row(RefusalKind::Limited, 429, Exit::Failed, true, "A limit is reached"),
    row(RefusalKind::Unavailable, 503, Exit::Unreachable, true, "Not now"),
    row(RefusalKind::StorageFull, 507, Exit::Failed, true, "The disk is full"),
];

/// A problem document (`application/problem+json`, RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// `urn:fencepost:problem:` and the code.
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    pub kind: Box<str>,
    /// The same for all problems of this status.
    #[schema(value_type = String)]
    pub title: Box<str>,
    // What the command line finds itself has none: zero here, and left out of the document.
    /// HTTP status.
    #[serde(default, skip_serializing_if = "is_none")]
    #[schema(required = true)]
    pub status: u16,
    /// Stable, snake_case; programs decide on this.
    #[schema(value_type = String)]
    pub code: Box<str>,
    /// Which field, in dots and brackets: `schedule.cron[0]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub field: Option<Box<str>>,
    /// What is wrong, one sentence.
    #[schema(value_type = String)]
    pub detail: Box<str>,
    /// What to do next.
    #[schema(value_type = String)]
    pub hint: Box<str>,
    /// Names this request in the server's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub request_id: Option<Box<str>>,
    /// Whether the same request may succeed later without a change.
    pub retryable: bool,
}

impl Problem {
    /// What a refusal becomes.
    pub fn of(refusal: &Refusal) -> Problem {
        let found = MAPPINGS.iter().find(|mapping| mapping.kind == refusal.kind);
        #[cfg(madsim)]
        let found = found.filter(|m| m.status != 503 || !is_planted(Bug::NotNowToldAsFault));
        let (status, retryable, title) = found.map_or((500, false, "Failed"), |m| (m.status, m.retryable, m.title));
        Problem {
            kind: format!("urn:fencepost:problem:{}", refusal.code).into(),
            title: title.into(),
            status,
            code: refusal.code.into(),
            field: refusal.field.as_deref().map(Box::from),
            detail: sentence(&refusal.detail).into(),
            hint: sentence(&refusal.hint).into(),
            request_id: None,
            retryable,
        }
    }

    /// A problem that only HTTP knows (401, 405, 408, 415 and so on), or only the command line (zero).
    pub fn http(status: u16, code: &'static str, detail: impl Into<String>, hint: impl Into<String>) -> Problem {
        Problem {
            kind: format!("urn:fencepost:problem:{code}").into(),
            title: http_title(status).into(),
            status,
            code: code.into(),
            field: None,
            detail: detail.into().into(),
            hint: hint.into().into(),
            request_id: None,
            retryable: matches!(status, 408 | 429 | 503),
        }
    }

    /// For people, two lines: what is wrong with its code and place, and what to do next.
    pub fn text(&self) -> String {
        let place = self.field.as_ref().filter(|field| !field.is_empty());
        let place = place.map(|field| format!(", {field}")).unwrap_or_default();
        format!("error: {} [{}{place}]\nhint: {}\n", self.detail, self.code, self.hint)
    }

    /// The exit code of the command line for this problem.
    pub fn exit(&self) -> Exit {
        match &*self.code == OUTCOME_UNKNOWN {
            true => Exit::Unknown,
            false => exit_of_status(self.status),
        }
    }
}

/// A process that hears no signals could not be stopped in order.
pub fn signals_unheard(error: &std::io::Error) -> Refusal {
    let detail = format!("signals cannot be listened to: {}", plain(error));
    let hint = "check the limits of this process";
    Refusal::new(RefusalKind::Limited, "signals_unheard", detail, hint)
}

/// What the system says of an error, without its number, and without what the TLS library says of itself.
pub fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    if text.contains("close_notify") {
        return "the other side closed the connection".to_owned();
    }
    #[cfg(not(madsim))]
    if error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) {
        return "TLS was broken off".to_owned();
    }
    match text.rfind(" (os error ") {
        Some(at) if text.ends_with(')') => text.get(..at).unwrap_or_default().to_owned(),
        _ => text,
    }
}

/// The exit code for an HTTP status.
pub fn exit_of_status(status: u16) -> Exit {
    if let Some(found) = MAPPINGS.iter().find(|mapping| mapping.status == status) {
        return found.exit;
    }
    match status {
        200..=399 => Exit::Ok,
        401 => Exit::Permission,
        408 => Exit::Unknown,
        411 | 415 | 431 => Exit::Invalid,
        _ => Exit::Failed,
    }
}

/// The exit code for a refusal that never crossed HTTP.
pub fn exit_of(refusal: &Refusal) -> Exit {
    Problem::of(refusal).exit()
}

fn is_none(status: &u16) -> bool {
    *status == 0
}

fn http_title(status: u16) -> &'static str {
    match status {
        400 => "The request did not validate",
        401 => "No valid token",
        403 => "Not allowed",
        404 => "Nothing of that name",
        405 => "The method does not fit",
        408 => "The request came too slowly",
        413 => "Too large",
        415 => "The content type does not fit",
        431 => "Too many headers",
        500 => "The server failed",
        503 => "Not now",
        _ => "Refused",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_end_is_not_told_as_nothing_done() {
        let unknown = exit_of(&crate::shell::messages::outcome_unknown());
        assert_eq!(
            (unknown, exit_of(&crate::shell::messages::shard_away())),
            (Exit::Unknown, Exit::Unreachable)
        );
    }

    #[test]
    fn every_kind_of_refusal_has_one_row_with_a_status_of_its_own() {
        for kind in RefusalKind::ALL {
            assert_eq!(MAPPINGS.iter().filter(|m| m.kind == kind).count(), 1, "{kind:?}");
        }
        for mapping in MAPPINGS {
            let same = MAPPINGS.iter().filter(|m| m.status == mapping.status).count();
            assert_eq!(same, 1, "status {}", mapping.status);
        }
    }

    #[test]
    fn an_error_of_the_system_is_told_without_its_number() {
        let error = std::io::Error::from_raw_os_error(2);
        assert!(error.to_string().ends_with(')'), "{error}");
        assert_eq!(plain(&error), "No such file or directory");
        assert_eq!(plain(&std::io::Error::other("odd (os error")), "odd (os error");
    }

    #[test]
    fn a_problem_reads_back_and_keeps_its_exit_code() {
        let refusal = Refusal::new(
            RefusalKind::Precondition,
            "version_changed",
            "It is 3 now.",
            "Read it again.",
        )
        .at("If-Match");
        let problem = Problem::of(&refusal);
        assert_eq!((problem.status, problem.exit()), (412, Exit::Conflict));
        let text = serde_json::to_string(&problem).unwrap();
        assert!(
            text.contains("\"type\":\"urn:fencepost:problem:version_changed\""),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Problem>(&text).unwrap(), problem);
    }
}
