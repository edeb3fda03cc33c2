//! Random lives of schedules: every occurrence one fate, every occurrence at most one job, whatever
//! is asked and whenever the owner dies.

use super::model::compare;
use super::world::*;
use crate::machine::ReplyTo;
use crate::schedule::{Exclusion, MisfirePolicy, PendingFate, ScheduleSpec};
use crate::scheduler_shard::io::ScheduleInput;
use crate::time::Span;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Deed {
    Run(i64),
    Down(i64),
    Restart,
    Pause,
    Resume,
    Edit(usize, PendingFate),
    Recreate(usize),
    RunNow,
    Backfill {
        back: i64,
        length: i64,
        cap: u32,
        rerun: bool,
    },
    Doubt(bool),
    ClockBack(i64),
}

fn specs() -> Vec<ScheduleSpec> {
    let mut specs = vec![
        every(7, NOON + 3),
        every(60, NOON),
        every(600, NOON + 1),
        cron("*/5 * * * *"),
        cron("* * * * *"),
        cron("30 13 * * *"),
        once(NOON + 3 * HOUR),
        once(NOON - HOUR),
    ];
    let policies = [
        MisfirePolicy::Latest,
        MisfirePolicy::Coalesce,
        MisfirePolicy::Skip,
        MisfirePolicy::All { cap: 20, rate: 1 },
        MisfirePolicy::All { cap: 1_000, rate: 30 },
    ];
    for (place, misfire) in policies.into_iter().enumerate() {
        let mut spec = every(20, NOON);
        spec.misfire = misfire;
        spec.tolerance = Span::from_secs(place as u64 * 15);
        spec.grace = (place % 2 == 0).then_some(Span::from_secs(400));
        specs.push(spec.clone());
        spec.jitter = Span::from_secs(30);
        specs.push(spec.clone());
        spec.jitter = Span::from_secs(5);
        spec.exclusions = vec![Exclusion::Weekday(2)];
        specs.push(spec);
    }
    let mut counted = every(30, NOON);
    counted.count_max = Some(15);
    counted.misfire = MisfirePolicy::All { cap: 100, rate: 2 };
    specs.push(counted);
    let mut bounded = cron("* * * * *");
    bounded.starts_at = Some(at(NOON + HOUR));
    bounded.ends_at = Some(at(NOON + 5 * HOUR));
    specs.push(bounded);
    specs
}

fn deed() -> impl Strategy<Value = Deed> {
    let spec = 0..specs().len();
    let pending = prop_oneof![
        Just(PendingFate::Keep),
        Just(PendingFate::Retime),
        Just(PendingFate::Drop)
    ];
    prop_oneof![
        6 => (0_i64..400).prop_map(Deed::Run),
        4 => (1_i64..4_000).prop_map(Deed::Down),
        1 => (10_000_i64..60_000).prop_map(Deed::Down),
        2 => Just(Deed::Restart),
        1 => Just(Deed::Pause),
        2 => Just(Deed::Resume),
        3 => (spec.clone(), pending).prop_map(|(spec, pending)| Deed::Edit(spec, pending)),
        1 => spec.prop_map(Deed::Recreate),
        1 => Just(Deed::RunNow),
        2 => (0_i64..5_000, 1_i64..5_000, 1_u32..50, any::<bool>())
            .prop_map(|(back, length, cap, rerun)| Deed::Backfill { back, length, cap, rerun }),
        1 => any::<bool>().prop_map(Deed::Doubt),
        1 => (1_i64..600).prop_map(Deed::ClockBack),
    ]
}

fn backfill(world: &World, deed: &Deed, request: u64) -> Option<ScheduleInput> {
    let Deed::Backfill {
        back,
        length,
        cap,
        rerun,
    } = *deed
    else {
        return None;
    };
    let to = world.now.store - Span::from_secs(back as u64);
    let from = to - Span::from_secs(length as u64);
    let mut fates = world.closed("it");
    fates.retain(|span| span.to > from && span.from < to);
    Some(ScheduleInput::Backfill {
        reply: ReplyTo(1),
        name: name("it"),
        from,
        to,
        cap,
        rerun,
        request,
        seen: None,
        dry_run: false,
        life: world.machine.incarnation_of(&name("it")),
        fates,
    })
}

fn act(world: &mut World, deed: &Deed, request: u64) {
    let second = world.now.store.secs();
    match deed {
        Deed::Run(seconds) => world.run(second + seconds),
        Deed::Down(seconds) => world.down_until(second + seconds),
        Deed::Restart => world.restart(),
        // A refusal is an answer too: an occurrence may be due while the clock is in doubt.
        Deed::Pause => drop(world.step(pause("it"))),
        Deed::Resume => drop(world.step(resume("it"))),
        Deed::Edit(spec, pending) => {
            let input = ScheduleInput::Edit {
                reply: ReplyTo(1),
                name: name("it"),
                if_match: None,
                spec: Box::new(specs()[*spec].clone()),
                pending: *pending,
                dry_run: false,
            };
            drop(world.step(input));
        }
        Deed::Recreate(spec) => {
            if world.step(delete("it")).unwrap().is_ok() {
                world.audited("it");
                if world.try_create("it", specs()[*spec].clone(), false).is_err() {
                    world.create("it", specs()[0].clone());
                }
            }
        }
        Deed::RunNow => drop(world.step(run_now("it", request))),
        Deed::Backfill { .. } => {
            let input = backfill(world, deed, request).unwrap();
            drop(world.step(input));
        }
        Deed::Doubt(doubt) => {
            world.now.doubt = *doubt;
            world.tick();
        }
        Deed::ClockBack(seconds) => world.now.store = world.now.store - Span::from_secs(*seconds as u64),
    }
    // Edits of the same instant would share a row: time goes on, if only by a little.
    world.now.store = world.now.store + Span::from_millis(1);
    world.now.mono = world.now.mono + Span::from_millis(1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_occurrence_has_one_fate_and_at_most_one_job(
        first in 0..specs().len(),
        deeds in prop::collection::vec(deed(), 1..30),
    ) {
        let mut world = World::new(NOON);
        world.create("it", specs()[first].clone());
        for (request, deed) in deeds.iter().enumerate() {
            act(&mut world, deed, request as u64 + 1);
            world.audited("it");
            if request % 4 == 0 {
                compare(&world, "it");
            }
        }
        world.now.doubt = false;
        world.restart();
        world.run(world.now.store.secs() + 2 * HOUR);
        compare(&world, "it");
        world.audited("it");
    }
}
