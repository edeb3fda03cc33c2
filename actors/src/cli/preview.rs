//! `fencepost schedule preview`: the instants an expression asks for, without a server.
//!
//! Owns: its arguments and its three forms of output. Must never: write to standard output when it
//! refuses, or decide anything about time; every instant comes from `fencepost_core::cron`.
//! Next: `fencepost_core::cron::CronPlan`.

use std::io::{self, Write};
use std::sync::Arc;

use chrono::{DateTime, FixedOffset};
use clap::{Args, ValueEnum};
use fencepost_core::calendar::parse_exclusion;
use fencepost_core::cron::{CronPlan, CronRule, HashSeed};
use fencepost_core::limits::{EXPRESSION_COUNT_MAX, PREVIEW_COUNT_MAX};
use fencepost_core::refusal::Refusal;
use fencepost_core::schedule::{GapPolicy, OverlapPolicy, Rule, ScheduleSpec};
use fencepost_core::scheduler_shard::timetable::Timetable;
use fencepost_core::scheduler_shard::validate::validate;
use fencepost_core::time::StoreTime;
use fencepost_core::zone::{LocalInstants, LocalSeconds, UnixSeconds, Zone, ZoneRef, ZoneVersion};
use serde_json::json;

use crate::api::dto::schedule::Bounds;
use crate::api::places::as_sent;
use crate::problem::{Exit, Problem, exit_of};

