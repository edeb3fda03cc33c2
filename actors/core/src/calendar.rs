//! Calendars to exclude, as people write them: dates, ranges of dates and weekdays.
//!
//! Owns: the text of an exclusion, both ways. Must never: decide what falls on one; that is the
//! scheduler's. Next: `schedule.rs` (`Exclusion`), `scheduler_shard/`.

use chrono::NaiveDate;

use crate::refusal::{Refusal, RefusalKind, shown};
use crate::schedule::Exclusion;

const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Reads `2026-12-24`, `2026-12-24..2026-12-31` or a weekday (`sat`, `saturday`).
pub fn parse_exclusion(text: &str) -> Result<Exclusion, Refusal> {
    let refuse = |code, detail: String| {
        let hint = "write a date (2026-12-24), a range (2026-12-24..2026-12-31) or a weekday (sat)";
        Err(Refusal::new(RefusalKind::Invalid, code, detail, hint))
    };
    if let Some(weekday) = weekday(text) {
        return Ok(Exclusion::Weekday(weekday));
    }
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let (Some(first), Some(last)) = (day_of(first), day_of(last)) else {
        let shown = shown(text, 64);
        return refuse(
            "exclusion_form",
            format!("'{shown}' is not a date, a range of dates or a weekday"),
        );
    };
    if first > last {
        return refuse("exclusion_backward", format!("the range {text} runs backwards"));
    }
    Ok(Exclusion::Dates { first, last })
}

/// Writes an exclusion so that `parse_exclusion` reads it back.
pub fn format_exclusion(exclusion: &Exclusion) -> String {
    let date = |day: i32| NaiveDate::from_epoch_days(day).unwrap_or_default().format("%Y-%m-%d");
    match exclusion {
        Exclusion::Dates { first, last } if first == last => date(*first).to_string(),
        Exclusion::Dates { first, last } => format!("{}..{}", date(*first), date(*last)),
        Exclusion::Weekday(day) => WEEKDAYS.get(usize::from(*day)).copied().unwrap_or("sun").to_owned(),
    }
}

fn weekday(text: &str) -> Option<u8> {
    let long = [
        "sunday",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
    ];
    let same = |name: &&str| name.eq_ignore_ascii_case(text);
    let index = WEEKDAYS.iter().position(same).or_else(|| long.iter().position(same))?;
    u8::try_from(index).ok()
}

/// Days since 1970-01-01 of `YYYY-MM-DD`, in the years 1970 to 9999.
fn day_of(text: &str) -> Option<i32> {
    let digits = text.bytes().enumerate().all(|(i, b)| {
        if i == 4 || i == 7 {
            b == b'-'
        } else {
            b.is_ascii_digit()
        }
    });
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d")
        .ok()
        .filter(|_| text.len() == 10 && digits)?;
    Some(date.to_epoch_days()).filter(|day| *day >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dates_ranges_and_weekdays_are_read() {
        assert_eq!(
            parse_exclusion("1970-01-02").unwrap(),
            Exclusion::Dates { first: 1, last: 1 }
        );
        let range = Exclusion::Dates {
            first: 20_811,
            last: 20_818,
        };
        assert_eq!(parse_exclusion("2026-12-24..2026-12-31").unwrap(), range);
        assert_eq!(parse_exclusion("SUNDAY").unwrap(), Exclusion::Weekday(0));
        assert_eq!(parse_exclusion("sat").unwrap(), Exclusion::Weekday(6));
    }

    #[test]
    fn wrong_entries_are_refused() {
        let cases = [
            ("2026-02-29", "exclusion_form"),
            ("2026-1-1", "exclusion_form"),
            ("1969-12-31", "exclusion_form"),
            ("12026-01-01", "exclusion_form"),
            ("", "exclusion_form"),
            ("someday", "exclusion_form"),
            ("2026-01-02..2026-01-01", "exclusion_backward"),
            ("2026-01-02..", "exclusion_form"),
            ("2026-01-0é", "exclusion_form"),
        ];
        for (text, code) in cases {
            assert_eq!(parse_exclusion(text).unwrap_err().code, code, "{text}");
        }
    }

    proptest! {
        #[test]
        fn written_exclusions_read_back(first in 0_i32..2_000_000, length in 0_i32..900_000, weekday in 0_u8..7) {
            for exclusion in [Exclusion::Dates { first, last: first + length }, Exclusion::Weekday(weekday)] {
                prop_assert_eq!(&parse_exclusion(&format_exclusion(&exclusion)).unwrap(), &exclusion);
            }
        }
    }
}
