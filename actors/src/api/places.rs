//! Names of core fields as a request spells them: `schedule.rule.zone` is `tz` to a caller.
//!
//! Owns: the table. Must never: change a code or a word. Next: `dto/`.

use fencepost_core::refusal::Refusal;

/// Beginnings of core names, and what a request calls them; the first that fits counts.
const PLACES: &[(&str, &str)] = &[
    ("schedule.rule.expressions", "cron"),
    ("schedule.rule.zone", "tz"),
    ("schedule.rule.", ""),
    ("schedule.rule", "cron"),
    ("schedule.exclusions", "exclude"),
    ("schedule.count_max", "count"),
    ("schedule.misfire.", "catch_up."),
    ("schedule.", ""),
    ("job.", ""),
    ("if_match", "If-Match"),
];

/// The refusal with its field as the caller sent it.
pub fn as_sent(mut refusal: Refusal) -> Refusal {
    if let Some(field) = &refusal.field {
        let renamed = PLACES
            .iter()
            .find_map(|(core, sent)| Some(format!("{sent}{}", field.strip_prefix(core)?)));
        refusal.field = renamed.or(refusal.field);
    }
    refusal
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::fields::invalid;

    #[test]
    fn core_names_become_those_of_the_request() {
        for (core, sent) in [
            ("schedule.rule.expressions[0].hour", "cron[0].hour"),
            ("schedule.rule.zone", "tz"),
            ("schedule.rule.every", "every"),
            ("schedule.rule", "cron"),
            ("schedule.misfire.cap", "catch_up.cap"),
            ("schedule.ends_at", "ends_at"),
            ("job.queue", "queue"),
            ("jobs", "jobs"),
            ("name", "name"),
        ] {
            assert_eq!(as_sent(invalid("x", "", "").at(core)).field.as_deref(), Some(sent));
        }
    }
}
