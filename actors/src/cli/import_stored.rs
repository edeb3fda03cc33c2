//! A line of a crontab beside the schedule of its name that is there already.
//!
//! Owns: what a crontab line speaks of, and how the stored schedule says it otherwise. Must never: change
//! either, or show what a variable or an input holds. Next: `import.rs`.

use super::output::{cell, one_line};
use crate::api::dto::target::MASK;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::BTreeSet;

/// A field that the two say differently; what is not set has no text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// In the definition, with dots.
    pub field: String,
    /// What holds on the server.
    pub stored: Option<String>,
    /// What the line says.
    pub line: Option<String>,
}

/// Characters of a value that are shown.
const SHOWN_CHARS_MAX: usize = 80;

/// Fields that are compared as they stand, with what holds when they are not set.
const PLAIN: &[(&str, &str)] = &[
    ("tz", "UTC"),
    ("jitter", "0s"),
    ("job.target.type", ""),
    ("job.target.directory", ""),
];

/// What a stored definition says otherwise than the definition that a line would make.
pub fn differences(line: &Value, stored: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut compare = |field: &str, [stored, line]: [String; 2]| {
        if stored != line {
            let shown = |text: String| Some(clip(&text)).filter(|text| !text.is_empty());
            found.push(Difference {
                field: field.to_owned(),
                stored: shown(stored),
                line: shown(line),
            });
        }
    };
    compare("cron", [stored, line].map(|of| words(of, "cron")));
    for (field, unset) in PLAIN {
        compare(field, [stored, line].map(|of| text_or(of, field, unset)));
    }
    compare("job.target.argv", [stored, line].map(|of| words(of, "job.target.argv")));
    for name in variables(line).union(&variables(stored)) {
        let field = format!("job.target.env.{name}");
        let [stored, line] = [stored, line].map(|of| at(of, "job.target.env")?.get(name).cloned());
        // A secret is not shown: whether it is the same is not known.
        let is_masked = line.is_some() && stored.as_ref().is_some_and(|value| value == MASK);
        compare(
            &field,
            if is_masked {
                hidden(None, None)
            } else {
                hidden(stored, line)
            },
        );
    }
    let inputs = [stored, line].map(input);
    let [(field, stored_input), (_, line_input)] = inputs.map(|(field, input)| (field, input.map(Value::from)));
    compare(field, hidden(stored_input, line_input));
    // Only what was asked for: a line does not speak of it.
    for field in ["job.timeout", "job.retry.attempts"] {
        if at(line, field).is_some() {
            compare(field, [stored, line].map(|of| text_or(of, field, "")));
        }
    }
    found
}

/// The flags with which `schedule edit` makes a schedule what the line says.
pub fn flags(differences: &[Difference]) -> String {
    let flag = |difference: &Difference| {
        let value = difference.line.as_deref().filter(|value| !value.contains(['\'', '…']));
        let given = |flag: &str, form: &str| match value {
            Some(value) => format!(" --{flag} '{value}'"),
            None => format!(" --{flag} {form}"),
        };
        let field = difference.field.as_str();
        match (field, field.strip_prefix("job.target.env.")) {
            ("job.target.type" | "job.target.argv", _) => String::new(),
            _ if difference.line.is_none() => format!(" --unset {field}"),
            ("cron", _) => given("cron", "EXPR"),
            ("tz", _) => given("tz", "ZONE"),
            ("jitter", _) => given("jitter", "TIME"),
            ("job.target.directory", _) => given("directory", "FOLDER"),
            ("job.timeout", _) => given("attempt-timeout", "TIME"),
            ("job.retry.attempts", _) => given("attempts", "N"),
            (_, Some(name)) => format!(" --env {name}=VALUE"),
            _ => " --payload-file FILE".to_owned(),
        }
    };
    let is_command = |difference: &Difference| matches!(&*difference.field, "job.target.type" | "job.target.argv");
    let command = if differences.iter().any(is_command) {
        " -- COMMAND"
    } else {
        ""
    };
    let rest: String = differences.iter().map(flag).collect();
    format!("{rest}{command}")
}

/// What differs, for people.
pub fn text_of(differences: &[Difference]) -> String {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".to_owned());
    let one = |difference: &Difference| {
        let (stored, line) = (value(&difference.stored), value(&difference.line));
        format!("{} is {stored} there, {line} here", difference.field)
    };
    differences.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn at<'a>(value: &'a Value, field: &str) -> Option<&'a Value> {
    field.split('.').try_fold(value, |value, key| value.get(key))
}

