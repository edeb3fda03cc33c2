//! The words of a crontab line: nothing, a setting, or five fields, a user and a command.
//!
//! Owns: what cron itself does with a line before it looks at values: quotes around settings, odd
//! spacing, `%` and `\%`. Must never: judge an expression.

use super::Unsupported;
use crate::limits::ARGV_BYTES_MAX;

/// Whose crontab it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrontabKind {
    /// Of one user (`crontab -l`): five fields and a command.
    User,
    /// Of the system (`/etc/crontab`, `/etc/cron.d/*`): five fields, a user and a command.
    System,
}

/// One line, taken apart.
pub(super) enum Line<'a> {
    /// Blank, or a comment.
    Nothing,
    /// `NAME = value`.
    Setting { name: &'a str, value: &'a str },
    /// Something to run.
    Job(JobLine<'a>),
}

/// A line that runs something.
pub(super) struct JobLine<'a> {
    /// Five fields, or a macro.
    pub fields: Vec<&'a str>,
    /// In a system crontab.
    pub user: Option<&'a str>,
    /// `\%` made into `%`.
    pub command: String,
    /// Behind the first bare `%`.
    pub stdin: Option<String>,
    /// SUSE's `-` in front of the first field.
    pub silent: bool,
}

/// Reads one line from left to right.
pub(super) struct LineReader<'a> {
    rest: &'a str,
}

impl<'a> LineReader<'a> {
    pub(super) fn read(bytes: &'a [u8], kind: CrontabKind) -> Result<Line<'a>, Unsupported> {
        let Ok(text) = std::str::from_utf8(bytes) else {
            let hint = "save the crontab as UTF-8";
            return Err(Unsupported::new("crontab_not_utf8", "the line is not UTF-8 text", hint));
        };
        let text = text.strip_suffix('\r').unwrap_or(text).trim_start_matches(BLANKS);
        if text.is_empty() || text.starts_with('#') {
            return Ok(Line::Nothing);
        }
        if let Some(at) = text.find(|c: char| c.is_control() && c != '\t') {
            let reason = format!("a control character stands at byte {at} of the line");
            return Err(Unsupported::new("crontab_control_character", reason, "remove it"));
        }
        if text.len() > ARGV_BYTES_MAX / 2 {
            let reason = format!("the line has more than {} bytes", ARGV_BYTES_MAX / 2);
            return Err(Unsupported::new(
                "crontab_line_too_long",
                reason,
                "put the command into a script",
            ));
        }
        if let Some((name, value)) = setting(text) {
            let Some(value) = unquote(value) else {
                let reason = format!(
                    "the value of {} does not end with the quote that it begins with",
                    clip(name)
                );
                let hint = "cron takes such a line for no setting: end it with its quote, without a comment behind it";
                return Err(Unsupported::new("crontab_quotes", reason, hint));
            };
            return Ok(Line::Setting { name, value });
        }
        LineReader { rest: text }.job(kind).map(Line::Job)
    }

    fn job(mut self, kind: CrontabKind) -> Result<JobLine<'a>, Unsupported> {
        let silent = self.rest.starts_with('-');
        self.rest = self.rest.strip_prefix('-').unwrap_or(self.rest);
        let wanted = if self.rest.starts_with('@') { 1 } else { 5 };
        let mut fields = Vec::with_capacity(wanted);
        while fields.len() < wanted {
            let Some(field) = self.word() else {
                let reason = format!("the line ends after {} of 5 time fields", fields.len());
                let hint = "minute hour day-of-month month day-of-week command";
                return Err(Unsupported::new("crontab_fields_missing", reason, hint));
            };
            fields.push(field);
        }
        let user = match kind {
            CrontabKind::User => None,
            CrontabKind::System => Some(self.user()?),
        };
        let (command, stdin) = split_percent(self.rest);
        if command.trim().is_empty() {
            let hint = "a user crontab has no user field: check which kind this file is";
            return Err(Unsupported::new(
                "crontab_command_missing",
                "the line has no command",
                hint,
            ));
        }
        Ok(JobLine {
            fields,
            user,
            command,
            stdin,
            silent,
        })
    }

    fn word(&mut self) -> Option<&'a str> {
        let text = self.rest.trim_start_matches(BLANKS);
        let (word, rest) = text.split_at_checked(text.find(BLANKS).unwrap_or(text.len()))?;
        self.rest = rest.trim_start_matches(BLANKS);
        (!word.is_empty()).then_some(word)
    }

    fn user(&mut self) -> Result<&'a str, Unsupported> {
        let user = self.word().unwrap_or("");
        let first = |c: char| c.is_ascii_alphabetic() || c == '_';
        let more = |c: char| c.is_ascii_alphanumeric() || "_.-:/$".contains(c);
        match user.starts_with(first) && user.chars().all(more) {
            true => Ok(user),
            false => {
                let reason = format!("'{}' stands where a system crontab names the user", clip(user));
                let hint = "if this is a user's crontab, import it as one";
                Err(Unsupported::new("crontab_user", reason, hint))
            }
        }
    }
}

const BLANKS: [char; 2] = [' ', '\t'];

/// Words from a file that go into a message.
pub(super) fn clip(text: &str) -> String {
    text.chars().take(40).collect()
}

/// `NAME=value`, `NAME = "value"`, `"NAME" = value`; the value with its quotes.
fn setting(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    let name = unquote(name.trim_matches(BLANKS))?;
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let valid = name.starts_with(first) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    valid.then(|| (name, value.trim_matches(BLANKS)))
}

/// What stands in quotes, or bare; a quote that begins a text ends it where it comes again, and nothing follows.
fn unquote(text: &str) -> Option<&str> {
    for quote in ['"', '\''] {
        if let Some(rest) = text.strip_prefix(quote) {
            return rest.strip_suffix(quote).filter(|inner| !inner.contains(quote));
        }
    }
    Some(text)
}

/// Command and input: the first bare `%` ends the command, later ones end lines of its input, `\%` is
/// a per cent sign. Cron ends the input with a line end.
fn split_percent(text: &str) -> (String, Option<String>) {
    let (mut command, mut stdin) = (String::new(), None::<String>);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let out = match (c, chars.peek()) {
            ('\\', Some('%')) => {
                chars.next();
                '%'
            }
            ('%', _) if stdin.is_none() => {
                stdin = Some(String::new());
                continue;
            }
            ('%', _) => '\n',
            _ => c,
        };
        stdin.as_mut().unwrap_or(&mut command).push(out);
    }
    if let Some(stdin) = stdin.as_mut().filter(|stdin| !stdin.ends_with('\n')) {
        stdin.push('\n');
    }
    (command.trim_end_matches(BLANKS).to_owned(), stdin)
}
