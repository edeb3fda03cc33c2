//! Tests of `clock_trust.rs`: the truth lies in the interval, whatever the ways take and the clocks do.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use proptest::prelude::*;

const START: i64 = 1_795_000_000_000_000;

/// A node and a store whose clocks the test sets; time is real.
struct World {
    real: u64,
    /// What the node's wall clock is ahead of real time, and what the store's is.
    node_ahead: i64,
    store_ahead: i64,
    /// Parts in a million by which the node's clocks are fast.
    fast: i64,
    trust: ClockTrust,
}

impl World {
    fn new(bound: Span) -> World {
        World {
            real: 0,
            node_ahead: 0,
            store_ahead: 0,
            fast: 0,
            trust: ClockTrust::new(bound),
        }
    }

    fn on_node(&self) -> i64 {
        self.real as i64 + self.real as i64 / 1_000_000 * self.fast
    }

    fn reading(&self) -> Reading {
        Reading {
            wall: START + self.on_node() + self.node_ahead,
            mono: Monotonic(self.on_node() as u64),
        }
    }

    fn stated(&self) -> StoreTime {
        StoreTime(START + self.real as i64 + self.store_ahead)
    }

    fn truth(&self) -> i64 {
        self.reading().wall - self.stated().0
    }

    /// A question and its answer; the node's clock is set by `step` on one of the ways.
    fn ask(&mut self, there: u64, back: u64, step: (bool, i64)) {
        let asked = self.reading();
        self.real += there;
        if step.0 {
            self.node_ahead += step.1;
        }
        let stated = self.stated();
        self.real += back;
        if !step.0 {
            self.node_ahead += step.1;
        }
        let answered = self.reading();
        self.trust.measure(asked, answered, stated);
        self.trust.check();
    }

    fn holds(&self) -> bool {
        let offset = self.trust.offset(self.reading()).unwrap();
        (offset.low..=offset.high).contains(&self.truth())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// The interval holds the truth at the answer and for as long as the store's clock is not set; trust is never
    /// given where the truth is beyond the bound.
    #[test]
    fn whatever_the_ways_take_the_true_offset_lies_in_the_interval(
        fast in -200_i64..=200,
        rounds in prop::collection::vec(
            (0..5_000_000_u64, 0..5_000_000_u64, any::<bool>(), -90_000_000_i64..90_000_000, 0..3_u8, 0..120_000_000_u64, -90_000_000_i64..90_000_000),
            1..20,
        ),
    ) {
        let mut world = World::new(Span::from_secs(60));
        world.fast = fast;
        for (there, back, early, step, which, later, store) in rounds {
            // The store's clock is set between two measurements at most.
            world.store_ahead += if which == 2 { store } else { 0 };
            world.ask(there, back, (early, if which == 1 { step } else { 0 }));
            prop_assert!(world.holds(), "at the answer");
            world.real += later;
            prop_assert!(world.holds(), "later");
            world.node_ahead += step;
            prop_assert!(world.holds(), "after a step of the node's own clock");
            let truth = world.truth().unsigned_abs();
            prop_assert!(!world.trust.is_trusted(world.reading()) || truth <= 60_000_000, "trusted at {truth}");
        }
    }
}

#[test]
fn nobody_is_trusted_before_the_first_measurement() {
    let world = World::new(Span::from_secs(60));
    assert!(!world.trust.is_trusted(world.reading()));
}

#[test]
fn a_clock_beyond_the_bound_is_not_trusted_and_is_again_once_it_is_back() {
    let mut world = World::new(Span::from_secs(1));
    world.ask(1_000, 1_000, (false, 0));
    assert!(world.trust.is_trusted(world.reading()));
    world.node_ahead = -2_000_000;
    assert!(
        !world.trust.is_trusted(world.reading()),
        "seen before the next question"
    );
    world.ask(1_000, 1_000, (false, 0));
    assert!(!world.trust.is_trusted(world.reading()));
    world.node_ahead = 0;
    world.ask(1_000, 1_000, (false, 0));
    assert!(world.trust.is_trusted(world.reading()));
}

#[test]
fn what_a_slow_answer_leaves_open_is_not_trusted() {
    let mut world = World::new(Span::from_secs(1));
    world.ask(0, 1_500_000, (false, 0));
    assert!(!world.trust.is_trusted(world.reading()), "it may be 1.5 s off");
}

/// Without the time that a question takes, trust would be given where it is not due: the property finds it.
#[test]
fn a_measurement_that_forgets_the_way_is_caught() {
    let mut world = World::new(Span::from_secs(60));
    world.node_ahead = -30_000_000;
    let (asked, stated) = (world.reading(), world.stated());
    world.real += 4_000_000;
    world.trust.measure(asked, asked, stated);
    world.trust.last = world.trust.last.map(|(offset, _)| (offset, world.reading()));
    assert!(world.holds(), "the store stated its time at once");
    world.real += 2_000_000;
    let late = world.stated();
    let answered = world.reading();
    world.trust.measure(answered, answered, StoreTime(late.0 - 2_000_000));
    assert!(!world.holds(), "an old statement taken for a fresh one");
}
