//! The file of settings: TOML, read whole, all mistakes at once.
//!
//! Owns: lines and columns, keys that are none, values of the wrong kind. Must never: stop at the first
//! mistake, or read without bound. Next: `table.rs` (what may stand in it), `kind.rs` (values that are text).

use super::kind::{Kind, Value, shown};
use super::mistake::{Mistake, Place, Wrong};
use super::nearest::nearest;
use super::table::{SETTINGS, Setting};
use fencepost_core::limits::{CONFIG_BYTES_MAX, CONFIG_MISTAKES_MAX};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A file as it was read; it may hold anything.
#[derive(Debug)]
pub struct Source {
    name: Arc<str>,
    bytes: Vec<u8>,
}

/// What a file says, and where.
#[derive(Debug, Default)]
pub struct Said {
    /// By path.
    pub values: BTreeMap<&'static str, (Value, Place)>,
    /// In the order of the file.
    pub mistakes: Vec<Mistake>,
}

impl Source {
    /// Reads a file, one byte beyond its bound at most.
    ///
    /// # Errors
    /// It cannot be read: it is not there, a folder, or not ours to read.
    pub fn read(path: &Path) -> io::Result<Source> {
        let mut bytes = Vec::new();
        let beyond = CONFIG_BYTES_MAX as u64 + 1;
        std::fs::File::open(path)?.take(beyond).read_to_end(&mut bytes)?;
        Ok(Source::new(&path.display().to_string(), bytes))
    }

    /// These bytes, under this name.
    pub fn new(name: &str, bytes: Vec<u8>) -> Source {
        Source {
            name: shown_path(name),
            bytes,
        }
    }

    /// Reads all it says.
    pub fn parse(&self) -> Said {
        let text = match self.text() {
            Ok(text) => text,
            Err(mistake) => {
                return Said {
                    mistakes: vec![mistake],
                    ..Said::default()
                };
            }
        };
        let lines = Lines::of(text);
        let (document, errors) = DeTable::parse_recoverable(text);
        let mut reader = Reader::default();
        for error in &errors {
            reader.syntax(text, error);
        }
        // The first error of a line makes the others, and what the parser made of such a line is not what
        // its author meant.
        reader.found.sort_by_key(|(at, ..)| *at);
        reader.found.dedup_by_key(|(at, ..)| lines.line(*at));
        let broken: BTreeSet<usize> = reader.found.iter().map(|(at, ..)| lines.line(*at)).collect();
        let syntax_count = reader.found.len();
        reader.table("", document.get_ref());
        let semantic = reader.found.split_off(syntax_count);
        let kept = semantic
            .into_iter()
            .filter(|(at, ..)| !broken.contains(&lines.line(*at)));
        reader.found.extend(kept);
        reader.found.sort_by_key(|(at, ..)| *at);
        reader.found.truncate(CONFIG_MISTAKES_MAX + 1);
        let place = |at: usize| {
            let (line, column) = lines.place(text, at);
            self.place(line, column)
        };
        Said {
            values: reader
                .values
                .into_iter()
                .map(|(path, (value, at))| (path, (value, place(at))))
                .collect(),
            mistakes: reader
                .found
                .into_iter()
                .map(|(at, field, wrong)| Mistake {
                    place: place(at),
                    field,
                    wrong,
                })
                .collect(),
        }
    }

    fn place(&self, line: usize, column: usize) -> Place {
        Place::File {
            file: self.name.clone(),
            line,
            column,
        }
    }

    fn text(&self) -> Result<&str, Mistake> {
        let mistake = |line, column, wrong| Mistake {
            place: self.place(line, column),
            field: String::new(),
            wrong,
        };
        if self.bytes.len() > CONFIG_BYTES_MAX {
            let detail = format!("The file is larger than {} KiB.", CONFIG_BYTES_MAX >> 10);
            return Err(mistake(
                1,
                1,
                Wrong::new("config_too_large", detail, "Name a file of settings."),
            ));
        }
        std::str::from_utf8(&self.bytes).map_err(|error| {
            let good = self.bytes.get(..error.valid_up_to()).unwrap_or_default();
            let good = String::from_utf8_lossy(good);
            let (line, column) = Lines::of(&good).place(&good, good.len());
            mistake(
                line,
                column,
                Wrong::new("config_not_utf8", "The file is not UTF-8.", "Save it as UTF-8."),
            )
        })
    }
}

