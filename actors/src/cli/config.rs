//! `fencepost config`: settings looked at without a server.
//!
//! Owns: what is shown of them. Must never: start anything, or show a secret. Next: `settings.rs`,
//! `crate::config`.

use super::failure::Failure;
use super::output::{Column, Format, OutputArgs, cell, put, show_list};
use super::settings::{FileArgs, Flags, Refused};
use super::when::Times;
use crate::config::mistake::put_place;
use crate::config::part::check_api;
use crate::config::schema::schema;
use crate::config::table::FILE_VARIABLE;
use crate::config::{Effective, Place, Preset, SETTINGS, Setting, Value};
use crate::problem::Exit;
use clap::{Args, Subcommand};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::io::Write;
use std::path::PathBuf;

/// Look at the settings of a server.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check a file of settings, and the environment, as a start would; all mistakes at once, exit code 8.
    #[command(after_help = "Example:\n  fencepost config check /etc/fencepost.toml")]
    Check(CheckArgs),
    /// Show what holds, and where it comes from; takes the flags of a start.
    #[command(after_help = "Example:\n  fencepost config show --config /etc/fencepost.toml --slots 8 --origin")]
    Show(Box<ShowArgs>),
    /// Write the JSON Schema of the file, for editors.
    #[command(after_help = "Example:\n  fencepost config schema > fencepost.schema.json")]
    Schema,
}

/// Arguments of `config check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The file; without one the environment alone is checked.
    #[arg(env = FILE_VARIABLE, hide_env_values = true)]
    file: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Arguments of `config show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Also show where each value comes from.
    #[arg(long)]
    origin: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    file: FileArgs,
    #[command(flatten)]
    flags: Flags<false>,
}

impl ConfigCommand {
    /// Runs it.
    pub fn run(&self) -> Exit {
        let mut out = std::io::stdout();
        match self {
            ConfigCommand::Check(args) => check(args, &mut out),
            ConfigCommand::Show(args) => show(args, &mut out),
            ConfigCommand::Schema => written(put(&mut out, &format!("{:#}", schema())), Format::Text),
        }
    }
}

fn written(done: Result<(), Failure>, format: Format) -> Exit {
    match done {
        Ok(()) => Exit::Ok,
        Err(failure) if *failure.problem.code == *super::output::OUTPUT_CLOSED => Exit::Ok,
        Err(failure) => Refused::File(failure).tell(format),
    }
}

fn check(args: &CheckArgs, out: &mut dyn Write) -> Exit {
    let format = args.output.output;
    let resolved = Flags::<false>::default().resolve(args.file.as_deref());
    let checked = resolved.and_then(|settings| {
        let checked = check_api(&settings).map_err(|mistake| Refused::Mistakes(vec![mistake]));
        checked.map(|()| settings)
    });
    let settings = match checked {
        Ok(settings) => settings,
        Err(refused) => return refused.tell(format),
    };
    let count = |word: &str| {
        let of_word = |setting: &&&Setting| settings.place(setting).word() == word;
        SETTINGS.iter().filter(of_word).count()
    };
    let (in_file, in_env) = (count("file"), count("env"));
    let file = args.file.as_ref().map(|file| file.display().to_string());
    let line = match (format, &file) {
        (Format::Text, Some(file)) => format!("{file}: valid; {in_file} from the file, {in_env} from the environment"),
        (Format::Text, None) => format!("no file; valid; {in_env} from the environment"),
        _ => json!({"file": file, "is_valid": true, "from_file": in_file, "from_env": in_env}).to_string(),
    };
    written(put(out, &line), format)
}

fn show(args: &ShowArgs, out: &mut dyn Write) -> Exit {
    let format = args.output.output;
    let settings = match args.flags.resolve(args.file.config.as_deref()) {
        Ok(settings) => settings,
        Err(refused) => return refused.tell(format),
    };
    let rows: Result<Vec<_>, _> = SETTINGS
        .iter()
        .map(|setting| row(&settings, setting, args.origin, format))
        .collect();
    let columns: &[Column] = &[
        ("setting", |item, _| cell(item, &["field"])),
        ("value", |item, _| cell(item, &["value"])),
        ("origin", |item, _| cell(item, &["origin"])),
    ];
    let columns = match args.origin {
        true => columns,
        false => columns.get(..2).unwrap_or_default(),
    };
    let shown = rows
        .map_err(|error| Failure::unreadable(&error))
        .and_then(|rows| show_list(out, format, &rows, columns, &Times::utc()));
    let exit = written(shown, format);
    if std::env::var_os("FENCEPOST_LOG").is_some() {
        eprintln!("note: FENCEPOST_LOG is set and wins over log.level");
    }
    exit
}

/// One setting; for people the value and its place are texts.
fn row(
    settings: &Effective,
    setting: &Setting,
    with_origin: bool,
    format: Format,
) -> Result<Box<RawValue>, serde_json::Error> {
    let (value, place) = (settings.get(setting), settings.place(setting));
    if format == Format::Text {
        let text = match (value, setting.preset) {
            (Some(value), _) => value.to_string(),
            (None, Preset::Unset(what)) => format!("({what})"),
            (None, _) => String::new(),
        };
        return to_raw_value(&json!({"field": setting.path, "value": text, "origin": origin_text(place)}));
    }
    let mut item = json!({"field": setting.path, "value": value.map(Value::to_json)});
    if let (Some(map), Some(Value::Secret(_))) = (item.as_object_mut(), value) {
        map.insert("is_hidden".to_owned(), json!(true));
    }
    if with_origin {
        if let Some(map) = item.as_object_mut() {
            map.insert("origin".to_owned(), json!(place.word()));
        }
        put_place(&mut item, place);
    }
    to_raw_value(&item)
}

fn origin_text(place: &Place) -> String {
    match place {
        Place::File { file, line, .. } => format!("{file}:{line}"),
        Place::Flag(flag) => format!("flag --{flag}"),
        other => other.to_string(),
    }
}
