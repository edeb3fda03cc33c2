//! What a schedule is, as flags, made into the request's JSON.
//!
//! Owns: the flags. Must never: check what the server checks. Next: `schedule.rs`.

use super::failure::Failure;
use super::job_args::{Body, JobArgs, put_field, put_given};
use crate::api::dto::schedule::CatchUpBody;
use clap::{Args, ValueEnum};

/// When a schedule fires and what each fire makes.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct ScheduleArgs {
    /// Cron expression, 5 to 7 fields; may be repeated. Quote it.
    #[arg(long, value_name = "EXPR", help_heading = "Rule", allow_hyphen_values = true)]
    pub cron: Vec<String>,
    /// Fixed interval, such as 30s.
    #[arg(long, value_name = "TIME", conflicts_with = "cron", help_heading = "Rule")]
    pub every: Option<String>,
    /// One instant of the interval; its creation by default.
    #[arg(long, value_name = "RFC3339", help_heading = "Rule")]
    pub anchor: Option<String>,
    /// Once, at this instant; a past one that the schedule has not gone through yet is due at once.
    #[arg(long, value_name = "RFC3339", conflicts_with_all = ["cron", "every"], help_heading = "Rule")]
    pub at: Option<String>,
    /// Once, at this local time in --tz.
    #[arg(long, value_name = "LOCAL", conflicts_with_all = ["cron", "every", "at"], help_heading = "Rule")]
    pub at_local: Option<String>,
    /// IANA zone of the rule; UTC when a new schedule does not name it.
    #[arg(long, value_name = "ZONE", help_heading = "Rule")]
    pub tz: Option<String>,
    /// Local times that do not exist.
    #[arg(long, value_enum, help_heading = "Rule")]
    pub gap: Option<GapArg>,
    /// Local times that exist twice.
    #[arg(long, value_enum, help_heading = "Rule")]
    pub overlap: Option<OverlapArg>,
    /// Occurrences before it do not exist.
    #[arg(long, value_name = "RFC3339", help_heading = "Rule")]
    pub starts_at: Option<String>,
    /// Occurrences after it do not exist.
    #[arg(long, value_name = "RFC3339", help_heading = "Rule")]
    pub ends_at: Option<String>,
    /// After this many fires the schedule is finished.
    #[arg(long, value_name = "N", help_heading = "Rule")]
    pub count: Option<u64>,
    /// Date, range (2026-12-24..2026-12-26) or weekday on which nothing fires; may be repeated.
    #[arg(long, value_name = "DATES", help_heading = "Rule")]
    pub exclude: Vec<String>,
    /// Spread each due instant over this window.
    #[arg(long, value_name = "TIME", help_heading = "Rule")]
    pub jitter: Option<String>,

    /// Occurrences found late.
    #[arg(long, value_enum, help_heading = "Misfires")]
    pub misfire: Option<MisfireArg>,
    /// Policy all: the newest this many are kept.
    #[arg(long, value_name = "N", help_heading = "Misfires")]
    pub catch_up_cap: Option<u32>,
    /// Policy all: jobs a second.
    #[arg(long, value_name = "N", help_heading = "Misfires")]
    pub catch_up_rate: Option<u32>,
    /// At most this late is on time.
    #[arg(long, value_name = "TIME", help_heading = "Misfires")]
    pub tolerance: Option<String>,
    /// Later than this never fires.
    #[arg(long, value_name = "TIME", help_heading = "Misfires")]
    pub grace: Option<String>,

    /// What each fire makes.
    #[command(flatten)]
    pub job: JobArgs,
}

/// Local times that do not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GapArg {
    /// The first real instant after the gap.
    NextValid,
    /// No occurrence.
    Skip,
}

/// Local times that exist twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OverlapArg {
    /// The first pass.
    First,
    /// The second pass.
    Second,
    /// Both.
    Both,
}

/// Occurrences found late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MisfireArg {
    /// One job for the newest, the others skipped.
    Latest,
    /// One job for the newest that carries first, last and count.
    Coalesce,
    /// Each, within a cap and a rate.
    All,
    /// Drop those beyond tolerance, fire the rest.
    Skip,
}

fn word<T: ValueEnum>(value: &Option<T>) -> Option<String> {
    let possible = value.as_ref()?.to_possible_value()?;
    Some(possible.get_name().to_owned())
}

impl ScheduleArgs {
    /// Puts what was given over what is in `body`. A new rule takes the place of the old one.
    ///
    /// # Errors
    /// A value cannot be read.
    pub fn put_into(&self, body: &mut Body) -> Result<(), Failure> {
        let new_rule = !self.cron.is_empty() || self.every.is_some() || self.at.is_some() || self.at_local.is_some();
        if new_rule {
            for old in ["cron", "every", "anchor", "at", "at_local"] {
                body.remove(old);
            }
        }
        put_given(body, "cron", &(!self.cron.is_empty()).then_some(&self.cron))?;
        let texts = [
            ("every", &self.every),
            ("anchor", &self.anchor),
            ("at", &self.at),
            ("at_local", &self.at_local),
            ("tz", &self.tz),
            ("gap", &word(&self.gap)),
            ("overlap", &word(&self.overlap)),
            ("starts_at", &self.starts_at),
            ("ends_at", &self.ends_at),
            ("jitter", &self.jitter),
            ("tolerance", &self.tolerance),
            ("grace", &self.grace),
        ];
        texts
            .into_iter()
            .try_for_each(|(name, value)| put_given(body, name, value))?;
        put_given(body, "count", &self.count)?;
        put_given(body, "exclude", &(!self.exclude.is_empty()).then_some(&self.exclude))?;
        self.put_misfire(body)?;
        let mut job: Body = match body.get("job") {
            Some(raw) => serde_json::from_str(raw.get()).map_err(|error| Failure::unreadable(&error))?,
            None => Body::new(),
        };
        self.job.put_into(&mut job)?;
        put_field(body, "job", &job)
    }

    fn put_misfire(&self, body: &mut Body) -> Result<(), Failure> {
        if self.misfire.is_some_and(|policy| policy != MisfireArg::All) {
            body.remove("catch_up");
        }
        put_given(body, "misfire", &word(&self.misfire))?;
        if self.catch_up_cap.is_none() && self.catch_up_rate.is_none() {
            return Ok(());
        }
        let bounds = CatchUpBody {
            cap: self.catch_up_cap,
            rate: self.catch_up_rate,
        };
        put_field(body, "catch_up", &bounds)
    }
}
