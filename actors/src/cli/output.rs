//! Three forms of output: tables or tab-separated lines for people, JSON, JSON lines.
//!
//! Owns: standard output of every command that talks to a server. JSON is the server's own, byte for byte.
//! Must never: mix messages into data (those go to standard error). Next: `when.rs`.

use super::failure::Failure;
use super::when::Times;
use clap::{Args, ValueEnum};
use serde_json::Value;
use serde_json::value::RawValue;
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
    let value: Value = serde_json::from_slice(body).map_err(|error| Failure::unreadable(&error))?;
    let mut lines = Vec::new();
    flatten("", &value, times, &mut lines);
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

fn flatten(name: &str, value: &Value, times: &Times, lines: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) if name != "payload" => {
            for (key, inner) in map {
                let full = if name.is_empty() {
                    key.clone()
                } else {
                    format!("{name}.{key}")
                };
                flatten(&full, inner, times, lines);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (at, item) in items.iter().enumerate() {
                flatten(&format!("{name}[{at}]"), item, times, lines);
            }
        }
        Value::Array(items) => {
            let texts: Vec<_> = items.iter().map(|item| plain(name, item, times)).collect();
            lines.push((name.to_owned(), texts.join(" ")));
        }
        other => lines.push((name.to_owned(), plain(name, other, times))),
    }
}

fn plain(name: &str, value: &Value, times: &Times) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if is_time(name) => times.show(text),
        Value::String(text) => one_line(text),
        other => other.to_string(),
    }
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

/// A text without characters that would break a line or a terminal.
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
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
