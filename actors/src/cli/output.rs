//! Three forms of output: tables or tab-separated lines for people, JSON, JSON lines.
//!
//! Owns: standard output of every command that talks to a server. JSON is the server's own, byte for byte.
//! Must never: mix messages into data (those go to standard error). Next: `when.rs`.

use super::failure::Failure;
use super::when::Times;
use clap::{Args, ValueEnum};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};

/// Form of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table on a terminal, tab-separated lines without a head in a pipe.
    #[default]
    Text,
    /// One JSON document.
    Json,
    /// One JSON document a line.
    Jsonl,
}

/// How to show results.
#[derive(Clone, Debug, Args)]
pub struct OutputArgs {
    /// Form of the output.
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Text)]
    pub output: Format,
}

/// A column of a table: its head and where its value is in an item.
pub type Column = (&'static str, fn(&Value, &Times) -> String);

/// Shows a list.
///
/// # Errors
/// An item cannot be read, or standard output is gone.
pub fn show_list(
    out: &mut dyn Write,
    format: Format,
    items: &[Box<RawValue>],
    columns: &[Column],
    times: &Times,
) -> Result<(), Failure> {
    match format {
        Format::Json => {
            let joined: Vec<_> = items.iter().map(|item| item.get()).collect();
            put(out, &format!("[{}]", joined.join(",")))
        }
        Format::Jsonl => items.iter().try_for_each(|item| put(out, item.get())),
        Format::Text => {
            let read = |item: &RawValue| serde_json::from_str::<Value>(item.get());
            let values = items.iter().map(|item| read(item)).collect::<Result<Vec<_>, _>>();
            let values = values.map_err(|error| Failure::unreadable(&error))?;
            let row = |value: &Value| columns.iter().map(|(_, cell)| cell(value, times)).collect();
            show_table(
                out,
                columns.iter().map(|(head, _)| *head).collect(),
                values.iter().map(row).collect(),
            )
        }
    }
}

/// Shows one thing: as it came, or as lines of name and value.
///
/// # Errors
/// It cannot be read, or standard output is gone.
pub fn show_one(out: &mut dyn Write, format: Format, body: &[u8], times: &Times) -> Result<(), Failure> {
    if format != Format::Text {
        let text = String::from_utf8_lossy(body);
        return put(out, &text);
    }
    let unreadable = |error: serde_json::Error| Failure::unreadable(&error);
    let value: &RawValue = serde_json::from_slice(body).map_err(unreadable)?;
    let mut lines = Vec::new();
    flatten("", value, times, DEPTH_MAX, &mut lines).map_err(unreadable)?;
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in lines {
        let line = match io::stdout().is_terminal() {
            true => format!("{name:<width$}  {value}"),
            false => format!("{name}\t{value}"),
        };
        put(out, line.trim_end())?;
    }
    Ok(())
}

/// Levels of an answer that become lines; our own have fewer, and what lies deeper is shown as it came.
const DEPTH_MAX: usize = 16;

/// Lines of name and value. Numbers and payloads are kept as they came: `1.000` is not `1.0`, and a number may be
/// larger than any of ours.
fn flatten(
    name: &str,
    value: &RawValue,
    times: &Times,
    depth: usize,
    lines: &mut Vec<(String, String)>,
) -> Result<(), serde_json::Error> {
    let text = value.get();
    let Some(deeper) = depth.checked_sub(1).filter(|_| !is_payload(name)) else {
        lines.push((name.to_owned(), one_line(text)));
        return Ok(());
    };
    if text.starts_with('{') {
        for (key, inner) in serde_json::from_str::<BTreeMap<String, &RawValue>>(text)? {
            let full = match name.is_empty() {
                true => key,
                false => format!("{name}.{key}"),
            };
            flatten(&full, inner, times, deeper, lines)?;
        }
    } else if text.starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(text)?;
        if items.iter().any(|item| item.get().starts_with('{')) {
            for (at, item) in items.iter().enumerate() {
                flatten(&format!("{name}[{at}]"), item, times, deeper, lines)?;
            }
            return Ok(());
        }
        let texts: Result<Vec<_>, _> = items.iter().map(|item| plain(name, item, times)).collect();
        lines.push((name.to_owned(), texts?.join(" ")));
    } else {
        lines.push((name.to_owned(), plain(name, value, times)?));
    }
    Ok(())
}

fn plain(name: &str, value: &RawValue, times: &Times) -> Result<String, serde_json::Error> {
    let text = value.get();
    if !text.starts_with('"') {
        return Ok(if text == "null" { String::new() } else { one_line(text) });
    }
    let said: String = serde_json::from_str(text)?;
    Ok(if is_time(name) {
        times.show(&said)
    } else {
        one_line(&said)
    })
}

