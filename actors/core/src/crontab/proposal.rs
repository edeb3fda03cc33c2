//! A line made into a schedule, under the settings above it.
//!
//! Owns: which settings mean something here, the words of cronie and FreeBSD that have another form
//! here, and the notes on what differs. Must never: guess a zone or a time.

use super::line::{JobLine, clip};
use super::{LineOutcome, Proposal, Unsupported, name};
use crate::cron::{CronRule, HashSeed};
use crate::limits::JITTER_MS_MAX;
use crate::time::Span;
use crate::zone::Zone;

/// Settings in force at a line.
pub(super) struct Settings {
    default_zone: String,
    zone: String,
    /// The line of a `CRON_TZ` that names no zone: times below it have no meaning.
    zone_broken_at: Option<usize>,
    shell: String,
    jitter: Span,
    env: Vec<(String, String)>,
}

const SHELL: &str = "/bin/sh";

impl Settings {
    pub(super) fn new(zone: &str) -> Settings {
        Settings {
            default_zone: zone.to_owned(),
            zone: zone.to_owned(),
            zone_broken_at: None,
            shell: SHELL.to_owned(),
            jitter: Span::ZERO,
            env: Vec::new(),
        }
    }

    /// Takes a setting over.
    pub(super) fn take(&mut self, name: &str, value: &str, line: usize) -> LineOutcome {
        let mut note = None;
        match name {
            "CRON_TZ" => return self.take_zone(value, line),
            "RANDOM_DELAY" => return self.take_delay(value),
            "MAILTO" | "MAILFROM" | "CONTENT_TYPE" | "CONTENT_TRANSFER_ENCODING" => {
                note = Some("no mail is sent; the end of the output is kept with each attempt".to_owned());
            }
            "TZ" => {
                note = Some(format!(
                    "given to the commands only; times stay in {}, CRON_TZ would set them",
                    self.zone
                ));
                self.set(name, value);
            }
            "SHELL" => {
                self.shell = if value.is_empty() { SHELL } else { value }.to_owned();
                self.set(name, value);
            }
            _ => {
                if value.contains('$') {
                    note = Some("taken as written: cron does not replace $NAME in settings, nor do we".to_owned());
                }
                self.set(name, value);
            }
        }
        LineOutcome::Setting {
            name: name.to_owned(),
            note,
        }
    }

    fn set(&mut self, name: &str, value: &str) {
        self.env.retain(|(other, _)| other != name);
        self.env.push((name.to_owned(), value.to_owned()));
    }

    fn take_zone(&mut self, value: &str, line: usize) -> LineOutcome {
        let wanted = if value.is_empty() {
            self.default_zone.as_str()
        } else {
            value
        };
        match Zone::get(wanted.trim_start_matches(':')) {
            Ok(zone) => {
                (self.zone, self.zone_broken_at) = (zone.name().to_owned(), None);
                LineOutcome::Setting {
                    name: "CRON_TZ".to_owned(),
                    note: None,
                }
            }
            Err(error) => {
                self.zone_broken_at = Some(line);
                LineOutcome::Unsupported(Unsupported::new(error.code(), error.to_string(), error.hint()))
            }
        }
    }

    fn take_delay(&mut self, value: &str) -> LineOutcome {
        let minutes = value
            .parse::<u64>()
            .ok()
            .filter(|minutes| *minutes <= JITTER_MS_MAX / 60_000);
        match minutes {
            Some(minutes) => {
                self.jitter = Span::from_secs(minutes * 60);
                let note = "each schedule is spread over this window by its own fixed rule".to_owned();
                LineOutcome::Setting {
                    name: "RANDOM_DELAY".to_owned(),
                    note: Some(note),
                }
            }
            None => {
                let reason = format!("RANDOM_DELAY '{}' is not a number of minutes up to a day", clip(value));
                let hint = "write whole minutes; the lines below start without a delay";
                LineOutcome::Unsupported(Unsupported::new("crontab_random_delay", reason, hint))
            }
        }
    }

