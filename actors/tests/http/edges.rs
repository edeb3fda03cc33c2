//! Bad input beside creation, what is told of it, and limits at their edge.
//!
//! Next: `input.rs` for the fields of jobs and schedules.

use crate::input::{JOB, check};
use crate::{World, run};
use fencepost_core::limits::{EXPRESSION_BYTES_MAX, IDEMPOTENCY_KEY_BYTES_MAX, NAME_BYTES_MAX};

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
