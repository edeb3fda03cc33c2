//! `fencepost job …`: making, reading, waiting for and changing jobs.
//!
//! Owns: the subcommands and what they show. Must never: talk HTTP itself. Next: `client.rs`, `job_args.rs`.

use super::answer::AnswerArgs;
use super::client::{Call, Client, ServerArgs, parse_span, with_query};
use super::failure::Failure;
use super::job_args::{Body, JobArgs, put_given, read_body, to_bytes};
use super::output::{Column, Format, OutputArgs, cell, one_line, put, shortened, show_list, show_one};
use super::pages::{collect, collect_newest};
use super::when::Times;
use crate::api::text::parse_instant;
use crate::problem::Exit;
use clap::{Args, Subcommand, ValueEnum};
use fencepost_core::limits::{CLI_LOOK_MS, CLI_WAIT_MS};
use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Work with jobs.
#[derive(Debug, Subcommand)]
pub enum JobCommand {
    /// Make a job, or those of a batch. Exit code 8 if any of a batch was refused; the answer says which.
    #[command(after_help = CREATE_EXAMPLE)]
    Create(Box<CreateArgs>),
    /// List jobs.
    #[command(after_help = "Example:\n  fencepost job list --newest --limit 20")]
    List(ListArgs),
    /// Show one job.
    #[command(after_help = "Example:\n  fencepost job show job_00c0ffee00c0ffee00c0ffee00c0ffee")]
    Show(OneArgs),
    /// Cancel a job; says honestly how far that went.
    #[command(after_help = "Example:\n  fencepost job cancel job_00c0ffee00c0ffee00c0ffee00c0ffee")]
    Cancel(OneArgs),
    /// Wait until a job is finished; exit code 0 if it succeeded, 1 if not, 7 if the time is up.
    #[command(
        after_help = "Example:\n  fencepost job wait job_00c0ffee00c0ffee00c0ffee00c0ffee --for 5m",
        mut_arg("timeout", |arg| arg.help("The same as --for").long_help("The same as --for").conflicts_with("most"))
    )]
    Wait(WaitArgs),
    /// Show the kept output of a job's attempts.
    #[command(after_help = "Example:\n  fencepost job logs job_00c0ffee00c0ffee00c0ffee00c0ffee")]
    Logs(OneArgs),
    /// List a job's ended attempts: number, worker, times, outcome and error. One that runs is in `job show`.
    #[command(after_help = "Example:\n  fencepost job attempts job_00c0ffee00c0ffee00c0ffee00c0ffee")]
    Attempts(OneArgs),
    /// Send a dead job back for another round of attempts: attempt_count begins anew, attempts are numbered on.
    #[command(after_help = "Example:\n  fencepost job retry job_00c0ffee00c0ffee00c0ffee00c0ffee")]
    Retry(OneArgs),
    /// Settle an uncertain job with what you found.
    #[command(after_help = "Example:\n  fencepost job settle job_00c0ffee00c0ffee00c0ffee00c0ffee --as succeeded")]
    Settle(SettleArgs),
}

const CREATE_EXAMPLE: &str = "Examples:
  fencepost job create --http https://example.org/hook --payload '{\"n\":1}'
  fencepost job create --delay 10m --key order-17 -- /usr/local/bin/report 17";

/// Arguments of `job create`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Take the whole request from a JSON file instead; one with "jobs" is a batch, which no flag of a job fits; - is
    /// standard input.
    #[arg(short = 'f', long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Idempotency key: the same key and request give the same job.
    #[arg(long, value_name = "KEY", alias = "idempotency-key")]
    key: Option<String>,
    /// First due at this instant; a past one is due at once.
    #[arg(long, value_name = "RFC3339", conflicts_with = "delay")]
    at: Option<String>,
    /// First due after this long.
    #[arg(long, value_name = "TIME")]
    delay: Option<String>,
    /// Refuse it when --at is longer ago than this.
    #[arg(long, value_name = "TIME")]
    grace: Option<String>,
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    server: ServerArgs,
}

/// Arguments of `job list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only in these states, with commas between them.
    #[arg(long, value_name = "STATES")]
    state: Option<String>,
    /// Only of this queue.
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// Only with this tag.
    #[arg(long, value_name = "WORD")]
    tag: Option<String>,
    /// Only made by this schedule.
    #[arg(long, value_name = "NAME")]
    schedule: Option<String>,
    /// Newest first. The whole list is read for it, for the server's order is that of ids.
    #[arg(long)]
    newest: bool,
    /// At most this many.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    #[command(flatten)]
    answer: AnswerArgs,
}

