//! The first process of a container: starts the server as its child, passes signals on, and buries orphans.
//!
//! Owns: process 1. What a job's command leaves behind becomes its child and would stay as a zombie. Must never: do
//! work of a server, or end before it. Next: `serve.rs`.

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use tokio::signal::unix::{SignalKind, signal};

/// Whether this process is the first of its namespace.
pub fn is_first() -> bool {
    getpid() == Pid::INIT
}

/// Runs this very program again as a child, with the same words, until it ends; its exit code.
pub fn run() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else {
        eprintln!("fencepost: no runtime could be started");
        return ExitCode::FAILURE;
    };
    match runtime.block_on(watch_over()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!(
                "fencepost: the server cannot be started: {}",
                crate::problem::plain(&error)
            );
            ExitCode::FAILURE
        }
    }
}

async fn watch_over() -> std::io::Result<u8> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut ended = signal(SignalKind::child())?;
    let program = std::env::current_exe()?;
    // In a group of its own, or it would hear a terminal's Ctrl-C twice: once more from here.
    let mut command = Command::new(program);
    let child = command.args(std::env::args_os().skip(1)).process_group(0).spawn()?;
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let server = id.ok_or(std::io::ErrorKind::InvalidData)?;
    loop {
        tokio::select! {
            biased;
            _ = ended.recv() => {}
            _ = terminate.recv() => kill_process(server, Signal::TERM)?,
            _ = interrupt.recv() => kill_process(server, Signal::INT)?,
        }
        // One signal may stand for several children.
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if pid != server {
                continue;
            }
            let code = status
                .exit_status()
                .or(status.terminating_signal().map(|number| 128 + number));
            return Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1));
        }
    }
}