/// A job's own payload, or that of a schedule's jobs.
fn is_payload(name: &str) -> bool {
    matches!(name, "payload" | "definition.job.payload")
}

/// Names of fields that hold instants.
fn is_time(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    last.ends_with("_at")
        || matches!(
            last,
            "at" | "from" | "to" | "before" | "after" | "decided_until" | "history_from"
        )
}

/// A number with its noun: one row, two rows.
pub fn counted(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// A text without characters that would break a line or a terminal.
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A text for a column that would be too wide for a terminal: cut there, and said to be; whole in a pipe.
pub fn shortened(text: &str, width: usize) -> String {
    if !io::stdout().is_terminal() || text.chars().count() <= width {
        return text.to_owned();
    }
    let kept = text.chars().take(width.saturating_sub(1));
    kept.chain(['…']).collect()
}

/// A value of an item as text; empty when it is not there.
pub fn cell(value: &Value, path: &[&str]) -> String {
    let found = path.iter().try_fold(value, |value, key| value.get(*key));
    match found {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => one_line(text),
        Some(other) => other.to_string(),
    }
}

/// Shows rows as a table on a terminal, tab-separated elsewhere.
///
/// # Errors
/// Standard output is gone.
pub fn show_table(out: &mut dyn Write, heads: Vec<&str>, rows: Vec<Vec<String>>) -> Result<(), Failure> {
    if !io::stdout().is_terminal() {
        let clean = |row: &Vec<String>| row.iter().map(|cell| one_line(cell)).collect::<Vec<_>>().join("\t");
        return rows.iter().try_for_each(|row| put(out, &clean(row)));
    }
    if rows.is_empty() {
        eprintln!("nothing to show");
        return Ok(());
    }
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(heads).add_rows(rows);
    table.to_string().lines().try_for_each(|line| put(out, line.trim_end()))
}

/// Writes a line.
///
/// # Errors
/// Standard output is gone.
pub fn put(out: &mut dyn Write, line: &str) -> Result<(), Failure> {
    writeln!(out, "{line}").map_err(|error| gone(&error))
}

/// Standard output cannot be written.
pub fn gone(error: &io::Error) -> Failure {
    let code = match error.kind() {
        io::ErrorKind::BrokenPipe => OUTPUT_CLOSED,
        _ => "output_failed",
    };
    let detail = format!("The output cannot be written: {}.", crate::problem::plain(error));
    Failure::new(crate::problem::Exit::Failed, code, detail, "Check where it goes.")
}

/// Whoever read our output has seen enough: no error.
pub const OUTPUT_CLOSED: &str = "output_closed";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_payloads_are_shown_as_they_came() {
        let big = "12345678901234567890123";
        let body = format!(
            r#"{{"id":"a","payload":{{"b": 1.000, "a": {big}}},"definition":{{"job":{{"payload":[1.0]}}}},"n":{big},
                "tags":["x","y"],"none":null,"items":[{{"at":"2026-01-01T00:00:00Z"}}]}}"#
        );
        let mut shown = Vec::new();
        show_one(&mut shown, Format::Text, body.as_bytes(), &Times::utc()).unwrap();
        let shown = String::from_utf8(shown).unwrap();
        let pair = |line: &str| {
            let line = line.replacen('\t', "  ", 1);
            let (name, value) = line.split_once("  ").unwrap_or((&line, ""));
            (name.to_owned(), value.trim().to_owned())
        };
        let payload = format!("{{\"b\": 1.000, \"a\": {big}}}");
        let wanted = [
            ("definition.job.payload", "[1.0]"),
            ("id", "a"),
            ("items[0].at", "2026-01-01T00:00:00Z"),
            ("n", big),
            ("none", ""),
            ("payload", &payload),
            ("tags", "x y"),
        ];
        let wanted = wanted.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(shown.lines().map(pair).collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn an_answer_that_is_nested_without_end_is_shown_as_it_came() {
        let levels = 100_000;
        let body = format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
        let mut shown = Vec::new();
        show_one(&mut shown, Format::Text, body.as_bytes(), &Times::utc()).unwrap();
        let shown = String::from_utf8(shown).unwrap();
        let names = vec!["a"; DEPTH_MAX].join(".");
        assert!(
            shown.starts_with(&names) && shown.lines().count() == 1,
            "{}",
            &shown[..200]
        );
    }

    #[test]
    fn a_number_agrees_with_its_noun() {
        assert_eq!(
            [0, 1, 2].map(|count| counted(count, "row")),
            ["0 rows", "1 row", "2 rows"]
        );
    }
}
