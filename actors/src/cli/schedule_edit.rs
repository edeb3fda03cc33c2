//! `fencepost schedule edit`: a definition that is read, changed and written back.
//!
//! Owns: what a change is made of, and how it is told. Must never: check what the server checks. Next:
//! `schedule.rs`, `schedule_args.rs`.

use super::client::{Call, Client, ServerArgs, segment, with_query};
use super::failure::Failure;
use super::job_args::{Body, put_field, read_body, to_bytes};
use super::output::{Format, OutputArgs, cell, one_line, put, show_one, show_table};
use super::schedule::{is_past, rule_times};
use super::schedule_args::ScheduleArgs;
use super::when::Times;
use crate::problem::Exit;
use clap::{Args, ValueEnum};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

const DUE_UNLESS_GONE_PAST: &str = "that instant has passed: it is due at once, unless the schedule had gone past it \
                                    before, and judged by the misfire policy";

/// Arguments of `schedule edit`.
#[derive(Debug, Args)]
pub struct EditArgs {
    /// Its name.
    name: String,
    /// What becomes of the fire that was planned.
    #[arg(long, value_enum, default_value_t = PendingArg::Retime)]
    pending: PendingArg,
    /// Only show the fires before and after.
    #[arg(long)]
    dry_run: bool,
    /// Refuse unless the definition is at this version.
    #[arg(long, value_name = "VERSION")]
    if_version: Option<u64>,
    /// Replace the whole definition by a JSON file; - is standard input. What `schedule show -o json` printed will
    /// do as it is; of this schedule, it is refused if its version is another one by now.
    #[arg(short = 'f', long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Take a field out of the definition, by its path in `schedule show -o json`: exclude, ends_at, job.tags,
    /// job.target.headers; may be repeated. Flags that set a field come after it.
    #[arg(long, value_name = "FIELD")]
    unset: Vec<String>,
    #[command(flatten)]
    schedule: ScheduleArgs,
    #[command(flatten)]
    /// Form of the output.
    pub output: OutputArgs,
    #[command(flatten)]
    server: ServerArgs,
}

/// What becomes of the fire that was planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PendingArg {
    /// Fires as it was planned.
    Keep,
    /// Planned anew under the new definition.
    Retime,
    /// Withdrawn, also where a later definition asks for the same instant.
    Drop,
}

/// An edit that names nothing would make a new version of the same definition.
fn names_something(args: &EditArgs) -> Result<(), Failure> {
    let is_retime = args.pending == PendingArg::Retime;
    if is_retime && args.file.is_none() && args.unset.is_empty() && args.schedule == ScheduleArgs::default() {
        let hint = "Name what shall change, such as --cron, or give a definition with --file.";
        return Err(Failure::new(
            Exit::Usage,
            "edit_empty",
            "This edit names nothing to change.",
            hint,
        ));
    }
    Ok(())
}

/// Reads and changes the definition, or shows what a change would do.
///
/// # Errors
/// What went wrong.
pub async fn edit(args: &EditArgs, out: &mut dyn Write) -> Result<Exit, Failure> {
    names_something(args)?;
    let client = Client::new(&args.server)?;
    let path = format!("/v1/schedules/{}", segment(&args.name));
    let reply = client.call(Call::get(&path)).await?;
    let etag = reply
        .headers
        .get("etag")
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    let before: Value = serde_json::from_slice(&reply.body).map_err(|error| Failure::unreadable(&error))?;
    let mut found: Body = serde_json::from_slice(&reply.body).map_err(|error| Failure::unreadable(&error))?;
    let (mut body, read) = match (&args.file, found.remove("definition")) {
        (Some(file), _) => read_definition(file, &args.name)?,
        (None, Some(raw)) => (read_raw(&raw)?, Read::default()),
        (None, None) => return Err(Failure::unreadable(&"it holds no definition")),
    };
    if let (Some(file), Some(other)) = (&args.file, &read.other) {
        let (file, other) = (file.display(), one_line(other));
        eprintln!("note: {file} holds the schedule '{other}': the whole definition of this one becomes what it says");
    }
    args.unset.iter().try_for_each(|field| unset(&mut body, field, field))?;
    args.schedule.put_into(&mut body)?;
    let tz: Option<String> = body.get("tz").map(|raw| read_raw(raw)).transpose()?;
    let life = read
        .life
        .or_else(|| Some(before.get("incarnation")?.as_str()?.to_owned()));
    let if_match = match (args.if_version.or(read.version), life) {
        (Some(version), Some(life)) => Some(format!("\"{version}-{life}\"")),
        (Some(_), None) => return Err(Failure::unreadable(&"it does not say its incarnation")),
        (None, _) => etag,
    };
    let pending = match args.pending {
        PendingArg::Keep => "keep",
        PendingArg::Retime => "retime",
        PendingArg::Drop => "drop",
    };
    let params = [
        ("pending", Some(pending.to_owned())),
        ("dry_run", args.dry_run.then(|| "true".to_owned())),
    ];
    let path = with_query(&path, &params);
    let call = Call::put(&path).json(to_bytes(&body)?).header("if-match", if_match);
    let reply = client.call(call).await?;
    match (args.output.output, args.dry_run) {
        (Format::Text, true) => show_fires(out, &reply.body, &rule_times(&tz)?)?,
        (Format::Text, false) => {
            let value: Value = serde_json::from_slice(&reply.body).map_err(|error| Failure::unreadable(&error))?;
            put(out, &as_edited(&before, &value)?)?;
            if is_past(&args.schedule, &value) {
                eprintln!("note: {DUE_UNLESS_GONE_PAST}");
            }
        }
        (Format::Json | Format::Jsonl, _) => show_one(out, args.output.output, &reply.body, &Times::utc())?,
    }
    Ok(Exit::Ok)
}