/// Arguments of a command on one job.
#[derive(Debug, Args)]
pub struct OneArgs {
    /// Its id.
    id: String,
    #[command(flatten)]
    answer: AnswerArgs,
}

/// Arguments of `job wait`.
#[derive(Debug, Args)]
pub struct WaitArgs {
    /// Wait at most this long; 1h by default.
    #[arg(long = "for", value_name = "TIME", value_parser = parse_span)]
    most: Option<Duration>,
    #[command(flatten)]
    one: OneArgs,
}

/// Arguments of `job settle`.
#[derive(Debug, Args)]
pub struct SettleArgs {
    /// What you found.
    #[arg(long = "as", value_enum)]
    verdict: VerdictArg,
    #[command(flatten)]
    one: OneArgs,
}

/// What a person found out about an uncertain job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum VerdictArg {
    /// The effect is there.
    Succeeded,
    /// There is no effect: give it up.
    Dead,
    /// There is no effect: try again.
    Retry,
}

const COLUMNS: &[Column] = &[
    ("ID", |job, _| cell(job, &["id"])),
    ("STATE", |job, _| cell(job, &["state"])),
    ("QUEUE", |job, _| cell(job, &["queue"])),
    ("TARGET", |job, _| target(job)),
    ("DUE", |job, times| times.show(&cell(job, &["due_at"]))),
    ("ATTEMPTS", |job, _| cell(job, &["attempt_count"])),
    ("SCHEDULE", |job, _| cell(job, &["occurrence", "schedule"])),
    ("REASON", |job, _| reason(job)),
];

const ATTEMPT_COLUMNS: &[Column] = &[
    ("ATTEMPT", |item, _| cell(item, &["attempt"])),
    ("RESULT", |item, _| cell(item, &["result"])),
    ("WORKER", |item, _| cell(item, &["worker"])),
    ("BEGAN", |item, times| times.show(&cell(item, &["granted_at"]))),
    ("ENDED", |item, times| times.show(&cell(item, &["ended_at"]))),
    ("ERROR", |item, _| cell(item, &["error"])),
];

fn target(job: &Value) -> String {
    let text = match cell(job, &["target", "type"]).as_str() {
        "http" => format!("{} {}", cell(job, &["target", "method"]), cell(job, &["target", "url"])),
        kind @ ("handler" | "remote") => format!("{kind} {}", cell(job, &["target", "name"])),
        _ => {
            let words = job.pointer("/target/argv").and_then(Value::as_array);
            let words = words.into_iter().flatten().filter_map(Value::as_str);
            words.collect::<Vec<_>>().join(" ")
        }
    };
    one_line(&shortened(&text, 48))
}

fn reason(job: &Value) -> String {
    let mut text = vec![cell(job, &["reason"]), cell(job, &["last_error"])];
    text.dedup();
    let text = text
        .iter()
        .filter(|part| !part.is_empty())
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(": ");
    shortened(&text, 60)
}

