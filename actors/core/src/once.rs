//! One-shots at a local time: the one instant that a reading of a wall clock means.
//!
//! Owns: the gap and overlap policy of a single local time. Must never: judge whether the instant is
//! past; that is the misfire policy's. Next: `schedule.rs` (`Rule::Once`), `zone/`.

use crate::refusal::{Refusal, RefusalKind, shown};
use crate::schedule::{GapPolicy, OverlapPolicy};
use crate::time::StoreTime;
use crate::zone::{LocalInstants, LocalSeconds, Zone};

/// The instant of a local time such as `2026-03-29T02:30:00`; `field` is named in a refusal.
pub fn instant_of(
    zone: &Zone,
    text: &str,
    gap: GapPolicy,
    overlap: OverlapPolicy,
    field: &str,
) -> Result<StoreTime, Refusal> {
    let refuse = |code, detail: String, hint| Refusal::new(RefusalKind::Invalid, code, detail, hint).at(field);
    let years = LocalSeconds(0)..=LocalSeconds(StoreTime::MAX.secs());
    let Some(local) = LocalSeconds::from_text(text).filter(|local| years.contains(local)) else {
        let shown = shown(text, 40);
        let hint = "write 2026-03-29T02:30:00, without an offset, in the years 1970 to 9999";
        return Err(refuse(
            "local_time_form",
            format!("'{shown}' is not a local date and time"),
            hint,
        ));
    };
    let instant = match (zone.local_to_instants(local), gap, overlap) {
        (LocalInstants::One(only), _, _) => only,
        (LocalInstants::Gap { end_of_gap }, GapPolicy::NextValid, _) => end_of_gap,
        (LocalInstants::Gap { .. }, GapPolicy::Skip, _) => {
            let detail = format!(
                "{} does not exist in {}: clocks jump over it",
                local.to_text(),
                zone.name()
            );
            let hint = "choose another time, or the gap policy next-valid";
            return Err(refuse("local_time_in_gap", detail, hint));
        }
        (LocalInstants::Two(first, _), _, OverlapPolicy::First) => first,
        (LocalInstants::Two(_, second), _, OverlapPolicy::Second) => second,
        (LocalInstants::Two(..), _, OverlapPolicy::Both) => {
            let detail = format!(
                "{} comes twice in {}, a one-shot only once",
                local.to_text(),
                zone.name()
            );
            return Err(refuse(
                "local_time_twice",
                detail,
                "choose the overlap policy first or second",
            ));
        }
    };
    // An offset may carry the last hours of 9999 and the first of 1970 over the ends of the calendar.
    match (StoreTime(0)..=StoreTime::MAX).contains(&instant.store_time()) {
        true => Ok(instant.store_time()),
        false => {
            let detail = format!(
                "{} in {} lies outside the years 1970 to 9999",
                local.to_text(),
                zone.name()
            );
            Err(refuse("local_time_range", detail, "choose another time"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(zone: &str, local: &str, gap: GapPolicy, overlap: OverlapPolicy) -> Result<i64, &'static str> {
        let zone = Zone::get(zone).unwrap();
        let instant = instant_of(&zone, local, gap, overlap, "at").map_err(|refusal| refusal.code)?;
        Ok(instant.secs())
    }

    #[test]
    fn policies_decide_in_gap_and_overlap() {
        use GapPolicy::{NextValid, Skip};
        use OverlapPolicy::{Both, First, Second};
        let berlin = |local, gap, overlap| at("Europe/Berlin", local, gap, overlap);
        assert_eq!(berlin("2026-03-29T02:30:00", NextValid, First), Ok(1_774_746_000));
        assert_eq!(berlin("2026-03-29T02:30", Skip, First), Err("local_time_in_gap"));
        assert_eq!(berlin("2026-10-25T02:30:00", NextValid, First), Ok(1_792_888_200));
        assert_eq!(berlin("2026-10-25T02:30:00", NextValid, Second), Ok(1_792_891_800));
        assert_eq!(berlin("2026-10-25 02:30:00", Skip, Both), Err("local_time_twice"));
        assert_eq!(berlin("2026-07-01T00:00:00", Skip, Both), Ok(1_782_856_800));
    }

    #[test]
    fn wrong_local_times_are_refused() {
        for text in [
            "",
            "2026-03-29",
            "2026-03-29T25:00",
            "2026-03-29T02:30Z",
            "1969-12-31T23:59",
            "x".repeat(99).as_str(),
        ] {
            assert_eq!(
                at("UTC", text, GapPolicy::Skip, OverlapPolicy::First),
                Err("local_time_form"),
                "{text}"
            );
        }
        assert_eq!(
            at("Etc/GMT+12", "9999-12-31T23:00", GapPolicy::Skip, OverlapPolicy::First),
            Err("local_time_range")
        );
    }
}
