//! Which dates an expression means: `L`, `LW`, `nW`, `d#k`, `dL`, and both day fields together.
//!
//! Owns: the only use of croner. Months come in 28 shapes (four lengths, seven first weekdays);
//! croner is asked once for each day of each shape, and only the answers are kept.
//! Must never: give croner text that is not built here from parsed numbers: no names, no steps, no
//! star, at most one of `L` and `LW` (croner reads these otherwise than we do; see
//! docs/decisions/0002-croner-under-our-tokenizer.md).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, OnceLock, PoisonError};

use chrono::{Datelike, NaiveDate};
use croner::parser::{CronParser, Seconds, Year};
use croner::{CronPattern, Weekday};

use super::item::FieldValues;
use crate::limits::DAY_RULES_KEPT_MAX;

/// One bit for each day of a month, bit 0 for the first.
pub(super) type DayBits = u32;

/// The days of the month that match, for each shape of a month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DayTable {
    shapes: [DayBits; SHAPES],
}

const SHAPES: usize = 28;

/// Days, weekdays, whether both must match, and whether the last working day matches too.
type MemoKey = (String, String, bool, bool);
static MEMO: Mutex<BTreeMap<MemoKey, DayTable>> = Mutex::new(BTreeMap::new());

/// A month that has a shape: its year and number, its first weekday and its length.
#[derive(Debug, Clone, Copy)]
struct Sample {
    year: i32,
    month: u32,
    first: u32,
    length: u32,
}

impl Sample {
    fn of(year: i32, month: u32) -> Option<Self> {
        let first = NaiveDate::from_ymd_opt(year, month, 1)?;
        let length = u32::from(first.num_days_in_month());
        Some(Self {
            year,
            month,
            first: first.weekday().num_days_from_sunday(),
            length,
        })
    }

    fn shape(self) -> usize {
        (self.length.saturating_sub(28) * 7 + self.first) as usize
    }
}

/// One month of each shape; the calendar of 2000 to 2027 has them all.
fn samples() -> &'static [Sample] {
    static SAMPLES: OnceLock<Vec<Sample>> = OnceLock::new();
    SAMPLES.get_or_init(|| {
        let months = (2000..2028).flat_map(|year| (1..=12).filter_map(move |month| Sample::of(year, month)));
        let mut found: Vec<Sample> = Vec::with_capacity(SHAPES);
        for sample in months {
            if found.iter().all(|other| other.shape() != sample.shape()) {
                found.push(sample);
            }
        }
        found
    })
}

impl DayTable {
    /// The table of two day fields. Schedules share few of them, so what croner answered once is
    /// remembered: it was most of the time that opening a shard with many schedules took.
    pub(super) fn build(dom: &FieldValues, dow: &FieldValues, both: bool) -> Result<Self, String> {
        let key = (
            days_text(dom).unwrap_or_default(),
            weekdays_text(dow),
            both,
            dom.last_working_day,
        );
        let mut known = MEMO.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = known.get(&key) {
            return Ok(table.clone());
        }
        let table = Self::ask(dom, dow, both)?;
        if known.len() >= DAY_RULES_KEPT_MAX {
            known.clear();
        }
        known.insert(key, table.clone());
        Ok(table)
    }

    /// Asks croner. The error is croner's own text; our tests know of no way to see it.
    fn ask(dom: &FieldValues, dow: &FieldValues, both: bool) -> Result<Self, String> {
        let mut table = Self { shapes: [0; SHAPES] };
        // Croner takes `L` for `LW` where both are in one list, so each goes alone.
        let working_day = dom.last_working_day.then(|| "LW".to_owned());
        for days in [days_text(dom), working_day].into_iter().flatten() {
            let plus = if both { "+" } else { "" };
            let text = format!("0 0 0 {days} * {plus}{}", weekdays_text(dow));
            let parser = CronParser::builder()
                .seconds(Seconds::Required)
                .year(Year::Disallowed)
                .build();
            let cron = parser.parse(&text).map_err(|error| error.to_string())?;
            table.add(&cron.pattern)?;
        }
        Ok(table)
    }

    fn add(&mut self, pattern: &CronPattern) -> Result<(), String> {
        for sample in samples() {
            for day in 1..=sample.length {
                let weekday = weekday((sample.first + day - 1) % 7);
                let matches = pattern.day_match(sample.year, sample.month, day, weekday);
                if matches.map_err(|error| error.to_string())?
                    && let Some(bits) = self.shapes.get_mut(sample.shape())
                {
                    *bits |= 1 << (day - 1);
                }
            }
        }
        Ok(())
    }

    /// The days of a month that match.
    pub(super) fn month(&self, year: i32, month: u32) -> DayBits {
        let shape = Sample::of(year, month).map(Sample::shape);
        shape.and_then(|shape| self.shapes.get(shape)).copied().unwrap_or(0)
    }
}

fn weekday(from_sunday: u32) -> Weekday {
    match from_sunday {
        0 => Weekday::Sunday,
        1 => Weekday::Monday,
        2 => Weekday::Tuesday,
        3 => Weekday::Wednesday,
        4 => Weekday::Thursday,
        5 => Weekday::Friday,
        _ => Weekday::Saturday,
    }
}

/// Days of month in croner's words, without `LW`; `None` when nothing is left.
fn days_text(dom: &FieldValues) -> Option<String> {
    let mut text = numbers(dom.bits());
    for day in &dom.nearest {
        let _ = write!(text, ",{day}W");
    }
    if dom.last_day {
        text.push_str(",L");
    }
    let text = text.trim_start_matches(',');
    (!text.is_empty()).then(|| text.to_owned())
}

/// Days of week in croner's words, 0 to 6.
fn weekdays_text(dow: &FieldValues) -> String {
    let mut text = numbers((dow.bits() | dow.bits() >> 7) & 0x7f);
    for (day, count) in &dow.nth {
        let _ = write!(text, ",{day}#{count}");
    }
    for day in &dow.last_weekday {
        let _ = write!(text, ",{day}L");
    }
    text.trim_start_matches(',').to_owned()
}

fn numbers(bits: u64) -> String {
    let values = (0..64).filter(|value| bits >> value & 1 == 1);
    values.map(|value| format!(",{value}")).collect()
}
