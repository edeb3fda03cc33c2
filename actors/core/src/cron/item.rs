//! The items of a field: `*`, `N`, `A-B`, with steps, and the day words `L LW nW d#k dL`.
//!
//! Owns: the strict reading of one field into sets of values, and its plain text (without `H`).
//! Must never: accept an empty item, a backward range, a glued name or a step without a range.

use super::hash::{self, HashSeed};
use super::token::Token;
use super::{CronError, CronErrorKind, CronField};

/// What one field asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FieldValues {
    /// Ranges of plain values, each with its step.
    pub spans: Vec<Span>,
    /// `nW`: days of month whose nearest Monday-to-Friday is meant.
    pub nearest: Vec<u16>,
    /// `L` in day-of-month.
    pub last_day: bool,
    /// `LW` in day-of-month.
    pub last_working_day: bool,
    /// `d#k`: weekday and count within the month.
    pub nth: Vec<(u16, u16)>,
    /// `dL`: the last such weekday of the month.
    pub last_weekday: Vec<u16>,
    /// The items as plain text, `H` resolved.
    pub plain: String,
    /// Things accepted that may surprise.
    pub notes: Vec<String>,
}

/// `first, first + step, …`, none above `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub first: u16,
    pub last: u16,
    pub step: u16,
}

impl Span {
    pub(super) fn values(self) -> impl Iterator<Item = u16> {
        (self.first..=self.last).step_by(usize::from(self.step))
    }
}

impl FieldValues {
    /// The plain values as bits; only for fields below 64.
    pub(super) fn bits(&self) -> u64 {
        let values = self.spans.iter().flat_map(|span| span.values());
        values.fold(0, |bits, value| bits | 1_u64.checked_shl(u32::from(value)).unwrap_or(0))
    }
}

/// Where errors point at.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub field: CronField,
    pub at: usize,
}

impl Place {
    pub(super) fn refuse(
        self,
        kind: CronErrorKind,
        message: impl std::fmt::Display,
        hint: impl Into<String>,
    ) -> CronError {
        CronError {
            kind,
            field: self.field,
            position: self.at,
            message: format!("{}{message}", self.field.name()),
            hint: hint.into(),
        }
    }

    /// A number or a word of this field.
    fn value(self, text: &str) -> Result<u16, CronError> {
        if let Some(value) = self.field.word(text) {
            return Ok(value);
        }
        let (low, high) = self.field.range();
        self.number(text, low, high, "")
    }

    /// A number from `low` to `high`; `what` names the part of the field.
    pub(super) fn number(self, text: &str, low: u16, high: u16, what: &str) -> Result<u16, CronError> {
        let digits = !text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit());
        let Some(value) = text.parse::<u16>().ok().filter(|_| digits) else {
            let message = format!("{what}: '{text}' is not a value");
            return Err(self.refuse(CronErrorKind::Value, message, self.part_hint(low, high, what)));
        };
        if !(low..=high).contains(&value) {
            let message = format!("{what}: {value} is outside {low}-{high}");
            return Err(self.refuse(CronErrorKind::Range, message, self.part_hint(low, high, what)));
        }
        Ok(value)
    }

    /// Words stand for values of the field alone, and for none of its steps, counts and days.
    fn part_hint(self, low: u16, high: u16, what: &str) -> String {
        match what.is_empty() {
            true => self.value_hint(low, high),
            false => format!("use a number from {low} to {high}"),
        }
    }

    fn value_hint(self, low: u16, high: u16) -> String {
        match self.field {
            CronField::Month => format!("use {low} to {high}, or JAN to DEC as a whole word"),
            CronField::DayOfWeek => {
                format!("use {low} to {high}, or SUN to SAT as a whole word; 0 and 7 are Sunday")
            }
            CronField::Expression
            | CronField::Second
            | CronField::Minute
            | CronField::Hour
            | CronField::DayOfMonth
            | CronField::Year => format!("use a number from {low} to {high}"),
        }
    }
}

