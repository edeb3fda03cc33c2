//! `fencepost schedule …`: making, reading and changing schedules.
//!
//! Owns: the subcommands and what they show. Must never: talk HTTP itself. Next: `client.rs`,
//! `schedule_args.rs`, `preview.rs`.

use super::answer::AnswerArgs;
use super::client::{Call, Client, ServerArgs, segment};
use super::failure::Failure;
use super::job_args::{Body, to_bytes};
use super::output::{Column, Format, OutputArgs, cell, one_line, put, show_list, show_one};
use super::pages::collect;
use super::preview::PreviewArgs;
use super::schedule_args::ScheduleArgs;
use super::schedule_edit::{EditArgs, edit, read_definition};
use super::when::Times;
use crate::api::text::parse_instant;
use crate::problem::Exit;
use clap::{Args, Subcommand};
use serde_json::Value;
use serde_json::value::to_raw_value;
use std::io::Write;
use std::path::PathBuf;

/// Work with schedules.
#[derive(Debug, Subcommand)]
pub enum ScheduleCommand {
    /// Make a schedule.
    #[command(after_help = CREATE_EXAMPLE)]
    Create(Box<CreateArgs>),
    /// List schedules.
    #[command(after_help = "Example:\n  fencepost schedule list --tz Europe/Berlin")]
    List(ListArgs),
    /// Show one schedule.
    #[command(after_help = "Example:\n  fencepost schedule show nightly-backup")]
    Show(OneArgs),
    /// Change a schedule; what is not named stays, a list or map that is named (`--exclude`, `--header`) is replaced,
    /// and `--unset` takes a field out.
    #[command(after_help = EDIT_EXAMPLE)]
    Edit(Box<EditArgs>),
    /// Pause a schedule: nothing fires until it is resumed.
    #[command(after_help = "Example:\n  fencepost schedule pause nightly-backup")]
    Pause(OneArgs),
    /// Resume a schedule.
    #[command(after_help = "Example:\n  fencepost schedule resume nightly-backup")]
    Resume(OneArgs),
    /// Delete a schedule; jobs that it had made stay and run.
    #[command(after_help = "Example:\n  fencepost schedule delete nightly-backup")]
    Delete(OneArgs),
    /// Fire a schedule once now.
    #[command(after_help = "Example:\n  fencepost schedule run-now nightly-backup")]
    RunNow(RunNowArgs),
    /// Make up a past range, from the schedule's creation on.
    #[command(after_help = BACKFILL_EXAMPLE)]
    Backfill(BackfillArgs),
    /// Show when cron expressions fire, without a server.
    #[command(after_help = PREVIEW_EXAMPLE)]
    Preview(PreviewArgs),
    /// Show what became of each occurrence.
    #[command(after_help = "Example:\n  fencepost schedule fates nightly-backup --tz Europe/Berlin")]
    Fates(FatesArgs),
    /// Show what was done to a schedule in the last 90 days.
    #[command(after_help = "Example:\n  fencepost schedule edits nightly-backup")]
    Edits(OneArgs),
}

const CREATE_EXAMPLE: &str = "Examples:
  fencepost schedule create nightly --cron '0 2 * * *' --tz Europe/Berlin -- /usr/local/bin/backup
  fencepost schedule create poll --every 30s --http https://example.org/poll";
const EDIT_EXAMPLE: &str = "Examples:
  fencepost schedule edit nightly --cron '30 2 * * *' --dry-run
  fencepost schedule edit nightly --unset exclude";
const BACKFILL_EXAMPLE: &str = "Example:
  fencepost schedule backfill nightly --from 2026-01-01T00:00:00Z --to 2026-01-08T00:00:00Z";
const PREVIEW_EXAMPLE: &str = "Example:
  fencepost schedule preview '0 9 * * mon-fri' --tz Asia/Tokyo --after 2026-01-01T00:00:00Z";

/// Arguments of `schedule create`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Its name: 1 to 128 letters, digits, '.', '_' and '-'.
    name: String,
    /// Make it paused.
    #[arg(long)]
    paused: bool,
    /// Begin with the definition in a JSON file; - is standard input.
    #[arg(short = 'f', long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    schedule: ScheduleArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    server: ServerArgs,
}

