//! Kinds of values: how each is read from text, checked and shown.
//!
//! Owns: the one reader of a kind, for flags, variables and files alike. Must never: show a secret. Next:
//! `file.rs` (values that are no text), `table.rs`.

use super::mistake::Wrong;
use super::nearest::nearest;
use crate::targets::address::AddressRange;
use fencepost_core::duration;
use fencepost_core::limits::SECRET_BYTES_MIN;
use fencepost_core::name::Name;
use fencepost_core::time::Span;
use std::ffi::OsStr;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// What values a setting takes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// On or off.
    Switch,
    /// A whole number within bounds.
    Number {
        /// The least.
        min: u64,
        /// The greatest.
        max: u64,
    },
    /// A length of time within bounds, in milliseconds.
    Duration {
        /// The shortest.
        min_ms: u64,
        /// The longest.
        max_ms: u64,
    },
    /// A file or a folder.
    Path,
    /// An IP address and a port.
    Address,
    /// A host and a port.
    HostPort,
    /// A name of ours.
    Name,
    /// One of these, each with its meaning.
    Word(&'static [(&'static str, &'static str)]),
    /// A range of addresses.
    Range,
    /// What nobody may see.
    Secret,
    /// Several of a kind.
    List(&'static Kind),
}

/// A value of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// On or off.
    Switch(bool),
    /// A whole number.
    Number(u64),
    /// A length of time.
    Duration(Span),
    /// A file or a folder.
    Path(PathBuf),
    /// An IP address and a port.
    Address(SocketAddr),
    /// A host and a port, or a word.
    Text(String),
    /// A name of ours.
    Name(Name),
    /// A range of addresses.
    Range(AddressRange),
    /// What nobody may see.
    Secret(Hidden),
    /// Several.
    List(Vec<Value>),
}

/// A text that no output shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(String);

impl Hidden {
    /// The text, for its one user.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hidden")
    }
}

/// A text of someone else's, fit to be shown.
pub(super) fn shown(text: &str) -> String {
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    match text.char_indices().nth(64) {
        Some(_) => clean.take(63).chain(['…']).collect(),
        None => clean.collect(),
    }
}

impl Kind {
    /// A length of time of any length.
    pub const ANY_DURATION: Kind = Kind::Duration {
        min_ms: 0,
        max_ms: u64::MAX,
    };

