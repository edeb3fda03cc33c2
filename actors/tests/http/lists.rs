//! Lists of jobs: pages, cursors and filters.

use crate::{World, run};
use serde_json::{Value, json};
use std::collections::BTreeSet;

async fn fill(world: &World) {
    let job = |n: usize| {
        let queue = if n.is_multiple_of(3) { "third" } else { "rest" };
        let tag = if n.is_multiple_of(2) { "even" } else { "odd" };
        json!({ "target": { "type": "handler", "name": "noop" }, "queue": queue, "tags": [tag], "delay": "1h" })
    };
    let jobs: Vec<_> = (0..60).map(job).collect();
    let reply = world.post("/v1/jobs:batch", &json!({ "jobs": jobs }).to_string()).await;
    assert_eq!(reply.json()["created"], 60);
}

/// What an item of a list is known by.
fn name_of(item: &Value) -> String {
    let named = ["id", "name", "from"].iter().find_map(|key| item[key].as_str());
    named.map_or_else(|| item["attempt"].to_string(), str::to_owned)
}

/// Ids of all pages, and how many pages there were.
async fn walk(world: &World, path: &str) -> (Vec<String>, usize) {
    let (mut ids, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = world.get(&format!("{path}{cursor}")).await.json();
        pages += 1;
        ids.extend(page["items"].as_array().unwrap().iter().map(name_of));
        match page.get("next").and_then(Value::as_str) {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return (ids, pages),
        }
    }
}

#[test]
fn f35_pages_show_every_job_once_in_the_order_of_ids() {
    run(async {
        let world = World::new().await;
        fill(&world).await;
        for limit in [1, 7, 60, 1_000] {
            let (ids, pages) = walk(&world, &format!("/v1/jobs?limit={limit}")).await;
            assert_eq!(ids.len(), 60, "limit {limit}");
            assert!(
                ids.is_sorted() && ids.iter().collect::<BTreeSet<_>>().len() == 60,
                "limit {limit}"
            );
            assert!(pages <= 60_usize.div_ceil(limit) + 1, "limit {limit}: {pages} pages");
        }
    });
}

#[test]
fn f35_filters_judge_each_job_and_pages_go_on_past_those_left_out() {
    run(async {
        let world = World::new().await;
        fill(&world).await;
        let count = async |filter: &str| walk(&world, &format!("/v1/jobs?limit=4&{filter}")).await.0.len();
        assert_eq!(count("queue=third").await, 20);
        assert_eq!(count("queue=third&tag=even").await, 10);
        assert_eq!(count("state=waiting").await, 60);
        assert_eq!(count("state=running,dead").await, 0);
        assert_eq!(count("queue=none").await, 0);
        let page = world.get("/v1/jobs?limit=1").await.json();
        assert!(page["items"][0].get("payload").is_none(), "lists show no payload");
    });
}

#[test]
fn jobs_of_a_schedule_are_found_by_its_name() {
    run(async {
        let world = World::new().await;
        let body = json!({ "name": "s", "every": "1h", "job": { "target": { "type": "handler", "name": "noop" } } });
        assert_eq!(world.post("/v1/schedules", &body.to_string()).await.status, 201);
        let ran = world.send("POST", "/v1/schedules/s/run-now", &[], None).await.json();
        fill(&world).await;
        let (ids, _) = walk(&world, "/v1/jobs?schedule=s").await;
        assert_eq!(ids, [ran["id"].as_str().unwrap()]);
        let job = world.wait(&ids[0]).await;
        assert_eq!(
            (
                job["occurrence"]["schedule"].as_str(),
                job["occurrence"]["cause"].as_str()
            ),
            (Some("s"), Some("run_now"))
        );
        let only_dead = walk(&world, "/v1/jobs?schedule=s&state=dead").await;
        assert_eq!(only_dead.0.len(), 0, "known, and without such a job");
        for list in ["/v1/jobs", "/v1/dead", "/v1/uncertain"] {
            let reply = world.get(&format!("{list}?schedule=typo")).await;
            assert_eq!(reply.problem(), (404, "schedule_not_found".to_owned()), "{list}");
            assert_eq!(reply.field(), "schedule");
        }
        assert_eq!(world.send("DELETE", "/v1/schedules/s", &[], None).await.status, 200);
        assert_eq!(walk(&world, "/v1/jobs?schedule=s").await.0, ids, "jobs outlive it");
    });
}

