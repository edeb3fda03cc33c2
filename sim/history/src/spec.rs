//! What a schedule was asked to be, as whoever asked for it remembers.
//!
//! Owns: rules with their bounds, exclusions and policies, each under a tag that its jobs carry in their payload.
//! Must never: read what the product made of it. Next: `rules.rs`, `checkers/no_missed_fire.rs`.

use crate::rules::PlainRule;
use serde_json::Value;

/// A definition as it was asked for.
#[derive(Clone, Debug)]
pub struct PlainSpec {
    /// In the payload of its jobs: the name, a point, a number.
    pub tag: String,
    /// When.
    pub rule: PlainRule,
    /// First instant, inclusive.
    pub starts_at: Option<i64>,
    /// Last instant, inclusive.
    pub ends_at: i64,
    /// Most fires.
    pub count: Option<u64>,
    /// Local days since 1970 that are left out, inclusive.
    pub excluded: Option<(i64, i64)>,
    /// Weekday that is left out, 0 is Sunday.
    pub weekday: Option<i64>,
    /// Window of the jitter, in microseconds.
    pub jitter: i64,
    /// `latest`, `coalesce`, `all` or `skip`.
    pub misfire: &'static str,
    /// Cap of policy `all`.
    pub cap: usize,
    /// Microseconds.
    pub tolerance: i64,
    /// Microseconds.
    pub grace: Option<i64>,
    /// Its jobs start before this or never.
    pub expires_at: Option<i64>,
    /// The request, without name.
    pub body: Value,
}

impl PlainSpec {
    /// Instants in `(from, to]` within the bounds, those on excluded days too.
    pub fn instants(&self, from: i64, to: i64) -> Vec<i64> {
        let from = self.starts_at.map_or(from, |start| from.max(start - 1));
        self.rule.instants(from, to.min(self.ends_at))
    }

    /// Whether an instant lies on an excluded local day.
    pub fn is_excluded(&self, at: i64) -> bool {
        let day = self.rule.zone().day(at);
        // 1970-01-01 was a Thursday.
        let weekday = (day + 4).rem_euclid(7);
        self.excluded.is_some_and(|(first, last)| first <= day && day <= last) || self.weekday == Some(weekday)
    }
}
