//! Checks a target's description when it is made, and again before each attempt.
//!
//! Owns: which targets are accepted, with the field that is wrong. Must never: touch the network or the
//! file system. Next: `url` and `header` for the rules, the API for who asks.

use std::fmt;

use fencepost_core::limits::{ARGV_BYTES_MAX, ARGV_COUNT_MAX, GRACE_MS_MAX};
use fencepost_core::target::{CommandTarget, HttpTarget, Target};

use super::TargetsConfig;
use super::header::check_headers;
use super::url::TargetUrl;

/// The methods a job may use.
pub const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];

/// What is wrong with a target: where, a stable code, and a sentence that says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetProblem {
    /// Path within the target, as in `headers/2` or `argv`.
    pub field: String,
    /// Stable.
    pub code: &'static str,
    /// For people.
    pub message: String,
}

impl TargetProblem {
    fn new(field: impl Into<String>, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            code,
            message: message.into(),
        }
    }
}

impl fmt::Display for TargetProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.code, self.field, self.message)
    }
}

/// Checks any target against what this server allows.
///
/// # Errors
/// The first thing wrong with it.
pub fn check_target(target: &Target, config: &TargetsConfig) -> Result<(), TargetProblem> {
    match target {
        Target::Http(http) => {
            let url = check_http(http, config.authorization_header)?;
            if config.connect.own_ports.contains(&url.port) {
                let why = super::url::UrlError::PortNotAllowed;
                return Err(TargetProblem::new("url", why.code(), why.to_string()));
            }
            Ok(())
        }
        Target::Command(_) if !config.commands => Err(TargetProblem::new(
            "type",
            "command_not_allowed",
            "command targets are off on this server; an operator can allow them",
        )),
        Target::Command(command) => check_command(command),
        Target::Handler(_) | Target::Remote(_) => Ok(()),
    }
}

/// Checks an `http` target and returns its URL, read.
///
/// # Errors
/// The first thing wrong with it.
pub fn check_http(target: &HttpTarget, authorization: bool) -> Result<TargetUrl, TargetProblem> {
    if !METHODS.contains(&&*target.method) {
        let message = format!("the method must be one of {}", METHODS.join(", "));
        return Err(TargetProblem::new("method", "method_not_allowed", message));
    }
    check_headers(&target.headers, authorization)
        .map_err(|(at, why)| TargetProblem::new(format!("headers/{at}"), why.code(), why.to_string()))?;
    TargetUrl::parse(&target.url).map_err(|why| TargetProblem::new("url", why.code(), why.to_string()))
}

/// Checks a `command` target.
///
/// # Errors
/// The first thing wrong with it.
pub fn check_command(target: &CommandTarget) -> Result<(), TargetProblem> {
    let argv = &target.argv;
    if argv.first().is_none_or(String::is_empty) || argv.len() > ARGV_COUNT_MAX {
        let message = format!("a command has a program and at most {ARGV_COUNT_MAX} words in all");
        return Err(TargetProblem::new("argv", "command_argv_count", message));
    }
    let env_bytes = target
        .env
        .iter()
        .map(|(name, value)| name.len() + value.len() + 2)
        .sum::<usize>();
    if argv.iter().map(|word| word.len() + 1).sum::<usize>() + env_bytes > ARGV_BYTES_MAX {
        let message = format!("arguments and environment have at most {ARGV_BYTES_MAX} bytes together");
        return Err(TargetProblem::new("argv", "command_argv_bytes", message));
    }
    if let Some(at) = argv.iter().position(|word| word.contains('\0')) {
        return Err(TargetProblem::new(
            format!("argv/{at}"),
            "command_nul",
            "a word must not hold a NUL",
        ));
    }
    if let Some(name) = target.env.iter().find_map(|(name, value)| env_problem(name, value)) {
        let message = "a variable is named A-Z, a-z, 0-9 and _, not FENCEPOST_…, LD_… or DYLD_…, and holds no NUL";
        return Err(TargetProblem::new(format!("env/{name}"), "command_env", message));
    }
    if target
        .directory
        .as_ref()
        .is_some_and(|path| !path.starts_with('/') || path.contains('\0'))
    {
        let message = "the working folder must be an absolute path";
        return Err(TargetProblem::new("directory", "command_directory", message));
    }
    if target.grace.as_millis() > GRACE_MS_MAX {
        let message = format!("the grace between TERM and KILL is at most {} s", GRACE_MS_MAX / 1_000);
        return Err(TargetProblem::new("grace", "command_grace", message));
    }
    Ok(())
}

