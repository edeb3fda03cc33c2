//! Payloads: byte for byte or refused.

use crate::{World, run};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fencepost_core::limits::PAYLOAD_BYTES_MAX;

/// The payload as the answer has it, and the output of an echo.
async fn back(world: &World, payload: &str) -> (String, String) {
    let body = format!("{{\"target\":{{\"type\":\"handler\",\"name\":\"echo\"}},\"payload\":{payload}}}");
    let id = world.make(&body).await;
    let job = world.get(&format!("/v1/jobs/{id}/wait?timeout=60")).await;
    let text = String::from_utf8(job.body.to_vec()).unwrap();
    assert!(text.contains("\"state\":\"succeeded\""), "{text}");
    let at = text.find("\"payload\":").unwrap() + "\"payload\":".len();
    let logs = world.get(&format!("/v1/jobs/{id}/logs")).await.json();
    let output = logs["items"][0]["output"].as_str().unwrap().to_owned();
    (text[at..at + payload.len()].to_owned(), output)
}

#[test]
fn beh_p01_nul_payload() {
    run(async {
        let world = World::new().await;
        let values = [
            r#""\u0000""#,
            r#""a\u0000b""#,
            r#""\ud800""#,
            r#""\udc00\ud800""#,
            r#""😀""#,
            "\"\u{202e}abc\u{2028}\"",
            r#"{"\u0000":1,"\ud800":[{"😀":null}]}"#,
            r#"{"a":1,"a":2}"#,
            "[1.0,1.00,1e400,123456789012345678901234567890,-0]",
            "null",
            r#"{ "blanks" : "stay" }"#,
        ];
        for value in values {
            assert_eq!(back(&world, value).await, (value.to_owned(), value.to_owned()));
        }
        // As an idempotency key: refused with a clear error, or kept.
        let body =
            |key: &str| format!("{{\"target\":{{\"type\":\"handler\",\"name\":\"noop\"}},\"idempotency_key\":{key}}}");
        assert_eq!(
            world.post("/v1/jobs", &body(r#""a\u0000""#)).await.problem().1,
            "field_control_character"
        );
        assert_eq!(
            world.post("/v1/jobs", &body(r#""\ud800""#)).await.problem().1,
            "json_malformed"
        );
        let id = world.make(&body("\"😀\u{202e}\"")).await;
        assert_eq!(world.wait(&id).await["idempotency_key"], "😀\u{202e}");
    });
}

#[test]
fn beh_p03_payload_limit() {
    run(async {
        let world = World::new().await;
        let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
        let job =
            |payload: &str| format!("{{\"target\":{{\"type\":\"handler\",\"name\":\"noop\"}},\"payload\":{payload}}}");
        let fits = text(PAYLOAD_BYTES_MAX);
        let id = world.make(&job(&fits)).await;
        let read = world.get(&format!("/v1/jobs/{id}/wait?timeout=60")).await;
        let shown = String::from_utf8(read.body.to_vec()).unwrap();
        assert!(shown.contains(&fits) && shown.contains("\"state\":\"succeeded\""));
        let over = text(PAYLOAD_BYTES_MAX + 1);
        let reply = world.post("/v1/jobs", &job(&over)).await;
        assert_eq!(
            (reply.problem(), reply.field().as_str()),
            ((413, "payload_too_large".into()), "payload")
        );
        assert!(
            reply.json()["detail"]
                .as_str()
                .unwrap()
                .contains(&PAYLOAD_BYTES_MAX.to_string())
        );
        let batch = world
            .post(
                "/v1/jobs:batch",
                &format!("{{\"jobs\":[{},{}]}}", job(&fits), job(&over)),
            )
            .await
            .json();
        assert_eq!(
            (batch["created"].as_u64(), batch["refused"].as_u64()),
            (Some(1), Some(1))
        );
        assert_eq!(batch["items"][1]["problem"]["field"], "jobs[1].payload");
        let bytes = vec![0xff; PAYLOAD_BYTES_MAX + 1];
        let coded = format!(
            "{{\"target\":{{\"type\":\"handler\",\"name\":\"noop\"}},\"payload_base64\":\"{}\"}}",
            STANDARD.encode(bytes)
        );
        assert_eq!(
            world.post("/v1/jobs", &coded).await.problem(),
            (413, "payload_too_large".into())
        );
    });
}

#[test]
fn bytes_come_back_as_base64() {
    run(async {
        let world = World::new().await;
        let coded = STANDARD.encode([0, 255, 10, 128]);
        let id = world
            .make(&format!(
                "{{\"target\":{{\"type\":\"handler\",\"name\":\"echo\"}},\"payload_base64\":\"{coded}\"}}"
            ))
            .await;
        let job = world.wait(&id).await;
        assert_eq!(
            (job["payload_base64"].as_str(), job.get("payload")),
            (Some(coded.as_str()), None)
        );
        let logs = world.get(&format!("/v1/jobs/{id}/logs")).await.json();
        assert_eq!(logs["items"][0]["output_base64"], coded.as_str());
    });
}

#[test]
fn beh_p07_far_future_over_http() {
    run(async {
        let world = World::new().await;
        for at in ["2036-11-29T00:00:00Z", "9999-12-31T23:59:59Z"] {
            let id = world
                .make(&format!(
                    "{{\"target\":{{\"type\":\"handler\",\"name\":\"noop\"}},\"at\":\"{at}\"}}"
                ))
                .await;
            let job = world.get(&format!("/v1/jobs/{id}")).await.json();
            assert_eq!(
                (job["state"].as_str(), job["due_at"].as_str()),
                (Some("waiting"), Some(at))
            );
        }
        let never = r#"{"target":{"type":"handler","name":"noop"},"delay":"18446744073709551615ms"}"#;
        assert_eq!(world.post("/v1/jobs", never).await.problem().0, 400);
        let past = r#"{"target":{"type":"handler","name":"noop"},"at":"2020-01-01T00:00:00Z","grace":"1h"}"#;
        let reply = world.post("/v1/jobs", past).await;
        assert_eq!(
            (reply.problem(), reply.field().as_str()),
            ((400, "too_late".into()), "at"),
            "due longer ago than its grace"
        );
        for beyond in ["10000-01-01T00:00:00Z", "+10000-01-01T00:00:00Z"] {
            let body = format!("{{\"target\":{{\"type\":\"handler\",\"name\":\"noop\"}},\"at\":\"{beyond}\"}}");
            let reply = world.post("/v1/jobs", &body).await;
            assert_eq!(
                (reply.problem(), reply.field().as_str()),
                ((400, "instant_invalid".into()), "at"),
                "{beyond}"
            );
        }
    });
}

#[test]
fn secrets_are_masked_in_answers() {
    run(async {
        let world = World::new().await;
        let body = r#"{"target":{"type":"http","url":"http://127.0.0.1:8080/","headers":{"authorization":"Bearer s3cr3t","x-plain":"seen"}},"delay":"1h"}"#;
        let id = world.make(body).await;
        for path in [format!("/v1/jobs/{id}"), "/v1/jobs".to_owned()] {
            let reply = world.get(&path).await;
            let text = String::from_utf8(reply.body.to_vec()).unwrap();
            assert!(
                !text.contains("s3cr3t") && text.contains("********") && text.contains("seen"),
                "{text}"
            );
        }
    });
}

#[test]
fn secrets_of_a_schedule_are_masked_in_every_answer_about_it() {
    run(async {
        let world = World::new().await;
        let job =
            r#""job":{"target":{"type":"command","argv":["true"],"env":{"DB_PASSWORD":"s3cr3t","PLAIN":"seen"}}}"#;
        let made = world
            .post("/v1/schedules", &format!("{{\"name\":\"s\",\"every\":\"1h\",{job}}}"))
            .await;
        assert_eq!(made.status, 201, "{:?}", made.body);
        let ran = world.send("POST", "/v1/schedules/s/run-now", &[], None).await;
        let id = ran.json()["id"].as_str().unwrap().to_owned();
        let version = [("if-match", "*")];
        let body = format!("{{\"every\":\"2h\",{job}}}");
        let edited = world
            .send("PUT", "/v1/schedules/s", &version, Some(body.as_bytes()))
            .await;
        assert_eq!(edited.status, 200, "{:?}", edited.body);
        let mut answers = vec![made, ran, edited];
        for path in ["", "/s", "/s/edits", "/s/fates", "/s/preview"] {
            answers.push(world.get(&format!("/v1/schedules{path}")).await);
        }
        for path in ["", "/attempts", "/logs"] {
            answers.push(world.get(&format!("/v1/jobs/{id}{path}")).await);
        }
        let texts = answers
            .iter()
            .map(|reply| String::from_utf8(reply.body.to_vec()).unwrap());
        let mut masked = 0;
        for text in texts {
            assert!(!text.contains("s3cr3t"), "{text}");
            masked += usize::from(text.contains("********") && text.contains("seen"));
        }
        assert!(masked >= 5, "made, edited, read, listed and its job: {masked}");
    });
}

#[test]
fn a_payload_that_a_call_would_not_send_is_refused() {
    run(async {
        let world = World::new().await;
        for (method, status) in [("GET", 400), ("HEAD", 400), ("DELETE", 201), ("POST", 201)] {
            let target = format!(r#"{{"type":"http","url":"http://a.example/","method":"{method}"}}"#);
            let made = world
                .post("/v1/jobs", &format!(r#"{{"target":{target},"payload":null}}"#))
                .await;
            assert_eq!(made.status, status, "{method}: {:?}", made.body);
            if status == 400 {
                let told = (made.problem().1, made.field());
                assert_eq!(told, ("payload_unsent".into(), "payload".into()));
                let bare = world.post("/v1/jobs", &format!(r#"{{"target":{target}}}"#)).await;
                assert_eq!(bare.status, 201, "{method}: {:?}", bare.body);
            }
        }
    });
}
