//! Rules of schedules as this simulator understands them: slow, plain, its own.
//!
//! Owns: which instants a rule asks for, found by walking second by second. Must never: call the
//! product's cron, zones or intervals. Next: `zones.rs`, `specs.rs`, `../checkers/`.

use crate::zones::PlainZone;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// When a schedule asks for an occurrence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlainRule {
    /// Every so many microseconds from an anchor.
    Every {
        /// Microseconds.
        every: i64,
        /// One of its instants.
        anchor: i64,
    },
    /// At local times.
    Cron {
        /// Expressions with seconds.
        texts: Vec<String>,
        /// Where.
        zone: PlainZone,
        /// Local times that do not exist: whether they fire at the first instant that does.
        fires_after_gap: bool,
        /// Local times that exist twice: `first`, `second` or `both`.
        overlap: &'static str,
    },
    /// Once.
    Once {
        /// The instant.
        at: i64,
    },
}

const SECOND: i64 = 1_000_000;

impl PlainRule {
    /// Instants in `(from, to]`, oldest first, in microseconds since the Unix epoch.
    pub fn instants(&self, from: i64, to: i64) -> Vec<i64> {
        if to <= from {
            return Vec::new();
        }
        match self {
            PlainRule::Once { at } => Some(*at).filter(|at| from < *at && *at <= to).into_iter().collect(),
            PlainRule::Every { every, anchor } => {
                let first = anchor + (from - anchor).div_euclid(*every) * every + every;
                (0..)
                    .map(|k| first + k * every)
                    .take_while(|instant| *instant <= to)
                    .collect()
            }
            PlainRule::Cron { texts, .. } => {
                let all: BTreeSet<i64> = texts
                    .iter()
                    .flat_map(|text| self.of_expression(text, from, to))
                    .collect();
                all.into_iter().filter(|at| from < *at && *at <= to).collect()
            }
        }
    }

    /// Whether an instant is asked for only because local times before it do not exist.
    pub fn is_after_gap(&self, at: i64) -> bool {
        let PlainRule::Cron {
            texts, zone, overlap, ..
        } = self
        else {
            return false;
        };
        let strict = PlainRule::Cron {
            texts: texts.clone(),
            zone: *zone,
            fires_after_gap: false,
            overlap,
        };
        let asks = |rule: &PlainRule| !rule.instants(at - 1, at).is_empty();
        asks(self) && !asks(&strict)
    }

    /// A leading `*` in second, minute or hour asks for real instants, anything else for local times.
    fn of_expression(&self, text: &str, from: i64, to: i64) -> Vec<i64> {
        let PlainRule::Cron { zone, .. } = self else {
            return Vec::new();
        };
        let fields = read(text);
        let (first, last) = (from.div_euclid(SECOND), to.div_euclid(SECOND));
        if text.split(' ').take(3).any(|field| field.starts_with('*')) {
            let instants = (first..=last).map(|second| second * SECOND);
            return instants.filter(|at| is_match(&fields, zone.local(*at))).collect();
        }
        let (low, high) = (zone.before.min(zone.after), zone.before.max(zone.after));
        // A local time in a gap stands for an instant that its own offset would not show.
        let locals =
            (first + low - (high - low)..=last + high + (high - low)).filter(|local| is_match(&fields, *local));
        locals.flat_map(|local| self.at_local(zone, local)).collect()
    }

    fn at_local(&self, zone: &PlainZone, local: i64) -> Vec<i64> {
        let PlainRule::Cron {
            fires_after_gap,
            overlap,
            ..
        } = self
        else {
            return Vec::new();
        };
        let mut at = zone.instants_of(local);
        match (at.len(), *overlap) {
            (0, _) if *fires_after_gap => vec![zone.changes_at],
            (2, "first") => at.drain(..1).collect(),
            (2, "second") => at.drain(1..).collect(),
            _ => at,
        }
    }

    /// The zone that dates are read in.
    pub fn zone(&self) -> PlainZone {
        match self {
            PlainRule::Cron { zone, .. } => *zone,
            _ => super::zones::STEADY[0],
        }
    }

    /// The fields of a request that ask for it.
    pub fn body(&self) -> Value {
        match self {
            PlainRule::Every { every, anchor } => {
                json!({"every": format!("{}ms", every / 1_000), "anchor": text(*anchor)})
            }
            PlainRule::Cron {
                texts,
                zone,
                fires_after_gap,
                overlap,
            } => {
                let gap = if *fires_after_gap { "next-valid" } else { "skip" };
                json!({"cron": texts, "tz": zone.name, "gap": gap, "overlap": overlap})
            }
            PlainRule::Once { at } => json!({"at": text(*at)}),
        }
    }
}