/// Arguments of `schedule list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only active, paused, finished or quarantined ones, with commas between them.
    #[arg(long, value_name = "STATUSES")]
    status: Option<String>,
    /// Only with a target of this kind: http, command, handler or remote, with commas between them.
    #[arg(long, value_name = "KINDS")]
    target: Option<String>,
    /// Only those whose jobs wait in this queue.
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// Only those whose jobs have this tag.
    #[arg(long, value_name = "WORD")]
    tag: Option<String>,
    /// Only those whose name begins so.
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    /// At most this many.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    #[command(flatten)]
    answer: AnswerArgs,
}

/// Arguments of a command on one schedule.
#[derive(Debug, Args)]
pub struct OneArgs {
    /// Its name.
    name: String,
    #[command(flatten)]
    answer: AnswerArgs,
}

/// Arguments of `schedule run-now`.
#[derive(Debug, Args)]
pub struct RunNowArgs {
    /// Idempotency key: repeated with the same key, it makes no second job; it is kept as long as a job's.
    #[arg(long, value_name = "KEY", alias = "idempotency-key")]
    key: Option<String>,
    #[command(flatten)]
    one: OneArgs,
}

/// Arguments of `schedule backfill`.
#[derive(Debug, Args)]
pub struct BackfillArgs {
    /// Occurrences after this instant; there are none before the schedule was created.
    #[arg(long, value_name = "RFC3339")]
    from: String,
    /// Occurrences up to this instant.
    #[arg(long, value_name = "RFC3339")]
    to: String,
    /// Most jobs.
    #[arg(long, value_name = "N")]
    cap: Option<u32>,
    /// Also occurrences that fired already.
    #[arg(long)]
    rerun: bool,
    /// Only show what would be made.
    #[arg(long)]
    dry_run: bool,
    /// Idempotency key: repeated with the same key and range, it is answered the same and makes nothing more; it is
    /// kept as long as a job's.
    #[arg(long, value_name = "KEY", alias = "idempotency-key")]
    key: Option<String>,
    #[command(flatten)]
    one: OneArgs,
}

/// Arguments of `schedule fates`.
#[derive(Debug, Args)]
pub struct FatesArgs {
    /// Stretches that end after this instant.
    #[arg(long, value_name = "RFC3339")]
    from: Option<String>,
    /// Stretches that begin before this instant.
    #[arg(long, value_name = "RFC3339")]
    to: Option<String>,
    /// Another life of the name.
    #[arg(long, value_name = "HEX")]
    incarnation: Option<String>,
    /// Only these fates, with commas between them.
    #[arg(long, value_name = "FATES")]
    fate: Option<String>,
    /// At most this many stretches.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    #[command(flatten)]
    one: OneArgs,
}

const COLUMNS: &[Column] = &[
    ("NAME", |item, _| cell(item, &["name"])),
    ("STATUS", |item, _| cell(item, &["status"])),
    ("RULE", |item, _| cell(item, &["rule"])),
    ("ZONE", |item, _| cell(item, &["definition", "tz"])),
    ("NEXT", |item, times| times.show(&cell(item, &["next", "due_at"]))),
    ("FIRED", |item, _| cell(item, &["fired"])),
];

const FATE_COLUMNS: &[Column] = &[
    ("FROM", |item, times| times.show(&cell(item, &["from"]))),
    ("TO", |item, times| times.show(&cell(item, &["to"]))),
    ("FATE", |item, _| cell(item, &["fate"])),
    ("COUNT", |item, _| cell(item, &["count"])),
    ("LATEST BY", |item, _| cell(item, &["lateness_max"])),
    ("DEFINITION", |item, _| cell(item, &["definition"])),
];

const EDIT_COLUMNS: &[Column] = &[
    ("AT", |item, times| times.show(&cell(item, &["at"]))),
    ("WHAT", |item, _| cell(item, &["kind"])),
    ("VERSION", |item, _| cell(item, &["to_version"])),
    ("PENDING", |item, _| cell(item, &["pending"])),
    ("PENDING AT", |item, times| times.show(&cell(item, &["pending_at"]))),
];

