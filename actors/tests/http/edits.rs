//! Editing schedules over HTTP: If-Match, what is sent back, secrets, the fate of the planned fire.

use crate::schedules::make;
use crate::{Reply, World, run};
use fencepost::gateway::Gateway as _;
use fencepost_core::name::Name;
use fencepost_core::target::Target;
use serde_json::{Value, json};

fn etag_of(reply: &Reply) -> String {
    reply.headers["etag"].to_str().unwrap().to_owned()
}

/// The target's secret as it is stored.
async fn stored_secret(world: &World, name: &str) -> String {
    let name = (Name::new("default").unwrap(), Name::new(name).unwrap());
    let facts = world.node.gateway.schedule(name).await.unwrap().unwrap();
    match &facts.view.definition.spec.job.target {
        Target::Http(http) => http.headers[0].1.clone(),
        Target::Command(command) => command.env[0].1.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_definition_that_was_read_can_be_sent_back_and_stays_the_same() {
    run(async {
        let world = World::new().await;
        let rules = [
            json!({ "cron": ["0 2 * * *", "30 3 * * mon"], "tz": "Europe/Berlin", "gap": "skip", "overlap": "both" }),
            json!({ "cron": "H H(0-3) * * *", "misfire": "all", "catch_up": { "cap": 5, "rate": 2 } }),
            json!({ "every": "90s", "anchor": "2026-01-01T00:00:00.250Z", "jitter": "10s", "grace": "1h" }),
            json!({ "at": "2036-01-01T00:00:00Z", "misfire": "skip", "tolerance": "5s" }),
            json!({ "at_local": "2036-03-30T02:30:00", "tz": "Europe/Berlin", "misfire": "coalesce" }),
            json!({ "cron": "@daily", "starts_at": "2030-01-01T00:00:00Z", "ends_at": "2031-01-01T00:00:00Z", "count": 3,
                "exclude": ["2030-12-24..2030-12-26", "sun"] }),
        ];
        for (at, rule) in rules.into_iter().enumerate() {
            let name = format!("s{at}");
            let made = make(&world, &name, rule).await;
            let path = format!("/v1/schedules/{name}");
            let read = world.get(&path).await;
            let etag = etag_of(&read);
            assert!(etag.starts_with("\"1-"), "{etag}");
            let definition = read.json()["definition"].clone();
            assert_eq!(definition, made["definition"]);
            let body = definition.to_string();
            let edited = world
                .send("PUT", &path, &[("if-match", etag.as_str())], Some(body.as_bytes()))
                .await;
            assert_eq!(edited.status, 200, "{definition}: {:?}", edited.body);
            assert_eq!(edited.json()["definition"], definition);
        }
    });
}

#[test]
fn a_mask_sent_back_keeps_the_secret_only_for_the_same_address_or_command() {
    run(async {
        let world = World::new().await;
        let http = json!({ "type": "http", "url": "http://a.example/", "headers": { "x-api-key": "s3cr3t" } });
        let command = json!({ "type": "command", "argv": ["true"], "env": { "API_TOKEN": "s3cr3t" } });
        let around = json!({ "API_TOKEN": "********", "PATH": "/tmp" });
        let moved = [
            ("h", &http, "url", json!("http://b.example/")),
            ("c", &command, "argv", json!(["false"])),
            ("e", &command, "env", around),
            (
                "t",
                &command,
                "env",
                json!({ "API_TOKEN": "********", "OTHER_TOKEN": "x" }),
            ),
            ("p", &command, "payload", json!("echo $API_TOKEN")),
        ];
        for (name, target, part, elsewhere) in moved {
            make(&world, name, json!({ "every": "1h", "job": { "target": target } })).await;
            let path = format!("/v1/schedules/{name}");
            let read = world.get(&path).await;
            let etag = etag_of(&read);
            let mut definition = read.json()["definition"].clone();
            assert!(definition.to_string().contains("********"), "{definition}");
            definition["every"] = "2h".into();
            let put = async |version: &str, body: &Value| {
                let body = body.to_string();
                world
                    .send("PUT", &path, &[("if-match", version)], Some(body.as_bytes()))
                    .await
            };
            assert_eq!(put(&etag, &definition).await.status, 200);
            assert_eq!(stored_secret(&world, name).await, "s3cr3t");
            assert_eq!(put("*", &definition).await.json()["version"], 3);
            assert_eq!(stored_secret(&world, name).await, "s3cr3t");
            let stale = put(&etag, &definition).await;
            assert_eq!(
                (stale.status, stale.json()["code"].clone()),
                (412, "version_differs".into())
            );
            match part {
                "payload" => definition["job"][part] = elsewhere,
                _ => definition["job"]["target"][part] = elsewhere,
            }
            let refused = put("*", &definition).await;
            assert_eq!(
                (refused.status, refused.json()["code"].clone()),
                (400, "secret_masked".into())
            );
            assert_eq!(stored_secret(&world, name).await, "s3cr3t");
        }
    });
}

#[test]
fn an_edit_needs_the_version_that_was_read() {
    run(async {
        let world = World::new().await;
        make(&world, "s", json!({ "every": "1h" })).await;
        let etag = etag_of(&world.get("/v1/schedules/s").await);
        let body = r#"{"every":"2h","job":{"target":{"type":"handler","name":"noop"}}}"#;
        let put = async |headers: &[(&str, &str)]| {
            world
                .send("PUT", "/v1/schedules/s", headers, Some(body.as_bytes()))
                .await
        };
        let reply = put(&[]).await;
        assert_eq!(
            (reply.problem(), reply.field().as_str()),
            ((428, "if_match_missing".into()), "If-Match")
        );
        for wrong in ["1", "\"1\"", "\"1-\"", "\"-\"", "\"1-00\"", etag.trim_matches('"')] {
            assert_eq!(
                put(&[("if-match", wrong)]).await.problem(),
                (400, "if_match_invalid".into()),
                "{wrong}"
            );
        }
        let edited = put(&[("if-match", &etag)]).await;
        assert_eq!((edited.status, etag_of(&edited)), (200, etag.replacen('1', "2", 1)));
        let late = put(&[("if-match", &etag)]).await;
        assert_eq!((late.problem().0, late.field().as_str()), (412, "If-Match"));
        assert_eq!(put(&[("if-match", "*")]).await.json()["version"], 3);
        let none = world
            .send("PUT", "/v1/schedules/none", &[("if-match", "*")], Some(body.as_bytes()))
            .await;
        assert_eq!(none.problem(), (404, "schedule_not_found".into()));
    });
}

/// Each life of a name counts its versions from one.
#[test]
fn what_was_read_before_a_schedule_was_made_anew_edits_nothing() {
    run(async {
        let world = World::new().await;
        make(&world, "s", json!({ "every": "1h" })).await;
        let before = etag_of(&world.get("/v1/schedules/s").await);
        assert_eq!(world.send("DELETE", "/v1/schedules/s", &[], None).await.status, 200);
        make(&world, "s", json!({ "every": "3h" })).await;
        let body = r#"{"every":"2h","job":{"target":{"type":"handler","name":"noop"}}}"#;
        for path in ["/v1/schedules/s", "/v1/schedules/s?dry_run=true"] {
            let stale = world
                .send("PUT", path, &[("if-match", &before)], Some(body.as_bytes()))
                .await;
            assert_eq!(stale.problem(), (412, "version_differs".into()));
            assert!(
                stale.json()["detail"].as_str().unwrap().contains("deleted"),
                "{:?}",
                stale.body
            );
        }
        let read = world.get("/v1/schedules/s").await;
        assert_eq!(read.json()["definition"]["every"], "3h");
        let fresh = [("if-match", &*etag_of(&read))];
        assert_eq!(
            world
                .send("PUT", "/v1/schedules/s", &fresh, Some(body.as_bytes()))
                .await
                .status,
            200
        );
    });
}

#[test]
fn a_dry_run_of_an_edit_shows_fires_and_changes_nothing() {
    run(async {
        let world = World::new().await;
        make(&world, "s", json!({ "cron": "0 0 1 1 *" })).await;
        let body = r#"{"cron":"0 0 1 7 *","job":{"target":{"type":"handler","name":"noop"}}}"#;
        let path = "/v1/schedules/s?dry_run=true&pending=keep";
        let etag = etag_of(&world.get("/v1/schedules/s").await);
        let reply = world
            .send("PUT", path, &[("if-match", &etag)], Some(body.as_bytes()))
            .await
            .json();
        assert_eq!(reply["dry_run"], true, "{reply}");
        assert!(reply["before"][0].as_str().unwrap().contains("-01-01T"), "{reply}");
        let after: Vec<_> = reply["after"]
            .as_array()
            .unwrap()
            .iter()
            .map(Value::to_string)
            .collect();
        assert!(after.iter().any(|at| at.contains("-07-01T")), "{reply}");
        assert_eq!(world.get("/v1/schedules/s").await.json()["version"], 1);
    });
}

#[test]
fn an_edit_says_what_becomes_of_the_planned_fire() {
    run(async {
        let world = World::new().await;
        for word in ["keep", "retime", "drop"] {
            make(&world, word, json!({ "cron": "0 0 1 1 *", "jitter": "1h" })).await;
            let body = r#"{"cron":"0 0 1 7 *","job":{"target":{"type":"handler","name":"noop"}}}"#;
            let etag = etag_of(&world.get(&format!("/v1/schedules/{word}")).await);
            let put = async |query: &str| {
                let path = format!("/v1/schedules/{word}?{query}");
                let headers = [("if-match", &*etag)];
                world.send("PUT", &path, &headers, Some(body.as_bytes())).await
            };
            let wrong = put("pending=lose").await;
            assert_eq!((wrong.problem().0, wrong.field().as_str()), (400, "pending"));
            let look = put(&format!("dry_run=true&pending={word}")).await.json();
            let after = look["after"].as_array().unwrap();
            assert_eq!(look["pending"], word, "{look}");
            assert_eq!(after.contains(&look["pending_at"]), word == "keep", "{look}");
            let edited = put(&format!("pending={word}")).await;
            assert_eq!(edited.status, 200, "{word}: {:?}", edited.body);
            let edits = world.get(&format!("/v1/schedules/{word}/edits")).await.json();
            let edit = &edits["items"][1];
            assert_eq!(
                (&edit["kind"], &edit["pending"], &edit["pending_at"]),
                (&"edited".into(), &word.into(), &look["pending_at"]),
                "{edits}"
            );
            assert_eq!(edited.json()["next"]["nominal_at"], after[0], "{look}");
        }
    });
}
