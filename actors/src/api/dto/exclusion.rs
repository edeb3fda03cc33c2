//! Local dates on which nothing fires, as text: a date, a range, a weekday.
//!
//! Owns: the three forms. Must never: know a zone. Next: `schedule.rs`.

use crate::api::fields::Fields;
use chrono::NaiveDate;
use fencepost_core::limits::EXCLUSION_COUNT_MAX;
use fencepost_core::refusal::Refusal;
use fencepost_core::schedule::Exclusion;

const WEEKDAYS: [&str; 7] = [
    "sunday",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
];

/// Reads the field `exclude`.
///
/// # Errors
/// The first entry that is wrong.
pub fn read_exclusions(fields: &mut Fields) -> Result<Vec<Exclusion>, Refusal> {
    let texts = fields.texts("exclude", EXCLUSION_COUNT_MAX)?;
    let read = |(at, text): (usize, &String)| {
        read_exclusion(text).ok_or_else(|| {
            fields.refuse(
                &format!("exclude[{at}]"),
                "exclusion_invalid",
                "This is no date, range of dates or weekday.",
                "Use forms such as 2026-12-25, 2026-12-24..2026-12-26 or sunday.",
            )
        })
    };
    texts.iter().enumerate().map(read).collect()
}

fn read_exclusion(text: &str) -> Option<Exclusion> {
    let lower = text.to_ascii_lowercase();
    if let Some(day) = WEEKDAYS.iter().position(|day| *day == lower) {
        return Some(Exclusion::Weekday(u8::try_from(day).ok()?));
    }
    let (first, last) = lower.split_once("..").unwrap_or((&lower, &lower));
    let (first, last) = (read_date(first)?, read_date(last)?);
    (first <= last).then_some(Exclusion::Dates { first, last })
}

fn read_date(text: &str) -> Option<i32> {
    let plain = text.len() == 10 && text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    let date = plain
        .then(|| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok())
        .flatten()?;
    Some(date.to_epoch_days())
}

fn date_text(days: i32) -> String {
    NaiveDate::from_epoch_days(days).map_or_else(String::new, |date| date.format("%Y-%m-%d").to_string())
}

/// An exclusion as text.
pub fn exclusion_text(exclusion: &Exclusion) -> String {
    match exclusion {
        Exclusion::Weekday(day) => WEEKDAYS.get(usize::from(*day)).copied().unwrap_or_default().to_owned(),
        Exclusion::Dates { first, last } if first == last => date_text(*first),
        Exclusion::Dates { first, last } => format!("{}..{}", date_text(*first), date_text(*last)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_ranges_and_weekdays_read_back() {
        for text in ["2026-12-25", "2026-12-24..2026-12-26", "sunday", "saturday"] {
            assert_eq!(exclusion_text(&read_exclusion(text).unwrap()), text);
        }
        for text in [
            "",
            "2026-02-30",
            "2026-12-26..2026-12-24",
            "sun",
            "2026-1-1",
            "..",
            "+2026-01-01",
        ] {
            assert_eq!(read_exclusion(text), None, "{text}");
        }
    }
}
