//! Lengths of time as people write them: `500ms 30s 15m 1h30m 2d 1w`, and ISO 8601 (`PT1H30M`).
//!
//! Owns: the parser and the formatter, which reads back. Must never: accept months or years, whose
//! length depends on the calendar, or guess at what a bare number counts.

use crate::limits::DURATION_BYTES_MAX;
use crate::refusal::{Refusal, RefusalKind, shown};
use crate::time::{Span, StoreTime};

/// Name and microseconds of each unit, longest first.
const UNITS: &[(&str, u64)] = &[
    ("w", 7 * 86_400_000_000),
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

/// Why a text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Not of one of the two forms.
    #[error("'{0}' is not a duration")]
    Form(String),
    /// A number without a unit.
    #[error("'{0}' has a number without a unit")]
    UnitMissing(String),
    /// Months or years.
    #[error("'{0}' counts months or years, which have no fixed length")]
    Calendar(String),
    /// A unit twice, or a shorter one before a longer one.
    #[error("'{0}' does not name its units once each, longest first")]
    Order(String),
    /// Longer than the calendar.
    #[error("'{0}' is longer than the calendar, which ends in 9999")]
    Overflow(String),
}

impl DurationError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            DurationError::Form(_) => "duration_form",
            DurationError::UnitMissing(_) => "duration_unit_missing",
            DurationError::Calendar(_) => "duration_calendar_unit",
            DurationError::Order(_) => "duration_unit_order",
            DurationError::Overflow(_) => "duration_overflow",
        }
    }

    /// What to write instead.
    pub fn hint(&self) -> &'static str {
        match self {
            DurationError::Calendar(_) => "use days (30d, P30D), or a cron expression for calendar steps",
            DurationError::Overflow(_) => "use a shorter duration",
            DurationError::UnitMissing(_) => "write a unit behind each number: ms, s, m, h, d or w",
            DurationError::Form(_) | DurationError::Order(_) => {
                "write 500ms, 30s, 15m, 1h30m, 2d, 1w, or ISO 8601 such as PT1H30M"
            }
        }
    }

    /// As a refusal of a field.
    pub fn refusal(&self, field: impl Into<String>) -> Refusal {
        Refusal::new(RefusalKind::Invalid, self.code(), self.to_string(), self.hint()).at(field)
    }
}

type MakeError = fn(String) -> DurationError;

/// Reads a duration.
pub fn parse(text: &str) -> Result<Span, DurationError> {
    let shown = || shown(text, DURATION_BYTES_MAX);
    let plain = text.len() <= DURATION_BYTES_MAX && text.is_ascii() && !text.is_empty();
    let read = match text.strip_prefix('P') {
        _ if !plain => Err(DurationError::Form as MakeError),
        Some(rest) => iso(rest),
        None => compact(text),
    };
    let micros = read.map_err(|make| make(shown()))?;
    match u64::try_from(StoreTime::MAX.0).is_ok_and(|max| micros <= max) {
        true => Ok(Span(micros)),
        false => Err(DurationError::Overflow(shown())),
    }
}

