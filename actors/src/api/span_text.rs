//! Lengths of time as text: `500ms 30s 15m 1h30m 2d 1w`, and ISO 8601 without months and years.
//!
//! Owns: the grammar. Must never: guess what a month is. Next: `text.rs`.

use super::fields::invalid;
use fencepost_core::refusal::Refusal;
use fencepost_core::time::Span;

const UNITS: &[(&str, u64)] = &[
    ("w", 604_800_000_000),
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

/// The shortest text that reads back as the same length.
pub fn to_text(span: Span) -> String {
    let mut rest = span.0;
    let mut text = String::new();
    for (unit, micros) in UNITS {
        if rest >= *micros {
            text.push_str(&format!("{}{unit}", rest / micros));
            rest %= micros;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// Reads a length of time.
///
/// # Errors
/// A refusal without a field.
pub fn parse(text: &str) -> Result<Span, Refusal> {
    let wrong = |detail: &str| {
        invalid(
            "duration_invalid",
            detail,
            "Use forms such as 500ms, 30s, 15m, 1h30m, 2d, 1w or PT1H30M; months and years have no fixed length.",
        )
    };
    if text.is_empty() || text.len() > 64 {
        return Err(wrong("A length of time has 1 to 64 characters."));
    }
    let upper = text.to_ascii_uppercase();
    let total = match upper.strip_prefix('P') {
        Some(iso) => parse_iso(iso),
        None => parse_plain(text),
    };
    total
        .map(Span)
        .ok_or_else(|| wrong("This is no length of time, or a too long one."))
}

fn parse_plain(text: &str) -> Option<u64> {
    let mut rest = text;
    let (mut total, mut last) = (0u64, u64::MAX);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let micros = UNITS.iter().find(|(known, _)| *known == unit)?.1;
        if micros >= last {
            return None;
        }
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(micros)?)?;
        (last, rest) = (micros, tail);
    }
    Some(total)
}

fn parse_iso(text: &str) -> Option<u64> {
    let (date, time) = match text.split_once('T') {
        Some((date, time)) if !time.is_empty() => (date, time),
        Some(_) => return None,
        None => (text, ""),
    };
    if date.is_empty() && time.is_empty() || date.contains(['H', 'M', 'S', 'Y']) || time.contains(['W', 'D']) {
        return None;
    }
    parse_plain(&format!("{date}{time}").to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_read_back_and_months_are_refused() {
        for text in ["0s", "500ms", "30s", "15m", "1h30m", "2d", "1w", "1w2d3h4m5s6ms7us"] {
            assert_eq!(to_text(parse(text).unwrap()), text);
        }
        assert_eq!(parse("PT1H30M").unwrap(), parse("1h30m").unwrap());
        assert_eq!(parse("P1DT12H").unwrap(), parse("1d12h").unwrap());
        for text in [
            "",
            "1",
            "s",
            "1M",
            "P1M",
            "P1Y",
            "1y",
            "-1s",
            "1.5s",
            "1s1s",
            "1s2m",
            "P",
            "PT",
            "18446744073709551615ms",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
