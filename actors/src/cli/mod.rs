//! The command line.
//!
//! Owns: the grammar. Must never: hold a command's work; each has its own module.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub mod preview;

/// The job scheduler that is never off by one.
#[derive(Debug, Parser)]
#[command(name = "fencepost", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Work with schedules.
    #[command(subcommand)]
    Schedule(ScheduleCommand),
}

#[derive(Debug, Subcommand)]
enum ScheduleCommand {
    /// Show when cron expressions fire, without a server.
    Preview(preview::PreviewArgs),
}

/// Reads the arguments and runs the command.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let (mut out, mut err) = (io::stdout().lock(), io::stderr().lock());
    let done = match cli.command {
        Command::Schedule(ScheduleCommand::Preview(args)) => preview::run(&args, &mut out, &mut err),
    };
    match done {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(err, "error: cannot write: {error}");
            ExitCode::FAILURE
        }
    }
}