fn text_or(value: &Value, field: &str, unset: &str) -> String {
    let path: Vec<_> = field.split('.').collect();
    Some(cell(value, &path))
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| unset.to_owned())
}

/// One text, or a list of them: the same if there is one.
fn words(value: &Value, field: &str) -> String {
    match at(value, field) {
        Some(Value::Array(words)) => {
            let texts: Vec<_> = words.iter().filter_map(Value::as_str).collect();
            // Shown as blanks; words with blanks are others.
            texts.join("\u{1f}")
        }
        Some(Value::String(text)) => text.clone(),
        _ => String::new(),
    }
}

fn variables(value: &Value) -> BTreeSet<String> {
    let env = at(value, "job.target.env").and_then(Value::as_object);
    env.into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

/// The input's field, and its bytes in base64.
fn input(definition: &Value) -> (&'static str, Option<String>) {
    match (at(definition, "job.payload_base64"), at(definition, "job.payload")) {
        (Some(Value::String(text)), _) => ("job.payload_base64", Some(text.clone())),
        (_, Some(payload)) if !payload.is_null() => ("job.payload", Some(STANDARD.encode(payload.to_string()))),
        _ => ("job.payload", None),
    }
}

/// Words for two values that nobody shall read.
fn hidden(stored: Option<Value>, line: Option<Value>) -> [String; 2] {
    match (stored, line) {
        (Some(stored), Some(line)) if stored != line => ["another one".to_owned(), "this one".to_owned()],
        (Some(_), None) => ["set".to_owned(), String::new()],
        (None, Some(_)) => [String::new(), "set".to_owned()],
        _ => [String::new(), String::new()],
    }
}

fn clip(text: &str) -> String {
    let text = one_line(text);
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some(_) => text.chars().take(SHOWN_CHARS_MAX - 1).chain(['…']).collect(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line() -> Value {
        json!({
            "cron": "0 4 * * *", "tz": "Europe/Berlin",
            "job": { "target": { "type": "command", "argv": ["/bin/sh", "-c", "x"], "env": { "A": "1" } } },
        })
    }

    /// The same, as a server answers it.
    fn stored() -> Value {
        json!({
            "cron": ["0 4 * * *"], "tz": "Europe/Berlin", "gap": "next-valid", "jitter": "0s", "misfire": "skip",
            "job": {
                "target": { "type": "command", "argv": ["/bin/sh", "-c", "x"], "shell": false, "env": { "A": "1" } },
                "retry": { "attempts": 1 },
            },
        })
    }

    #[test]
    fn what_a_line_does_not_speak_of_is_no_difference() {
        assert_eq!(differences(&line(), &stored()), []);
    }

    #[test]
    fn a_secret_that_the_server_does_not_show_is_no_difference() {
        let (mut line, mut stored) = (line(), stored());
        line["job"]["target"]["env"]["API_TOKEN"] = json!("s3cr3t");
        stored["job"]["target"]["env"]["API_TOKEN"] = json!(MASK);
        assert_eq!(differences(&line, &stored), []);
    }

    #[test]
    fn each_field_that_a_line_speaks_of_is_compared() {
        let mut stored = stored();
        stored["tz"] = json!("UTC");
        stored["jitter"] = json!("1m");
        stored["job"]["target"]["argv"] = json!(["/bin/sh", "-c", "y"]);
        stored["job"]["target"]["env"] = json!({ "A": "s3cr3t", "B": "2" });
        stored["job"]["payload"] = json!("in");
        let found = differences(&line(), &stored);
        let fields: Vec<_> = found.iter().map(|one| one.field.as_str()).collect();
        let expected = [
            "tz",
            "jitter",
            "job.target.argv",
            "job.target.env.A",
            "job.target.env.B",
            "job.payload",
        ];
        assert_eq!(fields, expected);
        let edit = " --tz 'Europe/Berlin' --jitter '0s' --env A=VALUE --unset job.target.env.B --unset job.payload";
        assert_eq!(flags(&found), format!("{edit} -- COMMAND"));
        let text = text_of(&found);
        assert!(text.starts_with("tz is UTC there, Europe/Berlin here; "), "{text}");
        assert!(text.contains("job.target.env.B is set there, not set here"), "{text}");
        assert!(!text.contains("s3cr3t"), "{text}");
    }
}
