//! Histories of a store's clock: PROTOCOL F20.

use super::*;

const NOON: i64 = 1_767_268_800;

fn at(clock: &mut StoreClock, wall_s: i64, mono_s: u64) -> ClockReading {
    clock.observe(StoreTime::from_secs(wall_s), Monotonic(mono_s * 1_000_000))
}

fn started() -> StoreClock {
    let mut clock = StoreClock::new(StoreTime::from_secs(NOON - 5));
    let reading = at(&mut clock, NOON, 0);
    assert_eq!((reading.time, reading.doubt), (StoreTime::from_secs(NOON), false));
    clock
}

#[test]
fn f20_time_runs_with_the_wall_clock() {
    let mut clock = started();
    for second in 1..1_000 {
        let reading = at(&mut clock, NOON + second, second as u64);
        assert_eq!(reading.time, StoreTime::from_secs(NOON + second));
        assert!(!reading.doubt && reading.event.is_none());
    }
}

#[test]
fn f20_a_leap_of_a_day_is_doubt_and_raises_no_floor() {
    let mut clock = started();
    let reading = at(&mut clock, NOON + 86_401, 1);
    assert!(reading.doubt);
    assert_eq!(reading.time, StoreTime::from_secs(NOON));
    assert_eq!(
        reading.event,
        Some(ClockEvent::DoubtBegan {
            ahead: Span::from_secs(86_400)
        })
    );
    let undone = at(&mut clock, NOON + 60, 60);
    assert_eq!(undone.event, Some(ClockEvent::LeapUndone));
    assert_eq!((undone.time, undone.doubt), (StoreTime::from_secs(NOON + 60), false));
}

#[test]
fn f20_a_step_of_the_limit_is_believed_and_one_beyond_is_not() {
    let mut clock = started();
    assert!(!at(&mut clock, NOON + 61, 1).doubt);
    let mut clock = started();
    assert!(at(&mut clock, NOON + 62, 1).doubt);
}

#[test]
fn f20_small_steps_add_up_to_a_leap() {
    let mut clock = started();
    assert!(!at(&mut clock, NOON + 41, 1).doubt);
    assert!(at(&mut clock, NOON + 82, 2).doubt);
}

#[test]
fn f20_a_slewed_clock_is_never_in_doubt() {
    let mut clock = started();
    for second in 1..20_000_u64 {
        let wall = NOON + second as i64 + (second / 100) as i64;
        assert!(!at(&mut clock, wall, second).doubt, "at {second}");
    }
}

#[test]
fn f20_doubt_ends_after_the_clock_ran_steadily() {
    let mut clock = started();
    assert!(at(&mut clock, NOON + 3_601, 1).doubt);
    assert!(at(&mut clock, NOON + 3_900, 300).doubt);
    let reading = at(&mut clock, NOON + 3_901, 301);
    assert_eq!(reading.event, Some(ClockEvent::DoubtSettled(DoubtEnd::Steady)));
    assert_eq!(
        (reading.time, reading.doubt),
        (StoreTime::from_secs(NOON + 3_901), false)
    );
    assert!(!at(&mut clock, NOON + 3_902, 302).doubt);
}

#[test]
fn f20_another_leap_in_doubt_starts_the_wait_anew() {
    let mut clock = started();
    assert!(at(&mut clock, NOON + 3_601, 1).doubt);
    assert!(at(&mut clock, NOON + 7_500, 300).doubt);
    assert!(at(&mut clock, NOON + 7_501, 301).doubt);
    assert!(!at(&mut clock, NOON + 7_800, 600).doubt);
}

#[test]
fn f20_an_operator_settles_a_doubt() {
    let mut clock = started();
    assert!(at(&mut clock, NOON + 3_601, 1).doubt);
    assert!(clock.confirm());
    let reading = at(&mut clock, NOON + 3_602, 2);
    assert_eq!(reading.event, Some(ClockEvent::DoubtSettled(DoubtEnd::Confirmed)));
    assert_eq!(
        (reading.time, reading.doubt),
        (StoreTime::from_secs(NOON + 3_602), false)
    );
}

#[test]
fn f20_a_confirmation_without_doubt_changes_nothing() {
    let mut clock = started();
    assert!(!clock.confirm());
    assert!(at(&mut clock, NOON + 3_601, 1).doubt);
    assert!(at(&mut clock, NOON + 3_602, 2).doubt);
}

