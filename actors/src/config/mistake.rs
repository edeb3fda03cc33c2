//! What is wrong with a setting, and where it was given.
//!
//! Owns: places and the two forms of a list of mistakes. Must never: show a secret. Next: `resolve.rs`.

use super::table::Setting;
use crate::problem::Exit;
use fencepost_core::limits::CONFIG_MISTAKES_MAX;
use serde_json::json;
use std::fmt;
use std::sync::Arc;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nobody said.
    Default,
    /// A file, with line and column from 1.
    File {
        /// As it was named.
        file: Arc<str>,
        /// Line.
        line: usize,
        /// Column, in characters.
        column: usize,
    },
    /// A variable.
    Env(&'static str),
    /// A flag, without dashes.
    Flag(&'static str),
}

impl Place {
    /// As one word for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Place::Default => "default",
            Place::File { .. } => "file",
            Place::Env(_) => "env",
            Place::Flag(_) => "flag",
        }
    }

    /// What a mistake here calls a setting: its flag where the command line is meant, else its path.
    pub fn name_of(&self, setting: &Setting) -> String {
        match (self, setting.flag) {
            (Place::Default | Place::Flag(_), Some((flag, _))) => format!("--{flag}"),
            _ => setting.path.to_owned(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Default => f.write_str("default"),
            Place::File { file, line, column } => write!(f, "{file}:{line}:{column}"),
            Place::Env(name) => write!(f, "env {name}"),
            Place::Flag(name) => write!(f, "--{name}"),
        }
    }
}

/// Why a value cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Stable code.
    pub code: &'static str,
    /// What is wrong, as a sentence.
    pub detail: String,
    /// What to write instead.
    pub hint: String,
}

impl Wrong {
    pub(super) fn new(code: &'static str, detail: impl Into<String>, hint: impl Into<String>) -> Wrong {
        Wrong {
            code,
            detail: detail.into(),
            hint: hint.into(),
        }
    }
}

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Where it stands.
    pub place: Place,
    /// The setting's path, or what stands in its stead; empty if the file is none at all.
    pub field: String,
    /// What is wrong.
    pub wrong: Wrong,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("error: ")?;
        if matches!(self.place, Place::File { .. } | Place::Env(_)) {
            write!(f, "{}: ", self.place)?;
        }
        let Wrong { code, detail, hint } = &self.wrong;
        match self.field.is_empty() {
            true => writeln!(f, "{detail} [{code}]")?,
            false => writeln!(f, "{detail} [{code}, {}]", self.field)?,
        }
        writeln!(f, "hint: {hint}")
    }
}

/// The exit code: the command line's own if nothing else is wrong.
pub fn exit_of(mistakes: &[Mistake]) -> Exit {
    let own = |mistake: &Mistake| matches!(mistake.place, Place::Default | Place::Flag(_));
    match mistakes.iter().all(own) {
        true => Exit::Usage,
        false => Exit::Invalid,
    }
}

/// For people: all of them, up to a limit.
pub fn text_of(mistakes: &[Mistake]) -> String {
    let mut text: String = mistakes
        .iter()
        .take(CONFIG_MISTAKES_MAX)
        .map(Mistake::to_string)
        .collect();
    if mistakes.len() > CONFIG_MISTAKES_MAX {
        text.push_str("there are more; mend these first\n");
    }
    text
}

/// For programs: one document.
pub fn json_of(mistakes: &[Mistake]) -> serde_json::Value {
    let one = |mistake: &Mistake| {
        let mut value = json!({
            "origin": mistake.place.word(),
            "field": mistake.field,
            "code": mistake.wrong.code,
            "detail": mistake.wrong.detail,
            "hint": mistake.wrong.hint,
        });
        put_place(&mut value, &mistake.place);
        value
    };
    let shown: Vec<_> = mistakes.iter().take(CONFIG_MISTAKES_MAX).map(one).collect();
    json!({
        "code": "config_invalid",
        "detail": "The settings did not validate.",
        "hint": "Mend each of the mistakes.",
        "mistakes": shown,
        "is_complete": mistakes.len() <= CONFIG_MISTAKES_MAX,
    })
}

/// Adds where exactly: file, line and column, or the variable's or the flag's name.
pub fn put_place(value: &mut serde_json::Value, place: &Place) {
    let Some(map) = value.as_object_mut() else { return };
    match place {
        Place::Default => {}
        Place::File { file, line, column } => {
            map.insert("file".to_owned(), json!(&**file));
            map.insert("line".to_owned(), json!(line));
            map.insert("column".to_owned(), json!(column));
        }
        Place::Env(name) => {
            map.insert("env".to_owned(), json!(name));
        }
        Place::Flag(name) => {
            map.insert("flag".to_owned(), json!(format!("--{name}")));
        }
    }
}