    /// Reads a text.
    ///
    /// # Errors
    /// It is none of this kind, or out of bounds.
    pub fn parse(&self, text: &str) -> Result<Value, Wrong> {
        match self {
            Kind::Switch => text.parse().map(Value::Switch).map_err(|_| self.unfit(text)),
            Kind::Number { .. } => match text.parse::<i128>() {
                Ok(number) => self.bounded(number),
                Err(_) => Err(self.unfit(text)),
            },
            Kind::Duration { .. } => match duration::parse(text) {
                Ok(span) => self.lasting(span),
                Err(error) => Err(Wrong::new(
                    error.code(),
                    format!("{error}."),
                    format!("{}.", error.hint()),
                )),
            },
            Kind::Path if text.is_empty() => Err(self.unfit(text)),
            Kind::Path => Ok(Value::Path(PathBuf::from(text))),
            Kind::Address => text.parse().map(Value::Address).map_err(|_| self.unfit(text)),
            Kind::HostPort => match text.rsplit_once(':') {
                Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
                    Ok(Value::Text(text.to_owned()))
                }
                _ => Err(self.unfit(text)),
            },
            Kind::Name => Name::new(text).map(Value::Name).map_err(|error| {
                let hint = "Use letters, digits, ., _ and -, as in mail-1.";
                Wrong::new("config_name", format!("'{}' is no name: {error}.", shown(text)), hint)
            }),
            Kind::Word(known) => match known.iter().find(|(word, _)| *word == text) {
                Some((word, _)) => Ok(Value::Text((*word).to_owned())),
                None => Err(self.unknown_word(text)),
            },
            Kind::Range => text.parse().map(Value::Range).map_err(|_| self.unfit(text)),
            Kind::Secret => match text.len() >= SECRET_BYTES_MIN && text.bytes().all(|b| b.is_ascii_graphic()) {
                true => Ok(Value::Secret(Hidden(text.to_owned()))),
                false => Err(self.unfit("")),
            },
            Kind::List(one) => {
                let words = text.split(',').filter(|_| !text.is_empty());
                let values = words.map(|word| one.parse(word.trim())).collect::<Result<_, _>>()?;
                Ok(Value::List(values))
            }
        }
    }

    /// Reads a word of the command line or the environment, which may be no text at all.
    ///
    /// # Errors
    /// As `parse`.
    pub fn parse_os(&self, text: &OsStr) -> Result<Value, Wrong> {
        match (self, text.to_str()) {
            (_, Some(text)) => self.parse(text),
            (Kind::Path, None) => Ok(Value::Path(PathBuf::from(text))),
            (_, None) => Err(Wrong::new(
                "config_not_utf8",
                "The value is not UTF-8.",
                format!("Give {}.", self.what()),
            )),
        }
    }

    /// A number within the bounds.
    pub(super) fn bounded(&self, number: i128) -> Result<Value, Wrong> {
        let Kind::Number { min, max } = *self else {
            return Err(self.unfit(&number.to_string()));
        };
        match u64::try_from(number) {
            Ok(number) if (min..=max).contains(&number) => Ok(Value::Number(number)),
            _ => Err(Wrong::new(
                "config_out_of_range",
                format!("{number} is not between {min} and {max}."),
                format!("Give {}.", self.what()),
            )),
        }
    }

    /// A length of time within the bounds.
    fn lasting(&self, span: Span) -> Result<Value, Wrong> {
        let shown = duration::format(span);
        let Kind::Duration { min_ms, max_ms } = *self else {
            return Err(self.unfit(&shown));
        };
        if (min_ms.saturating_mul(1_000)..=max_ms.saturating_mul(1_000)).contains(&span.0) {
            return Ok(Value::Duration(span));
        }
        Err(Wrong::new(
            "config_out_of_range",
            format!("{shown} is not {}.", self.what()),
            format!("Give {}.", self.what()),
        ))
    }

    fn unfit(&self, text: &str) -> Wrong {
        let detail = match self {
            Kind::Secret => "The secret is too short, or holds odd characters.".to_owned(),
            _ if text.is_empty() => "The value is empty.".to_owned(),
            _ => format!("'{}' is not {}.", shown(text), self.what()),
        };
        Wrong::new("config_value", detail, format!("Write it as in {}.", self.example()))
    }

    fn unknown_word(&self, text: &str) -> Wrong {
        let Kind::Word(known) = self else {
            return self.unfit(text);
        };
        let hint = match nearest(text, known.iter().map(|(word, _)| *word)) {
            Some(word) => format!("Did you mean {word}?"),
            None => format!("Use {}.", self.what()),
        };
        let detail = match text.is_empty() {
            true => "The value is empty.".to_owned(),
            false => format!("'{}' is not {}.", shown(text), self.what()),
        };
        Wrong::new("config_word_unknown", detail, hint)
    }

    /// What a value is, to go behind "is" or "wants".
    pub fn what(&self) -> String {
        match self {
            Kind::Switch => "true or false".to_owned(),
            Kind::Number { min, max } => format!("a whole number from {min} to {max}"),
            Kind::Duration { max_ms: u64::MAX, .. } => "a length of time".to_owned(),
            Kind::Duration { min_ms, max_ms } => {
                let [min, max] = [*min_ms, *max_ms].map(|ms| duration::format(Span::from_millis(ms)));
                format!("a length of time from {min} to {max}")
            }
            Kind::Path => "a path".to_owned(),
            Kind::Address => "an IP address and a port".to_owned(),
            Kind::HostPort => "a host and a port".to_owned(),
            Kind::Name => "a name".to_owned(),
            Kind::Word(known) => {
                let words: Vec<_> = known.iter().map(|(word, _)| *word).collect();
                match words.split_last() {
                    Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
                    None => "a word".to_owned(),
                }
            }
            Kind::Range => "a range of addresses".to_owned(),
            Kind::Secret => "a secret of 16 or more letters, digits and signs".to_owned(),
            Kind::List(one) => format!("a list; each entry is {}", one.what()),
        }
    }

    /// A value as the file has it.
    pub fn example(&self) -> String {
        match self {
            Kind::Switch => "true".to_owned(),
            Kind::Number { min, .. } => min.to_string(),
            Kind::Duration { max_ms: u64::MAX, .. } => "\"30s\"".to_owned(),
            Kind::Duration { min_ms, .. } => format!("\"{}\"", duration::format(Span::from_millis(*min_ms))),
            Kind::Path => "\"/var/lib/fencepost\"".to_owned(),
            Kind::Address => "\"127.0.0.1:4480\"".to_owned(),
            Kind::HostPort => "\"127.0.0.1:4481\"".to_owned(),
            Kind::Name => "\"mail\"".to_owned(),
            Kind::Word(known) => format!("\"{}\"", known.first().map_or("", |(word, _)| *word)),
            Kind::Range => "\"10.1.0.0/16\"".to_owned(),
            Kind::Secret => "0123456789abcdef".to_owned(),
            Kind::List(one) => format!("[{}]", one.example()),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Switch(on) => write!(f, "{on}"),
            Value::Number(number) => write!(f, "{number}"),
            Value::Duration(span) => f.write_str(&duration::format(*span)),
            Value::Path(path) => write!(f, "{}", path.display()),
            Value::Address(address) => write!(f, "{address}"),
            Value::Text(text) => f.write_str(text),
            Value::Name(name) => write!(f, "{name}"),
            Value::Range(range) => write!(f, "{range}"),
            Value::Secret(_) => f.write_str("(set, not shown)"),
            Value::List(values) => {
                let texts: Vec<_> = values.iter().map(ToString::to_string).collect();
                f.write_str(&texts.join(","))
            }
        }
    }
}