/// Reads one field.
pub(super) fn parse(field: CronField, token: &Token, seed: HashSeed) -> Result<FieldValues, CronError> {
    let mut values = FieldValues::default();
    let mut at = token.at;
    for (index, item) in token.text.split(',').enumerate() {
        let place = Place { field, at };
        if item.is_empty() {
            let hint = "write a value between commas, or remove the comma";
            return Err(place.refuse(CronErrorKind::EmptyItem, ": empty item in list", hint));
        }
        let resolved = hash::resolve(place, item, seed)?;
        let item_text = resolved.as_deref().unwrap_or(item);
        match field {
            CronField::DayOfMonth => day_of_month(place, item_text, &mut values)?,
            CronField::DayOfWeek => day_of_week(place, item_text, &mut values)?,
            CronField::Expression
            | CronField::Second
            | CronField::Minute
            | CronField::Hour
            | CronField::Month
            | CronField::Year => plain(place, item_text, &mut values)?,
        }
        if index > 0 {
            values.plain.push(',');
        }
        values.plain.push_str(item_text);
        at += item.len() + 1;
    }
    Ok(values)
}

fn day_of_month(place: Place, item: &str, values: &mut FieldValues) -> Result<(), CronError> {
    match (item, item.strip_suffix('W')) {
        ("L", _) => values.last_day = true,
        ("LW", _) => values.last_working_day = true,
        (_, Some(day)) => values.nearest.push(place.number(day, 1, 31, " W")?),
        _ => plain(place, item, values)?,
    }
    Ok(())
}

fn day_of_week(place: Place, item: &str, values: &mut FieldValues) -> Result<(), CronError> {
    if let Some((day, count)) = item.split_once('#') {
        let day = place.value(day)? % 7;
        if count == "L" {
            values.last_weekday.push(day);
        } else {
            values.nth.push((day, place.number(count, 1, 5, " #")?));
        }
        return Ok(());
    }
    match item.strip_suffix('L') {
        Some(day) => values.last_weekday.push(place.value(day)? % 7),
        None => plain(place, item, values)?,
    }
    Ok(())
}

/// `*`, `N`, `A-B`, `*/S` or `A-B/S`.
fn plain(place: Place, item: &str, values: &mut FieldValues) -> Result<(), CronError> {
    let (body, step) = match item.split_once('/') {
        None => (item, None),
        Some((body, step)) => (body, Some(place.number(step, 1, 9999, " step")?)),
    };
    let (first, last) = if body == "*" {
        place.field.star()
    } else if let Some((left, right)) = body.split_once('-') {
        range(place, body, left, right)?
    } else if step.is_some() {
        let message = format!(": a step needs a range or *, not {body}");
        let (_, high) = place.field.star();
        let hint = format!("write {body}-{high}/STEP to start at {body}");
        return Err(place.refuse(CronErrorKind::StepBase, message, hint));
    } else {
        let value = place.value(body)?;
        (value, value)
    };
    let step = step.unwrap_or(1);
    if step > 1 && last - first < step {
        let name = place.field.name();
        values.notes.push(format!(
            "{name}: step {step} is longer than its range, so {item} is only {first}"
        ));
    }
    values.spans.push(Span { first, last, step });
    Ok(())
}

fn range(place: Place, body: &str, left: &str, right: &str) -> Result<(u16, u16), CronError> {
    if left.is_empty() || right.is_empty() {
        let message = format!(": {body} is neither a value nor a range");
        let (low, high) = place.field.range();
        let hint = format!(
            "{}; a range has both ends, and no number is negative",
            place.value_hint(low, high)
        );
        return Err(place.refuse(CronErrorKind::Value, message, hint));
    }
    let first = place.value(left)?;
    let sunday_last = place.field == CronField::DayOfWeek && right == "SUN";
    let last = if sunday_last { 7 } else { place.value(right)? };
    if first > last {
        let (low, high) = place.field.star();
        let hint = if first == high {
            format!("write {left},{low}-{right}")
        } else {
            format!("write {left}-{high},{low}-{right}")
        };
        let message = format!(": range {body} runs backwards");
        return Err(place.refuse(CronErrorKind::Backward, message, hint));
    }
    Ok((first, last))
}
