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

/// Ids of all pages, and how many pages there were.
async fn walk(world: &World, path: &str) -> (Vec<String>, usize) {
    let (mut ids, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = world.get(&format!("{path}{cursor}")).await.json();
        pages += 1;
        ids.extend(
            page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|job| job["id"].as_str().unwrap().to_owned()),
        );
        match page.get("next").and_then(Value::as_str) {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return (ids, pages),
        }
    }
}

#[test]
fn pages_show_every_job_once_in_the_order_of_ids() {
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
fn filters_judge_each_job_and_pages_go_on_past_those_left_out() {
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
        assert_eq!(walk(&world, "/v1/jobs?schedule=other").await.0.len(), 0);
    });
}