#[test]
fn f20_a_confirmation_is_of_the_leap_that_was_seen_and_of_no_later_one() {
    let mut clock = started();
    assert!(at(&mut clock, NOON + 3_601, 1).doubt);
    assert!(clock.confirm());
    let reading = at(&mut clock, NOON + 86_402, 2);
    assert!(reading.doubt);
    assert_eq!(reading.time, StoreTime::from_secs(NOON));
}

#[test]
fn beh_k01_a_clock_set_back_holds_the_floor_then_lowers_it_in_an_audited_step() {
    let mut clock = started();
    let held = at(&mut clock, NOON - 3_600, 1);
    assert_eq!(held.time, StoreTime::from_secs(NOON));
    assert!(!held.doubt && matches!(held.event, Some(ClockEvent::Held { .. })));
    assert_eq!(at(&mut clock, NOON - 3_301, 300).time, StoreTime::from_secs(NOON));
    let lowered = at(&mut clock, NOON - 3_300, 301);
    assert_eq!(lowered.time, StoreTime::from_secs(NOON - 3_300));
    assert!(matches!(lowered.event, Some(ClockEvent::FloorLowered { .. })));
    assert_eq!(
        at(&mut clock, NOON - 3_299, 302).time,
        StoreTime::from_secs(NOON - 3_299)
    );
}

/// A start at `mono_s` of its process, when the wall clock should show noon.
fn expecting(mono_s: u64) -> StoreClock {
    let line = Line {
        wall: StoreTime::from_secs(NOON),
        mono: Monotonic(mono_s * 1_000_000),
    };
    StoreClock::expecting(StoreTime::from_secs(NOON - 3_600), line)
}

#[test]
fn f20_a_leap_that_nobody_saw_is_doubt_at_the_start() {
    let mut clock = expecting(2);
    let reading = at(&mut clock, NOON + 86_400, 2);
    assert_eq!(
        (reading.time, reading.doubt),
        (StoreTime::from_secs(NOON - 3_600), true)
    );
    assert_eq!(
        clock.line(),
        expecting(2).line(),
        "the line is not drawn to what is doubted"
    );
    assert!(clock.confirm());
    assert_eq!(
        at(&mut clock, NOON + 86_401, 3).time,
        StoreTime::from_secs(NOON + 86_401)
    );
    assert_ne!(clock.line(), expecting(2).line());
}

#[test]
fn f20_time_spent_down_is_no_leap() {
    let mut clock = expecting(2);
    let reading = at(&mut clock, NOON + 30, 2);
    assert_eq!((reading.time, reading.doubt), (StoreTime::from_secs(NOON + 30), false));
}

#[test]
fn f20_a_start_with_the_clock_set_back_holds_time_and_lowers_it_after_the_wait() {
    let mut clock = expecting(0);
    let reading = at(&mut clock, NOON - 7_200, 0);
    assert_eq!(
        (reading.time, reading.doubt),
        (StoreTime::from_secs(NOON - 3_600), false)
    );
    assert!(matches!(reading.event, Some(ClockEvent::Held { .. })));
    let wait = CLOCK_DOUBT_MAX_MS / 1_000;
    let reading = at(&mut clock, NOON - 7_200 + wait.cast_signed(), wait);
    assert_eq!(reading.time, StoreTime::from_secs(NOON - 7_200 + wait.cast_signed()));
}

#[test]
fn f20_a_clock_that_comes_back_ends_the_hold() {
    let mut clock = started();
    at(&mut clock, NOON - 30, 10);
    let reading = at(&mut clock, NOON + 1, 41);
    assert_eq!(reading.event, Some(ClockEvent::HoldEnded));
    assert_eq!((reading.time, reading.doubt), (StoreTime::from_secs(NOON + 1), false));
}

#[test]
fn f20_a_floor_poisoned_by_ten_years_is_lowered_after_the_wait() {
    let mut clock = StoreClock::new(StoreTime::from_secs(NOON + 315_360_000));
    assert_eq!(at(&mut clock, NOON, 0).time, StoreTime::from_secs(NOON + 315_360_000));
    let reading = at(&mut clock, NOON + 300, 300);
    assert_eq!(reading.time, StoreTime::from_secs(NOON + 300));
}