/// Items of all pages of one each, each of which must be there again in the page of all.
async fn walked_one_by_one(world: &World, path: &str) -> usize {
    let whole = world.get(&format!("{path}limit=1000")).await.json();
    let (mut items, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = world.get(&format!("{path}limit=1{cursor}")).await.json();
        let page_items = page["items"].as_array().unwrap();
        assert!(page_items.len() <= 1, "{page}");
        items.extend(page_items.clone());
        match page.get("next").and_then(Value::as_str) {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(json!(items), whole["items"], "{path}");
    items.len()
}

#[test]
fn lists_by_pages_of_one_are_the_whole_list() {
    run(async {
        let world = World::new().await;
        let of = |handler: &str, more: &str| {
            format!(r#"{{"target":{{"type":"handler","name":"{handler}"}},"retry":{{"attempts":1}}{more}}}"#)
        };
        for _ in 0..3 {
            let dead = world.make(&of("fail", "")).await;
            assert_eq!(world.wait(&dead).await["state"], "dead");
            let unsure = world.make(&of("fail", r#","delivery":"at-most-once""#)).await;
            until_state(&world, &unsure, "uncertain").await;
        }
        for n in 0..3 {
            let body = json!({ "name": format!("s{n}"), "every": "1h", "job": { "target": { "type": "handler", "name": "noop" } } });
            assert_eq!(world.post("/v1/schedules", &body.to_string()).await.status, 201);
        }
        for (how, count) in [("pause", 3), ("resume", 3)] {
            for n in 0..count {
                world
                    .send("POST", &format!("/v1/schedules/s{n}/{how}"), &[], None)
                    .await;
            }
        }
        for (path, count) in [
            ("/v1/jobs?", 6),
            ("/v1/dead?", 3),
            ("/v1/uncertain?", 3),
            ("/v1/schedules?", 3),
            ("/v1/schedules/s1/edits?", 3),
        ] {
            assert_eq!(walked_one_by_one(&world, path).await, count, "{path}");
        }
    });
}

async fn until_state(world: &World, id: &str, state: &str) {
    while world.get(&format!("/v1/jobs/{id}")).await.json()["state"] != state {}
}

#[test]
fn every_list_has_a_cursor_and_a_limit_of_a_thousand() {
    run(async {
        let world = World::new().await;
        let body = json!({ "name": "s", "every": "1h", "job": { "target": { "type": "handler", "name": "noop" } } });
        assert_eq!(world.post("/v1/schedules", &body.to_string()).await.status, 201);
        let id = world.make(r#"{"target":{"type":"handler","name":"noop"}}"#).await;
        world.wait(&id).await;
        let job = format!("/v1/jobs/{id}");
        for path in [
            "/v1/jobs",
            "/v1/dead",
            "/v1/uncertain",
            "/v1/schedules",
            "/v1/schedules/s/fates",
            "/v1/schedules/s/edits",
            "/v1/quarantine",
            &format!("{job}/attempts"),
            &format!("{job}/logs"),
        ] {
            assert_eq!(world.get(&format!("{path}?limit=1000")).await.status, 200, "{path}");
            for (query, field) in [
                ("limit=0", "limit"),
                ("limit=1001", "limit"),
                ("cursor=%20", "cursor"),
                ("no=1", "no"),
            ] {
                let reply = world.get(&format!("{path}?{query}")).await;
                assert_eq!((reply.status, reply.field().as_str()), (400, field), "{path}?{query}");
            }
        }
    });
}

#[test]
fn schedules_are_listed_by_status_target_queue_tag_and_name() {
    run(async {
        let world = World::new().await;
        for n in 0..30 {
            let target = match n % 3 {
                0 => json!({ "type": "handler", "name": "noop" }),
                1 => json!({ "type": "http", "url": "http://127.0.0.1:9999/" }),
                _ => json!({ "type": "command", "argv": ["/bin/true"] }),
            };
            let tag = if n % 2 == 0 { "even" } else { "odd" };
            let job = json!({ "target": target, "tags": [tag], "queue": if n < 10 { "low" } else { "high" } });
            let body = json!({ "name": format!("s{n:02}"), "every": "1h", "job": job, "paused": n == 7 });
            let reply = world.post("/v1/schedules", &body.to_string()).await;
            assert_eq!(reply.status, 201, "{:?}", reply.body);
        }
        let names = async |filter: &str| walk(&world, &format!("/v1/schedules?limit=4{filter}")).await.0;
        let all = names("").await;
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 30, "{all:?}");
        assert_eq!(all.len(), 30);
        assert_eq!(names("&target=http").await.len(), 10);
        assert_eq!(names("&target=http,command").await.len(), 20);
        assert_eq!(names("&status=paused").await, ["s07"]);
        assert_eq!(names("&status=active").await.len(), 29);
        assert_eq!(names("&prefix=s1").await.len(), 10);
        assert_eq!(names("&prefix=s1&tag=even&queue=high").await.len(), 5);
        assert_eq!(names("&queue=none").await.len(), 0);
        for (query, field) in [
            ("status=gone", "status"),
            ("target=ftp", "target"),
            ("prefix=%2F", "prefix"),
        ] {
            let reply = world.get(&format!("/v1/schedules?{query}")).await;
            assert_eq!((reply.status, reply.field().as_str()), (400, field), "{query}");
        }
        let job = json!({ "target": { "type": "remote", "name": "resize" } });
        let body = json!({ "name": "elsewhere", "every": "1h", "job": job });
        assert_eq!(world.post("/v1/schedules", &body.to_string()).await.status, 201);
        assert_eq!(names("&target=remote").await, ["elsewhere"]);
    });
}

#[test]
fn every_attempt_of_a_job_is_listed_page_by_page() {
    run(async {
        let world = World::new().await;
        let retry = json!({ "attempts": 45, "backoff": "1ms", "cap": "1ms" });
        let body = json!({ "target": { "type": "handler", "name": "fail" }, "retry": retry });
        let id = world.make(&body.to_string()).await;
        assert_eq!(world.wait(&id).await["attempt_count"], 45);
        let all: Vec<String> = (1..=45).map(|no| no.to_string()).collect();
        for limit in [1, 8, 11, 45, 1_000] {
            let walked = walk(&world, &format!("/v1/jobs/{id}/attempts?limit={limit}")).await;
            assert_eq!(walked.0, all, "limit {limit}");
            assert_eq!(walked.1, 45_usize.div_ceil(limit), "limit {limit}");
        }
        assert_eq!(walk(&world, &format!("/v1/jobs/{id}/logs?limit=1000")).await.0, all);
        let failed = walk(
            &world,
            &format!("/v1/jobs/{id}/attempts?limit=9&result=failed,timed_out"),
        )
        .await
        .0;
        assert_eq!(failed.len(), 45);
        assert_eq!(
            walk(&world, &format!("/v1/jobs/{id}/attempts?limit=9&result=succeeded"))
                .await
                .0
                .len(),
            0
        );
    });
}
