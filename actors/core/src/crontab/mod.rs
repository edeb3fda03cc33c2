//! Crontabs: what each line of one would become here, or why it cannot.
//!
//! Owns: reading user and system crontabs (Vixie, Debian and cronie) line by line into proposals.
//! Must never: fail as a whole, make a schedule, or read a file; the import command does that.
//! Next: `line` (the words of a line), `proposal` (a line made into a schedule), `cron/`.

mod line;
mod name;
mod proposal;

#[cfg(test)]
mod tests;

use crate::limits::{CRONTAB_BYTES_MAX, CRONTAB_LINES_MAX};
use crate::name::Name;
use crate::time::Span;

pub use line::CrontabKind;
use line::{Line, LineReader};
use proposal::Settings;

/// Everything found in a crontab, in order; blank lines and comments are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crontab {
    /// The lines that say something.
    pub lines: Vec<CrontabLine>,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrontabLine {
    /// From 1.
    pub number: usize,
    /// The line as written, cut to a printable length.
    pub text: String,
    /// What becomes of it.
    pub outcome: LineOutcome,
}

/// What becomes of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineOutcome {
    /// A setting for the lines below it.
    Setting {
        /// Its name.
        name: String,
        /// What is different here, if anything.
        note: Option<String>,
    },
    /// A schedule that could be made.
    Proposed(Box<Proposal>),
    /// Nothing; the rest of the file is read all the same.
    Unsupported(Unsupported),
}

/// Why a line becomes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// Stable code.
    pub code: &'static str,
    /// What is wrong, one sentence.
    pub reason: String,
    /// What to do instead.
    pub hint: String,
}

/// A schedule as a line of a crontab asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// Made from the command; the same line gets the same name at every import.
    pub name: Name,
    /// A cron expression that this product accepts.
    pub expression: String,
    /// IANA zone of the expression.
    pub zone: String,
    /// Shell, `-c` and the command.
    pub argv: Vec<String>,
    /// Settings above the line that go to the command.
    pub env: Vec<(String, String)>,
    /// `HOME`, where cron starts its commands, if it is set.
    pub directory: Option<String>,
    /// What stands behind the first `%`, its other `%` made into line ends.
    pub stdin: Option<String>,
    /// Whom a system crontab names.
    pub user: Option<String>,
    /// `RANDOM_DELAY`.
    pub jitter: Span,
    /// What is different here, a sentence each.
    pub notes: Vec<String>,
}

impl Crontab {
    /// Reads a crontab; times are in `zone` until a `CRON_TZ` says otherwise.
    pub fn parse(bytes: &[u8], kind: CrontabKind, zone: &str) -> Crontab {
        let (read, rest) = bytes.split_at_checked(CRONTAB_BYTES_MAX).unwrap_or((bytes, &[]));
        let mut settings = Settings::new(zone);
        let mut lines = Vec::new();
        let mut last = 0;
        for (index, bytes) in read.split(|byte| *byte == b'\n').take(CRONTAB_LINES_MAX).enumerate() {
            last = index + 1;
            let outcome = match LineReader::read(bytes, kind) {
                Ok(Line::Nothing) => continue,
                Ok(Line::Setting { name, value }) => settings.take(name, value, last),
                Ok(Line::Job(job)) => settings
                    .propose(&job)
                    .map_or_else(LineOutcome::Unsupported, |proposal| {
                        LineOutcome::Proposed(Box::new(proposal))
                    }),
                Err(unsupported) => LineOutcome::Unsupported(unsupported),
            };
            lines.push(CrontabLine {
                number: last,
                text: shown(bytes),
                outcome,
            });
        }
        if !rest.is_empty() || read.iter().filter(|byte| **byte == b'\n').count() > CRONTAB_LINES_MAX {
            let reason =
                format!("only the first {CRONTAB_LINES_MAX} lines and {CRONTAB_BYTES_MAX} bytes of a crontab are read");
            let outcome = LineOutcome::Unsupported(Unsupported::new("crontab_too_long", reason, "split the file"));
            lines.push(CrontabLine {
                number: last + 1,
                text: String::new(),
                outcome,
            });
        }
        name::make_unique(&mut lines);
        Crontab { lines }
    }

    /// The schedules that could be made.
    pub fn proposals(&self) -> impl Iterator<Item = (usize, &Proposal)> {
        self.lines.iter().filter_map(|line| match &line.outcome {
            LineOutcome::Proposed(proposal) => Some((line.number, proposal.as_ref())),
            LineOutcome::Setting { .. } | LineOutcome::Unsupported(_) => None,
        })
    }

    /// The lines that become nothing, and why.
    pub fn unsupported(&self) -> impl Iterator<Item = (usize, &Unsupported)> {
        self.lines.iter().filter_map(|line| match &line.outcome {
            LineOutcome::Unsupported(reason) => Some((line.number, reason)),
            LineOutcome::Setting { .. } | LineOutcome::Proposed(_) => None,
        })
    }
}

impl Unsupported {
    fn new(code: &'static str, reason: impl Into<String>, hint: impl Into<String>) -> Unsupported {
        Unsupported {
            code,
            reason: reason.into(),
            hint: hint.into(),
        }
    }
}

fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.trim()
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(200)
        .collect()
}