fn shown_path(name: &str) -> Arc<str> {
    name.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect::<String>()
        .into()
}

/// Where lines begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Lines {
        Lines(
            [0].into_iter()
                .chain(text.match_indices('\n').map(|(at, _)| at + 1))
                .collect(),
        )
    }

    /// From 1.
    fn line(&self, at: usize) -> usize {
        self.0.partition_point(|begin| *begin <= at)
    }

    fn place(&self, text: &str, at: usize) -> (usize, usize) {
        let line = self.line(at);
        let begin = self.0.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let column = text.get(begin..at).map_or(1, |before| before.chars().count() + 1);
        (line, column)
    }
}

/// Collects what a document says.
#[derive(Default)]
struct Reader {
    values: BTreeMap<&'static str, (Value, usize)>,
    /// Where, which field, what.
    found: Vec<(usize, String, Wrong)>,
}

impl Reader {
    fn wrong(&mut self, span: Range<usize>, field: &str, wrong: Wrong) {
        self.found.push((span.start, field.to_owned(), wrong));
    }

    fn syntax(&mut self, text: &str, error: &toml::de::Error) {
        let span = error.span().unwrap_or(0..0);
        let at = text.get(span.clone()).unwrap_or("");
        if error.message().starts_with("duplicate key") {
            let detail = format!("'{}' stands here a second time.", shown(at));
            self.wrong(
                span,
                at.trim(),
                Wrong::new("config_key_repeated", detail, "Keep one of them."),
            );
            return;
        }
        let detail = format!("This is no TOML: {}.", shown(error.message()));
        let hint = "Write key = value, texts in double quotes, sections as [api].";
        self.wrong(span, "", Wrong::new("config_syntax", detail, hint));
    }

    /// Reads a section, or the top of the file under the empty name.
    fn table(&mut self, section: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let name: &str = key.get_ref();
            let path = match section {
                "" => name.to_owned(),
                section => format!("{section}.{name}"),
            };
            if let Some(setting) = SETTINGS.iter().find(|setting| setting.path == path) {
                self.setting(setting, key.span(), value);
            } else if section.is_empty() && is_section(name) {
                match value.get_ref() {
                    DeValue::Table(inner) => self.table(name, inner),
                    other => {
                        let detail = format!("{name} is a section, not {}.", article(other));
                        let wrong = Wrong::new("config_type", detail, format!("Write [{name}], and its keys below."));
                        self.wrong(value.span(), name, wrong);
                    }
                }
            } else {
                self.wrong(key.span(), &shown(&path), unknown(section, name));
            }
        }
    }

    fn setting(&mut self, setting: &'static Setting, key: Range<usize>, value: &Spanned<DeValue<'_>>) {
        if matches!(setting.kind, Kind::Secret) {
            let detail = "A secret does not stand in the file.";
            let file = format!("{}_file", setting.path);
            let hint = match SETTINGS.iter().any(|other| other.path == file) {
                true => format!("Name its own file with {file}, or set {}.", setting.env),
                false => format!("Leave it out, or set {}.", setting.env),
            };
            return self.wrong(key, setting.path, Wrong::new("config_secret_in_file", detail, hint));
        }
        if let Some(read) = self.value(setting, &setting.kind, value) {
            self.values.insert(setting.path, (read, key.start));
        }
    }

    /// Reads a value; each bad entry of a list is a mistake of its own.
    fn value(&mut self, setting: &Setting, kind: &Kind, value: &Spanned<DeValue<'_>>) -> Option<Value> {
        let read = match (kind, value.get_ref()) {
            (Kind::Switch, DeValue::Boolean(on)) => Ok(Value::Switch(*on)),
            (Kind::Number { .. }, DeValue::Integer(number)) => {
                // No integer of TOML is longer than 64 bits; what does not fit is out of any bounds.
                let number = i128::from_str_radix(number.as_str(), number.radix()).unwrap_or(i128::MAX);
                kind.bounded(number)
            }
            (Kind::List(one), DeValue::Array(entries)) => {
                let values: Vec<_> = entries.iter().map(|entry| self.value(setting, one, entry)).collect();
                return values.into_iter().collect::<Option<Vec<_>>>().map(Value::List);
            }
            (Kind::Switch | Kind::Number { .. } | Kind::List(_), _) => Err(unfit(setting, kind, value.get_ref())),
            (_, DeValue::String(text)) => kind.parse(text),
            _ => Err(unfit(setting, kind, value.get_ref())),
        };
        read.map_err(|wrong| self.wrong(value.span(), setting.path, wrong)).ok()
    }
}

