//! Random input never panics a reader, and what is accepted reads back.

use super::new_job::read_new_job;
use super::schedule::{ScheduleBody, read_edit, read_new_schedule};
use crate::api::dto::job::fixed_name;
use crate::api::json::parse;
use crate::targets::TargetsConfig;
use fencepost_core::time::StoreTime;
use proptest::prelude::*;

const NOW: StoreTime = StoreTime(1_800_000_000_000_000);

/// Names that some reader knows, and some that none does.
const NAMES: &[&str] = &[
    "target",
    "type",
    "url",
    "method",
    "headers",
    "argv",
    "shell",
    "env",
    "directory",
    "grace",
    "name",
    "payload",
    "payload_base64",
    "queue",
    "priority",
    "tags",
    "timeout",
    "retry",
    "attempts",
    "backoff",
    "cap",
    "rate",
    "delivery",
    "expires_at",
    "at",
    "delay",
    "idempotency_key",
    "cron",
    "every",
    "anchor",
    "at_local",
    "tz",
    "gap",
    "overlap",
    "starts_at",
    "ends_at",
    "count",
    "exclude",
    "jitter",
    "misfire",
    "catch_up",
    "tolerance",
    "job",
    "paused",
    "nope",
];

/// Texts that some reader takes, and some that none does.
const TEXTS: &[&str] = &[
    "http",
    "command",
    "handler",
    "noop",
    "http://example.org/",
    "GET",
    "default",
    "30s",
    "1h",
    "P1D",
    "1M",
    "UTC",
    "Europe/Berlin",
    "* * * * *",
    "0 0 30 2 *",
    "H H * * *",
    "@daily",
    "2026-01-01T00:00:00Z",
    "2026-03-29T02:30:00",
    "9999-12-31T23:59:59.999999Z",
    "skip",
    "all",
    "latest",
    "first",
    "both",
    "next-valid",
    "at-most-once",
    "sun",
    "2026-12-24..2026-12-26",
    "AA==",
    "",
    "\u{0}",
    "\u{202e}",
    "é",
    "********",
];

fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        (-3_i64..1_100).prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        prop::sample::select(TEXTS).prop_map(Into::into),
        ".{0,12}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 40, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::vec((prop::sample::select(NAMES), inner), 0..10).prop_map(|pairs| {
                serde_json::Value::Object(pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn random_bytes_never_panic_the_parser(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn random_objects_never_panic_a_reader(value in value()) {
        let targets = TargetsConfig::for_dev();
        let text = value.to_string();
        let Ok(json) = parse(text.as_bytes()) else { return Ok(()) };
        for refusal in [
            read_new_job(json.clone(), "", None, &targets).err(),
            read_new_schedule(json.clone(), NOW, &targets).err(),
            read_edit(json, &fixed_name("x"), NOW, &targets).err(),
        ].into_iter().flatten() {
            prop_assert!(!refusal.code.is_empty() && !refusal.detail.is_empty() && !refusal.hint.is_empty());
        }
    }

    #[test]
    fn an_accepted_definition_reads_back_as_itself(
        rule in prop::sample::select(&[
            r#""cron":"H 2 * * mon-fri","tz":"Europe/Berlin","overlap":"both""#, r#""every":"90s""#,
            r#""at":"2036-01-01T00:00:00.5Z""#, r#""at_local":"2036-06-01T02:30:00","tz":"Asia/Tokyo""#,
            r#""cron":["@daily","0 0 1 1 *"],"gap":"skip""#,
        ][..]),
        seconds in 1_u64..100_000, priority in 0_u8..10, cap in 1_u32..1_000, attempts in 1_u32..1_000,
        policy in prop::sample::select(&["latest", "coalesce", "skip"][..]),
    ) {
        let text = format!(
            r#"{{{rule},"jitter":"{}ms","tolerance":"{seconds}s","grace":"{seconds}s","misfire":"{policy}","count":{cap},
            "exclude":["2030-02-01..2030-02-03","sun"],"job":{{"target":{{"type":"handler","name":"noop"}},
            "priority":{priority},"payload":[1.000,"\ud800"],"retry":{{"attempts":{attempts},"backoff":"{seconds}ms"}}}}}}"#,
            seconds % 60_000,
        );
        let targets = TargetsConfig::for_dev();
        let name = fixed_name("s");
        let read = |text: &str| read_edit(parse(text.as_bytes()).unwrap(), &name, NOW, &targets);
        let spec = read(&text).unwrap();
        let again = read(&serde_json::to_string(&ScheduleBody::of(&spec)).unwrap()).unwrap();
        prop_assert_eq!(again, spec);
    }
}
