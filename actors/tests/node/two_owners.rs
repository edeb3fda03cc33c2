//! Two nodes that both believe they own the shards of one store: the stories of several schedulers at one slot.
//!
//! Owns: the cases D01, D02, D08 and M07. Both nodes see the same assignment, so each takes the shards back whenever it
//! learns that it lost them: far more often than any coordinator would. Next: `flights.rs`, `../process/chaos.rs`.

use super::flights::Lossy;
use super::*;
use fencepost::clock::Clock;
use fencepost::node::notes::Notes;
use fencepost_core::job::Job;
use fencepost_core::schedule::ScheduleSpec;
use fencepost_core::scheduler_shard::io::FireNote;
use fencepost_core::time::Monotonic;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::Mutex;

const HOUR: Span = Span::from_secs(3_600);
const WEEK: Span = Span::from_secs(7 * 24 * 3_600);

/// Fires by nominal instant, told by whichever owner made them durable; and how late they were.
#[derive(Clone, Default)]
struct Fires(Arc<Mutex<BTreeMap<StoreTime, Vec<Span>>>>);

impl Notes for Fires {
    fn job_changed(&self, _: &Job) {}

    fn attempt_ended(&self, _: &Job) {}

    fn job_purged(&self, _: JobId, _: JobState) {}

    fn fired(&self, note: &FireNote) {
        if note.job.is_some() {
            let late = note.at.since(note.due);
            self.0.lock().unwrap().entry(note.nominal).or_default().push(late);
        }
    }
}

impl Fires {
    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Once for each instant of the rule, and the instants are the rule's.
    fn check(&self, anchor: StoreTime, every: Span, count: usize) {
        let fires = self.0.lock().unwrap();
        assert!(
            fires.values().all(|late| late.len() == 1),
            "one job for one slot: {fires:?}"
        );
        let expected = (0..count as u64).map(|number| anchor + Span(every.0 * number));
        assert!(
            fires.keys().copied().eq(expected),
            "each from the nominal time before it: {fires:?}"
        );
    }
}

/// A node's clock that is ahead of the store's.
struct Ahead(SharedClock, Span);

impl Clock for Ahead {
    fn wall(&self) -> i64 {
        self.0.wall() + i64::try_from(self.1.0).unwrap()
    }

    fn mono(&self) -> Monotonic {
        self.0.mono()
    }

    fn sleep(&self, span: Span) -> BoxFuture<'static, ()> {
        self.0.sleep(span)
    }
}

/// A store whose next commit can be held, as one of the two owners sees it.
fn holding(world: &World) -> Arc<Lossy> {
    Arc::new(Lossy {
        store: world.store.clone(),
        losing: Mutex::new(None),
        holding: Mutex::new(None),
        answers: Arc::default(),
    })
}

async fn owner(world: &World, fires: &Fires, set: impl FnOnce(&mut NodeParts)) -> Node {
    let mut config = world.config();
    config.shards = 1;
    let mut parts = world.parts();
    parts.notes = vec![Arc::new(fires.clone())];
    set(&mut parts);
    let node = run_node(config, parts).await.unwrap();
    node.ready().await;
    node
}

fn spec_every(every_: Span, anchor: StoreTime, count: u64) -> Box<ScheduleSpec> {
    let mut spec = every(every_.as_millis(), anchor);
    spec.count_max = Some(count);
    Box::new(spec)
}

/// Makes this node look whether it still owns the shard, and take it if it does not.
async fn poke(node: &Node) {
    let nobody = fresh(node);
    let shard = node.gateway.shard_map().shard_of(nobody.slot());
    let _ = node.gateway.call(shard, ShardRequest::CancelJob(nobody)).await;
}

/// Two that take the shard from each other with every poke may never come to fire, so turns get longer.
async fn take_a_turn(node: &Node, pokes: usize, is_over: impl Fn() -> bool) {
    for _ in 0..pokes {
        if is_over() {
            return;
        }
        poke(node).await;
    }
}

