//! The process group of one command, as the server knows it.
//!
//! Owns: that a KILL meets the command's group and no stranger's. Must never: send anything else: TERM and grace
//! are the supervisor's. Next: `supervised`, which decides when.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// A group, named before its leader ran anything.
pub(super) struct Group {
    leader: Pid,
    /// When the leader was started, in the system's own count, where it says so (Linux).
    started_at: Option<u64>,
}

impl Group {
    /// The group that this process leads now. `None` for numbers that no group of a command can have.
    pub(super) fn led_by(number: i32) -> Option<Group> {
        let leader = Some(number).filter(|number| *number > 1).and_then(Pid::from_raw)?;
        let started_at = started_at(leader);
        Some(Group { leader, started_at })
    }

    /// Ends all that is in it. As long as a process is in it, or its leader is not reaped, the number is not given
    /// to another process: so it is another's only if a leader with another start has it.
    pub(super) fn kill(&self) {
        let now = started_at(self.leader);
        if now.is_none() || now == self.started_at {
            kill_process_group(self.leader, Signal::KILL).ok();
        }
        if now.is_some() && now == self.started_at {
            // It may have gone over to another group.
            kill_process(self.leader, Signal::KILL).ok();
        }
    }
}

/// Whether a process runs no more, or not until somebody lets it go on. `false` where the system does not say.
pub(super) fn is_stopped_or_dead(pid: Pid) -> bool {
    stat(pid).is_some_and(|fields| fields.starts_with(['T', 't', 'Z', 'X']))
}

/// Whether it only waits to be reaped, or is no more.
pub(super) fn is_dead(pid: Pid) -> bool {
    stat(pid).is_none_or(|fields| fields.starts_with(['Z', 'X']))
}

/// Of the fields after the state, the twentieth from it.
fn started_at(pid: Pid) -> Option<u64> {
    stat(pid)?.split(' ').nth(19)?.parse().ok()
}

/// What Linux says of a process from its state on; the name before it may hold anything.
fn stat(pid: Pid) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    Some(text.rsplit_once(") ")?.1.to_owned())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    fn sleeping() -> (Child, i32) {
        let child = Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
        let number = i32::try_from(child.id()).unwrap();
        (child, number)
    }

    #[test]
    fn a_group_is_killed_and_a_strangers_of_the_same_number_is_not() {
        let (mut child, number) = sleeping();
        let group = Group::led_by(number).unwrap();
        let of_another = Group {
            leader: group.leader,
            started_at: group.started_at.map(|at| at - 1),
        };
        of_another.kill();
        assert!(!is_stopped_or_dead(group.leader));
        group.kill();
        child.wait().unwrap();
        assert!(started_at(group.leader).is_none());
    }

    #[test]
    fn no_number_means_every_process() {
        for number in [-7, 0, 1] {
            assert!(Group::led_by(number).is_none(), "{number}");
        }
    }
}
