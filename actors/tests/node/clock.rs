//! A node whose store's clock steps (PROTOCOL F20).

use super::*;
use fencepost_core::limits::CLOCK_DOUBT_MAX_MS;

const HOUR: i64 = 3_600;
const HOLD: Span = Span::from_millis(CLOCK_DOUBT_MAX_MS);

/// Waits until the schedule `tick` has used up its count.
pub async fn finished(world: &World, node: &Node) -> u64 {
    let schedule = (name("default"), name("tick"));
    for _ in 0..2_000 {
        let facts = node.gateway.schedule(schedule.clone()).await.unwrap().unwrap();
        if facts.view.cursor.finished_at.is_some() {
            return facts.view.cursor.fired;
        }
        world.clock.sleep(Span::from_millis(5)).await;
    }
    panic!("the schedule does not fire");
}

#[test]
fn f20_open_shards_follow_a_lowered_store_time() {
    run(async {
        let world = World::new();
        world.store_clock.set_wall(HOUR);
        let node = world.start().await;
        // A commit of each kind of shard: all of them have seen the hour ahead.
        let id = create(&node, item(fresh(&node), "noop")).await;
        node.gateway.wait_job(id, Span::from_secs(10)).await.unwrap().unwrap();
        let ahead = node.gateway.now();
        world.store_clock.set_wall(0);
        assert!(node.gateway.now() >= ahead, "held, not set back");
        world.store_clock.pass(HOLD + Span::from_secs(1));
        world.settle().await;
        let lowered = node.gateway.now();
        assert!(lowered + Span::from_secs(3_000) < ahead, "lowered to {lowered:?}");
        let spec = Box::new(every(20, lowered));
        let made = view(ask(&node, ScheduleRequest::Create { spec, paused: false }).await);
        let late = made.definition.created_at.since(lowered);
        assert!(late < Span::from_secs(60), "the shard's time is the store's");
        assert_eq!(finished(&world, &node).await, 5);
        let mut late = item(fresh(&node), "noop");
        late.due_at = Some(node.gateway.now() + Span::from_millis(20));
        let id = create(&node, late).await;
        let view = node.gateway.wait_job(id, Span::from_secs(10)).await.unwrap().unwrap();
        assert_eq!(view.job.state, JobState::Succeeded);
        assert!(view.job.attempts[0].granted_at >= view.job.due_at, "nor is it early");
    });
}

#[test]
fn f20_a_confirmed_leap_fires_what_became_due_by_it() {
    run(async {
        let world = World::new();
        let node = world.start().await;
        let mut late = item(fresh(&node), "noop");
        late.due_at = Some(node.gateway.now() + Span::from_secs(1_800));
        let id = create(&node, late).await;
        world.store_clock.set_wall(HOUR);
        world.settle().await;
        assert!(node.gateway.facts().await.unwrap().doubt);
        let job = node.gateway.job(id).await.unwrap().unwrap().job;
        assert_eq!(job.state, JobState::Waiting, "nothing fires in doubt");
        assert!(node.gateway.confirm_clock().await.unwrap());
        assert!(!node.gateway.facts().await.unwrap().doubt);
        let view = node.gateway.wait_job(id, Span::from_secs(10)).await.unwrap().unwrap();
        assert_eq!(view.job.state, JobState::Succeeded);
        assert!(
            !node.gateway.confirm_clock().await.unwrap(),
            "there is nothing to confirm"
        );
    });
}

#[test]
fn f25_what_two_owners_do_while_store_time_is_held_stays_apart_in_the_history_of_edits() {
    run(async {
        let world = World::new();
        world.store_clock.set_wall(HOUR);
        let node = world.start().await;
        let spec = Box::new(every(20, node.gateway.now()));
        ask(&node, ScheduleRequest::Create { spec, paused: true }).await;
        world.store_clock.set_wall(0);
        ask(&node, ScheduleRequest::Resume).await;
        let held = node.gateway.now();
        node.drain().await;
        let node = world.start().await;
        assert_eq!(node.gateway.now(), held, "the store's clock is held");
        ask(&node, ScheduleRequest::Pause).await;
        let schedule = (name("default"), name("tick"));
        let edits = node.gateway.edits(schedule, None, None, 10).await.unwrap().items;
        use fencepost_core::schedule::EditKind::{Created, Paused, Resumed};
        let kinds: Vec<_> = edits.iter().map(|edit| edit.kind).collect();
        assert_eq!(kinds, [Created, Resumed, Paused]);
    });
}
