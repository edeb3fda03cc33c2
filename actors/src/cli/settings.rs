//! Flags of the settings, made from their table, and how the layers are put together for a command.
//!
//! Owns: what a flag looks like. Must never: list a setting, or read a variable itself (clap would end at the
//! first mistake). Next: `crate::config`.

use super::failure::Failure;
use super::output::Format;
use crate::config::file::Source;
use crate::config::mistake::{exit_of, json_of, text_of};
use crate::config::resolve::Layers;
use crate::config::table::FILE_VARIABLE;
use crate::config::{Effective, Given, Kind, Mistake, Preset, SETTINGS, Setting, Value, resolve};
use crate::problem::Exit;
use clap::builder::ValueParser;
use clap::builder::{OsStringValueParser, PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use std::io::Write;
use std::path::{Path, PathBuf};

/// What the flags of settings gave: those of `serve`, or of `dev`.
#[derive(Clone, Debug, Default)]
pub struct Flags<const IS_DEV: bool>(Given);

/// The file of settings.
#[derive(Clone, Debug, Args)]
pub struct FileArgs {
    /// File of settings, in TOML; a variable or a flag wins over it.
    #[arg(long, value_name = "FILE", env = FILE_VARIABLE, hide_env_values = true)]
    pub config: Option<PathBuf>,
}

/// Why settings do not hold.
#[derive(Debug)]
pub enum Refused {
    /// The file cannot be read.
    File(Failure),
    /// All that is wrong with them.
    Mistakes(Vec<Mistake>),
}

impl Refused {
    /// Tells all of it on standard error; the exit code.
    pub fn tell(&self, format: Format) -> Exit {
        let mut err = std::io::stderr();
        match self {
            Refused::File(failure) => {
                let _ = failure.show(format, &mut err);
                failure.exit
            }
            Refused::Mistakes(mistakes) => {
                let _ = match format {
                    Format::Text => err.write_all(text_of(mistakes).as_bytes()),
                    Format::Json | Format::Jsonl => writeln!(err, "{}", json_of(mistakes)),
                };
                exit_of(mistakes)
            }
        }
    }
}

impl<const IS_DEV: bool> Flags<IS_DEV> {
    /// What holds, with the environment and a file.
    ///
    /// # Errors
    /// All that is wrong.
    pub fn resolve(&self, file: Option<&Path>) -> Result<Effective, Refused> {
        let source = match file {
            None => None,
            Some(path) => {
                let read = Source::read(path).map_err(|error| Refused::File(Failure::settings(path, &error)))?;
                Some(read)
            }
        };
        let layers = Layers {
            flags: &self.0,
            env: &|name| std::env::var_os(name),
            file: source.as_ref(),
            is_dev: IS_DEV,
        };
        resolve(&layers).map_err(Refused::Mistakes)
    }
}

fn flagged<const IS_DEV: bool>() -> impl Iterator<Item = (&'static Setting, &'static str, &'static str)> {
    SETTINGS
        .iter()
        .filter(|setting| !(IS_DEV && setting.serve_only))
        .filter_map(|setting| setting.flag.map(|(flag, value)| (*setting, flag, value)))
}

impl<const IS_DEV: bool> Args for Flags<IS_DEV> {
    fn augment_args(command: Command) -> Command {
        flagged::<IS_DEV>().fold(command, |command, (setting, flag, value)| {
            command.arg(arg_of(setting, flag, value))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const IS_DEV: bool> FromArgMatches for Flags<IS_DEV> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = Given::new();
        for (setting, flag, _) in flagged::<IS_DEV>() {
            let Some(values) = matches.get_many::<Value>(flag) else {
                continue;
            };
            let mut values: Vec<_> = values.cloned().collect();
            let value = match setting.kind {
                Kind::List(_) => Some(Value::List(values)),
                _ => values.pop(),
            };
            given.extend(value.map(|value| (setting.path, value)));
        }
        Ok(Flags(given))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn arg_of(setting: &'static Setting, flag: &'static str, value: &'static str) -> Arg {
    let mut notes = vec![format!("[env: {}]", setting.env)];
    match setting.preset {
        Preset::Text(text) => notes.push(format!("[default: {text}]")),
        Preset::Number(number) => notes.push(format!("[default: {number}]")),
        Preset::Unset(_) | Preset::Switch(_) => {}
    }
    let arg = Arg::new(flag)
        .long(flag)
        .value_name(value)
        .help(format!("{} {}", setting.about, notes.join(" ")))
        .long_help(format!("{}\n\n{}", setting.about, notes.join("\n")));
    match setting.kind {
        Kind::Switch => arg
            .value_parser(reader(setting.kind))
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true"),
        Kind::List(one) => arg
            .value_parser(reader(*one))
            .action(ArgAction::Append)
            .value_delimiter(','),
        kind => arg.value_parser(reader(kind)),
    }
}

fn reader(kind: Kind) -> ValueParser {
    let told = |wrong: crate::config::mistake::Wrong| {
        // Two sentences made into one.
        let detail = wrong.detail.trim_end_matches('.');
        let mut hint = wrong.hint.trim_end_matches('.').chars();
        let first = hint.next().map(|first| first.to_ascii_lowercase()).unwrap_or_default();
        format!("{detail}; {first}{}", hint.as_str())
    };
    match kind {
        Kind::Path => OsStringValueParser::new()
            .try_map(move |text| kind.parse_os(&text).map_err(told))
            .into(),
        Kind::Word(known) => {
            PossibleValuesParser::new(known.iter().map(|(word, about)| PossibleValue::new(*word).help(*about)))
                .map(Value::Text)
                .into()
        }
        kind => StringValueParser::new()
            .try_map(move |text| kind.parse(&text).map_err(told))
            .into(),
    }
}
