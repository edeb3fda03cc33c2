//! The gate of one command: its own process until the server knows its group, the program afterwards.
//!
//! Owns: that a program begins only on the supervisor's word, and ends with its supervisor where the system can
//! do that (Linux). Must never: start a second process, or read more of its input than that one word: the rest
//! is the program's. Next: `supervise`, which starts it and gives the word.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};

use super::supervise::SUPERVISE;

/// The second argument that makes a supervisor a gate.
pub(super) const GATE: &str = "gate";

/// The word: one byte ahead of the program's input.
pub(super) const GO: &[u8] = b"\n";

/// This very program; on Linux also after its file was replaced by a newer one.
pub(super) fn this_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        Ok("/proc/self/exe".into())
    } else {
        std::env::current_exe()
    }
}

/// Starts a gate in a process group of its own. Its input waits for [`GO`]; its output says why the program
/// could not be started, and just ends when it was.
pub(super) fn start(program: &OsString, args: &[OsString]) -> io::Result<Child> {
    Command::new(this_program()?)
        .arg0("command-gate")
        .args([SUPERVISE, GATE])
        .arg(std::process::id().to_string())
        .arg("--")
        .arg(program)
        .args(args)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
}

/// Runs the gate: returns only if the program was not to be started, or could not be.
pub(super) fn gate_main(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let parent = args.next().and_then(|word| word.to_str()?.parse().ok());
    let (Some(parent), Some(_), Some(program)) = (parent, args.next(), args.next()) else {
        return ExitCode::from(2);
    };
    if !is_told_to_go(parent) {
        return ExitCode::FAILURE;
    }
    match become_program(program, args) {
        Ok((error, reasons)) => tell(reasons, &error),
        Err(error) => tell(io::stdout(), &error),
    }
}

/// Answers only why it could not, and where to say so: the way there closes itself when the program begins.
fn become_program(program: OsString, args: impl Iterator<Item = OsString>) -> io::Result<(io::Error, File)> {
    let reasons = io::stdout().as_fd().try_clone_to_owned()?;
    // Both outputs go into one pipe.
    let output = io::stderr().as_fd().try_clone_to_owned()?;
    Ok((Command::new(program).args(args).stdout(output).exec(), reasons.into()))
}

fn tell(mut reasons: impl Write, error: &io::Error) -> ExitCode {
    reasons.write_all(why_not(error).as_bytes()).ok();
    ExitCode::FAILURE
}

/// Why a command did not begin, without words of the system's own.
pub(super) fn why_not(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such program, or no such folder to run it in".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "the program may not be executed, or its folder not be entered, by the server's user".to_owned()
        }
        kind => kind.to_string(),
    }
}

/// Waits for the word; without it the supervisor is gone or wants no program any more.
fn is_told_to_go(parent: i32) -> bool {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, getppid, set_parent_process_death_signal};
        // Before the word, so that there is no instant at which the program runs without it.
        set_parent_process_death_signal(Some(Signal::KILL)).ok();
        if getppid().map(|pid| pid.as_raw_nonzero().get()) != Some(parent) {
            return false;
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = parent;
    let mut word = [0_u8; GO.len()];
    loop {
        match rustix::io::read(io::stdin().as_fd(), &mut word) {
            Err(rustix::io::Errno::INTR) => {}
            read => return read == Ok(GO.len()) && word == GO,
        }
    }
}
