//! The one module that reads time, and the one that sleeps.
//!
//! Owns: a node's wall clock, its monotonic clock and sleeping. Must never: decide anything. The
//! simulator hands in clocks of its own. Next: `chance.rs`, `shell/`.

use fencepost_core::time::{BootTime, Monotonic, Span};
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// A node's clocks.
pub trait Clock: Send + Sync + 'static {
    /// Microseconds since the Unix epoch, by this node's wall clock. Only a store may use it, and the
    /// measure of how far it is off.
    fn wall(&self) -> i64;
    /// Time since this node started.
    fn mono(&self) -> Monotonic;
    /// Time since the machine booted, its sleep included, where the system tells it.
    fn boot(&self) -> Option<BootTime> {
        None
    }
    /// Wakes after `span` of this node's monotonic time.
    fn sleep(&self, span: Span) -> BoxFuture<'static, ()>;
    /// The same, for what is due at its end: as exactly as this node can.
    fn sleep_exactly(&self, span: Span) -> BoxFuture<'static, ()> {
        self.sleep(span)
    }
}

/// Shared clocks.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's own clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: std::time::Instant,
    #[cfg(not(madsim))]
    fine: Option<Arc<crate::process::fine_timer::FineTimer>>,
}

/// How much of an exact sleep is left to the fine timer: the runtime's own counts whole milliseconds.
#[cfg(not(madsim))]
const FINE: Span = Span::from_millis(2);

impl SystemClock {
    /// Starts counting now; sleeps by the runtime's timer alone.
    #[allow(clippy::disallowed_methods, reason = "this is the clock module")]
    pub fn new() -> SystemClock {
        SystemClock {
            start: std::time::Instant::now(),
            #[cfg(not(madsim))]
            fine: None,
        }
    }

    /// The same with a thread for exact sleeps, for a process that runs jobs.
    #[cfg(not(madsim))]
    pub fn with_fine_timer() -> SystemClock {
        SystemClock {
            fine: crate::process::fine_timer::FineTimer::start().map(Arc::new),
            ..SystemClock::new()
        }
    }
}

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the clock module")]
    fn wall(&self) -> i64 {
        match std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros),
        }
    }

    #[allow(clippy::disallowed_methods, reason = "this is the clock module")]
    fn mono(&self) -> Monotonic {
        Monotonic(u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    #[cfg(all(not(madsim), target_os = "linux"))]
    fn boot(&self) -> Option<BootTime> {
        let read = |path| std::fs::read_to_string(path).ok();
        let own_time = std::fs::read_link("/proc/self/ns/time").ok();
        if own_time.is_some_and(|space| space.as_os_str() != FIRST_TIME_SPACE)
            || is_replaced(&read("/proc/self/mountinfo")?)
        {
            return None;
        }
        boot_time(&read(BOOT_ID)?, &read(UPTIME)?)
    }

    #[allow(clippy::disallowed_methods, reason = "this is the clock module")]
    fn sleep(&self, span: Span) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(span.to_std()))
    }

    #[cfg(not(madsim))]
    #[allow(clippy::disallowed_methods, reason = "this is the clock module")]
    fn sleep_exactly(&self, span: Span) -> BoxFuture<'static, ()> {
        let Some(fine) = self.fine.clone() else {
            return self.sleep(span);
        };
        let at = std::time::Instant::now() + span.to_std();
        let coarse = span - FINE;
        Box::pin(async move {
            if coarse > Span::ZERO {
                tokio::time::sleep(coarse.to_std()).await;
            }
            // An error means that the timer ended, and with it the process.
            let _ = fine.wake_at(at).await;
        })
    }
}

#[cfg(all(not(madsim), target_os = "linux"))]
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
#[cfg(all(not(madsim), target_os = "linux"))]
const UPTIME: &str = "/proc/uptime";
/// The kernel's own name of the time that is the machine's. In another, a container has a boot time of its own.
#[cfg(all(not(madsim), target_os = "linux"))]
const FIRST_TIME_SPACE: &str = "time:[4026531834]";

/// Whether something is mounted over the files of the boot, as LXCFS does: they tell the age of a container, which
/// stands still while the container is stopped, beside the id of the machine's boot. Of the fields of a mount, the
/// fifth is its place.
#[cfg(all(not(madsim), target_os = "linux"))]
fn is_replaced(mounts: &str) -> bool {
    let mut places = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    places.any(|place| place == UPTIME || place == BOOT_ID)
}

/// From the system's files: the id of the boot, and seconds since it with two decimals, sleep included.
#[cfg(all(not(madsim), target_os = "linux"))]
fn boot_time(id: &str, uptime: &str) -> Option<BootTime> {
    let id = u128::from_str_radix(&id.trim().replace('-', ""), 16).ok()?;
    let (secs, hundredths) = uptime.split_whitespace().next()?.split_once('.')?;
    let millis = secs.parse::<u64>().ok()?.checked_mul(1_000)? + hundredths.parse::<u64>().ok()?.checked_mul(10)?;
    Some(BootTime {
        id,
        since: Span::from_millis(millis),
    })
}

#[cfg(all(test, not(madsim), target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_system_tells_its_boot_and_the_time_since() {
        let id = "7f0f2cf1-9d7c-4a43-8e4c-93e0a21d3a05\n";
        let read = boot_time(id, "350735.47 234388.90\n").unwrap();
        assert_eq!(read.id, 0x7f0f_2cf1_9d7c_4a43_8e4c_93e0_a21d_3a05);
        assert_eq!(read.since, Span::from_millis(350_735_470));
        for (id, uptime) in [("", "1.00 2.00"), (id, ""), (id, "1 2"), (id, "x.yz"), ("g", "1.00")] {
            assert_eq!(boot_time(id, uptime), None, "{id} {uptime}");
        }
    }

    #[test]
    fn a_containers_own_uptime_is_not_the_machines() {
        let own = "24 1 0:22 / /proc rw,relatime - proc proc rw\n";
        let lxcfs =
            "1204 1188 0:61 /proc/uptime /proc/uptime rw,nosuid,nodev,relatime - fuse.lxcfs lxcfs rw,allow_other\n";
        assert!(!is_replaced(own));
        assert!(is_replaced(&[own, lxcfs].concat()));
        assert!(is_replaced(
            "9 8 0:5 /x /proc/sys/kernel/random/boot_id ro - tmpfs tmpfs rw"
        ));
    }

    #[test]
    fn the_time_since_the_boot_goes_on() {
        let clock = SystemClock::new();
        let (first, second) = (clock.boot(), clock.boot());
        // In a container of its own time there is none.
        assert_eq!(first.map(|boot| boot.id), second.map(|boot| boot.id));
        assert!(first.map(|boot| boot.since) <= second.map(|boot| boot.since));
    }
}
