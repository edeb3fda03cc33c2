//! Variables whose names begin with `FENCEPOST_`: which there are, and a word about one that is none.
//!
//! Owns: the list of those that are no settings of a server. Must never: read a value. Next:
//! `crate::config::table` (the settings), `crate::targets::command` (what a job's program finds).

use crate::config::nearest::nearest;
use crate::config::{SETTINGS, table::FILE_VARIABLE};
use fencepost_core::refusal::shown;
use std::ffi::OsString;

/// What a command line reads from its environment, and what it means.
pub const CLIENT_VARIABLES: &[(&str, &str)] = &[
    (
        "FENCEPOST_SERVER",
        "where the server listens, as `--server`; a server's own `FENCEPOST_LISTEN` is read by `doctor` alone",
    ),
    (
        "FENCEPOST_TOKEN",
        "the API's token itself, for a server in memory (`dev --ephemeral`); it wins over the file",
    ),
    ("FENCEPOST_TOKEN_FILE", "the file with the token, as `--token-file`"),
    (
        "FENCEPOST_TZ",
        "the zone that times are shown in, as `--tz` of commands that show some; never the zone of a schedule",
    ),
    ("FENCEPOST_DATA", "folder of the store and the token, as `--data`"),
    (FILE_VARIABLE, "file of a server's settings, as `--config`"),
    (
        "FENCEPOST_LOG",
        "what a server logs, by part, such as `fencepost=debug,warn`; it wins over `--log-level`",
    ),
];

/// What the program of a `command` target finds in its environment.
pub const JOB_VARIABLES: &[(&str, &str)] = &[
    ("FENCEPOST_JOB", "the job's id"),
    ("FENCEPOST_ATTEMPT", "the attempt, from 1"),
    ("FENCEPOST_IDEMPOTENCY_KEY", "the same for all attempts of the job"),
    (
        "FENCEPOST_TOKEN",
        "the fencing token of the attempt; `fencepost` itself does not take it for the API's",
    ),
    ("FENCEPOST_SCHEDULED_FOR", "the instant that the job is for"),
    ("FENCEPOST_SCHEDULE", "the schedule that made it, if one did"),
];

const PREFIX: &str = "FENCEPOST_";
/// Not ours: what Kubernetes tells each container of a service that is called fencepost, and what tests set.
const NOT_OURS: &[&str] = &["FENCEPOST_SERVICE_", "FENCEPOST_PORT", "FENCEPOST_TEST_"];

fn known() -> impl Iterator<Item = &'static str> {
    let others = CLIENT_VARIABLES.iter().chain(JOB_VARIABLES).map(|(name, _)| *name);
    SETTINGS.iter().map(|setting| setting.env).chain(others)
}

/// A line for each of these names that looks like ours and is not.
pub fn warnings(names: impl IntoIterator<Item = OsString>) -> Vec<String> {
    let mut lines: Vec<_> = names.into_iter().filter_map(|name| warning(name.to_str()?)).collect();
    lines.sort();
    lines
}

fn warning(name: &str) -> Option<String> {
    let word = name.strip_prefix(PREFIX)?;
    if NOT_OURS.iter().any(|other| name.starts_with(other)) || known().any(|known| known == name) {
        return None;
    }
    let hint = match nearest(word, known().filter_map(|known| known.strip_prefix(PREFIX))) {
        Some(near) => format!("did you mean {PREFIX}{near}?"),
        None => "docs/cli.md and docs/config.md list those that count".to_owned(),
    };
    let name = shown(name, 64);
    Some(format!(
        "warning: the variable {name} is not known and does nothing; {hint}"
    ))
}

/// Tells of each unknown variable on standard error.
pub fn warn_of_unknown() {
    for line in warnings(std::env::vars_os().map(|(name, _)| name)) {
        eprintln!("{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(name: &str) -> String {
        warnings([OsString::from(name)]).concat()
    }

    #[test]
    fn an_unknown_variable_is_told_with_what_was_probably_meant() {
        assert!(told("FENCEPOST_SLOTZ").contains("did you mean FENCEPOST_SLOTS?"));
        assert!(told("FENCEPOST_SERVR").contains("did you mean FENCEPOST_SERVER?"));
        assert!(told("FENCEPOST_COLOUR_OF_THE_SKY").contains("docs/cli.md"));
    }

    #[test]
    fn what_is_known_or_not_ours_is_not_told() {
        for name in known().chain([
            "PATH",
            "FENCEPOST",
            "FENCEPOST_SERVICE_HOST",
            "FENCEPOST_PORT_4480_TCP_ADDR",
        ]) {
            assert_eq!(told(name), "", "{name}");
        }
    }
}
