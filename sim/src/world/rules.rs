//! Rules of schedules as this simulator understands them: slow, plain, its own.
//!
//! Owns: which instants a rule asks for, found by walking second by second with a fixed offset.
//! Must never: call the product's cron, zones or intervals. Next: `timetable.rs`, `../checkers/`.

use serde_json::{Value, json};

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
        /// The expression with seconds.
        text: String,
        /// Zone name.
        zone: &'static str,
        /// Its offset in minutes, the same all year.
        offset: i64,
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
        match self {
            PlainRule::Once { at } => Some(*at).filter(|at| from < *at && *at <= to).into_iter().collect(),
            PlainRule::Every { every, anchor } => {
                let first = anchor + (from - anchor).div_euclid(*every) * every + every;
                (0..)
                    .map(|k| first + k * every)
                    .take_while(|instant| *instant <= to)
                    .collect()
            }
            PlainRule::Cron { text, offset, .. } => {
                let fields: Vec<&str> = text.split(' ').collect();
                let first = from.div_euclid(SECOND) * SECOND + SECOND;
                (0..)
                    .map(|k| first + k * SECOND)
                    .take_while(|instant| *instant <= to)
                    .filter(|instant| is_local_match(&fields, instant.div_euclid(SECOND) + offset * 60))
                    .collect()
            }
        }
    }

    /// The fields of a request that ask for it.
    pub fn body(&self) -> Value {
        match self {
            PlainRule::Every { every, anchor } => {
                json!({"every": format!("{}ms", every / 1_000), "anchor": text(*anchor)})
            }
            PlainRule::Cron { text, zone, .. } => json!({"cron": text, "tz": zone}),
            PlainRule::Once { at } => json!({"at": text(*at)}),
        }
    }
}

/// Second, minute and hour of a local second against the first three fields; the others are `*` here.
fn is_local_match(fields: &[&str], local: i64) -> bool {
    let parts = [
        local.rem_euclid(60),
        local.div_euclid(60).rem_euclid(60),
        local.div_euclid(3_600).rem_euclid(24),
    ];
    fields.iter().zip(parts).all(|(field, part)| is_match(field, part))
}

fn is_match(field: &str, part: i64) -> bool {
    field.split(',').any(|item| match item.split_once('/') {
        Some((_, step)) => step.parse::<i64>().is_ok_and(|step| part % step == 0),
        None => item == "*" || item.parse() == Ok(part),
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

    #[test]
    fn instants_are_as_on_paper() {
        let start = 1_767_225_600 * SECOND;
        let cron = |text: &str| PlainRule::Cron {
            text: text.to_owned(),
            zone: "Asia/Kolkata",
            offset: 330,
        };
        let in_minute = |rule: PlainRule| {
            let found = rule.instants(start, start + 60 * SECOND);
            found.into_iter().map(|at| (at - start) / SECOND).collect::<Vec<_>>()
        };
        assert_eq!(in_minute(cron("*/20 * * * * *")), [20, 40, 60]);
        assert_eq!(in_minute(cron("5,7 30 5 * * *")), [5, 7]);
        assert_eq!(in_minute(cron("5 31 5 * * *")), Vec::<i64>::new());
        let every = PlainRule::Every {
            every: 25 * SECOND,
            anchor: start - 10 * SECOND,
        };
        assert_eq!(in_minute(every), [15, 40]);
        assert_eq!(in_minute(PlainRule::Once { at: start }), Vec::<i64>::new());
    }

    #[test]
    fn dates_are_civil() {
        assert_eq!(text(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(text(1_709_210_096 * SECOND + 7), "2024-02-29T12:34:56.000007Z");
    }
}
