//! Faults that a test switches on in a running server, with the feature `test-switches` only.
//!
//! Owns: the folder named by `FENCEPOST_TEST_SWITCHES`, where a file is a switch, and `FENCEPOST_TEST_PLANTED`, which
//! names a check to leave out. Must never: be part of a release (`scripts/test` looks).

use fencepost_storage::fjall_store::FreeSpace;
use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

fn switch(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("FENCEPOST_TEST_SWITCHES")?;
    Some(PathBuf::from(folder).join(name))
}

/// Whether this process leaves this check out; a test must then fail (`controls` in `scripts/test`).
pub fn is_planted(fault: &str) -> bool {
    static NAMED: OnceLock<Option<String>> = OnceLock::new();
    NAMED
        .get_or_init(|| std::env::var("FENCEPOST_TEST_PLANTED").ok())
        .as_deref()
        == Some(fault)
}

/// Panics while the file `panic-PART` is there.
///
/// # Panics
/// That is its purpose.
pub fn panic_in(part: &str) {
    let is_on = switch(&format!("panic-{part}")).is_some_and(|path| path.exists());
    assert!(!is_on, "a test asked {part} to fail");
}

/// Ends this process as `kill -9` does, while the file `die-PLACE` is there.
pub fn die_at(place: &str) {
    if switch(&format!("die-{place}")).is_some_and(|path| path.exists()) {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}

/// While the file `older` is there at the start, this process is one of the version before: it speaks the protocol
/// and reads the rows of that one, and no others.
pub fn play_older() {
    if switch("older").is_some_and(|path| path.exists()) {
        fencepost_core::planted::play_older();
    }
}

/// Evaluating a schedule panics while the file `panic-schedule-NAME` is there.
pub fn plant_in_schedules() {
    fencepost_core::planted::on_evaluate(|name| panic_in(&format!("schedule-{name}")));
}

/// The room on the disk as a test says, where it has a folder of switches; `None` where the disk is asked.
pub fn free_space() -> Option<Box<dyn FreeSpace>> {
    let is_said = switch("free-bytes").is_some();
    is_said.then(|| Box::new(SwitchedSpace) as Box<dyn FreeSpace>)
}

/// The room on the disk as the file `free-bytes` says; plenty while it is not there.
struct SwitchedSpace;

impl FreeSpace for SwitchedSpace {
    fn free_bytes(&mut self) -> io::Result<u64> {
        let text = switch("free-bytes").and_then(|path| std::fs::read_to_string(path).ok());
        Ok(text.and_then(|text| text.trim().parse().ok()).unwrap_or(u64::MAX))
    }
}
