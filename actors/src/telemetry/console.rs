//! The console of `dev`: a line for each attempt and each stretch that was skipped.
//!
//! Owns: the line's form. Must never: be parsed by programs (they use `-o jsonl` or the API). Next:
//! `../cli/`.

use crate::node::notes::Notes;
use crate::targets::attempt::rfc3339;
use crate::telemetry::{last_attempt, lateness, result_word};
use fencepost_core::ids::JobId;
use fencepost_core::job::{Job, JobState, Origin};
use fencepost_core::scheduler_shard::io::FireNote;
use fencepost_core::time::Span;
use std::io::Write;

/// Prints to standard output.
#[derive(Debug, Default)]
pub struct ConsoleNotes;

impl Notes for ConsoleNotes {
    fn job_changed(&self, _: &Job) {}

    fn attempt_ended(&self, job: &Job) {
        if let Some(line) = attempt_line(job) {
            print_line(&line);
        }
    }

    fn job_purged(&self, _: JobId, _: JobState) {}

    fn fired(&self, note: &FireNote) {
        if note.job.is_some() {
            return;
        }
        let count = note.count.map_or_else(|| "some".to_owned(), |count| count.to_string());
        let line = format!(
            "{:<16} {}  {}  {count} occurrence(s)",
            note.name.1,
            rfc3339(note.nominal),
            note.kind.as_str()
        );
        print_line(&line);
    }
}

/// Of whom: its schedule and the occurrence; else its id and when it was due.
fn attempt_line(job: &Job) -> Option<String> {
    let attempt = last_attempt(job)?;
    let (whose, at) = match &job.origin {
        Origin::Occurrence { schedule, nominal, .. } => (schedule.to_string(), *nominal),
        Origin::Request { .. } => (job.id.to_string(), job.due_at),
    };
    let mut line = format!(
        "{whose:<16} {}  late {:>8}  attempt {}  {}",
        rfc3339(at),
        span_text(lateness(job, attempt)),
        attempt.no,
        result_word(attempt.result)
    );
    if let Some(error) = &attempt.error {
        line.push_str(&format!("  {}", one_line(error)));
    }
    Some(line)
}

/// A closed pipe must not end the server.
fn print_line(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Control characters of targets never reach a terminal.
fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(160)
        .collect()
}

fn span_text(span: Span) -> String {
    match span.0 {
        0..=9_999 => format!("{:.1}ms", span.0 as f64 / 1_000.0),
        10_000..=9_999_999 => format!("{}ms", span.0 / 1_000),
        _ => format!("{:.1}s", span.0 as f64 / 1_000_000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_short() {
        assert_eq!(span_text(Span(1_240)), "1.2ms");
        assert_eq!(span_text(Span(25_000)), "25ms");
        assert_eq!(span_text(Span::from_secs(90)), "90.0s");
    }

    #[test]
    fn escape_codes_do_not_reach_the_terminal() {
        assert_eq!(one_line("a\u{1b}[31m\nb"), "a [31m b");
    }
}