impl JobCommand {
    /// The form of output that errors follow.
    pub fn format(&self) -> Format {
        match self {
            JobCommand::Create(args) => args.output.output,
            JobCommand::List(args) => args.answer.format(),
            JobCommand::Wait(args) => args.one.answer.format(),
            JobCommand::Settle(args) => args.one.answer.format(),
            JobCommand::Show(one)
            | JobCommand::Cancel(one)
            | JobCommand::Logs(one)
            | JobCommand::Attempts(one)
            | JobCommand::Retry(one) => one.answer.format(),
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// What went wrong.
    pub async fn run(&self, out: &mut dyn Write) -> Result<Exit, Failure> {
        match self {
            JobCommand::Create(args) => create(args, out).await,
            JobCommand::List(args) => list(args, out).await,
            JobCommand::Show(one) => one.answer.show(Call::get(&one.path("")), out).await,
            JobCommand::Cancel(one) => cancel(one, out).await,
            JobCommand::Retry(one) => one.answer.show(Call::post(&one.path("/retry")), out).await,
            JobCommand::Settle(args) => settle(args, out).await,
            JobCommand::Wait(args) => wait(args, out).await,
            JobCommand::Logs(one) => logs(one, out).await,
            JobCommand::Attempts(one) => attempts(one, out).await,
        }
    }
}

impl OneArgs {
    fn path(&self, rest: &str) -> String {
        format!("/v1/jobs/{}{rest}", super::client::segment(&self.id))
    }
}

impl CreateArgs {
    /// Puts what the flags give over what is in `body`.
    fn put_into(&self, body: &mut Body) -> Result<(), Failure> {
        self.job.put_into(body)?;
        put_given(body, "idempotency_key", &self.key)?;
        put_given(body, "at", &self.at)?;
        put_given(body, "delay", &self.delay)?;
        put_given(body, "grace", &self.grace)
    }
}

async fn create(args: &CreateArgs, out: &mut dyn Write) -> Result<Exit, Failure> {
    let client = Client::new(&args.server)?;
    let mut body = match &args.file {
        Some(path) => read_body(path)?,
        None => Body::new(),
    };
    if body.contains_key("jobs") {
        return create_batch(args, &client, &body, out).await;
    }
    args.put_into(&mut body)?;
    let reply = client.call(Call::post("/v1/jobs").json(to_bytes(&body)?)).await?;
    if args.output.output == Format::Text {
        let value: Value = serde_json::from_slice(&reply.body).map_err(|error| Failure::unreadable(&error))?;
        put(out, &cell(&value, &["id"]))?;
        let at = args.at.as_deref().and_then(|at| parse_instant(at).ok());
        if at.is_some_and(|at| at < super::wall()) {
            eprintln!("note: that instant has passed: the job is due at once");
        }
        if value.get("replayed") == Some(&Value::Bool(true)) {
            eprintln!("note: this key made that job before; nothing new was made");
        }
        return Ok(Exit::Ok);
    }
    show_one(out, args.output.output, &reply.body, &Times::utc())?;
    Ok(Exit::Ok)
}

/// Each job of a batch says for itself what it is: a flag for all of them would be read by nobody.
async fn create_batch(args: &CreateArgs, client: &Client, body: &Body, out: &mut dyn Write) -> Result<Exit, Failure> {
    let mut flags = Body::new();
    args.put_into(&mut flags)?;
    if let Some(field) = flags.keys().next() {
        let detail = format!("The file is a batch, and a flag gives {field} beside it.");
        let hint = "Leave the flag out and write it into each item of \"jobs\".";
        return Err(Failure::new(Exit::Usage, "flag_beside_batch", detail, hint).at(field));
    }
    let reply = client.call(Call::post("/v1/jobs:batch").json(to_bytes(body)?)).await?;
    show_one(out, args.output.output, &reply.body, &Times::utc())?;
    let answer: Value = serde_json::from_slice(&reply.body).map_err(|error| Failure::unreadable(&error))?;
    let refused = answer.get("refused").and_then(Value::as_u64);
    match refused.ok_or_else(|| Failure::unreadable(&"the number of refused jobs is missing"))? {
        0 => Ok(Exit::Ok),
        count => {
            let (were, items) = if count == 1 {
                ("was", "its item says")
            } else {
                ("were", "their items say")
            };
            eprintln!("note: {count} of the jobs {were} refused; {items} why");
            Ok(Exit::Invalid)
        }
    }
}

async fn list(args: &ListArgs, out: &mut dyn Write) -> Result<Exit, Failure> {
    let (path, state) = match args.state.as_deref() {
        Some("dead") => ("/v1/dead", None),
        Some("uncertain") => ("/v1/uncertain", None),
        _ => ("/v1/jobs", args.state.clone()),
    };
    let params = [
        ("state", state),
        ("queue", args.queue.clone()),
        ("tag", args.tag.clone()),
        ("schedule", args.schedule.clone()),
    ];
    if !args.newest {
        return args.answer.list(path, &params, args.limit as usize, COLUMNS, out).await;
    }
    let (client, times) = args.answer.begin()?;
    let spinner = super::progress::spinner("reading all jobs");
    let items = collect_newest(&client, path, &params, args.limit as usize).await;
    spinner.finish_and_clear();
    show_list(out, args.answer.format(), &items?, COLUMNS, &times)?;
    Ok(Exit::Ok)
}

/// Cancels, and says in a line how far that went.
async fn cancel(one: &OneArgs, out: &mut dyn Write) -> Result<Exit, Failure> {
    let (client, times) = one.answer.begin()?;
    let reply = client.call(Call::post(&one.path("/cancel"))).await?;
    if one.answer.format() != Format::Text {
        show_one(out, one.answer.format(), &reply.body, &times)?;
        return Ok(Exit::Ok);
    }
    let value: Value = serde_json::from_slice(&reply.body).map_err(|error| Failure::unreadable(&error))?;
    let (id, attempt, state) = (
        cell(&value, &["id"]),
        cell(&value, &["attempt"]),
        cell(&value, &["state"]),
    );
    let came = match cell(&value, &["result"]).as_str() {
        "running" => format!("cancel requested; attempt {attempt} still runs"),
        "finished" => format!("nothing to cancel: it is {state} already"),
        other => other.to_owned(),
    };
    put(out, &format!("{id}  {came}"))?;
    Ok(Exit::Ok)
}

async fn settle(args: &SettleArgs, out: &mut dyn Write) -> Result<Exit, Failure> {
    let verdict = match args.verdict {
        VerdictArg::Succeeded => "succeeded",
        VerdictArg::Dead => "dead",
        VerdictArg::Retry => "retry",
    };
    let body = format!("{{\"verdict\":\"{verdict}\"}}").into_bytes();
    args.one
        .answer
        .show(Call::post(&args.one.path("/settle")).json(body), out)
        .await
}

async fn wait(args: &WaitArgs, out: &mut dyn Write) -> Result<Exit, Failure> {
    let one = &args.one;
    let most = args
        .most
        .or(one.answer.timeout())
        .unwrap_or(Duration::from_millis(CLI_WAIT_MS));
    let (client, times) = one.answer.begin()?;
    let client = client.within(most);
    let mut left = most.as_secs();
    let spinner = super::progress::spinner(&format!("waiting for {}", one.id));
    let (value, body) = loop {
        let seconds = left.min(CLI_LOOK_MS / 1_000);
        let path = with_query(&one.path("/wait"), &[("timeout", Some(seconds.to_string()))]);
        let reply = client.call(Call::get(&path).held(Duration::from_secs(seconds))).await?;
        let value: Value = serde_json::from_slice(&reply.body).map_err(|error| Failure::unreadable(&error))?;
        left -= seconds;
        if left == 0 || is_settled(&value) {
            break (value, reply.body);
        }
    };
    spinner.finish_and_clear();
    show_one(out, one.answer.format(), &body, &times)?;
    let state = cell(&value, &["state"]);
    Ok(match state.as_str() {
        "succeeded" => Exit::Ok,
        _ if is_settled(&value) => Exit::Failed,
        _ => {
            eprintln!("note: the time is up and the job is {state}; it goes on");
            Exit::Unknown
        }
    })
}

fn is_settled(job: &Value) -> bool {
    let state = cell(job, &["state"]);
    !matches!(state.as_str(), "waiting" | "ready" | "running")
}

async fn logs(one: &OneArgs, out: &mut dyn Write) -> Result<Exit, Failure> {
    let (client, times) = one.answer.begin()?;
    let items = collect(&client, &one.path("/logs"), &[], usize::MAX).await?;
    if one.answer.format() != Format::Text {
        let body = serde_json::to_vec(&serde_json::json!({ "items": items }));
        let body = body.map_err(|error| Failure::unreadable(&error))?;
        show_one(out, one.answer.format(), &body, &times)?;
        return Ok(Exit::Ok);
    }
    if items.is_empty() {
        eprintln!("no attempt of this job has ended yet: there is no output; 'fencepost job show' says where it is");
    }
    for item in &items {
        let item: &Value = &serde_json::from_str(item.get()).map_err(|error| Failure::unreadable(&error))?;
        let (attempt, result, error) = (
            cell(item, &["attempt"]),
            cell(item, &["result"]),
            cell(item, &["error"]),
        );
        eprintln!("{}", format!("--- attempt {attempt}: {result} {error}").trim_end());
        let text = item
            .get("output")
            .and_then(Value::as_str)
            .unwrap_or("(output that is no text; use -o json)");
        match text.is_empty() {
            true => eprintln!("(no output)"),
            false => put(out, text.trim_end_matches('\n'))?,
        }
    }
    Ok(Exit::Ok)
}

async fn attempts(one: &OneArgs, out: &mut dyn Write) -> Result<Exit, Failure> {
    let exit = one
        .answer
        .list(&one.path("/attempts"), &[], usize::MAX, ATTEMPT_COLUMNS, out)
        .await?;
    if one.answer.format() == Format::Text {
        let (client, _) = one.answer.begin()?;
        let reply = client.call(Call::get(&one.path(""))).await?;
        let job: Value = serde_json::from_slice(&reply.body).map_err(|error| Failure::unreadable(&error))?;
        if cell(&job, &["state"]) == "running" {
            eprintln!("note: another attempt is running: 'fencepost job show' says where and since when");
        }
    }
    Ok(exit)
}
