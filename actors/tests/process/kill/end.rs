//! The end of a run: everything finishes, then the server's lists are read once.
//!
//! Owns: the reading. Must never: judge. Next: `checker.rs`.

use super::history::{End, EndFate, EndJob, EndSchedule};
use super::load::{SCHEDULES, micros};
use crate::api::Api;
use crate::pace::until_true;
use serde_json::Value;

/// Stops the schedules, waits until nothing is left to do, and reads the lists.
pub fn settle(api: &mut Api) -> End {
    let asked_at = crate::pace::wall_micros();
    for (name, _, _) in SCHEDULES {
        api.act(&format!("/v1/schedules/{name}/pause")).expect(200);
    }
    until_true("the end of every backlog", || {
        SCHEDULES
            .iter()
            .all(|(name, _, _)| api.get(&format!("/v1/schedules/{name}")).expect(200)["backlogs"].is_null())
    });
    until_true("the end of every job", || {
        // A page may be empty and still have a next one: the filter looks at a bounded number of rows.
        pages(api, "/v1/jobs?state=waiting,ready,running,uncertain&limit=1000").is_empty()
    });
    let jobs = pages(api, "/v1/jobs?limit=1000").iter().map(job).collect();
    let schedules = SCHEDULES.iter();
    let schedules = schedules.map(|(name, _, every)| schedule(api, name, *every, asked_at));
    End {
        schedules: schedules.collect(),
        jobs,
    }
}

fn pages(api: &mut Api, path: &str) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = api.get(&format!("{path}{cursor}")).expect(200);
        all.extend(page["items"].as_array().unwrap().iter().cloned());
        let Some(next) = page["next"].as_str() else {
            return all;
        };
        cursor = format!("&cursor={next}");
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

fn job(item: &Value) -> EndJob {
    let occurrence = &item["occurrence"];
    let occurrence = (!occurrence.is_null()).then(|| {
        let nominal = micros(text(&occurrence["nominal_at"]));
        (text(&occurrence["schedule"]).to_owned(), nominal)
    });
    EndJob {
        id: text(&item["id"]).into(),
        state: text(&item["state"]).into(),
        occurrence,
    }
}

fn schedule(api: &mut Api, name: &str, every: i64, asked_at: i64) -> EndSchedule {
    let facts = api.get(&format!("/v1/schedules/{name}")).expect(200);
    let fates = pages(api, &format!("/v1/schedules/{name}/fates?limit=1000"));
    let fate = |item: &Value| EndFate {
        from: micros(text(&item["from"])),
        to: micros(text(&item["to"])),
        kind: text(&item["fate"]).into(),
        count: item["count"].as_u64(),
    };
    EndSchedule {
        name: name.into(),
        every,
        created_at: micros(text(&facts["created_at"])),
        asked_at,
        decided_until: micros(text(&facts["decided_until"])),
        fates: fates.iter().map(fate).collect(),
    }
}
