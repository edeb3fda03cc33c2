//! Instants, lengths of time and ids as text, the same in every answer and request.
//!
//! Owns: RFC 3339 with as many digits as needed, `1h30m`, hexadecimal incarnations. Must never: know a
//! zone (answers are in UTC; the command line converts for people). Next: `fields.rs`, `dto/`.

use super::fields::invalid;
use chrono::{DateTime, SecondsFormat, Utc};
use fencepost_core::duration;
use fencepost_core::ids::{Epoch, Generation, Incarnation};
use fencepost_core::refusal::Refusal;
use fencepost_core::time::{Span, StoreTime};

/// An instant in UTC: `2026-01-01T00:00:00Z`, with a fraction only when there is one.
pub fn instant(at: StoreTime) -> String {
    DateTime::<Utc>::from_timestamp_micros(at.0)
        .map(|at| at.to_rfc3339_opts(SecondsFormat::AutoSi, true))
        .unwrap_or_else(|| format!("{} µs since 1970", at.0))
}

/// A length of time: `1h30m`.
pub fn span(span: Span) -> String {
    duration::format(span)
}

/// Reads an instant: RFC 3339 with an offset, from 1970 to the end of 9999.
///
/// # Errors
/// A refusal without a field.
pub fn parse_instant(text: &str) -> Result<StoreTime, Refusal> {
    let hint =
        "Use RFC 3339 with an offset, such as 2026-01-01T00:00:00Z or 2026-01-01T02:00:00+02:00, from 1970 to 9999.";
    let at = DateTime::parse_from_rfc3339(text).map_err(|_| {
        invalid(
            "instant_invalid",
            "This is no instant with a date, time and offset.",
            hint,
        )
    })?;
    let at = StoreTime(at.timestamp_micros());
    if at.0 < 0 || at > StoreTime::MAX {
        return Err(invalid(
            "instant_range",
            "This instant lies outside 1970 to 9999.",
            hint,
        ));
    }
    Ok(at)
}

/// Reads a length of time: `500ms 30s 15m 1h30m 2d 1w` or ISO 8601.
///
/// # Errors
/// A refusal without a field.
pub fn parse_span(text: &str) -> Result<Span, Refusal> {
    duration::parse(text).map_err(|error| invalid(error.code(), error.to_string(), error.hint()))
}

/// An incarnation as 48 hexadecimal digits.
pub fn incarnation(value: Incarnation) -> String {
    value.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads an incarnation.
pub fn parse_incarnation(text: &str) -> Option<Incarnation> {
    if text.len() != 48 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let part = |from: usize, to: usize| u64::from_str_radix(text.get(from..to)?, 16).ok();
    Some(Incarnation {
        generation: Generation(u32::try_from(part(0, 8)?).ok()?),
        epoch: Epoch(part(8, 24)?),
        batch: part(24, 40)?,
        place: u32::try_from(part(40, 48)?).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_read_back_and_show_only_the_digits_they_need() {
        for text in [
            "2026-01-01T00:00:00Z",
            "9999-12-31T23:59:59.999999Z",
            "1970-01-01T00:00:00.500Z",
        ] {
            assert_eq!(instant(parse_instant(text).unwrap()), text);
        }
        assert_eq!(
            instant(parse_instant("2026-01-01T01:00:00+01:00").unwrap()),
            "2026-01-01T00:00:00Z"
        );
        for text in [
            "",
            "2026-01-01",
            "2026-01-01T00:00:00",
            "2026-13-01T00:00:00Z",
            "tomorrow",
        ] {
            assert_eq!(parse_instant(text).unwrap_err().code, "instant_invalid", "{text}");
        }
        assert_eq!(parse_instant("1969-12-31T23:59:59Z").unwrap_err().code, "instant_range");
        assert!(parse_instant("10000-01-01T00:00:00Z").is_err());
    }

    #[test]
    fn incarnations_read_back() {
        let value = Incarnation {
            generation: Generation(1),
            epoch: Epoch(u64::MAX),
            batch: 77,
            place: 3,
        };
        assert_eq!(parse_incarnation(&incarnation(value)), Some(value));
        assert_eq!(parse_incarnation("é"), None);
    }
}
