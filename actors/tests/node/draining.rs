//! The end of a node whose store is away: its shards are waited for together, not one after the other.
//!
//! Owns: a clock that is moved by hand. Must never: measure time. Next: `../../src/node/mod.rs`.

use super::*;
use fencepost::clock::Clock;
use fencepost_core::time::Monotonic;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Mutex;
use tokio::sync::oneshot;

/// The machine's clock until it is stopped; then the test moves it.
struct Stoppable {
    running: SharedClock,
    stopped: Mutex<Option<Stopped>>,
}

#[derive(Default)]
struct Stopped {
    ahead: Span,
    sleepers: Vec<(Span, oneshot::Sender<()>)>,
}

impl Stoppable {
    fn stop(&self) {
        *self.stopped.lock().unwrap() = Some(Stopped::default());
    }

    /// Moves on and wakes who is due.
    fn advance(&self, span: Span) {
        let mut guard = self.stopped.lock().unwrap();
        let stopped = guard.as_mut().unwrap();
        stopped.ahead = stopped.ahead + span;
        let ahead = stopped.ahead;
        let (due, later) = std::mem::take(&mut stopped.sleepers)
            .into_iter()
            .partition(|(at, _)| *at <= ahead);
        stopped.sleepers = later;
        for (_, wake) in due {
            let _ = wake.send(());
        }
    }
}

impl Clock for Stoppable {
    fn wall(&self) -> i64 {
        self.running.wall()
    }

    fn mono(&self) -> Monotonic {
        let ahead = self.stopped.lock().unwrap().as_ref().map_or(Span::ZERO, |s| s.ahead);
        self.running.mono() + ahead
    }

    fn sleep(&self, span: Span) -> BoxFuture<'static, ()> {
        let mut guard = self.stopped.lock().unwrap();
        let Some(stopped) = guard.as_mut() else {
            return self.running.sleep(span);
        };
        let (wake, woken) = oneshot::channel();
        stopped.sleepers.push((stopped.ahead + span, wake));
        woken.map(|_| ()).boxed()
    }
}

/// Lets everything run that can.
async fn rest() {
    for _ in 0..2_000 {
        tokio::task::yield_now().await;
    }
}

#[test]
fn the_shards_of_a_draining_node_are_waited_for_together() {
    run(async {
        let world = World::new();
        let clock = Arc::new(Stoppable {
            running: world.clock.clone(),
            stopped: Mutex::new(None),
        });
        let mut config = world.config();
        config.shards = 16;
        config.drain = Span::from_secs(10);
        let parts = NodeParts {
            clock: clock.clone(),
            ..world.parts()
        };
        let node = run_node(config, parts).await.unwrap();
        node.ready().await;
        clock.stop();
        world.store.set_away(true);
        let draining = actix::spawn(async move { node.drain().await });
        let mut seconds = 0;
        while !draining.is_finished() {
            assert!(seconds < 20, "the drain goes on for {seconds} s");
            clock.advance(Span::from_secs(1));
            seconds += 1;
            rest().await;
        }
    });
}
