//! The layers: a flag counts before a variable, a variable before the file, the file before the default.
//!
//! Owns: which value holds and where it came from. Every layer is read, also where another one wins: a
//! mistake that waits for a flag to go away is still one. Must never: read the clock or start anything.
//! Next: `file.rs`, `part.rs`.

use super::file::Source;
use super::kind::{Hidden, Kind, Value};
use super::mistake::{Mistake, Place};
use super::part::check_part;
use super::table::{Preset, SETTINGS, Setting};
use crate::targets::address::AddressRange;
use fencepost_core::name::Name;
use fencepost_core::time::Span;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

/// What flags gave, by path.
pub type Given = BTreeMap<&'static str, Value>;

/// What is given, in all layers.
pub struct Layers<'a> {
    /// By flags.
    pub flags: &'a Given,
    /// By a variable of this name.
    pub env: &'a dyn Fn(&str) -> Option<OsString>,
    /// By the file.
    pub file: Option<&'a Source>,
    /// For `dev`, which knows fewer settings.
    pub is_dev: bool,
}

/// What holds.
#[derive(Clone, Debug)]
pub struct Effective(BTreeMap<&'static str, (Option<Value>, Place)>);

/// Puts the layers together.
///
/// # Errors
/// All that is wrong in any layer, or does not go together.
pub fn resolve(layers: &Layers<'_>) -> Result<Effective, Vec<Mistake>> {
    let said = layers.file.map(Source::parse).unwrap_or_default();
    let mut mistakes = said.mistakes;
    let mut values = BTreeMap::new();
    for setting in SETTINGS.iter().filter(|setting| !(layers.is_dev && setting.serve_only)) {
        let by_env = match (layers.env)(setting.env).map(|text| setting.kind.parse_os(&text)) {
            None => None,
            Some(Ok(value)) => Some((Some(value), Place::Env(setting.env))),
            Some(Err(wrong)) => {
                mistakes.push(Mistake {
                    place: Place::Env(setting.env),
                    field: setting.path.to_owned(),
                    wrong,
                });
                None
            }
        };
        let flag = setting.flag.map_or("", |(flag, _)| flag);
        let by_flag = layers.flags.get(setting.path).cloned();
        let by_file = said.values.get(setting.path).cloned();
        let held = by_flag
            .map(|value| (Some(value), Place::Flag(flag)))
            .or(by_env)
            .or(by_file.map(|(value, place)| (Some(value), place)))
            .unwrap_or((setting.preset.value(&setting.kind), Place::Default));
        values.insert(setting.path, held);
    }
    let effective = Effective(values);
    if mistakes.is_empty() && !layers.is_dev {
        mistakes.extend(check_part(&effective).err());
    }
    match mistakes.is_empty() {
        true => Ok(effective),
        false => Err(mistakes),
    }
}

impl Preset {
    /// As a value.
    pub fn value(&self, kind: &Kind) -> Option<Value> {
        match self {
            Preset::Unset(_) => None,
            Preset::Text(text) => kind.parse(text).ok(),
            Preset::Number(number) => Some(Value::Number(*number)),
            Preset::Switch(on) => Some(Value::Switch(*on)),
        }
    }
}

impl Effective {
    /// A value, if there is one.
    pub fn get(&self, setting: &Setting) -> Option<&Value> {
        self.0.get(setting.path)?.0.as_ref()
    }

    /// Where it came from.
    pub fn place(&self, setting: &Setting) -> &Place {
        self.0.get(setting.path).map_or(&Place::Default, |(_, place)| place)
    }

    /// On or off; off where nobody says.
    pub fn switch(&self, setting: &Setting) -> bool {
        matches!(self.get(setting), Some(Value::Switch(true)))
    }

    /// A number, of the type that its bounds fit.
    pub fn number<N: TryFrom<u64>>(&self, setting: &Setting) -> Option<N> {
        match self.get(setting)? {
            Value::Number(number) => N::try_from(*number).ok(),
            _ => None,
        }
    }

    /// A length of time.
    pub fn span(&self, setting: &Setting) -> Option<Span> {
        match self.get(setting)? {
            Value::Duration(span) => Some(*span),
            _ => None,
        }
    }

    /// A path.
    pub fn path(&self, setting: &Setting) -> Option<PathBuf> {
        match self.get(setting)? {
            Value::Path(path) => Some(path.clone()),
            _ => None,
        }
    }

    /// An address.
    pub fn address(&self, setting: &Setting) -> Option<SocketAddr> {
        match self.get(setting)? {
            Value::Address(address) => Some(*address),
            _ => None,
        }
    }

    /// A word, or a host with its port.
    pub fn text(&self, setting: &Setting) -> Option<&str> {
        match self.get(setting)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A name.
    pub fn name(&self, setting: &Setting) -> Option<Name> {
        match self.get(setting)? {
            Value::Name(name) => Some(name.clone()),
            _ => None,
        }
    }

    /// A secret.
    pub fn secret(&self, setting: &Setting) -> Option<&Hidden> {
        match self.get(setting)? {
            Value::Secret(secret) => Some(secret),
            _ => None,
        }
    }

    fn list(&self, setting: &Setting) -> &[Value] {
        match self.get(setting) {
            Some(Value::List(values)) => values,
            _ => &[],
        }
    }

    /// Names.
    pub fn names(&self, setting: &Setting) -> Vec<Name> {
        let name = |value: &Value| match value {
            Value::Name(name) => Some(name.clone()),
            _ => None,
        };
        self.list(setting).iter().filter_map(name).collect()
    }

    /// Words.
    pub fn words(&self, setting: &Setting) -> Vec<&str> {
        let values = self.list(setting).iter();
        values
            .filter_map(|value| match value {
                Value::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    /// Ranges of addresses.
    pub fn ranges(&self, setting: &Setting) -> Vec<AddressRange> {
        let range = |value: &Value| match value {
            Value::Range(range) => Some(*range),
            _ => None,
        };
        self.list(setting).iter().filter_map(range).collect()
    }
}
