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
        boot_time(&read("/proc/sys/kernel/random/boot_id")?, &read("/proc/uptime")?)
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
        let clock = SystemClock::new();
        let (first, second) = (clock.boot().unwrap(), clock.boot().unwrap());
        assert!(first.id == second.id && first.since <= second.since);
    }
}