/// The printable form of a variable's name if it may not be set.
fn env_problem(name: &str, value: &str) -> Option<String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let form = !name.is_empty() && name.bytes().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit());
    let ours = ["FENCEPOST_", "LD_", "DYLD_"]
        .iter()
        .any(|prefix| name.starts_with(prefix));
    (!form || ours || value.contains('\0')).then(|| name.escape_default().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_core::time::Span;

    fn command(argv: &[&str]) -> CommandTarget {
        CommandTarget {
            argv: argv.iter().map(ToString::to_string).collect(),
            shell: false,
            env: vec![],
            directory: None,
            grace: Span::from_secs(1),
        }
    }

    fn code(target: &CommandTarget) -> Option<&'static str> {
        check_command(target).err().map(|problem| problem.code)
    }

    #[test]
    fn commands_are_checked_field_by_field() {
        assert_eq!(code(&command(&["true"])), None);
        assert_eq!(code(&command(&[])), Some("command_argv_count"));
        assert_eq!(code(&command(&[""])), Some("command_argv_count"));
        assert_eq!(code(&command(&["x"; ARGV_COUNT_MAX + 1])), Some("command_argv_count"));
        assert_eq!(
            code(&command(&["echo", &"x".repeat(ARGV_BYTES_MAX)])),
            Some("command_argv_bytes")
        );
        assert_eq!(code(&command(&["echo", "a\0b"])), Some("command_nul"));
        for name in ["", "1A", "A-B", "A B", "FENCEPOST_JOB", "LD_PRELOAD", "A=B", "\u{e4}"] {
            let target = CommandTarget {
                env: vec![(name.into(), "v".into())],
                ..command(&["true"])
            };
            assert_eq!(code(&target), Some("command_env"), "{name}");
        }
        let relative = CommandTarget {
            directory: Some("tmp".into()),
            ..command(&["true"])
        };
        assert_eq!(code(&relative), Some("command_directory"));
        let patient = CommandTarget {
            grace: Span::from_millis(GRACE_MS_MAX + 1),
            ..command(&["true"])
        };
        assert_eq!(code(&patient), Some("command_grace"));
    }

    #[test]
    fn commands_are_refused_until_allowed() {
        let target = Target::Command(command(&["true"]));
        let off = check_target(&target, &TargetsConfig::default()).err().map(|p| p.code);
        assert_eq!(off, Some("command_not_allowed"));
        assert_eq!(check_target(&target, &TargetsConfig::for_dev()), Ok(()));
    }

    #[test]
    fn http_problems_name_their_field() {
        let target = |method: &str, url: &str, header: &str| HttpTarget {
            method: method.into(),
            url: url.into(),
            headers: vec![("accept".into(), "*/*".into()), (header.into(), "v".into())],
        };
        let field = |t: &HttpTarget| check_http(t, false).err().map(|p| (p.field, p.code));
        assert_eq!(field(&target("POST", "https://a.b/", "x-a")), None);
        assert_eq!(
            field(&target("post", "https://a.b/", "x-a")),
            Some(("method".into(), "method_not_allowed"))
        );
        assert_eq!(
            field(&target("CONNECT", "https://a.b/", "x-a")),
            Some(("method".into(), "method_not_allowed"))
        );
        assert_eq!(
            field(&target("GET", "https://a.b/", "host")),
            Some(("headers/1".into(), "header_not_allowed"))
        );
        assert_eq!(
            field(&target("GET", "ssh://a.b/", "x-a")),
            Some(("url".into(), "url_scheme"))
        );
    }

    #[test]
    fn own_ports_are_refused_at_creation() {
        let mut config = TargetsConfig::default();
        config.connect.own_ports.insert(4480);
        let target = HttpTarget {
            method: "GET".into(),
            url: "http://a.b:4480/".into(),
            headers: vec![],
        };
        let code = check_target(&Target::Http(target), &config).err().map(|p| p.code);
        assert_eq!(code, Some("url_port_not_allowed"));
    }
}
