//! `fencepost clock …`: what an operator says about the clock of the server's machine (PROTOCOL F20).
//!
//! Owns: the one command. Must never: set a clock. Next: `doctor.rs` (which shows a doubt), docs/guides/storage.md.

use super::client::{Call, Client, ServerArgs};
use super::failure::Failure;
use super::output::{Format, OutputArgs, put};
use crate::problem::Exit;
use clap::{Args, Subcommand};
use serde_json::Value;
use std::io::Write;

/// Work with the server's clock.
#[derive(Debug, Subcommand)]
pub enum ClockCommand {
    /// Say that the machine's clock is right although it leapt: what is due fires again.
    #[command(after_help = "Example:\n  fencepost clock confirm")]
    Confirm(ConfirmArgs),
}

/// Arguments of `clock confirm`.
#[derive(Debug, Args)]
pub struct ConfirmArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    server: ServerArgs,
}

impl ClockCommand {
    /// The form of output that errors follow.
    pub fn format(&self) -> Format {
        let ClockCommand::Confirm(args) = self;
        args.output.output
    }

    /// Runs it; exit code 1 if the clock has leapt again and is still in doubt.
    ///
    /// # Errors
    /// What went wrong.
    pub async fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        let ClockCommand::Confirm(args) = self;
        let reply = Client::new(&args.server)?.call(Call::post("/v1/clock/confirm")).await?;
        let said: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let yes = |key: &str| said.get(key).and_then(Value::as_bool).unwrap_or_default();
        match args.output.output {
            Format::Text => {
                let time = said.get("store_time").and_then(Value::as_str).unwrap_or_default();
                let what = match (yes("was_in_doubt"), yes("clock_doubt")) {
                    (_, true) => "still in doubt: the clock leapt again",
                    (true, false) => "confirmed; what is due fires again",
                    (false, false) => "it was not in doubt; nothing changed",
                };
                put(out, &format!("{time}  {what}"))?;
            }
            Format::Json | Format::Jsonl => put(out, String::from_utf8_lossy(&reply.body).trim_end())?,
        }
        Ok(if yes("clock_doubt") { Exit::Failed } else { Exit::Ok })
    }
}
