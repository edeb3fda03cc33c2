//! The command line.
//!
//! Owns: the grammar, the exit code, Ctrl-C. Must never: hold a command's work; each has its own module.
//! Next: `job.rs`, `schedule.rs`, `import.rs`, `client.rs`, `output.rs`; the table of exit codes is
//! `crate::problem::EXITS`.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::problem::Exit;
use crate::process::init;
use crate::targets::{HandlerRegistry, SUPERVISE, supervise_main};
use failure::Failure;
use output::{Format, OUTPUT_CLOSED};

mod answer;
mod bench;
pub mod certs;
pub mod client;
pub mod clock;
pub mod config;
pub mod doctor;
mod doctor_node;
mod doctor_server;
pub mod failure;
pub mod health;
pub mod import;
mod import_stored;
mod interrupts;
pub mod job;
pub mod job_args;
mod misread;
pub mod output;
mod pages;
pub mod preview;
mod progress;
pub mod schedule;
pub mod schedule_args;
pub mod schedule_edit;
pub mod serve;
pub mod settings;
pub mod store;
pub mod upgrade;
pub mod variables;
pub mod when;
pub mod worker;

const EXAMPLE: &str = "Examples:
  fencepost dev
  fencepost schedule create hello --every 10s -- echo hello
  fencepost schedule list
  fencepost job list --state dead

Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 permission, 5 conflict,
6 unreachable, 7 outcome unknown, 8 did not validate, 130 interrupted.";

/// The job scheduler that is never off by one.
#[derive(Debug, Parser)]
#[command(name = "fencepost", version, after_help = EXAMPLE, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a server.
    #[command(after_help = "Example:\n  fencepost serve --data /var/lib/fencepost --allow-commands")]
    Serve(Box<serve::ServeArgs>),
    /// Look at the settings of a server.
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Run a server to try things: commands allowed, samples made, a line for each attempt.
    #[command(after_help = "Example:\n  fencepost dev --ephemeral")]
    Dev(Box<serve::DevArgs>),
    /// Work with schedules.
    #[command(subcommand)]
    Schedule(schedule::ScheduleCommand),
    /// Work with jobs.
    #[command(subcommand)]
    Job(job::JobCommand),
    /// Bring schedules from elsewhere.
    #[command(subcommand)]
    Import(import::ImportCommand),
    /// Work with workers over HTTP.
    #[command(subcommand)]
    Worker(worker::WorkerCommand),
    /// Work with the server's clock.
    #[command(subcommand)]
    Clock(clock::ClockCommand),
    /// Work with the upgrade of a cell.
    #[command(subcommand)]
    Upgrade(upgrade::UpgradeCommand),
    /// Check what stands in the way of a sound server.
    #[command(
        after_help = "Example:\n  fencepost doctor --data /var/lib/fencepost -o json",
        mut_arg("server", |arg| arg.help(doctor::SERVER_HELP).long_help(None)),
        mut_arg("token_file", |arg| arg.help(doctor::TOKEN_HELP).long_help(None))
    )]
    Doctor(doctor::DoctorArgs),
    /// Ask a server whether it is ready; for probes of containers and service managers.
    #[command(after_help = "Example:\n  fencepost health --timeout 3s")]
    Health(health::HealthArgs),
    /// Work with a store that no server has open.
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// Make certificates for connections between nodes.
    #[command(subcommand)]
    Certs(certs::CertsCommand),
    /// Measure this machine: durable creation and drain, beside the floor of its disk.
    #[command(after_help = "Example:\n  fencepost bench --folder /var/tmp/bench floor drain")]
    Bench(bench::BenchArgs),
    /// Write the completion script of a shell.
    #[command(after_help = "Example:\n  fencepost completion bash > /etc/bash_completion.d/fencepost")]
    Completion {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

/// The grammar, for help pages and completion.
pub fn grammar() -> clap::Command {
    Cli::command()
}

/// All that a program of this name does, with these handlers in the servers that it runs: reads the
/// arguments and runs the command. A program calls it first of all, for it may be started to supervise a
/// command: before anything that makes threads or reads configuration.
pub fn main_with(handlers: HandlerRegistry) -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|word| word == SUPERVISE) {
        return supervise_main();
    }
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => return ExitCode::from(misread::tell(&error) as u8),
    };
    if matches!(command, Command::Serve(_) | Command::Dev(_)) && init::is_first() {
        return init::run();
    }
    variables::warn_of_unknown();
    match command {
        Command::Serve(args) => args.run(handlers),
        Command::Dev(args) => args.run(handlers),
        Command::Bench(args) => ExitCode::from(args.run() as u8),
        command => ExitCode::from(run(command) as u8),
    }
}

