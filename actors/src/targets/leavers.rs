//! Processes of a command that left its group, on Linux: the supervisor inherits them.
//!
//! Owns: that they are reaped while the supervisor lives, and end with a command that was told to end. Must never:
//! touch what a command leaves running when it ends by itself: that is how a service is started. Next: `supervise`.

#![allow(
    clippy::disallowed_methods,
    reason = "a process of its own, outside the simulator: plain threads and the system's monotonic clock"
)]

use std::fs;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// Looks for what is left at most so often, with a pause between: what dies is seen dead a little later.
const ROUNDS_MAX: u32 = 200;
const PAUSE: Duration = Duration::from_millis(5);

/// From now on, descendants whose parents end become this process's children instead of the system's.
pub(super) fn inherit() {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).ok();
}

/// Reaps inherited children that have ended, not the group's leader. Answers whether there was one.
pub(super) fn reap(leader: Pid) -> bool {
    let mut was_any = false;
    for child in children(rustix::process::getpid())
        .into_iter()
        .filter(|pid| *pid != leader)
    {
        was_any |= matches!(waitpid(Some(child), WaitOptions::NOHANG), Ok(Some(_)));
    }
    was_any
}

/// Ends every descendant. The leader and its group are dead by now, and nothing is reaped meanwhile, so the number
/// of a child is nobody else's.
pub(super) fn end() {
    for _ in 0..ROUNDS_MAX {
        let alive = descendants();
        if alive.is_empty() {
            return;
        }
        for pid in alive {
            kill_process(pid, Signal::KILL).ok();
        }
        thread::sleep(PAUSE);
    }
}

/// All living processes below this one.
fn descendants() -> Vec<Pid> {
    let mut found = children(rustix::process::getpid());
    let mut at = 0;
    while let Some(pid) = found.get(at) {
        let more = children(*pid);
        found.extend(more);
        at += 1;
    }
    found.retain(|pid| !super::group::is_dead(*pid));
    found
}

/// The children of a process, whichever of its threads they belong to. None where the system does not tell.
fn children(pid: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())) else {
        return Vec::new();
    };
    let lists = threads
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.path().join("children")).ok());
    let numbers: String = lists.collect();
    numbers
        .split_whitespace()
        .filter_map(|word| Pid::from_raw(word.parse().ok()?))
        .collect()
}
