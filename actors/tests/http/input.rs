//! Bad input: every wrong field is a problem with code, field and hint; nothing is made.

use crate::{World, run};

pub(crate) const JOB: &str = r#""target":{"type":"handler","name":"noop"}"#;

/// What is wrong, then code and field.
pub(crate) type Case = (&'static str, &'static str, &'static str);

/// Fields of a job, beside a good target.
const JOB_CASES: &[Case] = &[
    (r#""priority":10"#, "field_range", "priority"),
    (r#""priority":-1"#, "field_range", "priority"),
    (r#""priority":1.5"#, "field_range", "priority"),
    (r#""priority":99999999999999999999999"#, "field_range", "priority"),
    (r#""priority":"5""#, "field_type", "priority"),
    (r#""priority":true"#, "field_type", "priority"),
    (r#""queue":"""#, "name_invalid", "queue"),
    (r#""queue":"a b""#, "name_invalid", "queue"),
    (r#""queue":"-a""#, "name_invalid", "queue"),
    (r#""queue":"é""#, "name_invalid", "queue"),
    (r#""queue":"a\u0000""#, "name_invalid", "queue"),
    (r#""queue":["a"]"#, "field_type", "queue"),
    (r#""tags":"a""#, "field_type", "tags"),
    (r#""tags":["a",1]"#, "field_type", "tags[1]"),
    (r#""tags":["a","b c"]"#, "name_invalid", "tags[1]"),
    (
        r#""tags":["0","1","2","3","4","5","6","7","8","9","a","b","c","d","e","f","g"]"#,
        "field_count",
        "tags",
    ),
    (r#""timeout":"1M""#, "duration_calendar_unit", "timeout"),
    (r#""timeout":"P1Y""#, "duration_calendar_unit", "timeout"),
    (r#""timeout":"0s""#, "timeout_zero", "timeout"),
    (r#""timeout":"8d""#, "duration_too_long", "timeout"),
    (r#""timeout":"-1s""#, "duration_form", "timeout"),
    (r#""timeout":5"#, "field_type", "timeout"),
    (r#""retry":5"#, "field_type", "retry"),
    (r#""retry":{"attempts":0}"#, "field_range", "retry.attempts"),
    (r#""retry":{"attempts":1001}"#, "field_range", "retry.attempts"),
    (
        r#""retry":{"backoff":"2h","cap":"1h"}"#,
        "retry_cap_below_backoff",
        "retry.cap",
    ),
    (r#""retry":{"backof":"1s"}"#, "field_unknown", "retry.backof"),
    (r#""delivery":"exactly-once""#, "field_word", "delivery"),
    (r#""expires_at":"tomorrow""#, "instant_invalid", "expires_at"),
    (r#""at":"2026-02-30T00:00:00Z""#, "instant_invalid", "at"),
    (r#""at":"2026-01-01T00:00:00""#, "instant_invalid", "at"),
    (r#""at":"1969-12-31T23:59:59Z""#, "instant_range", "at"),
    (r#""at":"2026-01-01T00:00:00Z","delay":"1s""#, "start_twice", "delay"),
    (r#""delay":"18446744073709551615ms""#, "duration_overflow", "delay"),
    (r#""grace":"soon""#, "duration_form", "grace"),
    (r#""idempotency_key":"""#, "field_length", "idempotency_key"),
    (
        r#""idempotency_key":"a\u0000b""#,
        "field_control_character",
        "idempotency_key",
    ),
    (r#""idempotency_key":7"#, "field_type", "idempotency_key"),
    (
        r#""payload":1,"payload_base64":"AA==""#,
        "payload_twice",
        "payload_base64",
    ),
    (r#""payload_base64":"*""#, "base64_invalid", "payload_base64"),
    (r#""payload_base64":"AA""#, "base64_invalid", "payload_base64"),
    (r#""payload_base64":7"#, "field_type", "payload_base64"),
    (r#""prioritty":5"#, "field_unknown", "prioritty"),
    (r#""tenant":"other""#, "field_unknown", "tenant"),
    (r#""queue":"a","queue":"a""#, "json_duplicate_key", "queue"),
];

/// Targets of a job.
const TARGET_CASES: &[Case] = &[
    (r#"{}"#, "field_missing", "target"),
    (r#"{"target":null}"#, "field_missing", "target"),
    (r#"{"target":"http://a/"}"#, "field_type", "target"),
    (r#"{"target":{}}"#, "field_missing", "target.type"),
    (r#"{"target":{"type":"ftp"}}"#, "field_word", "target.type"),
    (r#"{"target":{"type":"handler"}}"#, "field_missing", "target.name"),
    (
        r#"{"target":{"type":"handler","name":"noop","url":"x"}}"#,
        "field_unknown",
        "target.url",
    ),
    (r#"{"target":{"type":"http"}}"#, "field_missing", "target.url"),
    (
        r#"{"target":{"type":"http","url":"gopher://a/"}}"#,
        "url_scheme",
        "target.url",
    ),
    (
        r#"{"target":{"type":"http","url":"http://a.example/","method":"TRACE"}}"#,
        "method_not_allowed",
        "target.method",
    ),
    (
        r#"{"target":{"type":"http","url":"http://a.example/","headers":{"accept":"*/*","host":"b"}}}"#,
        "header_not_allowed",
        "target.headers.host",
    ),
    (
        r#"{"target":{"type":"http","url":"http://a.example/","headers":{"x-a":"b\r\nhost: c"}}}"#,
        "header_value",
        "target.headers.x-a",
    ),
    (
        r#"{"target":{"type":"http","url":"http://a.example/","headers":{"authorization":"********"}}}"#,
        "secret_masked",
        "target.headers.authorization",
    ),
    (r#"{"target":{"type":"command"}}"#, "command_argv_count", "target.argv"),
    (
        r#"{"target":{"type":"command","argv":"ls"}}"#,
        "field_type",
        "target.argv",
    ),
    (
        r#"{"target":{"type":"command","argv":["ls","a\u0000b"]}}"#,
        "command_nul",
        "target.argv[1]",
    ),
    (
        r#"{"target":{"type":"command","argv":["ls"],"env":{"LD_PRELOAD":"x"}}}"#,
        "command_env",
        "target.env.LD_PRELOAD",
    ),
    (
        r#"{"target":{"type":"command","argv":["ls"],"directory":"tmp"}}"#,
        "command_directory",
        "target.directory",
    ),
    (
        r#"{"target":{"type":"command","argv":["ls"],"grace":"1h"}}"#,
        "duration_too_long",
        "target.grace",
    ),
    (
        r#"{"target":{"type":"command","argv":["ls"],"shell":"yes"}}"#,
        "field_type",
        "target.shell",
    ),
];

/// Bodies as a whole.
const BODY_CASES: &[Case] = &[
    ("", "json_empty", ""),
    ("nul", "json_malformed", ""),
    ("[]", "field_type", ""),
    ("7", "field_type", ""),
    ("{\"a\":1}{", "json_malformed", ""),
    ("{\"priority\":1e999}", "json_malformed", ""),
    ("{\"queue\":\"\\ud800\"}", "json_malformed", ""),
];

/// Fields of a schedule, beside a good job; cases with a rule bring their own.
pub(crate) const SCHEDULE_CASES: &[Case] = &[
    (r#""name":"a""#, "field_missing", "cron"),
    (r#""cron":"* * * * *""#, "field_missing", "name"),
    (r#""name":"a b","cron":"* * * * *""#, "name_invalid", "name"),
    (r#""name":"a","cron":"* * * *""#, "cron_field_count", "cron[0]"),
    (
        r#""name":"a","cron":["* * * * *","0 25 * * *"]"#,
        "cron_range",
        "cron[1].hour",
    ),
    (
        r#""name":"a","cron":"0 0 30 2 *""#,
        "cron_never",
        "cron[0].day-of-month",
    ),
    (r#""name":"a","cron":[]"#, "field_type", "cron"),
    (r#""name":"a","cron":7"#, "field_type", "cron"),
    (r#""name":"a","cron":[7]"#, "field_type", "cron[0]"),
    (r#""name":"a","cron":"* * * * *","every":"1s""#, "rule_twice", "every"),
    (
        r#""name":"a","cron":"* * * * *","tz":"Mars/Base""#,
        "zone_unknown",
        "tz",
    ),
    (r#""name":"a","cron":"* * * * *","tz":"""#, "zone_unknown", "tz"),
    (r#""name":"a","cron":"* * * * *","gap":"jump""#, "field_word", "gap"),
    (
        r#""name":"a","cron":"* * * * *","overlap":"none""#,
        "field_word",
        "overlap",
    ),
    (
        r#""name":"a","cron":"* * * * *","anchor":"2026-01-01T00:00:00Z""#,
        "anchor_alone",
        "anchor",
    ),
    (r#""name":"a","every":"0s""#, "interval_too_short", "every"),
    (r#""name":"a","every":"1 month""#, "duration_form", "every"),
    (r#""name":"a","at":"soon""#, "instant_invalid", "at"),
    (
        r#""name":"a","at_local":"2026-03-29 25:00""#,
        "local_time_form",
        "at_local",
    ),
    (
        r#""name":"a","at_local":"2026-03-29T02:30:00","tz":"Europe/Berlin","gap":"skip""#,
        "local_time_in_gap",
        "at_local",
    ),
    (
        r#""name":"a","every":"1s","starts_at":"2027-01-01T00:00:00Z","ends_at":"2026-01-01T00:00:00Z""#,
        "ends_before_start",
        "ends_at",
    ),
    (
        r#""name":"a","every":"1s","ends_at":"2026-01-01T00:00:00Z""#,
        "schedule_never_fires",
        "cron",
    ),
    (r#""name":"a","every":"1s","count":0"#, "field_range", "count"),
    (
        r#""name":"a","every":"1s","exclude":["2026-02-30"]"#,
        "exclusion_form",
        "exclude[0]",
    ),
    (
        r#""name":"a","every":"1s","exclude":["mon","2026-02-02..2026-02-01"]"#,
        "exclusion_backward",
        "exclude[1]",
    ),
    (
        r#""name":"a","every":"1s","jitter":"2d""#,
        "duration_too_long",
        "jitter",
    ),
    (r#""name":"a","every":"1s","misfire":"never""#, "field_word", "misfire"),
    (
        r#""name":"a","every":"1s","catch_up":{"cap":1}"#,
        "catch_up_unused",
        "catch_up",
    ),
    (
        r#""name":"a","every":"1s","misfire":"all","catch_up":{"cap":0}"#,
        "field_range",
        "catch_up.cap",
    ),
    (
        r#""name":"a","every":"1s","misfire":"all","catch_up":{"rate":0}"#,
        "field_range",
        "catch_up.rate",
    ),
    (
        r#""name":"a","every":"1s","tolerance":"400d""#,
        "duration_too_long",
        "tolerance",
    ),
    (r#""name":"a","every":"1s","paused":"no""#, "field_type", "paused"),
    (r#""name":"a","every":"1s","evry":"1s""#, "field_unknown", "evry"),
    // A name that is not known comes before one that is missing because of it.
    (r#""name":"a","evry":"1s""#, "field_unknown", "evry"),
    (
        r#""name":"a","definition":{"every":"1s"}"#,
        "field_unknown",
        "definition",
    ),
];

pub(crate) async fn check(world: &World, path: &str, body: &str, code: &str, field: &str) {
    let reply = world.post(path, body).await;
    let (status, found) = reply.problem();
    assert_eq!(
        (found.as_str(), reply.field().as_str()),
        (code, field),
        "{body}: {:?}",
        reply.body
    );
    assert_eq!(status, 400, "{body}");
}

async fn nothing_was_made(world: &World) {
    for path in ["/v1/jobs", "/v1/schedules"] {
        let list = world.get(path).await.json();
        assert_eq!(list["items"].as_array().unwrap().len(), 0, "{list}");
    }
}

#[test]
fn wrong_fields_of_a_job_are_named_and_nothing_is_made() {
    run(async {
        let world = World::new().await;
        for (wrong, code, field) in JOB_CASES {
            check(&world, "/v1/jobs", &format!("{{{JOB},{wrong}}}"), code, field).await;
            let prefixed = format!("{{\"jobs\":[{{{JOB},{wrong}}}]}}");
            let batch = world.post("/v1/jobs:batch", &prefixed).await;
            if *code == "json_duplicate_key" {
                assert_eq!(
                    (batch.problem().1.as_str(), batch.field().as_str()),
                    (*code, "jobs[0].queue")
                );
                continue;
            }
            let item = &batch.json()["items"][0]["problem"];
            assert_eq!(item["code"], *code, "{prefixed}");
            assert_eq!(item["field"], format!("jobs[0].{field}"), "{prefixed}");
        }
        check(&world, "/v1/jobs", r#"{"tagret":{}}"#, "field_unknown", "tagret").await;
        check(&world, "/v1/jobs:batch", r#"{"job":[{}]}"#, "field_unknown", "job").await;
        for (body, code, field) in TARGET_CASES.iter().chain(BODY_CASES) {
            check(&world, "/v1/jobs", body, code, field).await;
        }
        nothing_was_made(&world).await;
    });
}

#[test]
fn wrong_fields_of_a_schedule_are_named_and_nothing_is_made() {
    run(async {
        let world = World::new().await;
        for (wrong, code, field) in SCHEDULE_CASES {
            check(
                &world,
                "/v1/schedules",
                &format!("{{\"job\":{{{JOB}}},{wrong}}}"),
                code,
                field,
            )
            .await;
        }
        let nested = r#"{"name":"a","every":"1s","job":{"target":{"type":"handler","name":"noop"},"priority":12}}"#;
        check(&world, "/v1/schedules", nested, "field_range", "job.priority").await;
        check(
            &world,
            "/v1/schedules",
            r#"{"name":"a","every":"1s"}"#,
            "field_missing",
            "job",
        )
        .await;
        for (body, code, field) in BODY_CASES {
            check(&world, "/v1/schedules", body, code, field).await;
            check(&world, "/v1/preview", body, code, field).await;
        }
        let long = format!("{{\"name\":\"a\",\"cron\":\"{}\",\"job\":{{{JOB}}}}}", "* ".repeat(200));
        check(&world, "/v1/schedules", &long, "cron_too_long", "cron[0]").await;
        nothing_was_made(&world).await;
    });
}

#[test]
fn bodies_that_are_no_text_or_too_deep_are_refused() {
    run(async {
        let world = World::new().await;
        let reply = world.send("POST", "/v1/jobs", &[], Some(b"{\"queue\":\"\xff\"}")).await;
        assert_eq!(reply.problem(), (400, "json_not_utf8".into()));
        let deep = format!("{{\"target\":{}", "[".repeat(100_000));
        assert_eq!(world.post("/v1/jobs", &deep).await.problem().1, "json_too_deep");
        let deep = format!("{{{JOB},\"payload\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(world.post("/v1/jobs", &deep).await.problem().1, "json_too_deep");
        nothing_was_made(&world).await;
    });
}

#[test]
fn wrong_parameters_ids_and_names_are_named() {
    run(async {
        let world = World::new().await;
        let zero = format!("job_{}", "0".repeat(32));
        let cases = [
            ("/v1/jobs?limit=0", 400, "field_range", "limit"),
            ("/v1/jobs?limit=1001", 400, "field_range", "limit"),
            ("/v1/jobs?limit=x", 400, "field_range", "limit"),
            ("/v1/jobs?limit=%31%30&limit=1", 400, "parameter_twice", "limit"),
            ("/v1/jobs?state=gone", 400, "field_word", "state"),
            ("/v1/jobs?queue=a%20b", 400, "name_invalid", "queue"),
            ("/v1/jobs?cursor=x", 400, "cursor_invalid", "cursor"),
            ("/v1/jobs?nope=1", 400, "parameter_unknown", "nope"),
            ("/v1/dead?state=dead", 400, "parameter_unknown", "state"),
            ("/v1/jobs/job_x", 404, "job_not_found", "id"),
            ("/v1/jobs/", 400, "id_missing", "id"),
            ("/v1/jobs//attempts", 400, "id_missing", "id"),
            ("/v1/jobs/%ff", 400, "path_invalid", ""),
            ("/v1/schedules/", 400, "name_invalid", "name"),
            ("/v1/schedules//fates", 400, "name_invalid", "name"),
            ("/v1/schedules/a%20b", 400, "name_invalid", "name"),
            ("/v1/schedules/none", 404, "schedule_not_found", "name"),
            ("/v1/schedules/none/fates", 404, "schedule_not_found", "name"),
            ("/v1/schedules/none/fates?from=x", 400, "instant_invalid", "from"),
            (
                "/v1/schedules/none/fates?incarnation=x",
                400,
                "incarnation_invalid",
                "incarnation",
            ),
            ("/v1/schedules/none/preview?n=1001", 400, "field_range", "n"),
        ];
        for (path, status, code, field) in cases {
            let reply = world.get(path).await;
            assert_eq!(
                (reply.problem(), reply.field().as_str()),
                ((status, code.into()), field),
                "{path}"
            );
        }
        for path in ["", "/attempts", "/logs", "/wait"] {
            let reply = world.get(&format!("/v1/jobs/{zero}{path}")).await;
            assert_eq!(reply.problem(), (404, "job_not_found".into()), "{path}");
        }
        for path in ["/cancel", "/retry"] {
            let reply = world.send("POST", &format!("/v1/jobs/{zero}{path}"), &[], None).await;
            assert_eq!(reply.problem(), (404, "job_not_found".into()), "{path}");
            assert_eq!(reply.field(), "id", "{path}");
        }
        for path in ["/pause", "/resume", "/run-now"] {
            let reply = world
                .send("POST", &format!("/v1/schedules/none{path}"), &[], None)
                .await;
            assert_eq!(reply.problem(), (404, "schedule_not_found".into()), "{path}");
        }
    });
}

#[test]
fn a_body_that_nobody_would_read_is_refused() {
    run(async {
        let world = World::new().await;
        let made = format!("{{\"name\":\"a\",\"every\":\"1h\",\"job\":{{{JOB}}}}}");
        assert_eq!(world.post("/v1/schedules", &made).await.status, 201);
        let key = r#"{"idempotency_key":"k"}"#;
        for path in ["run-now", "pause", "resume"] {
            let path = format!("/v1/schedules/a/{path}");
            check(&world, &path, key, "body_unexpected", "").await;
            let empty = world.post(&path, "{}").await;
            assert!(empty.status < 300, "{path}: {:?}", empty.body);
        }
        let list = world.get("/v1/jobs").await.json();
        assert_eq!(
            list["items"].as_array().unwrap().len(),
            1,
            "the one that {{}} asked for: {list}"
        );
    });
}

#[test]
fn a_refused_request_leaves_its_key_free() {
    run(async {
        let world = World::new().await;
        let key = [("idempotency-key", "k")];
        for wrong in [
            r#""priority":12"#,
            r#""no":1"#,
            r#""at":"2026-13-01T00:00:00Z""#,
            r#""queue":"a b""#,
        ] {
            let body = format!(r#"{{"target":{{"type":"handler","name":"noop"}},{wrong}}}"#);
            let reply = world.send("POST", "/v1/jobs", &key, Some(body.as_bytes())).await;
            assert_eq!(reply.status, 400, "{wrong}: {:?}", reply.body);
        }
        let good = r#"{"target":{"type":"handler","name":"noop"}}"#;
        let reply = world.send("POST", "/v1/jobs", &key, Some(good.as_bytes())).await;
        assert_eq!(reply.status, 201, "nothing of them was kept: {:?}", reply.body);
    });
}