fn read_raw<T: DeserializeOwned>(raw: &RawValue) -> Result<T, Failure> {
    serde_json::from_str(raw.get()).map_err(|error| Failure::unreadable(&error))
}

/// What a file says of the schedule that its definition was read from.
#[derive(Debug, Default)]
pub struct Read {
    /// Its version, if it is this one.
    version: Option<u64>,
    /// Which life of the name, if it is this one.
    life: Option<String>,
    /// Its name, if it is another one.
    other: Option<String>,
}

/// A definition from a file, and of which schedule it was read: a whole one, as it is shown, says that.
/// The version of another schedule says nothing; the name of this one may stand there, as in the file that made it.
///
/// # Errors
/// The file cannot be read, or what is in it is no definition.
pub fn read_definition(path: &Path, name: &str) -> Result<(Body, Read), Failure> {
    let mut file = read_body(path)?;
    let malformed = |what: &str| {
        let detail = format!("What the file {} has as {what} is no {what}.", path.display());
        let hint = "Give what 'fencepost schedule show NAME -o json' prints, or only the definition in it.";
        Failure::new(Exit::Invalid, "file_malformed", detail, hint).at(what)
    };
    let shown = file
        .get("name")
        .and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    let is_own = shown.as_deref() == Some(name);
    let Some(definition) = file.remove("definition") else {
        if is_own {
            file.remove("name");
        }
        return Ok((file, Read::default()));
    };
    let definition = serde_json::from_str(definition.get()).map_err(|_| malformed("definition"))?;
    let own = |field: &str| file.get(field).filter(|_| is_own);
    let version = own("version").map(|raw| serde_json::from_str(raw.get()).map_err(|_| malformed("version")));
    let life = own("incarnation").map(|raw| serde_json::from_str(raw.get()).map_err(|_| malformed("incarnation")));
    let read = Read {
        version: version.transpose()?,
        life: life.transpose()?,
        other: shown.filter(|_| !is_own),
    };
    Ok((definition, read))
}

/// Takes a field out. One that is not there is refused, so that a misspelt one is found.
fn unset(body: &mut Body, field: &str, whole: &str) -> Result<(), Failure> {
    let absent = |body: &Body| {
        let names: Vec<&str> = body.keys().map(String::as_str).collect();
        Failure::new(
            Exit::Invalid,
            "unset_absent",
            format!("The definition has no field '{}'.", one_line(whole)),
            format!("Beside it there are: {}.", names.join(", ")),
        )
        .at("unset")
    };
    let Some((head, rest)) = field.split_once('.') else {
        return body.remove(field).map(drop).ok_or_else(|| absent(body));
    };
    let Some(mut inner) = body.get(head).and_then(|raw| read_raw::<Body>(raw).ok()) else {
        return Err(absent(body));
    };
    unset(&mut inner, rest, whole)?;
    put_field(body, head, &inner)
}

/// A schedule that was just edited, in a line: its version, which fields are other ones now, and how it stands.
fn as_edited(before: &Value, value: &Value) -> Result<String, Failure> {
    let at = |value: &Value, path: &str| value.pointer(path).cloned().unwrap_or_default();
    let mut changed = Vec::new();
    for (path, prefix) in [("/definition", ""), ("/definition/job", "job.")] {
        let (old, new) = (at(before, path), at(value, path));
        let names = [&old, &new].map(|side| side.as_object().into_iter().flatten().map(|(name, _)| name.clone()));
        let names: BTreeSet<String> = names.into_iter().flatten().filter(|name| name != "job").collect();
        let differs = names.into_iter().filter(|name| old.get(name) != new.get(name));
        changed.extend(differs.map(|name| format!("{prefix}{name}")));
    }
    let (name, version) = (cell(value, &["name"]), cell(value, &["version"]));
    let changed = match changed.is_empty() {
        true => String::new(),
        false => format!("  changed {}", changed.join(", ")),
    };
    let times = rule_times(
        &value
            .pointer("/definition/tz")
            .and_then(Value::as_str)
            .map(str::to_owned),
    )?;
    let stand = match (cell(value, &["status"]).as_str(), cell(value, &["next", "due_at"])) {
        ("active", next) if !next.is_empty() => format!("  next {}", times.show(&next)),
        (status, _) => format!("  {status}"),
    };
    Ok(format!("{name}  version {version}{changed}{stand}"))
}

/// The next fires of both definitions, side by side.
fn show_fires(out: &mut dyn Write, body: &[u8], times: &Times) -> Result<(), Failure> {
    let value: Value = serde_json::from_slice(body).map_err(|error| Failure::unreadable(&error))?;
    let fires = |name: &str| {
        let list = value.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let shown = list.iter().filter_map(Value::as_str).map(|at| times.show(at));
        shown.collect::<Vec<_>>()
    };
    let (before, after) = (fires("before"), fires("after"));
    let at = |list: &[String], nth: usize| list.get(nth).cloned().unwrap_or_default();
    let rows = (0..before.len().max(after.len())).map(|nth| vec![at(&before, nth), at(&after, nth)]);
    show_table(out, vec!["BEFORE", "AFTER"], rows.collect())?;
    let (pending, planned) = (cell(&value, &["pending"]), cell(&value, &["pending_at"]));
    eprintln!("note: nothing was changed");
    if !planned.is_empty() {
        eprintln!("note: the fire planned for {}: {pending}", times.show(&planned));
    }
    Ok(())
}
