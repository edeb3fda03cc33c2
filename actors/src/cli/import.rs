//! `fencepost import crontab`: what each line becomes, then the schedules, then what fires next.
//!
//! Owns: the order and the report. Must never: drop a line in silence, or change a schedule that is there.
//! Next: `import_stored.rs` (a schedule that is there), `fencepost_core::crontab` (reads the lines), the guide
//! `docs/guides/import-crontab.md`.

use super::client::{Call, Client, ServerArgs, parse_span, segment};
use super::failure::Failure;
use super::import_stored::{Difference, differences, text_of};
use super::job_args::{Body, put_field, put_given, read_file, to_bytes};
use super::output::{Format, OutputArgs, cell, put, shortened, show_table};
use super::progress;
use super::when::Times;
use crate::api::text::parse_instant;
use crate::problem::Exit;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, Subcommand};
use fencepost_core::cron::{CronPlan, HashSeed};
use fencepost_core::crontab::{Crontab, CrontabKind, LineOutcome, Proposal};
use fencepost_core::duration;
use fencepost_core::limits::{ATTEMPT_COUNT_MAX, ATTEMPT_TIMEOUT_MS_MAX};
use fencepost_core::schedule::{GapPolicy, OverlapPolicy};
use fencepost_core::time::{Span, StoreTime};
use fencepost_core::zone::Zone;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Bring schedules from elsewhere.
#[derive(Debug, Subcommand)]
pub enum ImportCommand {
    /// Make a schedule of each line of a crontab. Exit code 8 if a line cannot be taken, else 5 if a schedule
    /// of a line's name is there and differs.
    #[command(
        after_help = "Examples:\n  crontab -l | fencepost import crontab - --dry-run\n  fencepost import crontab /etc/crontab --system"
    )]
    Crontab(CrontabArgs),
}

/// Arguments of `import crontab`.
#[derive(Debug, Args)]
pub struct CrontabArgs {
    /// The crontab; - is standard input.
    file: PathBuf,
    /// Only show what would be made. Needs no server; one that answers is asked what is there.
    #[arg(long)]
    dry_run: bool,
    /// The file is a system crontab: its sixth word is a user.
    #[arg(long)]
    system: bool,
    /// Zone of its times until a CRON_TZ says otherwise. FENCEPOST_TZ, in which times are shown, does not count.
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    tz: String,
    /// Attempts in all of what a line runs; 5 by default, while cron makes one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(ATTEMPT_COUNT_MAX)))]
    attempts: Option<u32>,
    /// Limit of one attempt, up to 7d; 1d by default, while cron knows none.
    #[arg(long = "attempt-timeout", value_name = "TIME", value_parser = parse_timeout)]
    attempt_timeout: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    server: ServerArgs,
}

/// Bounded as the server bounds it, so that a dry run refuses it, too.
fn parse_timeout(text: &str) -> Result<String, String> {
    let most = Duration::from_millis(ATTEMPT_TIMEOUT_MS_MAX);
    match parse_span(text)? {
        span if span.is_zero() || span > most => Err("use more than nothing, and at most 7d".to_owned()),
        span => Ok(duration::format(Span::from_millis(
            u64::try_from(span.as_millis()).unwrap_or(ATTEMPT_TIMEOUT_MS_MAX),
        ))),
    }
}

/// What became of one line.
struct Report {
    number: usize,
    line: String,
    result: &'static str,
    name: String,
    zone: String,
    /// When it fires next, in UTC.
    due: String,
    differs: Vec<Difference>,
    notes: Vec<String>,
}

/// Whom to ask what is there, and whether to make what is not.
struct Importer {
    client: Option<Client>,
    is_dry: bool,
    now: StoreTime,
    runs: RunLimits,
}

/// Limit of an attempt that nobody named.
const TIMEOUT: &str = "1d";

/// How what a line runs is tried, as far as somebody said so.
struct RunLimits {
    attempts: Option<u32>,
    timeout: Option<String>,
}