impl Value {
    /// As JSON; a secret is null.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Value::Switch(on) => (*on).into(),
            Value::Number(number) => (*number).into(),
            Value::Secret(_) => serde_json::Value::Null,
            Value::List(values) => values.iter().map(Value::to_json).collect(),
            other => other.to_string().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_shows_in_no_form() {
        let secret = Kind::Secret.parse("s3cr3t-s3cr3t-s3cr3t").unwrap();
        for text in [secret.to_string(), format!("{secret:?}"), secret.to_json().to_string()] {
            assert!(!text.contains("s3cr3t"), "{text}");
        }
        let wrong = Kind::Secret.parse("s3cr3t").unwrap_err();
        assert!(!format!("{wrong:?}").contains("s3cr3t"), "{wrong:?}");
    }

    #[test]
    fn values_read_back_as_they_are_shown() {
        let cases = [
            (Kind::Switch, "true"),
            (Kind::Number { min: 1, max: 9 }, "9"),
            (Kind::ANY_DURATION, "1h30m"),
            (Kind::Path, "./a b"),
            (Kind::Address, "[::1]:80"),
            (Kind::HostPort, "store.example:4481"),
            (Kind::Name, "a.b-c"),
            (Kind::Range, "10.1.0.0/16"),
            (Kind::List(&Kind::Name), "a,b"),
            (Kind::List(&Kind::Name), ""),
        ];
        for (kind, text) in cases {
            assert_eq!(kind.parse(text).unwrap().to_string(), text);
        }
        assert_eq!(
            Kind::ANY_DURATION.parse("PT1M").unwrap(),
            Kind::ANY_DURATION.parse("60s").unwrap()
        );
    }

    #[test]
    fn bad_values_say_what_to_write() {
        let number = Kind::Number { min: 1, max: 256 };
        let cases = [
            (Kind::Switch, "yes", "config_value"),
            (number, "0", "config_out_of_range"),
            (number, "-1", "config_out_of_range"),
            (number, "99999999999999999999999999", "config_out_of_range"),
            (number, "many", "config_value"),
            (Kind::ANY_DURATION, "30", "duration_unit_missing"),
            (Kind::ANY_DURATION, "1M", "duration_calendar_unit"),
            (
                Kind::Duration {
                    min_ms: 500,
                    max_ms: 15_000,
                },
                "16s",
                "config_out_of_range",
            ),
            (Kind::Path, "", "config_value"),
            (Kind::Address, "localhost:80", "config_value"),
            (Kind::HostPort, "nowhere", "config_value"),
            (Kind::HostPort, ":80", "config_value"),
            (Kind::Name, "a b", "config_name"),
            (Kind::Word(&[("text", ""), ("json", "")]), "jsn", "config_word_unknown"),
            (Kind::Range, "10.0.0.0", "config_value"),
            (Kind::List(&Kind::Name), "a,,b", "config_name"),
        ];
        for (kind, text, code) in cases {
            let wrong = kind.parse(text).unwrap_err();
            assert!(wrong.code == code && !wrong.hint.is_empty(), "{text}: {wrong:?}");
        }
    }
}