impl ScheduleCommand {
    /// The form of output that errors follow.
    pub fn format(&self) -> Format {
        match self {
            ScheduleCommand::Create(args) => args.output.output,
            ScheduleCommand::List(args) => args.answer.format(),
            ScheduleCommand::Edit(args) => args.output.output,
            ScheduleCommand::RunNow(args) => args.one.answer.format(),
            ScheduleCommand::Backfill(args) => args.one.answer.format(),
            ScheduleCommand::Fates(args) => args.one.answer.format(),
            ScheduleCommand::Preview(_) => Format::Text,
            ScheduleCommand::Show(one)
            | ScheduleCommand::Pause(one)
            | ScheduleCommand::Resume(one)
            | ScheduleCommand::Delete(one)
            | ScheduleCommand::Edits(one) => one.answer.format(),
        }
    }

    /// Runs it. (`preview` needs no server and is run before.)
    ///
    /// # Errors
    /// What went wrong.
    pub async fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        match self {
            ScheduleCommand::Create(args) => create(args, out).await,
            ScheduleCommand::List(args) => list(args, out).await,
            ScheduleCommand::Show(one) => one.answer.show(Call::get(&one.path("")), out).await,
            ScheduleCommand::Edit(args) => edit(args, out).await,
            ScheduleCommand::Pause(one) => hold(one, "/pause", out).await,
            ScheduleCommand::Resume(one) => hold(one, "/resume", out).await,
            ScheduleCommand::Delete(one) => one.answer.show(Call::delete(&one.path("")), out).await,
            ScheduleCommand::RunNow(args) => run_now(args, out).await,
            ScheduleCommand::Backfill(args) => backfill(args, out).await,
            ScheduleCommand::Fates(args) => fates(args, out).await,
            ScheduleCommand::Edits(one) => edits(one, out).await,
            ScheduleCommand::Preview(_) => Ok(Exit::Usage),
        }
    }
}

impl OneArgs {
    fn path(&self, rest: &str) -> String {
        format!("/v1/schedules/{}{rest}", segment(&self.name))
    }
}

/// The zone in which answers about a rule are shown: the rule's own.
///
/// # Errors
/// There is no such zone.
pub fn rule_times(tz: &Option<String>) -> Result<Times, Failure> {
    tz.as_deref().map_or_else(|| Ok(Times::utc()), Times::in_zone)
}

async fn create(args: &CreateArgs, out: &mut dyn Write) -> Result<Exit, Failure> {
    let client = Client::new(&args.server)?;
    let mut body = match &args.file {
        Some(path) => read_definition(path, &args.name)?.0,
        None => Body::new(),
    };
    args.schedule.put_into(&mut body)?;
    let raw = |json: Result<_, serde_json::Error>| json.map_err(|error| Failure::unreadable(&error));
    body.insert("name".to_owned(), raw(to_raw_value(&args.name))?);
    if args.paused {
        body.insert("paused".to_owned(), raw(to_raw_value(&true))?);
    }
    let reply = client.call(Call::post("/v1/schedules").json(to_bytes(&body)?)).await?;
    if args.output.output != Format::Text {
        show_one(out, args.output.output, &reply.body, &Times::utc())?;
        return Ok(Exit::Ok);
    }
    let value: Value = serde_json::from_slice(&reply.body).map_err(|error| Failure::unreadable(&error))?;
    // A file may have named it.
    let zone = value.pointer("/definition/tz").and_then(Value::as_str);
    let times = rule_times(&zone.map(str::to_owned))?;
    put(out, &as_made(&value, &times))?;
    if is_past(&args.schedule, &value) {
        eprintln!("note: that instant has passed: it is due at once, and judged by the misfire policy");
    }
    Ok(Exit::Ok)
}

/// Whether the one instant that was given has passed.
pub fn is_past(given: &ScheduleArgs, made: &Value) -> bool {
    let at = given.at.as_deref().and_then(|at| parse_instant(at).ok());
    // A local time is an instant in its zone, which the server knows: one to come has a next fire.
    let has_no_next = cell(made, &["next", "due_at"]).is_empty();
    let is_over = given.at_local.is_some() && cell(made, &["status"]) != "paused" && has_no_next;
    is_over || at.is_some_and(|at| at < super::wall())
}

