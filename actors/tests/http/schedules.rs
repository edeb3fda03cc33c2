//! Schedules over HTTP: making, pausing, running, making up, fates, previews. Next: `edits.rs`.

use crate::{Reply, World, run};
use serde_json::{Value, json};

fn schedule(name: &str, rule: &Value) -> String {
    let mut body = json!({ "name": name, "job": { "target": { "type": "handler", "name": "noop" } } });
    for (key, value) in rule.as_object().unwrap() {
        body[key] = value.clone();
    }
    body.to_string()
}

pub(crate) async fn make(world: &World, name: &str, rule: Value) -> Value {
    let reply = world.post("/v1/schedules", &schedule(name, &rule)).await;
    assert_eq!(reply.status, 201, "{:?}", reply.body);
    reply.json()
}

async fn act(world: &World, path: &str) -> Reply {
    world.send("POST", &format!("/v1/schedules/{path}"), &[], None).await
}

#[test]
fn pause_resume_and_delete_are_answered_and_recorded() {
    run(async {
        let world = World::new().await;
        make(&world, "s", json!({ "cron": "0 0 1 1 *" })).await;
        let taken = world
            .post("/v1/schedules", &schedule("s", &json!({ "every": "1s" })))
            .await;
        assert_eq!(
            (taken.problem(), taken.field().as_str()),
            ((409, "schedule_exists".into()), "name")
        );
        let paused = act(&world, "s/pause").await.json();
        assert_eq!(
            (paused["status"].as_str(), paused.get("next")),
            (Some("paused"), None),
            "{paused}"
        );
        assert_eq!(act(&world, "s/resume").await.json()["status"], "active");
        let deleted = world.send("DELETE", "/v1/schedules/s", &[], None).await.json();
        assert_eq!(
            (deleted["deleted"].as_bool(), deleted["name"].as_str()),
            (Some(true), Some("s"))
        );
        assert_eq!(
            world.get("/v1/schedules/s").await.problem(),
            (404, "schedule_not_found".into())
        );
        let edits = world.get("/v1/schedules/s/edits").await.json();
        let kinds: Vec<_> = edits["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|edit| edit["kind"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, ["created", "paused", "resumed", "deleted"]);
        let mut walked = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = world
                .get(&format!("/v1/schedules/s/edits?limit=1{cursor}"))
                .await
                .json();
            walked.extend(page["items"].as_array().unwrap().clone());
            let Some(next) = page["next"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(json!(walked), edits["items"], "one by one the same");
        for life in [String::new(), format!("?incarnation={:048}", 1)] {
            let path = format!("/v1/schedules/never/edits{life}");
            let unknown = world.get(&path).await.problem();
            assert_eq!(unknown, (404, "schedule_not_found".into()), "{path}");
        }
        for odd in ["xyz", "a", ""] {
            let path = format!("/v1/schedules/s/edits?cursor={odd}");
            assert_eq!(
                world.get(&path).await.problem(),
                (400, "cursor_invalid".into()),
                "{odd}"
            );
        }
        let again = make(&world, "s", json!({ "cron": "0 0 1 1 *", "paused": true })).await;
        assert_eq!(
            (again["status"].as_str(), again["version"].as_u64()),
            (Some("paused"), Some(1))
        );
    });
}

#[test]
fn run_now_makes_one_job_for_one_key() {
    run(async {
        let world = World::new().await;
        make(&world, "s", json!({ "cron": "0 0 1 1 *" })).await;
        let ask = async |key: &str| {
            let reply = world
                .send("POST", "/v1/schedules/s/run-now", &[("idempotency-key", key)], None)
                .await;
            let made = reply.json();
            assert_eq!(made["replayed"], reply.status == 200, "{made}");
            let id = made["id"].as_str().unwrap().to_owned();
            assert_eq!(reply.headers["location"], format!("/v1/jobs/{id}").as_str());
            (reply.status, id)
        };
        let (one, same, other) = (ask("a").await, ask("a").await, ask("b").await);
        assert_eq!((one.0, &same), (201, &(200, one.1.clone())));
        assert!(other.0 == 201 && other.1 != one.1, "{other:?}");
        assert_eq!(world.wait(&one.1).await["state"], "succeeded");
    });
}

#[test]
fn f26_a_backfill_under_its_key_is_answered_the_same_and_another_is_refused() {
    run(async {
        let world = World::new().await;
        make(&world, "s", json!({ "every": "1ms", "count": 20 })).await;
        let shown = finished(&world, "s").await;
        let ask = async |key: &str, body: &Value| {
            let headers = [("idempotency-key", key)];
            let path = "/v1/schedules/s/backfill";
            world
                .send("POST", path, &headers, Some(body.to_string().as_bytes()))
                .await
        };
        let body = |cap: u32, dry: bool| {
            json!({
                "from": shown["history_from"], "to": shown["decided_until"], "cap": cap, "dry_run": dry, "rerun": true,
            })
        };
        let first = ask("again", &body(7, false)).await.json();
        assert_eq!(first["count"], 7, "{first}");
        for n in 0..20 {
            let headers = [("idempotency-key", &*format!("other-{n}"))];
            let reply = world.send("POST", "/v1/schedules/s/run-now", &headers, None).await;
            assert_eq!(reply.status, 201);
        }
        assert_eq!(ask("again", &body(7, false)).await.json(), first);
        let refused = (422, "idempotency_key_reused".to_owned());
        assert_eq!(ask("again", &body(8, false)).await.problem(), refused);
        assert_eq!(ask("other-0", &body(7, false)).await.problem(), refused);
        assert_eq!(
            ask("again", &body(7, true)).await.json()["count"],
            7,
            "a look is no request"
        );
        assert_eq!(
            ask(&"k".repeat(257), &body(7, false)).await.problem(),
            (400, "field_length".into())
        );
        let made = world.get("/v1/jobs?limit=1000").await.json();
        let made = made["items"].as_array().unwrap().len();
        assert!(made <= 20 + 20 + 7, "{made}");
    });
}

/// The schedule once nothing is left of it.
async fn finished(world: &World, name: &str) -> Value {
    loop {
        let shown = world.get(&format!("/v1/schedules/{name}")).await.json();
        if shown["status"] == "finished" {
            return shown;
        }
    }
}

#[test]
fn a_fired_schedule_shows_its_fates_without_a_hole() {
    run(async {
        let world = World::new().await;
        make(&world, "s", json!({ "every": "1ms", "count": 20 })).await;
        let finished = finished(&world, "s").await;
        assert_eq!(finished["fired"], 20, "{finished}");
        let fates = world.get("/v1/schedules/s/fates").await.json();
        let items = fates["items"].as_array().unwrap();
        let fired: u64 = items
            .iter()
            .filter(|item| item["fate"].as_str().unwrap().starts_with("fired"))
            .map(|item| item["count"].as_u64().unwrap())
            .sum();
        assert_eq!(fired, 20, "{fates}");
        for pair in items.windows(2) {
            assert_eq!(pair[0]["to"], pair[1]["from"], "{fates}");
        }
        let life = finished["incarnation"].as_str().unwrap();
        let again = world
            .get(&format!("/v1/schedules/s/fates?incarnation={life}&limit=1"))
            .await
            .json();
        assert_eq!(again["items"][0], items[0]);
    });
}

#[test]
fn fates_are_found_by_time_and_kind_and_say_how_late_and_the_schedule_counts_them() {
    run(async {
        let world = World::new().await;
        make(&world, "s", json!({ "every": "5ms" })).await;
        let shown = async || world.get("/v1/schedules/s").await.json();
        let fired_beyond = async |count: u64| while shown().await["fired"].as_u64().unwrap() <= count {};
        fired_beyond(1).await;
        while shown().await["counts"].get("paused").is_none() {
            act(&world, "s/pause").await;
            act(&world, "s/resume").await;
        }
        fired_beyond(shown().await["fired"].as_u64().unwrap() + 1).await;
        act(&world, "s/pause").await;
        let counts = shown().await["counts"].clone();
        let fates = async |filter: &str| {
            let page = world
                .get(&format!("/v1/schedules/s/fates?limit=1000{filter}"))
                .await
                .json();
            page["items"].as_array().unwrap().clone()
        };
        let all = fates("").await;
        assert!(all.len() > 2, "{all:?}");
        let mut left = all.len();
        for (fate, count) in counts.as_object().unwrap() {
            let of_it = fates(&format!("&fate={fate}")).await;
            assert!(of_it.iter().all(|item| item["fate"] == **fate), "{of_it:?}");
            let sum: u64 = of_it.iter().map(|item| item["count"].as_u64().unwrap()).sum();
            assert_eq!(Some(sum), count.as_u64(), "{fate}: {of_it:?}");
            left -= of_it.len();
        }
        assert_eq!((left, fates("&fate=excluded").await.len()), (0, 0));
        for item in &all {
            let late = item.get("lateness").and_then(Value::as_object);
            let sum: Option<u64> = late.map(|late| late.values().map(|count| count.as_u64().unwrap()).sum());
            let is_fired = item["fate"].as_str().unwrap().starts_with("fired");
            assert_eq!(sum, is_fired.then(|| item["count"].as_u64().unwrap()), "{item}");
            assert_eq!(item["lateness_max"].is_string(), is_fired, "{item}");
        }
        let (first, last) = (&all[0], &all[all.len() - 1]);
        let text = |item: &Value, key: &str| item[key].as_str().unwrap().to_owned();
        assert_eq!(
            fates(&format!("&to={}", text(first, "to"))).await,
            std::slice::from_ref(first)
        );
        assert_eq!(
            fates(&format!("&from={}", text(last, "from"))).await,
            std::slice::from_ref(last)
        );
        let within = format!("&from={}&to={}", text(first, "to"), text(last, "from"));
        assert_eq!(fates(&within).await, all[1..all.len() - 1]);
    });
}

#[test]
fn a_backfill_leaves_out_what_fired_and_a_rerun_keeps_to_its_cap() {
    run(async {
        let world = World::new().await;
        make(&world, "s", json!({ "every": "1ms", "count": 20 })).await;
        let shown = finished(&world, "s").await;
        let ask = async |dry: bool, rerun: bool| {
            let body = json!({
                "from": shown["history_from"], "to": shown["decided_until"], "cap": 4, "dry_run": dry, "rerun": rerun,
            });
            let reply = world.post("/v1/schedules/s/backfill", &body.to_string()).await;
            assert_eq!(reply.status, 200, "{:?}", reply.body);
            reply.json()
        };
        let plain = ask(true, false).await;
        assert_eq!(
            (plain["count"].as_u64(), plain["already_fired"].as_u64()),
            (Some(0), Some(20)),
            "{plain}"
        );
        let preview = ask(true, true).await;
        assert_eq!(
            (preview["count"].as_u64(), preview["over_cap"].as_u64()),
            (Some(4), Some(16)),
            "{preview}"
        );
        assert_eq!(preview["nominal_at"].as_array().unwrap().len(), 4, "{preview}");
        let made = ask(false, true).await;
        assert_eq!(
            (made["dry_run"].as_bool(), made["count"].as_u64()),
            (Some(false), Some(4)),
            "{made}"
        );
        let swapped = r#"{"from":"2026-01-02T00:00:00Z","to":"2026-01-01T00:00:00Z"}"#;
        assert_eq!(
            world.post("/v1/schedules/s/backfill", swapped).await.problem(),
            (400, "range_empty".into())
        );
        let future = r#"{"from":"2026-01-02T00:00:00Z","to":"2999-01-01T00:00:00Z"}"#;
        assert_eq!(world.post("/v1/schedules/s/backfill", future).await.problem().0, 400);
    });
}

#[test]
fn a_local_time_is_one_instant_by_the_policies_of_its_schedule() {
    run(async {
        let world = World::new().await;
        let shown = async |rule: &str| {
            let body = format!("{{{rule},\"tz\":\"Europe/Berlin\",\"after\":\"2026-01-01T00:00:00Z\"}}");
            let shown = world.post("/v1/preview", &body).await.json();
            let items = shown["items"].as_array().unwrap_or_else(|| panic!("{shown}")).clone();
            assert_eq!(items.len(), 1, "{shown}");
            (
                items[0]["at"].as_str().unwrap().to_owned(),
                items[0]["local"].as_str().unwrap().to_owned(),
            )
        };
        for (rule, at, local) in [
            (
                r#""at_local":"2026-07-01T02:30:00""#,
                "2026-07-01T00:30:00Z",
                "2026-07-01T02:30:00+02:00",
            ),
            (
                r#""at_local":"2026-03-29T02:30:00""#,
                "2026-03-29T01:00:00Z",
                "2026-03-29T03:00:00+02:00",
            ),
            (
                r#""at_local":"2026-10-25T02:30:00""#,
                "2026-10-25T00:30:00Z",
                "2026-10-25T02:30:00+02:00",
            ),
            (
                r#""at_local":"2026-10-25T02:30:00","overlap":"second""#,
                "2026-10-25T01:30:00Z",
                "2026-10-25T02:30:00+01:00",
            ),
        ] {
            assert_eq!(shown(rule).await, (at.to_owned(), local.to_owned()), "{rule}");
        }
    });
}

#[test]
fn previews_show_instants_in_the_zone_of_the_rule() {
    run(async {
        let world = World::new().await;
        let body = r#"{"cron":"30 2 * * *","tz":"Europe/Berlin","after":"2026-03-28T00:00:00Z","n":3}"#;
        let shown = world.post("/v1/preview", body).await.json();
        let local: Vec<_> = shown["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["local"].as_str().unwrap())
            .collect();
        assert_eq!(
            local,
            [
                "2026-03-28T02:30:00+01:00",
                "2026-03-29T03:00:00+02:00",
                "2026-03-30T02:30:00+02:00"
            ]
        );
        let ends = r#"{"at":"2030-01-01T00:00:00Z","after":"2026-03-28T00:00:00Z"}"#;
        let shown = world.post("/v1/preview", ends).await.json();
        assert_eq!(
            (shown["ends"].as_bool(), shown["items"].as_array().unwrap().len()),
            (Some(true), 1)
        );
        make(&world, "s", json!({ "cron": "0 0 1 1 *", "exclude": ["2030-01-01"] })).await;
        let shown = world
            .get("/v1/schedules/s/preview?after=2029-06-01T00:00:00%2B02:00&n=1")
            .await
            .json();
        assert_eq!(shown["items"][0]["at"], "2031-01-01T00:00:00Z");
    });
}

#[test]
fn schedules_are_listed_page_by_page() {
    run(async {
        let world = World::new().await;
        for n in 0..7 {
            make(&world, &format!("s{n}"), json!({ "cron": "0 0 1 1 *" })).await;
        }
        let (mut names, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = world.get(&format!("/v1/schedules?limit=3{cursor}")).await.json();
            names.extend(
                page["items"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|item| item["name"].as_str().unwrap().to_owned()),
            );
            match page.get("next").and_then(Value::as_str) {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        names.sort();
        assert_eq!(names, ["s0", "s1", "s2", "s3", "s4", "s5", "s6"]);
    });
}