fn is_section(name: &str) -> bool {
    SETTINGS.iter().any(|setting| setting.section() == Some(name))
}

fn article(value: &DeValue<'_>) -> &'static str {
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

/// A value of another type, and how it would be written.
fn unfit(setting: &Setting, kind: &Kind, value: &DeValue<'_>) -> Wrong {
    let given = match (kind, value) {
        (Kind::Duration { .. }, DeValue::Integer(number)) => Some(format!("\"{number}s\"")),
        (Kind::List(one), DeValue::String(text)) if one.parse(text).is_ok() => Some(format!("[\"{text}\"]")),
        (Kind::Switch | Kind::Number { .. }, DeValue::String(text)) if kind.parse(text).is_ok() => {
            Some(text.to_string())
        }
        _ => None,
    };
    let written = given.unwrap_or_else(|| kind.example());
    let written = match matches!(setting.kind, Kind::List(_)) && !matches!(kind, Kind::List(_)) {
        true => format!("[{written}]"),
        false => written,
    };
    let detail = format!("{} wants {}, not {}.", setting.path, kind.what(), article(value));
    Wrong::new("config_type", detail, format!("Write {} = {written}.", setting.key()))
}

/// A key that is none: what was probably meant, here or in another section.
fn unknown(section: &str, name: &str) -> Wrong {
    let here: Vec<_> = SETTINGS
        .iter()
        .filter(|setting| setting.section().unwrap_or("") == section)
        .collect();
    let near_key = nearest(name, here.iter().map(|setting| setting.key()));
    let near_section = || {
        let sections = SETTINGS.iter().filter_map(|setting| setting.section());
        nearest(name, sections.filter(|_| section.is_empty()))
    };
    let elsewhere = || {
        let by_key = nearest(name, SETTINGS.iter().map(|setting| setting.key()));
        let by_flag = nearest(name, SETTINGS.iter().filter_map(|setting| Some(setting.flag?.0)));
        let is_it = |setting: &&&Setting| {
            let flag = setting.flag.map(|(flag, _)| flag);
            by_key == Some(setting.key()) || (by_flag.is_some() && by_flag == flag)
        };
        let some_near = by_key.is_some() || by_flag.is_some();
        SETTINGS.iter().filter(|_| some_near).find(is_it)
    };
    let hint = match near_key {
        Some(key) => format!("Did you mean {key}?"),
        None => match (near_section(), elsewhere()) {
            (Some(section), _) => format!("Did you mean the section [{section}]?"),
            (None, Some(setting)) => match setting.section() {
                Some(section) => format!("Did you mean {} in [{section}]?", setting.key()),
                None => format!("Did you mean {}, at the top of the file?", setting.path),
            },
            (None, None) => {
                let keys: Vec<_> = here.iter().map(|setting| setting.key()).collect();
                format!("Known here: {}.", keys.join(", "))
            }
        },
    };
    let place = match section {
        "" => "at the top of the file".to_owned(),
        section => format!("in [{section}]"),
    };
    Wrong::new(
        "config_key_unknown",
        format!("There is no '{}' {place}.", shown(name)),
        hint,
    )
}