    /// What a line would become.
    pub(super) fn propose(&self, line: &JobLine) -> Result<Proposal, Unsupported> {
        let mut notes = Vec::new();
        let expression = expression(line, &mut notes)?;
        if let Some(broken) = self.zone_broken_at {
            let reason = format!("its time zone, set in line {broken}, is not known");
            return Err(Unsupported::new(
                "crontab_zone_unknown",
                reason,
                "mend that line and import again",
            ));
        }
        let command = line.command.as_str();
        if line.user.is_none() && command.starts_with("root ") {
            notes.push("the command begins with 'root': is this a system crontab?".to_owned());
        }
        if let Some(user) = line.user {
            notes.push(format!("runs as the user of the Fencepost process, not as '{user}'"));
        }
        if line.silent {
            notes.push("the '-' in front, which keeps cron's log quiet, is left out".to_owned());
        }
        let home = self.env.iter().find(|(name, _)| name == "HOME");
        Ok(Proposal {
            name: name::of_command(&expression, line.user, command),
            expression,
            zone: self.zone.clone(),
            argv: vec![self.shell.clone(), "-c".to_owned(), command.to_owned()],
            env: self.env.clone(),
            directory: home.map(|(_, value)| value.clone()),
            stdin: line.stdin.clone(),
            user: line.user.map(str::to_owned),
            jitter: self.jitter,
            notes,
        })
    }
}

/// The expression of a line, in our grammar.
fn expression(line: &JobLine, notes: &mut Vec<String>) -> Result<String, Unsupported> {
    let text = match line.fields.as_slice() {
        [word] => of_macro(word)?,
        fields => of_fields(fields, notes),
    };
    match CronRule::parse(&text, HashSeed(0)) {
        Ok(rule) => {
            notes.extend(rule.notes().iter().cloned());
            Ok(text)
        }
        Err(error) => Err(Unsupported::new(error.code(), error.message, error.hint)),
    }
}

fn of_macro(word: &str) -> Result<String, Unsupported> {
    let refuse = |reason: &str, hint: &str| {
        Err(Unsupported::new(
            "crontab_macro",
            format!("{} {reason}", clip(word)),
            hint,
        ))
    };
    let lower = word.to_ascii_lowercase();
    match lower.as_str() {
        "@reboot" => refuse(
            "runs when the machine starts, which is no time of a calendar",
            "start it from the service manager (a systemd unit), or give it a time",
        ),
        "@every_minute" => Ok("* * * * *".to_owned()),
        "@every_second" => Ok("* * * * * *".to_owned()),
        "@every" => refuse(
            "is a fixed interval, which cron itself does not know",
            "make a schedule of it: fencepost schedule create NAME --every 5m -- COMMAND",
        ),
        _ if is_pause(&lower) => refuse(
            "waits this many seconds after the end of the run before",
            "make a schedule with --every, such as --every 30s for @30, and let the job refuse to run twice at once",
        ),
        _ => Ok(lower),
    }
}

/// FreeBSD's `@30`.
fn is_pause(word: &str) -> bool {
    let digits = word.strip_prefix('@').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// Joins the fields; cronie's `a~b`, a value drawn when its crontab is loaded, becomes `H(a-b)`.
fn of_fields(fields: &[&str], notes: &mut Vec<String>) -> String {
    let item = |item: &str| match item.split_once('~') {
        None => item.to_owned(),
        Some(("", "")) => "H".to_owned(),
        Some((low, high)) => format!("H({low}-{high})"),
    };
    let field = |field: &&str| field.split(',').map(item).collect::<Vec<_>>().join(",");
    if fields.iter().any(|field| field.contains('~')) {
        notes.push("'~' becomes H: drawn once for the schedule and then kept".to_owned());
    }
    fields.iter().map(field).collect::<Vec<_>>().join(" ")
}