/// A schedule that was just made, in a line: its name, and when it fires next, or that it does not.
fn as_made(value: &Value, times: &Times) -> String {
    let next = times.show(&cell(value, &["next", "due_at"]));
    let name = cell(value, &["name"]);
    match (cell(value, &["status"]).as_str(), next.is_empty()) {
        ("paused", _) => format!("{name}  paused"),
        (_, true) => name,
        (_, false) => format!("{name}  next {next}"),
    }
}

/// Pauses or resumes, and says in a line how the schedule stands.
async fn hold(one: &OneArgs, how: &str, out: &mut dyn Write) -> Result<Exit, Failure> {
    let (client, times) = one.answer.begin()?;
    let reply = client.call(Call::post(&one.path(how))).await?;
    if one.answer.format() != Format::Text {
        show_one(out, one.answer.format(), &reply.body, &times)?;
        return Ok(Exit::Ok);
    }
    let value: Value = serde_json::from_slice(&reply.body).map_err(|error| Failure::unreadable(&error))?;
    let (name, status) = (cell(&value, &["name"]), cell(&value, &["status"]));
    let next = times.show(&cell(&value, &["next", "due_at"]));
    let next = match next.is_empty() {
        true => next,
        false => format!("  next {next}"),
    };
    put(out, &format!("{name}  {status}{next}"))?;
    Ok(Exit::Ok)
}

async fn list(args: &ListArgs, out: &mut dyn Write) -> Result<Exit, Failure> {
    let params = [
        ("status", args.status.clone()),
        ("target", args.target.clone()),
        ("queue", args.queue.clone()),
        ("tag", args.tag.clone()),
        ("prefix", args.prefix.clone()),
    ];
    args.answer
        .list("/v1/schedules", &params, args.limit as usize, COLUMNS, out)
        .await
}

async fn run_now(args: &RunNowArgs, out: &mut dyn Write) -> Result<Exit, Failure> {
    let path = args.one.path("/run-now");
    let call = Call::post(&path).header("idempotency-key", args.key.clone());
    args.one.answer.show(call, out).await
}

async fn backfill(args: &BackfillArgs, out: &mut dyn Write) -> Result<Exit, Failure> {
    let body = serde_json::json!({
        "from": args.from, "to": args.to, "cap": args.cap, "rerun": args.rerun, "dry_run": args.dry_run,
    });
    let path = args.one.path("/backfill");
    let call = Call::post(&path).json(body.to_string().into_bytes());
    let (client, times) = args.one.answer.begin()?;
    let reply = client.call(call.header("idempotency-key", args.key.clone())).await?;
    show_one(out, args.one.answer.format(), &reply.body, &times)?;
    let value: Value = serde_json::from_slice(&reply.body).map_err(|error| Failure::unreadable(&error))?;
    let begins = times.show(&cell(&value, &["begins_at"]));
    if !begins.is_empty() {
        eprintln!("note: nothing before {begins} can be made up: the schedule was made then, or is known since then");
    }
    Ok(Exit::Ok)
}

async fn fates(args: &FatesArgs, out: &mut dyn Write) -> Result<Exit, Failure> {
    let one = &args.one;
    let params = [
        ("from", args.from.clone()),
        ("to", args.to.clone()),
        ("incarnation", args.incarnation.clone()),
        ("fate", args.fate.clone()),
    ];
    let (client, times) = one.answer.begin()?;
    let items = collect(&client, &one.path("/fates"), &params, args.limit as usize).await?;
    show_list(out, one.answer.format(), &items, FATE_COLUMNS, &times)?;
    if items.is_empty() && one.answer.format() == Format::Text {
        let is_narrow = params.iter().any(|(_, value)| value.is_some());
        let why = match is_narrow {
            true => "no fate is recorded that fits what was asked for",
            false => "no occurrence has come yet",
        };
        let name = one_line(&one.name);
        eprintln!("note: {why}; 'fencepost schedule show {name}' says when the next one is due");
    }
    Ok(Exit::Ok)
}

async fn edits(one: &OneArgs, out: &mut dyn Write) -> Result<Exit, Failure> {
    one.answer
        .list(&one.path("/edits"), &[], usize::MAX, EDIT_COLUMNS, out)
        .await
}
