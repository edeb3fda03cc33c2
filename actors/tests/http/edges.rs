//! Bad input beside creation, what is told of it, and limits at their edge.
//!
//! Next: `input.rs` for the fields of jobs and schedules.

use crate::input::{Case, JOB, SCHEDULE_CASES, check};
use crate::{World, run};
use fencepost_core::limits::{EXPRESSION_BYTES_MAX, IDEMPOTENCY_KEY_BYTES_MAX, NAME_BYTES_MAX};

/// What is wrong with a range to make up.
const BACKFILL_CASES: &[Case] = &[
    ("", "field_missing", "from"),
    (r#""from":"2026-01-01T00:00:00Z""#, "field_missing", "to"),
    (
        r#""from":"yesterday","to":"2026-01-01T00:00:00Z""#,
        "instant_invalid",
        "from",
    ),
    (
        r#""from":"2026-01-01T00:00:00Z","to":"2026-01-01""#,
        "instant_invalid",
        "to",
    ),
    (r#""from":7,"to":"2026-01-01T00:00:00Z""#, "field_type", "from"),
    (
        r#""from":"2026-01-01T00:00:00Z","to":"2026-01-01T00:00:00Z""#,
        "range_empty",
        "to",
    ),
    (
        r#""from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z","cap":0"#,
        "field_range",
        "cap",
    ),
    (
        r#""from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z","cap":10001"#,
        "field_range",
        "cap",
    ),
    (
        r#""from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z","rerun":"yes""#,
        "field_type",
        "rerun",
    ),
    (
        r#""from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z","rerunn":true"#,
        "field_unknown",
        "rerunn",
    ),
];

/// What is wrong with a rule to look at.
const PREVIEW_CASES: &[Case] = &[
    ("", "field_missing", "cron"),
    (r#""cron":"61 * * * *""#, "cron_range", "cron[0].minute"),
    (r#""cron":"0 0 30 2 *""#, "cron_never", "cron[0].day-of-month"),
    (r#""cron":"* * * * *","tz":"Mars/Base""#, "zone_unknown", "tz"),
    (r#""cron":"* * * * *","n":0"#, "field_range", "n"),
    (r#""cron":"* * * * *","n":1001"#, "field_range", "n"),
    (r#""cron":"* * * * *","after":"soon""#, "instant_invalid", "after"),
    (r#""cron":"* * * * *","job":{}"#, "field_unknown", "job"),
    (r#""every":"0s""#, "interval_too_short", "every"),
    (r#""every":"1M""#, "duration_calendar_unit", "every"),
];

#[test]
fn wrong_fields_of_an_edit_are_named_as_those_of_a_creation_and_nothing_is_changed() {
    run(async {
        let world = World::new().await;
        let made = format!("{{\"name\":\"a\",\"every\":\"1h\",\"job\":{{{JOB}}}}}");
        assert_eq!(world.post("/v1/schedules", &made).await.status, 201);
        let before = world.get("/v1/schedules/a").await.json();
        // The path says the name, an edit may end a schedule that is there, and pausing has a path of its own.
        let is_of_both =
            |(_, code, field): &&Case| !["name", "paused"].contains(field) && *code != "schedule_never_fires";
        for (wrong, code, field) in SCHEDULE_CASES.iter().filter(is_of_both) {
            let rest = wrong.trim_start_matches(r#""name":"a""#);
            let body = format!("{{\"job\":{{{JOB}}}{rest}}}");
            for query in ["", "?dry_run=true"] {
                let path = format!("/v1/schedules/a{query}");
                let reply = world
                    .send("PUT", &path, &[("if-match", "*")], Some(body.as_bytes()))
                    .await;
                assert_eq!(
                    (reply.problem(), reply.field().as_str()),
                    ((400, (*code).to_owned()), *field),
                    "{body}"
                );
            }
        }
        assert_eq!(world.get("/v1/schedules/a").await.json(), before);
    });
}

#[test]
fn wrong_fields_of_a_backfill_and_a_preview_are_named_and_nothing_is_made() {
    run(async {
        let world = World::new().await;
        let made = format!("{{\"name\":\"a\",\"every\":\"1h\",\"job\":{{{JOB}}}}}");
        assert_eq!(world.post("/v1/schedules", &made).await.status, 201);
        for (wrong, code, field) in BACKFILL_CASES {
            let body = format!("{{{wrong}}}");
            check(&world, "/v1/schedules/a/backfill", &body, code, field).await;
        }
        for (wrong, code, field) in PREVIEW_CASES {
            check(&world, "/v1/preview", &format!("{{{wrong}}}"), code, field).await;
        }
        assert_eq!(world.get("/v1/jobs").await.json()["items"], serde_json::json!([]));
    });
}

#[test]
fn names_expressions_and_keys_are_taken_up_to_their_limit_and_no_further() {
    run(async {
        let world = World::new().await;
        let job = |more: &str| format!("{{{JOB}{more}}}");
        let schedule =
            |name: &str, cron: &str| format!("{{\"name\":\"{name}\",\"cron\":\"{cron}\",\"job\":{{{JOB}}}}}");
        let cron = |length: usize| format!("*{}* * * *", " ".repeat(length - 8));
        let (most, more) = ("n".repeat(NAME_BYTES_MAX), "n".repeat(NAME_BYTES_MAX + 1));
        let wide = "é".repeat(IDEMPOTENCY_KEY_BYTES_MAX / 2);
        let key = "k".repeat(IDEMPOTENCY_KEY_BYTES_MAX);
        for body in [
            job(&format!(",\"queue\":\"{most}\"")),
            job(&format!(",\"tags\":[\"{most}\"]")),
            job(&format!(",\"idempotency_key\":\"{key}\"")),
            job(&format!(",\"idempotency_key\":\"{wide}\"")),
        ] {
            assert_eq!(world.post("/v1/jobs", &body).await.status, 201, "{body}");
        }
        let hourly = |name: &str| schedule(name, "0 * * * *");
        for body in [hourly(&most), schedule("a", &cron(EXPRESSION_BYTES_MAX))] {
            assert_eq!(world.post("/v1/schedules", &body).await.status, 201, "{body}");
        }
        let sent = async |key: &str| {
            let headers = [("idempotency-key", key)];
            world.send("POST", "/v1/jobs", &headers, Some(job("").as_bytes())).await
        };
        assert_eq!(sent(&format!("{}!", &key[1..])).await.status, 201);
        let refused = sent(&format!("{key}k")).await;
        assert_eq!(refused.problem(), (400, "field_length".into()), "{refused:?}");
        for (path, body, code, field) in [
            ("jobs", job(&format!(",\"queue\":\"{more}\"")), "name_invalid", "queue"),
            (
                "jobs",
                job(&format!(",\"tags\":[\"{more}\"]")),
                "name_invalid",
                "tags[0]",
            ),
            (
                "jobs",
                job(&format!(",\"idempotency_key\":\"{key}k\"")),
                "field_length",
                "idempotency_key",
            ),
            (
                "jobs",
                job(&format!(",\"idempotency_key\":\"{wide}k\"")),
                "field_length",
                "idempotency_key",
            ),
            ("schedules", hourly(&more), "name_invalid", "name"),
            (
                "schedules",
                schedule("b", &cron(EXPRESSION_BYTES_MAX + 1)),
                "cron_too_long",
                "cron[0]",
            ),
        ] {
            check(&world, &format!("/v1/{path}"), &body, code, field).await;
        }
        let count = async |path: &str| world.get(path).await.json()["items"].as_array().unwrap().len();
        assert_eq!((count("/v1/jobs").await, count("/v1/schedules").await), (5, 2));
    });
}

#[test]
fn control_characters_in_what_was_sent_are_shown_and_not_left_out() {
    run(async {
        let world = World::new().await;
        for (fields, shown) in [
            (
                r#""cron":"* * * * *","tz":"Europe/\u0000Berlin""#,
                r"'Europe/\u{0}Berlin' is",
            ),
            (r#""every":"1h","exclude":["sat\u001b"]"#, r"'sat\u{1b}' is no"),
            (r#""at_local":"2036-01-01T00:00:00\u0000""#, r"00\u{0}' is no"),
            (r#""every":"1\u0000h""#, r"1\u{0}h"),
            (r#""every":"1h","grace":"1h","que\u0000ue":1"#, r"que\u{0}ue"),
        ] {
            let body = format!("{{\"name\":\"a\",{fields},\"job\":{{{JOB}}}}}");
            let reply = world.post("/v1/schedules", &body).await;
            assert_eq!(reply.problem().0, 400, "{body}");
            let problem = reply.json();
            let told = format!("{}{}", problem["detail"].as_str().unwrap(), reply.field());
            assert!(told.contains(shown), "{shown}: {problem}");
        }
    });
}
