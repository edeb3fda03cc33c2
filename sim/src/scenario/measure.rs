//! Lengths of time as scenario files write them: `5s`, `0.5..4 lease`, `-10s..10s`.
//!
//! Owns: their reading and their drawing. Must never: know a key. Next: `reader.rs`.

use crate::runtime::Stream;

/// What a length is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Micro,
    Lease,
    Heartbeat,
}

/// A length: so many thousandths of its unit; microseconds whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Amount {
    count: i64,
    unit: Unit,
}

/// One length, or all between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    low: Amount,
    high: Amount,
}

/// What leases and heartbeats are in a run, in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Of an attempt.
    pub lease: u64,
    /// Between two.
    pub heartbeat: u64,
}

/// Microseconds of each unit; thousandths for those of a run.
const UNITS: &[(&str, Unit, i64)] = &[
    ("us", Unit::Micro, 1),
    ("ms", Unit::Micro, 1_000),
    ("s", Unit::Micro, 1_000_000),
    ("m", Unit::Micro, 60_000_000),
    ("h", Unit::Micro, 3_600_000_000),
    ("lease", Unit::Lease, 1_000),
    ("leases", Unit::Lease, 1_000),
    ("heartbeat", Unit::Heartbeat, 1_000),
    ("heartbeats", Unit::Heartbeat, 1_000),
];

/// More digits than any length needs.
const DIGITS_MAX: usize = 9;

impl Measure {
    /// Reads one; `Err` says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Measure, String> {
        let (low, high) = match text.split_once("..") {
            Some((low, high)) => (low.trim(), high.trim()),
            None => (text.trim(), text.trim()),
        };
        if low.is_empty() || high.is_empty() {
            return Err("a range has two ends".to_owned());
        }
        let unit = number_and_unit(high).1;
        let measure = Measure {
            low: Amount::parse(low, unit)?,
            high: Amount::parse(high, unit)?,
        };
        if measure.low.unit != measure.high.unit {
            return Err("both ends of a range have the same kind of unit".to_owned());
        }
        if measure.low.count > measure.high.count {
            return Err("a range begins with its lower end".to_owned());
        }
        Ok(measure)
    }

    /// Lowest and highest in microseconds; `None` for what depends on the run.
    pub fn micros(self) -> Option<(i64, i64)> {
        (self.high.unit == Unit::Micro).then_some((self.low.count, self.high.count))
    }

    /// Whether none of it is below zero.
    pub fn is_forward(self) -> bool {
        self.low.count >= 0
    }

    /// Lowest and highest in a run of this scale, in microseconds.
    pub fn ends(self, scale: Scale) -> (i64, i64) {
        (self.low.in_run(scale), self.high.in_run(scale))
    }

    /// One of them, in microseconds.
    pub fn draw(self, stream: &mut Stream, scale: Scale) -> i64 {
        let (low, high) = self.ends(scale);
        low + stream.between(0, low.abs_diff(high)).cast_signed()
    }
}

impl Amount {
    /// A number without a unit has that of the other end.
    fn parse(text: &str, other: &str) -> Result<Amount, String> {
        let (number, own) = number_and_unit(text);
        let word = if own.is_empty() { other } else { own };
        let found = UNITS.iter().find(|(name, ..)| *name == word);
        let Some((_, unit, factor)) = found else {
            return Err(match word {
                "" => "a length needs a unit".to_owned(),
                word => format!("there is no unit {word:?}"),
            });
        };
        let thousandths = thousandths(number).ok_or_else(|| format!("{number:?} is no number"))?;
        let count = thousandths.checked_mul(*factor).map(|count| count / 1_000);
        let count = count.ok_or_else(|| "that is too long".to_owned())?;
        Ok(Amount { count, unit: *unit })
    }

    fn in_run(self, scale: Scale) -> i64 {
        let of = |whole: u64| self.count.saturating_mul(whole.cast_signed()) / 1_000;
        match self.unit {
            Unit::Micro => self.count,
            Unit::Lease => of(scale.lease),
            Unit::Heartbeat => of(scale.heartbeat),
        }
    }
}

fn number_and_unit(text: &str) -> (&str, &str) {
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+');
    let end = text.find(|c| !is_number(c)).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.trim())
}

fn thousandths(number: &str) -> Option<i64> {
    let (sign, digits) = match number.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_plain =
        |text: &str, most: usize| (1..=most).contains(&text.len()) && text.chars().all(|c| c.is_ascii_digit());
    if !is_plain(whole, DIGITS_MAX) || !is_plain(part, 3) {
        return None;
    }
    let part: i64 = format!("{part:0<3}").parse().ok()?;
    Some(sign * (whole.parse::<i64>().ok()? * 1_000 + part))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALE: Scale = Scale {
        lease: 8_000_000,
        heartbeat: 2_000_000,
    };

    #[test]
    fn lengths_and_ranges_are_read() {
        let ends = |text: &str| Measure::parse(text).map(|measure| measure.ends(SCALE));
        assert_eq!(ends("5s"), Ok((5_000_000, 5_000_000)));
        assert_eq!(ends("0.5..4 lease"), Ok((4_000_000, 32_000_000)));
        assert_eq!(ends("1..3heartbeats"), Ok((2_000_000, 6_000_000)));
        assert_eq!(ends("-10s..10s"), Ok((-10_000_000, 10_000_000)));
        assert_eq!(ends("20ms..1.5s"), Ok((20_000, 1_500_000)));
    }

    #[test]
    fn what_is_no_length_is_named() {
        for (text, part) in [
            ("5", "needs a unit"),
            ("5 parsecs", "no unit \"parsecs\""),
            ("s", "is no number"),
            ("1.2345s", "is no number"),
            ("9..3s", "lower end"),
            ("1s..2 lease", "same kind"),
            ("..3s", "two ends"),
            ("999999999h", "too long"),
        ] {
            let why = Measure::parse(text).expect_err(text);
            assert!(why.contains(part), "{text}: {why}");
        }
    }
}
