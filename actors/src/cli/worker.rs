//! `fencepost worker check`: whether a worker in another language keeps the rules.
//!
//! Owns: the command and its words. Must never: judge; that is `crate::conformance`.

use super::failure::Failure;
use super::output::{Format, OutputArgs, counted, put};
use crate::conformance::{QUEUE, Verdict, WORK, cases, check};
use crate::problem::Exit;
use clap::{Args, Subcommand};
use serde_json::json;
use std::io::Write;

/// Work with workers over HTTP.
#[derive(Debug, Subcommand)]
pub enum WorkerCommand {
    /// Check whether a worker keeps the rules: it is started, given jobs and disturbed.
    ///
    /// The worker finds the server in FENCEPOST_SERVER and FENCEPOST_TOKEN, claims jobs of the queue "conformance"
    /// and carries out those named "conformance" as docs/guides/workers.md says.
    #[command(after_help = "Example:\n  fencepost worker check -- python3 docs/workers/worker.py --queues conformance")]
    Check(CheckArgs),
}

/// Arguments of `worker check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    output: OutputArgs,
    /// Play only this case; may be repeated.
    #[arg(long, value_name = "CASE", value_parser = cases().collect::<Vec<_>>())]
    case: Vec<String>,
    /// The worker's program and its arguments, behind --.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl WorkerCommand {
    /// The form of output that errors follow.
    pub fn format(&self) -> Format {
        let WorkerCommand::Check(args) = self;
        args.output.output
    }

    /// Runs it; exit code 1 if the worker broke a rule.
    ///
    /// # Errors
    /// The worker could not be started.
    pub fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        let WorkerCommand::Check(args) = self;
        let format = args.output.output;
        let mut written = Ok(());
        let checking = check(&args.command, &args.case, |verdict| {
            if format != Format::Json && written.is_ok() {
                written = tell(verdict, format, out);
            }
        });
        let verdicts = crate::process::threads::main_system()
            .block_on(checking)
            .map_err(not_started)?;
        written?;
        let failed = verdicts.iter().filter(|verdict| verdict.fault.is_some()).count();
        match format {
            Format::Json => {
                let all: Vec<_> = verdicts.iter().map(value).collect();
                put(out, &serde_json::Value::from(all).to_string())?;
            }
            Format::Text => put(
                out,
                &format!(
                    "{} kept, {failed} broken",
                    counted((verdicts.len() - failed) as u64, "rule")
                ),
            )?,
            Format::Jsonl => {}
        }
        Ok(if failed == 0 { Exit::Ok } else { Exit::Failed })
    }
}

fn value(verdict: &Verdict) -> serde_json::Value {
    json!({ "case": verdict.case, "rule": verdict.rule, "kept": verdict.fault.is_none(), "fault": verdict.fault })
}

fn tell(verdict: &Verdict, format: Format, out: &mut dyn Write) -> Result<(), Failure> {
    let line = match (format, &verdict.fault) {
        (Format::Json | Format::Jsonl, _) => value(verdict).to_string(),
        (Format::Text, None) => format!("kept    {}: {}", verdict.case, verdict.rule),
        (Format::Text, Some(fault)) => format!("BROKEN  {}: {}; but {fault}", verdict.case, verdict.rule),
    };
    put(out, &line)
}

fn not_started(why: String) -> Failure {
    let hint = format!(
        "Give the command that starts the worker behind --; it claims jobs named {WORK} from the queue {QUEUE}."
    );
    Failure::new(
        Exit::Failed,
        "worker_not_started",
        format!("The check could not begin: {why}."),
        hint,
    )
}