fn run(command: Command) -> Exit {
    match command {
        Command::Serve(_) | Command::Dev(_) | Command::Bench(_) => Exit::Usage,
        Command::Schedule(schedule::ScheduleCommand::Preview(args)) => preview_now(&args),
        Command::Completion { shell } => complete(shell),
        Command::Config(command) => command.run(),
        Command::Schedule(command) => ask(command.format(), async |out| command.run(out).await),
        Command::Job(command) => ask(command.format(), async |out| command.run(out).await),
        Command::Doctor(args) => ask(args.format(), async |out| args.run(out).await),
        Command::Health(args) => ask(args.format(), async |out| args.run(out).await),
        Command::Upgrade(command) => ask(command.format(), async |out| command.run(out).await),
        Command::Clock(command) => ask(command.format(), async |out| command.run(out).await),
        Command::Worker(command) => {
            let done = command.run(&mut io::stdout());
            finish(command.format(), done)
        }
        Command::Certs(command) => finish(command.format(), command.run(&mut io::stdout())),
        Command::Store(command) => {
            crate::process::panics::keep_quiet_while_opening();
            finish(command.format(), keep_at(&command))
        }
        // It hears Ctrl-C itself, for it tells what it had made by then.
        Command::Import(command) => drive(command.format(), async |out| command.run(out, wall()).await),
    }
}

fn preview_now(args: &preview::PreviewArgs) -> Exit {
    let (mut out, mut err) = (io::stdout().lock(), io::stderr().lock());
    match preview::run(args, wall(), &mut out, &mut err) {
        Ok(exit) => exit,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Ok,
        Err(error) => {
            let _ = output::gone(&error).show(Format::Text, &mut err);
            Exit::Failed
        }
    }
}

fn complete(shell: clap_complete::Shell) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut grammar(), "fencepost", &mut script);
    match io::stdout().write_all(&script) {
        Ok(()) => Exit::Ok,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Ok,
        Err(_) => Exit::Failed,
    }
}

/// Runs a command that talks to a server, until it ends or Ctrl-C.
fn ask<F>(format: Format, command: F) -> Exit
where
    F: AsyncFnOnce(&mut dyn Write) -> Result<Exit, Failure>,
{
    drive(format, async |out| {
        tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => Err(interrupted()),
            done = command(out) => done,
        }
    })
}

/// Runs a command that talks to a server, until it ends.
fn drive<F>(format: Format, command: F) -> Exit
where
    F: AsyncFnOnce(&mut dyn Write) -> Result<Exit, Failure>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else {
        let hint = "Check the limits of this process.";
        let failure = Failure::new(Exit::Failed, "runtime_failed", "No runtime could be started.", hint);
        return finish(format, Err(failure));
    };
    finish(format, runtime.block_on(command(&mut io::stdout())))
}

/// Runs a command that waits for no server; Ctrl-C ends it where it can be begun anew.
fn keep_at(command: &store::StoreCommand) -> Result<Exit, Failure> {
    let listening = interrupts::Interrupts::listen();
    let interrupts = listening.map_err(|error| Failure::of(crate::problem::signals_unheard(&error)))?;
    command.run(&mut io::stdout(), &|| interrupts.came())
}

/// Tells what went wrong.
fn finish(format: Format, done: Result<Exit, Failure>) -> Exit {
    match done {
        Ok(exit) => exit,
        Err(failure) if *failure.problem.code == *OUTPUT_CLOSED => Exit::Ok,
        Err(failure) => {
            let _ = failure.show(format, &mut io::stderr());
            failure.exit
        }
    }
}

fn interrupted() -> Failure {
    let detail = "Interrupted; a change that was under way may have happened.";
    Failure::new(Exit::Interrupted, "interrupted", detail, "Look before you repeat it.")
}

/// This machine's clock, for showing what comes next without a server.
#[allow(clippy::disallowed_methods, reason = "shown to a person only; decides nothing")]
fn wall() -> fencepost_core::time::StoreTime {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let micros = since.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX));
    fencepost_core::time::StoreTime(micros)
}