impl Report {
    /// When it fires next, in its zone; empty if it does not.
    fn next(&self) -> String {
        let times = Times::in_zone(&self.zone).unwrap_or_else(|_| Times::utc());
        times.show(&self.due)
    }
}

impl ImportCommand {
    /// The form of output that errors follow.
    pub fn format(&self) -> Format {
        match self {
            ImportCommand::Crontab(args) => args.output.output,
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// What went wrong.
    pub async fn run(&self, out: &mut dyn Write, now: StoreTime) -> Result<Exit, Failure> {
        match self {
            ImportCommand::Crontab(args) => crontab(args, out, now).await,
        }
    }
}

async fn crontab(args: &CrontabArgs, out: &mut dyn Write, now: StoreTime) -> Result<Exit, Failure> {
    Times::in_zone(&args.tz)?;
    let bytes = read_file(&args.file)?;
    let kind = match args.system {
        true => CrontabKind::System,
        false => CrontabKind::User,
    };
    let table = Crontab::parse(&bytes, kind, &args.tz);
    let mut importer = Importer {
        client: None,
        is_dry: args.dry_run,
        now,
        runs: RunLimits {
            attempts: args.attempts,
            timeout: args.attempt_timeout.clone(),
        },
    };
    match Client::new(&args.server) {
        Ok(client) => importer.client = Some(client),
        Err(failure) if args.dry_run && failure.exit != Exit::Usage => importer.do_without(&failure),
        Err(failure) => return Err(failure),
    }
    let mut reports = Vec::new();
    let imported = tokio::select! {
        biased;
        _ = tokio::signal::ctrl_c() => Err(super::interrupted()),
        imported = importer.import(&table, &mut reports) => imported,
    };
    // What was made before a failure or Ctrl-C is told, too.
    if imported.is_ok() || reports.iter().any(|report| report.result == "created") {
        show(args.output.output, &reports, out)?;
    }
    imported?;
    Ok(exit_of(&reports))
}

fn exit_of(reports: &[Report]) -> Exit {
    let any = |results: &[&str]| reports.iter().any(|report| results.contains(&report.result));
    match (any(&["unsupported", "refused"]), any(&["differs"])) {
        (true, _) => Exit::Invalid,
        (false, true) => Exit::Conflict,
        (false, false) => Exit::Ok,
    }
}

impl Importer {
    /// Takes line after line; stops at a failure that is not the line's own.
    async fn import(&mut self, table: &Crontab, reports: &mut Vec<Report>) -> Result<(), Failure> {
        let bar = progress::bar(table.proposals().count() as u64, "importing");
        for line in &table.lines {
            let mut report = Report {
                number: line.number,
                line: line.text.clone(),
                result: "",
                name: String::new(),
                zone: String::new(),
                due: String::new(),
                differs: Vec::new(),
                notes: Vec::new(),
            };
            match &line.outcome {
                LineOutcome::Setting { name, note } => {
                    (report.result, report.name) = ("setting", name.clone());
                    report.notes.extend(note.clone());
                }
                LineOutcome::Unsupported(why) => {
                    report.result = "unsupported";
                    let note = format!("{} ({}); {}", why.reason, why.code, why.hint);
                    report.notes.push(note);
                }
                LineOutcome::Proposed(proposal) => {
                    report.name = proposal.name.to_string();
                    report.zone.clone_from(&proposal.zone);
                    report.notes.extend(proposal.notes.clone());
                    match self.is_dry {
                        true => self.look(proposal, &mut report).await?,
                        false => self.make(proposal, &mut report).await?,
                    }
                    bar.inc(1);
                }
            }
            reports.push(report);
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// A dry run goes on without a server, and says so.
    fn do_without(&mut self, failure: &Failure) {
        self.client = None;
        eprintln!(
            "note: no server was asked, so a name that is taken there shows as new: {}",
            failure.problem.detail
        );
    }

    /// Says what would be made.
    async fn look(&mut self, proposal: &Proposal, report: &mut Report) -> Result<(), Failure> {
        if let Some(client) = &self.client {
            match stored_of(client, proposal).await {
                Ok(Some(stored)) => return compare(proposal, &self.runs, &stored, report),
                Ok(None) => {}
                Err(failure) => self.do_without(&failure),
            }
        }
        (report.result, report.due) = ("would create", next_of(proposal, self.now));
        Ok(())
    }

    /// Makes the schedule.
    async fn make(&self, proposal: &Proposal, report: &mut Report) -> Result<(), Failure> {
        let Some(client) = &self.client else { return Ok(()) };
        let runs = RunLimits {
            timeout: self.runs.timeout.clone().or_else(|| Some(TIMEOUT.to_owned())),
            ..self.runs
        };
        let body = to_bytes(&request(proposal, &runs)?)?;
        match client.call(Call::post("/v1/schedules").json(body)).await {
            Ok(reply) => {
                let value: Value = read(&reply.body)?;
                (report.result, report.due) = ("created", cell(&value, &["next", "due_at"]));
            }
            Err(failure) if failure.exit == Exit::Conflict => match stored_of(client, proposal).await? {
                Some(stored) => compare(proposal, &self.runs, &stored, report)?,
                None => return Err(failure),
            },
            Err(failure)
                if matches!(failure.exit, Exit::Invalid | Exit::Permission) && failure.problem.status != 401 =>
            {
                report.result = "refused";
                let problem = &failure.problem;
                report
                    .notes
                    .push(format!("{} ({}) {}", problem.detail, problem.code, problem.hint));
            }
            Err(failure) => return Err(failure),
        }
        Ok(())
    }
}

fn read(body: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(body).map_err(|error| Failure::unreadable(&error))
}

/// The schedule of a line's name, if there is one.
async fn stored_of(client: &Client, proposal: &Proposal) -> Result<Option<Value>, Failure> {
    let path = format!("/v1/schedules/{}", segment(proposal.name.as_str()));
    match client.call(Call::get(&path)).await {
        Ok(reply) => read(&reply.body).map(Some),
        Err(failure) if failure.exit == Exit::NotFound => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Says what is there in the line's stead.
fn compare(proposal: &Proposal, runs: &RunLimits, stored: &Value, report: &mut Report) -> Result<(), Failure> {
    let asked = read(&to_bytes(&request(proposal, runs)?)?)?;
    let definition = stored.get("definition").unwrap_or(&Value::Null);
    report.differs = differences(&asked, definition);
    report.zone = cell(definition, &["tz"]);
    report.due = cell(stored, &["next", "due_at"]);
    let status = cell(stored, &["status"]);
    if status != "active" {
        report.notes.push(format!("the schedule that is there is {status}"));
    }
    if report.differs.is_empty() {
        report.result = "exists";
        let note = "a schedule of this name is there already; it was left as it is";
        report.notes.push(note.to_owned());
        return Ok(());
    }
    report.result = "differs";
    let (what, name) = (text_of(&report.differs), &report.name);
    report.notes.push(format!(
        "a schedule of this name is there already: {what}; it was left as it is; to make it what the \
         line says: fencepost schedule edit {name}{}",
        super::import_stored::flags(&report.differs)
    ));
    Ok(())
}

/// The definition that a line makes; what nobody speaks of is left out.
fn request(proposal: &Proposal, runs: &RunLimits) -> Result<Body, Failure> {
    let mut target = Body::new();
    put_field(&mut target, "type", "command")?;
    put_field(&mut target, "argv", &proposal.argv)?;
    let env: BTreeMap<_, _> = proposal.env.iter().cloned().collect();
    put_given(&mut target, "env", &(!env.is_empty()).then_some(env))?;
    put_given(&mut target, "directory", &proposal.directory)?;
    let mut job = Body::new();
    put_field(&mut job, "target", &target)?;
    put_field(&mut job, "tags", &["crontab"])?;
    let stdin = proposal.stdin.as_ref().map(|stdin| STANDARD.encode(stdin));
    put_given(&mut job, "payload_base64", &stdin)?;
    put_given(&mut job, "timeout", &runs.timeout)?;
    put_given(
        &mut job,
        "retry",
        &runs.attempts.map(|attempts| json!({ "attempts": attempts })),
    )?;
    let mut body = Body::new();
    put_field(&mut body, "name", proposal.name.as_str())?;
    put_field(&mut body, "cron", &proposal.expression)?;
    put_field(&mut body, "tz", &proposal.zone)?;
    put_field(&mut body, "job", &job)?;
    if proposal.jitter > Span::ZERO {
        put_field(&mut body, "jitter", &duration::format(proposal.jitter))?;
    }
    Ok(body)
}

/// The next occurrence by this machine's clock; empty if there is none.
fn next_of(proposal: &Proposal, now: StoreTime) -> String {
    let plan = Zone::get(&proposal.zone).ok().and_then(|zone| {
        let seed = HashSeed::of_schedule("default", proposal.name.as_str());
        let (gap, overlap) = (GapPolicy::default(), OverlapPolicy::default());
        CronPlan::parse(&[proposal.expression.as_str()], seed, zone, gap, overlap).ok()
    });
    plan.and_then(|plan| plan.next_after(now))
        .map(crate::api::text::instant)
        .unwrap_or_default()
}

fn show(format: Format, reports: &[Report], out: &mut dyn Write) -> Result<(), Failure> {
    let difference = |one: &Difference| json!({ "field": one.field, "stored": one.stored, "line": one.line });
    let item = |report: &Report| {
        json!({
            "line": report.number, "text": report.line, "result": report.result, "name": report.name,
            "tz": report.zone, "next": report.next(),
            "differs": report.differs.iter().map(difference).collect::<Vec<_>>(), "notes": report.notes,
        })
    };
    match format {
        Format::Json => put(
            out,
            &Value::from(reports.iter().map(item).collect::<Vec<_>>()).to_string(),
        ),
        Format::Jsonl => reports
            .iter()
            .try_for_each(|report| put(out, &item(report).to_string())),
        Format::Text => {
            let mut rows = Vec::new();
            for report in reports {
                let shown = shortened(&report.line, 48);
                let what = [report.number.to_string(), report.result.to_owned(), report.name.clone()];
                rows.push(what.into_iter().chain([report.next(), shown]).collect());
            }
            show_table(out, vec!["LINE", "RESULT", "NAME", "NEXT", "TEXT"], rows)?;
            for report in reports {
                for note in &report.notes {
                    eprintln!("line {}: {note}", report.number);
                }
            }
            summary(reports);
            coming(reports);
            Ok(())
        }
    }
}

fn summary(reports: &[Report]) {
    let count = |result: &str| reports.iter().filter(|report| report.result == result).count();
    let parts: Vec<_> = ["created", "would create", "exists", "differs", "refused", "unsupported"]
        .iter()
        .map(|result| (count(result), result))
        .filter(|(count, _)| *count > 0)
        .map(|(count, result)| format!("{count} {result}"))
        .collect();
    eprintln!(
        "{}",
        if parts.is_empty() {
            "nothing to import".to_owned()
        } else {
            parts.join(", ")
        }
    );
}

/// Which of them fire next, soonest first.
fn coming(reports: &[Report]) {
    let mut fires: Vec<&Report> = reports.iter().filter(|report| !report.due.is_empty()).collect();
    fires.sort_by_key(|report| parse_instant(&report.due).map_or(i64::MAX, |at| at.0));
    for report in fires.iter().take(COMING_COUNT) {
        eprintln!("next: {}  {}", report.next(), report.name);
    }
    let more = fires.len().saturating_sub(COMING_COUNT);
    if more > 0 {
        eprintln!("next: and {more} later");
    }
}

/// Fires that the summary names.
const COMING_COUNT: usize = 5;
