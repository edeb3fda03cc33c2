//! Planners: make schedules through the API, and work on them by hand until the active time ends.
//!
//! Owns: one planner for each schedule, so that it knows what it asked for; how often each thing is
//! done. Must never: guess what an unknown answer was: it asks again. Next: `hands.rs`, `specs.rs`.

use super::World;
use super::hands::Hand;
use crate::runtime::Stream;
use fencepost_history::spec::PlainSpec;

/// Starts a planner for each schedule, all on a machine of their own.
pub fn start(world: &World) {
    let node = world.client_node(200);
    for number in (0..world.options.schedules).filter(|number| !world.options.without.has_schedule(*number)) {
        world.begin();
        let world = world.clone();
        node.run(move || async move {
            plan(&world, number).await;
            world.done();
        });
    }
}

/// What planners do, by weight.
const WORK: &[(u64, Work)] = &[
    (22, Work::RunNow),
    (18, Work::Pause),
    (20, Work::Edit),
    (4, Work::EditStale),
    (16, Work::Backfill),
    (10, Work::Delete),
    (4, Work::RunNowBurst),
    (6, Work::Look),
];

/// A thing that planners do.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    RunNow,
    RunNowBurst,
    Pause,
    Edit,
    EditStale,
    Backfill,
    Delete,
    Look,
}

fn draw_work(stream: &mut Stream) -> Work {
    let total: u64 = WORK.iter().map(|(weight, _)| weight).sum();
    let mut drawn = stream.between(0, total - 1);
    for (weight, work) in WORK {
        if drawn < *weight {
            return *work;
        }
        drawn -= weight;
    }
    Work::Look
}

/// By the words of a scenario.
pub(super) fn work_named(word: &str) -> Work {
    match word {
        "edit" => Work::Edit,
        "pause" => Work::Pause,
        "run-now" => Work::RunNow,
        "backfill" => Work::Backfill,
        "delete" => Work::Delete,
        _ => Work::Look,
    }
}

async fn plan(world: &World, number: u64) {
    let mut hand = Hand::new(world, number);
    let is_plain = number == 0;
    let first = hand.draw(is_plain);
    let mut exists = hand.create(&first).await;
    if world.options.faults.hands {
        while world.sim.now() < world.options.active.0 {
            let pause = hand.stream.between(200_000, 7_000_000);
            world.sim.sleep(pause).await;
            exists = work_once(&mut hand, exists).await;
        }
    }
    world.until_healed().await;
    // Whatever was sent before has arrived by then, a pause among it.
    world.sim.sleep(15_000_000).await;
    hand.resume().await;
}

/// Whether the schedule exists then.
async fn work_once(hand: &mut Hand, exists: bool) -> bool {
    if !exists {
        let spec = hand.draw(false);
        return hand.create(&spec).await;
    }
    let work = draw_work(&mut hand.stream);
    do_work(hand, work).await
}

/// Whether the schedule, which is there, is there afterwards.
pub(super) async fn do_work(hand: &mut Hand, work: Work) -> bool {
    match work {
        Work::RunNow => hand.run_now().await,
        Work::RunNowBurst => hand.run_now_burst().await,
        Work::Pause => hand.pause().await,
        Work::Edit => {
            let spec = hand.draw(false);
            hand.edit(&spec).await;
        }
        Work::EditStale => {
            let spec = hand.draw(false);
            hand.edit_stale(&spec).await;
        }
        Work::Backfill => hand.backfill().await,
        Work::Delete => {
            hand.delete().await;
            // Seen from the API, a name is free at once.
            if hand.stream.percent(70) {
                let spec = hand.draw(false);
                return hand.create(&spec).await;
            }
            return false;
        }
        Work::Look => hand.look().await,
    }
    true
}

/// Remembers a drawn definition under its tag.
pub fn remember(world: &World, spec: &PlainSpec) {
    world.history.lock().specs.insert(spec.tag.clone(), spec.clone());
}