/// Lets slots go by with two owners that both try at each.
async fn run_slots(ahead: Span, every: Span, slots: usize) {
    let (world, fires) = (World::new(), Fires::default());
    let a = owner(&world, &fires, |_| {}).await;
    let b = owner(&world, &fires, |parts| {
        parts.clock = Arc::new(Ahead(parts.clock.clone(), ahead))
    })
    .await;
    let anchor = a.gateway.now();
    let spec = spec_every(every, anchor, slots as u64);
    ask(&b, ScheduleRequest::Create { spec, paused: false }).await;
    for slot in 1..=slots {
        let mut turn = 1;
        while fires.count() < slot {
            for node in [&a, &b] {
                take_a_turn(node, turn, || fires.count() >= slot).await;
            }
            turn = (turn * 2).min(64);
        }
        world.store_clock.pass(every);
    }
    fires.check(anchor, every, slots);
}

#[test]
fn beh_d01_one_slot_one_job() {
    run(run_slots(Span::ZERO, WEEK, 500));
}

#[test]
fn beh_d02_skewed_nodes() {
    run(run_slots(Span::from_millis(457), Span(HOUR.0 * 2), 10));
}

#[test]
fn beh_d08_split_brain() {
    run(async {
        let (world, fires) = (World::new(), Fires::default());
        let lossy = holding(&world);
        let behind = lossy.clone();
        let a = owner(&world, &fires, |parts| parts.store = behind).await;
        let anchor = a.gateway.now() + Span::from_millis(200);
        let spec = spec_every(HOUR, anchor, 3);
        ask(&a, ScheduleRequest::Create { spec, paused: false }).await;
        let release = lossy.hold_next();
        while !lossy.is_holding() {
            world.settle().await;
        }
        // A has decided on the first fire, and its batch is on its way for longer than any lease.
        assert_eq!(fires.count(), 0);
        let b = owner(&world, &fires, |_| {}).await;
        while fires.count() < 1 {
            world.settle().await;
        }
        world.store_clock.pass(HOUR);
        while fires.count() < 2 {
            world.settle().await;
        }
        let _ = release.send(());
        while !lossy.answers().contains(&"stale") {
            world.settle().await;
        }
        world.store_clock.pass(HOUR);
        while fires.count() < 3 {
            poke(&a).await;
            poke(&b).await;
        }
        fires.check(anchor, HOUR, 3);
    });
}

/// A daily schedule whose leader goes three seconds before it is due; the other comes a second after.
async fn leader_gap(is_killed: bool) {
    let (world, fires) = (World::new(), Fires::default());
    let lossy = holding(&world);
    let behind = lossy.clone();
    let leader = owner(&world, &fires, |parts| parts.store = behind).await;
    let anchor = leader.gateway.now() + Span::from_secs(600);
    let spec = spec_every(Span(HOUR.0 * 24), anchor, 9);
    ask(&leader, ScheduleRequest::Create { spec, paused: false }).await;
    world.store_clock.pass(Span::from_secs(597));
    // What a killed leader does after that arrives nowhere.
    let cut_off = is_killed.then(|| lossy.hold_next());
    if !is_killed {
        leader.drain().await;
    }
    world.store_clock.pass(Span::from_secs(4));
    let other = owner(&world, &fires, |_| {}).await;
    while fires.count() < 1 {
        world.settle().await;
    }
    let late = fires.0.lock().unwrap()[&anchor].clone();
    assert_eq!(late.len(), 1, "fires once");
    assert!(
        late[0] >= Span::from_millis(900) && late[0] < Span::from_secs(60),
        "a second late: {late:?}"
    );
    drop(cut_off);
    poke(&other).await;
    fires.check(anchor, HOUR, 1);
}

#[test]
fn beh_m07_leader_gap() {
    run(leader_gap(false));
}

#[test]
fn beh_m07_leader_gap_after_a_kill() {
    run(leader_gap(true));
}