/// Seconds, minutes and hours that an expression names; the other fields are `*` here.
fn read(text: &str) -> Vec<Vec<i64>> {
    let fields = text.split(' ').zip([60, 60, 24]);
    fields
        .map(|(field, end)| (0..end).filter(|part| names(field, *part)).collect())
        .collect()
}

fn is_match(fields: &[Vec<i64>], local: i64) -> bool {
    let parts = [
        local.rem_euclid(60),
        local.div_euclid(60).rem_euclid(60),
        local.div_euclid(3_600).rem_euclid(24),
    ];
    fields.iter().zip(parts).all(|(field, part)| field.contains(&part))
}

fn names(field: &str, part: i64) -> bool {
    field.split(',').any(|item| {
        if let Some((_, step)) = item.split_once('/') {
            return step.parse::<i64>().is_ok_and(|step| part % step == 0);
        }
        if let Some((low, high)) = item.split_once('-') {
            let inside = |low: i64, high: i64| (low..=high).contains(&part);
            return low
                .parse()
                .ok()
                .zip(high.parse().ok())
                .is_some_and(|(low, high)| inside(low, high));
        }
        item == "*" || item.parse() == Ok(part)
    })
}

/// An instant as RFC 3339, worked out by hand (days since 1970 to a civil date).
pub fn text(at: i64) -> String {
    let (days, micros) = (at.div_euclid(86_400 * SECOND), at.rem_euclid(86_400 * SECOND));
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (seconds, fraction) = (micros / SECOND, micros % SECOND);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{fraction:06}Z",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zones::{CHANGES, STEADY};

    fn cron(text: &str, zone: PlainZone, (fires_after_gap, overlap): (bool, &'static str)) -> PlainRule {
        PlainRule::Cron {
            texts: vec![text.to_owned()],
            zone,
            fires_after_gap,
            overlap,
        }
    }

    fn after(rule: &PlainRule, start: i64, seconds: i64) -> Vec<i64> {
        let found = rule.instants(start, start + seconds * SECOND);
        found.into_iter().map(|at| (at - start) / SECOND).collect()
    }

    #[test]
    fn instants_are_as_on_paper() {
        let start = 1_767_225_600 * SECOND;
        let in_minute = |rule: PlainRule| after(&rule, start, 60);
        let kolkata = |text: &str| cron(text, STEADY[1], (true, "first"));
        assert_eq!(in_minute(kolkata("*/20 * * * * *")), [20, 40, 60]);
        assert_eq!(in_minute(kolkata("5,7 30 5 * * *")), [5, 7]);
        assert_eq!(in_minute(kolkata("5-7 30 5 * * *")), [5, 6, 7]);
        assert_eq!(in_minute(kolkata("5 31 5 * * *")), Vec::<i64>::new());
        let every = PlainRule::Every {
            every: 25 * SECOND,
            anchor: start - 10 * SECOND,
        };
        assert_eq!(in_minute(every), [15, 40]);
        assert_eq!(in_minute(PlainRule::Once { at: start }), Vec::<i64>::new());
    }

    #[test]
    fn fixed_times_follow_the_policy_of_a_change_and_wildcards_do_not() {
        let (spring, autumn) = (CHANGES[0], CHANGES[1]);
        let start = spring.changes_at - 10 * SECOND;
        let fixed = |text: &str, zone, gap| cron(text, zone, gap);
        let text = "0,20 0 2,3 * * *";
        assert_eq!(after(&fixed(text, spring, (true, "first")), start, 60), [10, 30]);
        assert_eq!(
            after(&fixed("0,20 0 2 * * *", spring, (true, "first")), start, 60),
            [10]
        );
        assert_eq!(
            after(&fixed("0,20 0 2 * * *", spring, (false, "first")), start, 60),
            Vec::<i64>::new()
        );
        let start = autumn.changes_at - 10 * SECOND;
        let text = "0,55 0,59 2 * * *";
        assert_eq!(after(&fixed(text, autumn, (true, "first")), start, 30), [5]);
        assert_eq!(after(&fixed(text, autumn, (true, "second")), start, 30), [10]);
        assert_eq!(after(&fixed(text, autumn, (true, "both")), start, 30), [5, 10]);
        assert_eq!(
            after(&fixed("0,55 * 2 * * *", autumn, (true, "first")), start, 30),
            [5, 10]
        );
    }

    #[test]
    fn dates_are_civil() {
        assert_eq!(text(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(text(1_709_210_096 * SECOND + 7), "2024-02-29T12:34:56.000007Z");
    }
}