/// Show when cron expressions fire, without a server.
#[derive(Debug, Args)]
pub struct PreviewArgs {
    /// Cron expressions of one schedule; each one as one argument, so quote it.
    #[arg(required = true, value_name = "EXPR", num_args = 1..=EXPRESSION_COUNT_MAX)]
    expressions: Vec<String>,
    /// IANA time zone.
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    tz: String,
    /// Show what comes strictly after this instant; now when not named.
    #[arg(long, value_name = "RFC3339", value_parser = parse_after)]
    after: Option<StoreTime>,
    /// How many instants to show.
    #[arg(short = 'n', value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(PREVIEW_COUNT_MAX)))]
    count: u32,
    /// What to do with a local time that a clock change leaves out.
    #[arg(long, value_enum, default_value_t = GapArg::NextValid)]
    gap: GapArg,
    /// What to do with a local time that a clock change shows twice.
    #[arg(long, value_enum, default_value_t = OverlapArg::First)]
    overlap: OverlapArg,
    /// Date, range (2026-12-24..2026-12-26) or weekday on which nothing fires; may be repeated.
    #[arg(long, value_name = "DATES")]
    exclude: Vec<String>,
    /// Resolve H as for the schedule of this name; without one, H stands for other times than it will.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Form of the output.
    #[arg(short = 'o', long, value_enum, default_value_t = OutputArg::Text)]
    output: OutputArg,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GapArg {
    NextValid,
    Skip,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OverlapArg {
    First,
    Second,
    Both,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputArg {
    Text,
    Json,
    Jsonl,
}

impl From<GapArg> for GapPolicy {
    fn from(arg: GapArg) -> Self {
        match arg {
            GapArg::NextValid => Self::NextValid,
            GapArg::Skip => Self::Skip,
        }
    }
}

impl From<OverlapArg> for OverlapPolicy {
    fn from(arg: OverlapArg) -> Self {
        match arg {
            OverlapArg::First => Self::First,
            OverlapArg::Second => Self::Second,
            OverlapArg::Both => Self::Both,
        }
    }
}

fn parse_after(text: &str) -> Result<StoreTime, String> {
    let at = DateTime::parse_from_rfc3339(text)
        .map_err(|_| "use RFC 3339 with an offset, such as 2026-01-01T00:00:00Z".to_owned())?;
    Ok(StoreTime(at.timestamp_micros()))
}

/// Runs the command; says how the process should exit.
pub fn run(args: &PreviewArgs, now: StoreTime, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Exit> {
    let after = args.after.unwrap_or(now);
    let found = plan(args).and_then(|plan| instants(args, &plan, after).map(|instants| (plan, instants)));
    match found {
        Ok((plan, instants)) => {
            print(args, &plan, after, &instants, out)?;
            if nameless_h(args, &plan) {
                writeln!(err, "{NAMELESS_H}")?;
                err.flush()?;
            }
            Ok(Exit::Ok)
        }
        Err(refusal) => refuse(args, &refusal, err).map(|()| exit_of(&refusal)),
    }
}

/// Creation will draw other times, for nobody said the name.
fn nameless_h(args: &PreviewArgs, plan: &CronPlan) -> bool {
    args.name.is_none() && plan.rules().iter().any(CronRule::has_h)
}

const NAMELESS_H: &str = "note: H is drawn from the schedule's name; its own times are shown with --name NAME";

fn plan(args: &PreviewArgs) -> Result<CronPlan, Refusal> {
    let zone = Zone::get(&args.tz).map_err(|error| error.refusal("tz"))?;
    let seed = HashSeed::of_schedule("default", args.name.as_deref().unwrap_or_default());
    CronPlan::parse(&args.expressions, seed, zone, args.gap.into(), args.overlap.into())
        .map_err(|(index, error)| error.refusal(&format!("cron[{index}]")))
}

/// What is wrong with an expression that begins like an option: no minute or second does.
pub(super) fn refuse_like_an_option(text: &str) -> Option<Refusal> {
    let zone = Zone::get("UTC").ok()?;
    let seed = HashSeed::of_schedule("default", "");
    let texts = [text.to_owned()];
    let parsed = CronPlan::parse(&texts, seed, zone, GapPolicy::NextValid, OverlapPolicy::First);
    parsed
        .err()
        .map(|(index, error)| error.refusal(&format!("cron[{index}]")))
}

fn print(
    args: &PreviewArgs,
    plan: &CronPlan,
    after: StoreTime,
    instants: &[StoreTime],
    out: &mut dyn Write,
) -> io::Result<()> {
    let zone = ZoneRef(Arc::clone(plan.zone()));
    let item = |at: &StoreTime| json!({ "at": utc_text(*at), "local": local_text(&zone, *at) });
    match args.output {
        OutputArg::Json => {
            let items: Vec<_> = instants.iter().map(item).collect();
            writeln!(out, "{}", serde_json::Value::from(items))?;
        }
        OutputArg::Jsonl => {
            for at in instants {
                writeln!(out, "{}", item(at))?;
            }
        }
        OutputArg::Text => print_table(args, plan, after, instants, out)?,
    }
    out.flush()
}

/// The instants after one, those on excluded dates left out.
fn instants(args: &PreviewArgs, plan: &CronPlan, after: StoreTime) -> Result<Vec<StoreTime>, Refusal> {
    let list = |next: &dyn Fn(StoreTime) -> Option<StoreTime>| {
        let all = std::iter::successors(next(after), |at| next(*at));
        all.take(args.count as usize).collect()
    };
    if args.exclude.is_empty() {
        return Ok(list(&|at| plan.next_after(at)));
    }
    let table = Timetable::compile(&definition(args, plan)?, after)?;
    Ok(list(&|at| table.next_after(at)))
}

/// The definition that creation would make of it, checked as there.
fn definition(args: &PreviewArgs, plan: &CronPlan) -> Result<ScheduleSpec, Refusal> {
    let read =
        |(at, text): (usize, &String)| parse_exclusion(text).map_err(|refusal| refusal.at(format!("exclude[{at}]")));
    let exclusions: Result<_, Refusal> = args.exclude.iter().enumerate().map(read).collect();
    let texts = |text: fn(&CronRule) -> &str| plan.rules().iter().map(|rule| text(rule).into()).collect();
    let rule = Rule::Cron {
        expressions: texts(CronRule::text),
        resolved: texts(CronRule::plain),
        zone: plan.zone().name().into(),
        gap: args.gap.into(),
        overlap: args.overlap.into(),
    };
    let spec = Bounds::excluding(exclusions?).around(rule);
    match validate(&spec).into_iter().next() {
        Some(refusal) => Err(as_sent(refusal)),
        None => Ok(spec),
    }
}

fn utc_text(at: StoreTime) -> String {
    let utc = UnixSeconds(at.secs());
    format!("{}Z", LocalSeconds(utc.0).to_text())
}

fn local_text(zone: &ZoneRef, at: StoreTime) -> String {
    let segment = zone.0.segment_at(UnixSeconds(at.secs()));
    let local = segment.local_of(UnixSeconds(at.secs())).to_text();
    format!("{local}{}", offset_text(segment.offset))
}

/// `+02:00`; with seconds where a zone's past has them.
fn offset_text(seconds: i32) -> String {
    FixedOffset::east_opt(seconds)
        .map(|offset| offset.to_string())
        .unwrap_or_default()
}

fn print_table(
    args: &PreviewArgs,
    plan: &CronPlan,
    after: StoreTime,
    instants: &[StoreTime],
    out: &mut dyn Write,
) -> io::Result<()> {
    let zone = plan.zone();
    for rule in plan.rules() {
        let kind = if rule.is_wildcard() { "wildcard" } else { "fixed-time" };
        let plain = if rule.plain() == rule.text() {
            String::new()
        } else {
            format!(" = {}", rule.plain())
        };
        writeln!(out, "{}{plain} ({kind})", rule.text())?;
        for note in rule.notes() {
            writeln!(out, "note: {note}")?;
        }
    }
    writeln!(out, "zone {}, zone data {}", zone.name(), ZoneVersion::bundled())?;
    let shared = ZoneRef(Arc::clone(zone));
    let width = instants
        .iter()
        .map(|at| local_text(&shared, *at).len())
        .max()
        .unwrap_or(5);
    writeln!(out, "\n{:<20}  {:<width$}  CLOCK CHANGES", "AT", "LOCAL")?;
    let mut offset = zone.offset_at(UnixSeconds(after.secs()));
    for at in instants {
        let note = note(zone, *at, offset);
        offset = zone.offset_at(UnixSeconds(at.secs()));
        let line = format!("{:<20}  {:<width$}  {note}", utc_text(*at), local_text(&shared, *at));
        writeln!(out, "{}", line.trim_end())?;
    }
    if instants.len() < args.count as usize {
        writeln!(out, "nothing after that: the schedule is finished")?;
    }
    Ok(())
}

/// What a clock change has to do with an instant; empty if nothing.
fn note(zone: &Zone, at: StoreTime, offset_before: i32) -> String {
    let at = UnixSeconds(at.secs());
    let segment = zone.segment_at(at);
    if let LocalInstants::Two(first, _) = zone.local_to_instants(segment.local_of(at)) {
        return match first == at {
            true => "first pass: clocks go back over this time".to_owned(),
            false => "second pass: clocks went back over this time".to_owned(),
        };
    }
    if at == segment.start && zone.offset_at(at.plus(-1)) < segment.offset {
        return "clocks go forward to here".to_owned();
    }
    match segment.offset == offset_before {
        true => String::new(),
        false => format!("offset was {} before", offset_text(offset_before)),
    }
}

fn refuse(args: &PreviewArgs, refusal: &Refusal, err: &mut dyn Write) -> io::Result<()> {
    if args.output == OutputArg::Text {
        write!(err, "{}", Problem::of(refusal).text())?;
        return err.flush();
    }
    let problem = serde_json::to_string(&Problem::of(refusal)).map_err(io::Error::other)?;
    writeln!(err, "{problem}")?;
    err.flush()
}
