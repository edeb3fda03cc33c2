//! Chapters about a schedule: made, fired, paused, resumed, edited, run by hand, made up, deleted, made anew.

use super::World;
use crate::pace::until_true;
use serde_json::{Value, json};

fn read(world: &mut World) -> Value {
    world.api.get("/v1/schedules/heart").expect(200)
}

fn fates(world: &mut World) -> Vec<Value> {
    let list = world.api.get("/v1/schedules/heart/fates?limit=1000").expect(200);
    list["items"].as_array().unwrap().clone()
}

/// Stretches of fates leave no hole from the beginning to what is decided.
fn assert_tiled(world: &mut World) {
    let (fates, facts) = (fates(world), read(world));
    assert_eq!(fates[0]["from"], facts["created_at"], "{fates:#?}");
    for pair in fates.windows(2) {
        assert_eq!(pair[0]["to"], pair[1]["from"], "{fates:#?}");
    }
}

fn until_fired(world: &mut World, count: u64) {
    until_true("fires", || read(world)["fired"].as_u64().unwrap() >= count);
}

fn jobs(world: &mut World) -> usize {
    let list = world.api.get("/v1/jobs?schedule=heart&limit=1000").expect(200);
    list["items"].as_array().unwrap().len()
}

pub fn a_schedule_lives(world: &mut World) {
    let job = world.calls("/beat");
    let body = json!({"name": "heart", "every": "100ms", "job": job});
    let made = world.api.post("/v1/schedules", &body).expect(201);
    assert_eq!(
        (&made["status"], &made["version"]),
        (&json!("active"), &json!(1)),
        "{made}"
    );
    assert_eq!(world.api.post("/v1/schedules", &body).status, 409);
    until_fired(world, 5);

    let paused = world.api.act("/v1/schedules/heart/pause").expect(200);
    assert_eq!(paused["status"], "paused", "{paused}");
    let at_pause = paused["fired"].as_u64().unwrap();
    let ticks = json!({"name": "other", "every": "100ms", "job": {"target": {"type": "handler", "name": "noop"}}});
    world.api.post("/v1/schedules", &ticks).expect(201);
    until_true("time that passes", || {
        world.api.get("/v1/schedules/other").expect(200)["fired"].as_u64() >= Some(5)
    });
    world.api.must("DELETE", "/v1/schedules/other", &[], None);
    assert_eq!(read(world)["fired"], at_pause, "nothing fires in a pause");
    world.api.act("/v1/schedules/heart/resume").expect(200);
    until_fired(world, at_pause + 3);
    let skipped = fates(world).iter().any(|fate| fate["fate"] == "paused");
    assert!(skipped, "what fell in the pause has its fate");
    assert_tiled(world);
}

/// The occurrences that fell in the pause are made up, once.
pub fn a_pause_is_made_up(world: &mut World) {
    let pause = fates(world).into_iter().find(|fate| fate["fate"] == "paused").unwrap();
    let missed = pause["count"].as_u64().unwrap();
    let range = |dry_run: bool| json!({"from": pause["from"], "to": pause["to"], "dry_run": dry_run});
    let shown = world.api.post("/v1/schedules/heart/backfill", &range(true)).expect(200);
    assert_eq!(
        (&shown["count"], shown["nominal_at"].as_array().unwrap().len() as u64),
        (&json!(missed), missed),
        "{shown}"
    );
    let causes = |world: &mut World| {
        let list = world.api.get("/v1/jobs?schedule=heart&limit=1000").expect(200);
        let made = list["items"].as_array().unwrap().iter();
        made.filter(|job| job["occurrence"]["cause"] == "backfill").count() as u64
    };
    assert_eq!(causes(world), 0, "a dry run makes nothing");
    let made = world
        .api
        .post("/v1/schedules/heart/backfill", &range(false))
        .expect(200);
    assert_eq!(made["count"], missed, "{made}");
    until_true("the jobs of the backfill", || causes(world) == missed);
    until_true("the end of the backlog", || read(world)["backlogs"].is_null());
    let again = world
        .api
        .post("/v1/schedules/heart/backfill", &range(false))
        .expect(200);
    assert_eq!(
        (&again["count"], &again["already_fired"]),
        (&json!(0), &json!(missed)),
        "{again}"
    );
    let left = fates(world).into_iter().filter(|fate| fate["fate"] == "paused");
    assert_eq!(
        left.map(|fate| fate["count"].as_u64().unwrap()).sum::<u64>(),
        0,
        "nothing is left of the pause"
    );
    assert_tiled(world);
}

