//! Times for people: in a zone of their choice.
//!
//! Owns: `--tz` of commands that show times, and its variable. Must never: change what JSON says (that is always
//! UTC), or become the zone of a schedule: who made one on another machine would have made another one.

use super::failure::Failure;
use crate::api::routes::preview::local_text;
use crate::api::text::parse_instant;
use clap::Args;
use fencepost_core::zone::Zone;
use std::sync::Arc;

/// In which zone to show times.
#[derive(Clone, Debug, Args)]
pub struct ShowTz {
    /// Show times in this zone; JSON stays in UTC.
    #[arg(
        long,
        value_name = "ZONE",
        env = "FENCEPOST_TZ",
        hide_env_values = true,
        default_value = "UTC"
    )]
    pub tz: String,
}

/// Shows instants in one zone.
#[derive(Clone, Debug)]
pub struct Times(Arc<Zone>);

impl Times {
    /// In UTC.
    pub fn utc() -> Times {
        Times(Zone::utc())
    }

    /// In the zone asked for.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn of(args: &ShowTz) -> Result<Times, Failure> {
        Times::in_zone(&args.tz)
    }

    /// In the zone of this name.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn in_zone(name: &str) -> Result<Times, Failure> {
        Zone::get(name)
            .map(Times)
            .map_err(|error| Failure::of(error.refusal("tz")))
    }

    /// An instant of an answer, shown in the zone.
    pub fn show(&self, text: &str) -> String {
        if self.0.name() == "UTC" {
            return text.to_owned();
        }
        parse_instant(text).map_or_else(|_| text.to_owned(), |at| local_text(&self.0, at))
    }
}