/// Writes a duration in the compact form, without weeks; `parse` reads it back.
pub fn format(span: Span) -> String {
    let mut rest = span.0;
    let mut text = String::new();
    for (unit, micros) in UNITS.iter().filter(|(unit, _)| *unit != "w") {
        if rest >= *micros {
            text.push_str(&format!("{}{unit}", rest / micros));
            rest %= micros;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// Splits the next number and the letters behind it off.
fn next_part(text: &str) -> Result<(&str, &str, &str), MakeError> {
    let digits = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let (number, rest) = text.split_at_checked(digits).ok_or(DurationError::Form as MakeError)?;
    let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at_checked(letters).ok_or(DurationError::Form as MakeError)?;
    match (number.is_empty(), unit.is_empty()) {
        (true, _) => Err(DurationError::Form),
        (false, true) if rest.is_empty() => Err(DurationError::UnitMissing),
        (false, true) => Err(DurationError::Form),
        (false, false) => Ok((number, unit, rest)),
    }
}

fn compact(text: &str) -> Result<u64, MakeError> {
    let (mut total, mut rest, mut last_unit) = (0_u64, text, u64::MAX);
    while !rest.is_empty() {
        let (number, unit, behind) = next_part(rest)?;
        let Some((_, micros)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            let calendar = ["mo", "mon", "month", "months", "M", "y", "yr", "year", "years", "Y"].contains(&unit);
            return Err(if calendar {
                DurationError::Calendar
            } else {
                DurationError::Form
            });
        };
        if *micros >= last_unit {
            return Err(DurationError::Order);
        }
        total = add(total, whole(number)?, *micros)?;
        (rest, last_unit) = (behind, *micros);
    }
    Ok(total)
}

/// ISO 8601 behind the `P`: weeks alone, or days, `T`, hours, minutes and seconds.
fn iso(text: &str) -> Result<u64, MakeError> {
    let (date, time) = match text.split_once('T') {
        Some((_, "")) => return Err(DurationError::Form),
        Some((date, time)) => (date, time),
        None => (text, ""),
    };
    if date.is_empty() && time.is_empty() {
        return Err(DurationError::Form);
    }
    let days = iso_half(date, &[("W", 7 * 86_400_000_000), ("D", 86_400_000_000)], true)?;
    let times = iso_half(
        time,
        &[("H", 3_600_000_000), ("M", 60_000_000), ("S", 1_000_000)],
        false,
    )?;
    days.checked_add(times).ok_or(DurationError::Overflow)
}

fn iso_half(text: &str, units: &[(&str, u64)], date: bool) -> Result<u64, MakeError> {
    let (mut total, mut rest, mut last_unit) = (0_u64, text, u64::MAX);
    while !rest.is_empty() {
        let (number, unit, behind) = next_part(rest)?;
        let Some((_, micros)) = units.iter().find(|(name, _)| *name == unit) else {
            let calendar = date && (unit == "M" || unit == "Y");
            return Err(if calendar {
                DurationError::Calendar
            } else {
                DurationError::Form
            });
        };
        if *micros >= last_unit {
            return Err(DurationError::Order);
        }
        total = match number.split_once('.') {
            Some((seconds, fraction)) if unit == "S" => {
                let part = add(total, whole(seconds)?, *micros)?;
                part.checked_add(micros_of(fraction)?)
                    .ok_or(DurationError::Overflow as MakeError)?
            }
            _ => add(total, whole(number)?, *micros)?,
        };
        (rest, last_unit) = (behind, *micros);
    }
    Ok(total)
}

/// The digits behind the point of a second, six at most.
fn micros_of(fraction: &str) -> Result<u64, MakeError> {
    if fraction.is_empty() || fraction.len() > 6 {
        return Err(DurationError::Form);
    }
    whole(&format!("{fraction:0<6}"))
}

fn whole(number: &str) -> Result<u64, MakeError> {
    if number.is_empty() || number.contains('.') {
        return Err(DurationError::Form);
    }
    number.parse().map_err(|_| DurationError::Overflow as MakeError)
}

fn add(total: u64, number: u64, micros: u64) -> Result<u64, MakeError> {
    let part = number.checked_mul(micros).ok_or(DurationError::Overflow as MakeError)?;
    total.checked_add(part).ok_or(DurationError::Overflow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_forms_are_read() {
        let cases = [
            ("500ms", 500_000),
            ("30s", 30_000_000),
            ("15m", 900_000_000),
            ("1h30m", 5_400_000_000),
            ("2d", 172_800_000_000),
            ("1w", 604_800_000_000),
            ("1w2d3h4m5s6ms7us", 788_645_006_007),
            ("0s", 0),
            ("PT1H30M", 5_400_000_000),
            ("P2D", 172_800_000_000),
            ("P1W", 604_800_000_000),
            ("P1DT1S", 86_401_000_000),
            ("PT0.5S", 500_000),
            ("PT90M", 5_400_000_000),
        ];
        for (text, micros) in cases {
            assert_eq!(parse(text), Ok(Span(micros)), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused_with_a_code_and_a_hint() {
        let cases = [
            ("", "duration_form"),
            ("5", "duration_unit_missing"),
            ("1h30", "duration_unit_missing"),
            ("s", "duration_form"),
            ("-5s", "duration_form"),
            ("+5s", "duration_form"),
            ("1.5h", "duration_form"),
            ("1 h", "duration_form"),
            ("1h 30m", "duration_form"),
            ("30m1h", "duration_unit_order"),
            ("1h1h", "duration_unit_order"),
            ("1mo", "duration_calendar_unit"),
            ("2y", "duration_calendar_unit"),
            ("P1M", "duration_calendar_unit"),
            ("P1Y", "duration_calendar_unit"),
            ("P", "duration_form"),
            ("PT", "duration_form"),
            ("P1DT", "duration_form"),
            ("PT1D", "duration_form"),
            ("P1H", "duration_form"),
            ("PT1M1H", "duration_unit_order"),
            ("PT0.1234567S", "duration_form"),
            ("PT0.5H", "duration_form"),
            ("p1d", "duration_form"),
            ("99999999999999999999s", "duration_overflow"),
            ("999999999w", "duration_overflow"),
            ("P3000000DT99999999999H", "duration_overflow"),
            ("5\u{0}s", "duration_form"),
            ("五s", "duration_form"),
        ];
        for (text, code) in cases {
            let error = parse(text).unwrap_err();
            assert_eq!(error.code(), code, "{text:?}");
            assert!(!error.hint().is_empty() && !error.to_string().contains('\0'));
        }
        assert!(parse(&"1".repeat(1 << 20)).unwrap_err().to_string().len() < 200);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(micros in 0..=StoreTime::MAX.0.unsigned_abs()) {
            prop_assert_eq!(parse(&format(Span(micros))), Ok(Span(micros)));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,20}|[0-9PTDHMSWmshdwuy.]{0,20}") {
            let _ = parse(&text);
        }
    }
}