/// Edited only by who has seen what is edited, after a look at what would change.
pub fn a_schedule_is_edited(world: &mut World) {
    let job = world.calls("/beat");
    let mut edit = json!({"cron": ["0 0 1 1 *"], "tz": "Europe/Berlin", "job": job});
    let read = world.api.must("GET", "/v1/schedules/heart", &[], None).expect(200);
    let life = read["incarnation"].as_str().unwrap();
    let (stale, seen) = (format!("\"7-{life}\""), format!("\"1-{life}\""));
    let stale = world
        .api
        .must("PUT", "/v1/schedules/heart", &[("if-match", &stale)], Some(&edit));
    assert_eq!(stale.status, 412, "{}", stale.body);
    let path = "/v1/schedules/heart?dry_run=true";
    let dry = world
        .api
        .must("PUT", path, &[("if-match", &seen)], Some(&edit))
        .expect(200);
    assert!(
        dry["before"].as_array().unwrap().len() > 1 && dry["after"][0].as_str().unwrap().contains("-12-31T23:00:00"),
        "{dry}"
    );
    let edited = world
        .api
        .must("PUT", "/v1/schedules/heart", &[("if-match", &seen)], Some(&edit))
        .expect(200);
    assert_eq!(edited["version"], 2, "{edited}");
    assert_tiled(world);
    edit["cron"] = json!(["30 2 31 2 *"]);
    let never = world
        .api
        .must("PUT", "/v1/schedules/heart", &[("if-match", "*")], Some(&edit));
    assert_eq!(
        (never.status, never.body["field"].as_str()),
        (400, Some("cron[0].day-of-month")),
        "{}",
        never.body
    );
}

pub fn a_schedule_is_run_by_hand(world: &mut World) {
    let made = jobs(world);
    let keyed = [("idempotency-key", "by-hand")];
    let ran = world
        .api
        .must("POST", "/v1/schedules/heart/run-now", &keyed, None)
        .expect(201);
    let again = world.api.must("POST", "/v1/schedules/heart/run-now", &keyed, None);
    assert_eq!(again.body["id"], ran["id"], "the same request: {}", again.body);
    let id = ran["id"].as_str().unwrap().to_owned();
    let job = world.wait(&id);
    assert_eq!(
        (&job["state"], &job["occurrence"]["cause"]),
        (&json!("succeeded"), &json!("run_now")),
        "{job}"
    );
    assert_eq!(jobs(world), made + 1);
}

pub fn a_schedule_is_deleted_and_made_anew(world: &mut World) {
    let old = read(world)["incarnation"].clone();
    let gone = world.api.must("DELETE", "/v1/schedules/heart", &[], None);
    assert!(gone.status == 200 || gone.status == 204, "{}", gone.body);
    assert_eq!(world.api.get("/v1/schedules/heart").status, 404);
    let kept = world
        .api
        .get(&format!(
            "/v1/schedules/heart/fates?incarnation={}",
            old.as_str().unwrap()
        ))
        .expect(200);
    assert!(!kept["items"].as_array().unwrap().is_empty(), "its history stays");
    let body = json!({"name": "heart", "every": "1h", "job": world.calls("/beat")});
    let anew = world.api.post("/v1/schedules", &body).expect(201);
    assert_ne!(anew["incarnation"], old);
    assert_eq!(
        (&anew["version"], &anew["fired"]),
        (&json!(1), &json!(0)),
        "a history of its own: {anew}"
    );
}
