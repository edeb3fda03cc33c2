//! What went wrong, for people on standard error and for scripts in the exit code.
//!
//! Owns: the one form of an error on the command line. Must never: write to standard output. Next:
//! `crate::problem`.

use super::output::Format;
use crate::problem::{Exit, Problem, plain};
use fencepost_core::refusal::Refusal;
use std::io::{self, Write};

/// A command that did not do what it was asked.
#[derive(Debug)]
pub struct Failure {
    /// Exit code.
    pub exit: Exit,
    /// What and why.
    pub problem: Box<Problem>,
}

impl Failure {
    /// One that the command line found itself.
    pub fn new(exit: Exit, code: &'static str, detail: impl Into<String>, hint: impl Into<String>) -> Failure {
        let mut problem = Problem::http(0, code, detail, hint);
        problem.retryable = matches!(exit, Exit::Unreachable);
        Failure {
            exit,
            problem: Box::new(problem),
        }
    }

    /// The same, naming the option or field.
    pub fn at(mut self, place: &str) -> Failure {
        self.problem.field = Some(place.into());
        self
    }

    /// A refusal that never crossed HTTP.
    pub fn of(refusal: Refusal) -> Failure {
        let mut failure = Failure::from_problem(Problem::of(&refusal));
        failure.problem.status = 0;
        failure
    }

    /// What the server answered.
    pub fn from_problem(problem: Problem) -> Failure {
        Failure {
            exit: problem.exit(),
            problem: Box::new(problem),
        }
    }

    /// A bad status without a problem: a head that the server could not read, or no server of ours.
    pub fn odd(status: u16) -> Failure {
        if matches!(status, 400 | 414 | 431) {
            let detail = format!("The server could not read what was asked ({status}): it is too long, or malformed.");
            let hint = "Shorten names, ids and filters; or, if it is no Fencepost server, check --server.";
            return Failure::new(Exit::Invalid, "request_unreadable", detail, hint);
        }
        let detail = format!("The server answered {status} and no reason.");
        Failure::new(
            Exit::Failed,
            "answer_unexpected",
            detail,
            "Is this a Fencepost server? Check --server.",
        )
    }

    /// An answer that cannot be read.
    pub fn unreadable(reason: &dyn std::fmt::Display) -> Failure {
        let detail = format!("The answer of the server cannot be read: {reason}.");
        Failure::new(
            Exit::Failed,
            "answer_unreadable",
            detail,
            "Use a command line of the server's version.",
        )
    }

    /// A file that cannot be read.
    pub fn file(path: &std::path::Path, error: &io::Error) -> Failure {
        let detail = format!("The file {} cannot be read: {}.", path.display(), plain(error));
        Failure::new(
            Exit::Failed,
            "file_unreadable",
            detail,
            "Check the path and its rights.",
        )
    }

    /// A file of settings that cannot be read: the command line names one that is no good.
    pub fn settings(path: &std::path::Path, error: &io::Error) -> Failure {
        Failure {
            exit: Exit::Usage,
            ..Failure::file(path, error)
        }
    }

    /// Writes it to standard error.
    ///
    /// # Errors
    /// Standard error is gone.
    pub fn show(&self, format: Format, err: &mut dyn Write) -> io::Result<()> {
        let problem = &self.problem;
        if format != Format::Text {
            return writeln!(err, "{}", serde_json::to_string(problem)?);
        }
        write!(err, "{}", problem.text())?;
        match &problem.request_id {
            Some(id) => writeln!(err, "request: {id}"),
            None => Ok(()),
        }
    }
}
