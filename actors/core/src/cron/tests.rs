//! The grammar: what is read, what is refused, and what a refusal says.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use crate::limits::EXPRESSION_BYTES_MAX;

fn rule(text: &str) -> CronRule {
    CronRule::parse(text, HashSeed(0)).unwrap()
}

fn error(text: &str) -> CronError {
    CronRule::parse(text, HashSeed(0)).unwrap_err()
}

#[test]
fn refusals_say_code_field_and_position() {
    let cases = [
        ("60 * * * *", "cron_range", "minute", 0),
        ("0 0 * * 1,,2", "cron_item_empty", "day-of-week", 10),
        ("0 0 1 1JAN *", "cron_value", "month", 6),
        ("0  22-2 * * *", "cron_range_backward", "hour", 3),
        ("1,5/15 * * * *", "cron_step_base", "minute", 2),
        ("0 0 1 * +", "cron_plus_alone", "day-of-week", 8),
        ("* * * *", "cron_field_count", "expression", 0),
        (" @reboot", "cron_macro_unknown", "expression", 1),
        ("0 0\u{a0}* * *", "cron_character", "expression", 3),
        ("0 0 * * *\n", "cron_character", "expression", 9),
        ("", "cron_field_count", "expression", 0),
        ("0 0 0 * * * H", "cron_value", "year", 12),
        ("H(9-3) * * * *", "cron_range_backward", "minute", 0),
        ("H(9) * * * *", "cron_value", "minute", 0),
        ("H/0 * * * *", "cron_range", "minute", 0),
    ];
    for (text, code, field, position) in cases {
        let error = error(text);
        assert_eq!(
            (error.code(), error.field.name(), error.position),
            (code, field, position),
            "{text}"
        );
        assert!(error.message.starts_with(field) && !error.hint.is_empty(), "{error:?}");
    }
}

#[test]
fn a_hint_is_about_the_part_that_is_wrong() {
    let cases = [
        (
            "0 0 * * 8",
            "use 0 to 7, or SUN to SAT as a whole word; 0 and 7 are Sunday",
        ),
        ("0 0 * * 5#6", "use a number from 1 to 5"),
        ("0 0 * * */x", "use a number from 1 to 9999"),
        ("0 0 * */0 *", "use a number from 1 to 9999"),
    ];
    for (text, hint) in cases {
        assert_eq!(error(text).hint, hint, "{text}");
    }
    let of = |text| {
        let error = error(text);
        (error.message, error.hint.contains("in quotes"))
    };
    let said = |text: &str, quotes| (format!("expression: {text}; 5, 6 or 7 expected"), quotes);
    assert_eq!(
        of("0"),
        said("1 field", true),
        "what a shell leaves of an expression without quotes"
    );
    assert_eq!(of("0 0 * *"), said("4 fields", false));
}

#[test]
fn a_date_that_never_comes_names_the_field_at_fault() {
    let cases = [
        ("0 0 30 2 *", "day-of-month"),
        ("0 0 31 4,6,9,11 *", "day-of-month"),
        ("0 0 0 29 2 * 2026,2027", "year"),
        ("0 0 0 29 2 * 2100", "year"),
        ("0 0 1 * +MON#2", "day-of-month"),
        ("0 0 0 ? 2 MON#5 2026", "year"),
        ("0 0 31W 2 *", "day-of-month"),
    ];
    for (text, field) in cases {
        let error = error(text);
        assert_eq!(
            (error.kind, error.field.name()),
            (CronErrorKind::Never, field),
            "{text}"
        );
    }
}

#[test]
fn length_is_bounded_before_anything_is_read() {
    let fits = format!("{}0 * * * *", "0,".repeat(EXPRESSION_BYTES_MAX / 2 - 5));
    assert!(fits.len() <= EXPRESSION_BYTES_MAX);
    rule(&fits);
    assert_eq!(error(&format!("{fits}   ")).kind, CronErrorKind::TooLong);
    assert_eq!(error(&"é".repeat(1_000_000)).kind, CronErrorKind::TooLong);
}

#[test]
fn plain_text_reads_back_as_the_same_rule() {
    for text in [
        "@hourly",
        "H H(1-5) * * *",
        "0 H/7 H ? H +H(1-5)",
        "5 4 ? jan,Feb Mon-fri/2",
        "0 0 0 1W,LW,L * 5L,7#L */4",
    ] {
        for seed in 0..50 {
            let first = CronRule::parse(text, HashSeed(seed)).unwrap();
            let again = CronRule::parse(first.plain(), HashSeed(seed + 1)).unwrap();
            assert_eq!(first.plain(), again.plain(), "{text}");
            assert_eq!(first.is_wildcard(), again.is_wildcard(), "{text}");
            let from = crate::zone::LocalSeconds(1_000_000_000);
            assert_eq!(first.next_local(from), again.next_local(from), "{text}");
        }
    }
    assert_eq!(rule("@Midnight").plain(), "0 0 * * *");
}

#[test]
fn h_is_stable_for_a_seed_and_spread_over_its_range() {
    let minutes = |text: &str| -> std::collections::BTreeSet<String> {
        let plain = |seed| {
            CronRule::parse(text, HashSeed::of_schedule("t", &format!("s{seed}")))
                .unwrap()
                .plain()
                .to_owned()
        };
        (0..600).map(plain).collect()
    };
    assert_eq!(minutes("H * * * *").len(), 60);
    assert_eq!(minutes("H(10-19) * * * *").len(), 10);
    assert_eq!(minutes("H/15 * * * *").len(), 15);
    assert_eq!(minutes("0 0 H * *").len(), 28);
    assert_eq!(minutes("0 0 * * H").len(), 7);
    let seed = HashSeed::of_schedule("default", "nightly");
    // Stored plain text must never drift: these values are fixed for ever.
    let plain = CronRule::parse("H H(0-5) H * H", seed).unwrap().plain().to_owned();
    assert_eq!(plain, "5 0 27 * 0");
}

#[test]
fn a_leading_star_in_a_time_field_makes_a_wildcard_rule() {
    for text in [
        "* 1 * * *",
        "0 */2 * * *",
        "*,5 1 * * *",
        "* 0 0 * * *",
        "@hourly",
        "H * * * *",
    ] {
        assert!(rule(text).is_wildcard(), "{text}");
    }
    for text in [
        "0 0 * * *",
        "0,30 1-3 * * *",
        "H H * * *",
        "H/15 1 * * *",
        "5,* 1 * * *",
        "0 0-23 * * *",
        "@daily",
    ] {
        assert!(!rule(text).is_wildcard(), "{text}");
    }
}

#[test]
fn a_step_longer_than_its_range_is_noted() {
    assert_eq!(
        rule("*/90 * * * *").notes(),
        ["minute: step 90 is longer than its range, so */90 is only 0"]
    );
    assert!(rule("*/59 * * * *").notes().is_empty());
}

#[test]
fn an_unknown_macro_is_named_as_it_was_written_and_an_interval_says_where_it_goes() {
    assert!(error("@Fortnightly").message.ends_with("unknown macro @Fortnightly"));
    let every = error("@every 5m");
    assert!(every.message.ends_with("unknown macro @every"), "{}", every.message);
    assert!(every.hint.contains("--every 5m"), "{}", every.hint);
}
