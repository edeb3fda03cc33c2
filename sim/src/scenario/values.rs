//! Single values of scenario files: numbers, lengths, expressions, and how each is named and written.
//!
//! Owns: their bounds and their words. Must never: know a section. Next: `reader.rs`, `measure.rs`.

use super::keys::Want;
use super::measure::Measure;
use super::reader::Value;
use crate::own;
use toml::de::DeValue;

/// A number, or a range of numbers, within bounds.
pub fn count(text: &str, (least, most): (u64, u64)) -> Result<Value, String> {
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    let number = |text: &str| text.trim().parse::<i128>().ok();
    let (Some(low), Some(high)) = (number(low), number(high)) else {
        return Err(format!("{text:?} is no number and no range of numbers"));
    };
    if low > high {
        return Err("a range begins with its lower end".to_owned());
    }
    match (u64::try_from(low), u64::try_from(high)) {
        (Ok(low), Ok(high)) if least <= low && high <= most => Ok(Value::Count(low, high)),
        _ => Err(format!("it lies between {least} and {most}")),
    }
}

/// A length of time within bounds.
pub fn length(text: &str, least: i64, most: i64) -> Result<Value, String> {
    let measure = Measure::parse(text)?;
    if least == 0 && !measure.is_forward() {
        return Err("a length is not below zero".to_owned());
    }
    match measure.micros() {
        Some((low, high)) if low < least || high > most => Err(format!("at most {} s", most / 1_000_000)),
        _ => Ok(Value::Length(measure)),
    }
}

/// Whether the checkers' own generator understands an expression.
pub fn judgeable(text: &str) -> Result<(), String> {
    let fields: Vec<&str> = text.split(' ').collect();
    let [second, minute, hour, rest @ ..] = fields.as_slice() else {
        return Err("an expression has six fields".to_owned());
    };
    if rest != ["*", "*", "*"] {
        return Err("the checkers walk seconds, minutes and hours of every day, and no more".to_owned());
    }
    for (field, end) in [(second, 60), (minute, 60), (hour, 24)] {
        let number = |text: &str| text.parse::<u64>().is_ok_and(|number| number < end);
        let is_item = |item: &str| match (item.split_once('/'), item.split_once('-')) {
            (Some((from, step)), _) => from == "*" && number(step) && step != "0",
            (None, Some((low, high))) => number(low) && number(high),
            (None, None) => item == "*" || number(item),
        };
        if !field.split(',').all(is_item) {
            return Err(format!("the checkers do not understand {field:?}"));
        }
    }
    Ok(())
}

/// What stands for a word of its own for each job.
pub const ID: &str = "{id}";

/// A payload's text for one job.
pub fn payload(text: &str, id: &str) -> Result<serde_json::Value, String> {
    let text = text.replace(ID, id);
    serde_json::from_str(&text).map_err(|error| format!("this is no JSON: {error}"))
}

/// What a key wants, in words.
pub fn named(want: Want) -> &'static str {
    match want {
        Want::Text => "a text",
        Want::Count { .. } => "a number or a range of numbers",
        Want::Length { .. } | Want::Offset { .. } => "a length of time",
        Want::Switch => "true or false",
        Want::OneOf(_) => "a word or a list of words",
        Want::AllOf(_) => "a list of words",
        Want::Crons => "a cron expression or a list of them",
        Want::Handler => "a handler's name or a list of them",
        Want::Payloads => "a JSON text or a list of them",
        Want::Section(_) => "{ … }",
    }
}

/// How it would be written.
pub fn example(want: Want) -> String {
    match want {
        Want::Text => "\"…\"".to_owned(),
        Want::Count { least, most } => match most.min(least.max(1) + 2) {
            high if high > least.max(1) => format!("{high}, or \"{}..{high}\"", least.max(1)),
            high => high.to_string(),
        },
        Want::Length { .. } => "\"5s\", or \"0.5..4 lease\"".to_owned(),
        Want::Offset { .. } => "\"-10s..10s\"".to_owned(),
        Want::Switch => "true".to_owned(),
        Want::OneOf(words) | Want::AllOf(words) => format!("{:?}", words.first().copied().unwrap_or_default()),
        Want::Crons => "\"0,30 */5 * * * *\"".to_owned(),
        Want::Handler => format!("{:?}", own::names().first().copied().unwrap_or("charge")),
        Want::Payloads => "'{\"order\": \"{id}\", \"cents\": 1250}'".to_owned(),
        Want::Section(_) => "{ store = 1, scheduler = 2, worker = 3 }".to_owned(),
    }
}

/// What stands there instead.
pub fn article(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a number with a point",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    }
}
