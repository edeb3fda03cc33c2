//! The end of a run: everything finishes, then the server's lists are read once, as requests in the log.
//!
//! Owns: the reading. Must never: judge. Next: `judge/`.

use super::load::SCHEDULES;
use super::logs::Logged;
use crate::pace::until_true;
use serde_json::Value;

/// Times that the schedules are stopped, at most.
const ROUNDS_MAX: usize = 10;

/// Stops the schedules, waits until nothing is left to do, and reads the lists.
pub fn settle(api: &mut Logged) {
    for _ in 0..ROUNDS_MAX {
        until_true("the end of every backlog", || !owes_a_backlog(api));
        tell_all(api, "pause");
        if !owes_a_backlog(api) {
            break;
        }
        // One began meanwhile, and a pause holds it.
        tell_all(api, "resume");
    }
    assert!(!owes_a_backlog(api), "backlogs begin faster than they end");
    // What lost a worker comes back apart (decision 0013): after a thousand kills that takes minutes, and what counts
    // is that ever fewer are left.
    let mut fewest = unfinished(api);
    while fewest > 0 {
        until_true("the end of further jobs", || {
            let left = unfinished(api);
            let before = fewest;
            fewest = fewest.min(left);
            left < before
        });
    }
    read_pages(api, "/v1/jobs?limit=1000");
    for (name, _) in SCHEDULES {
        get(api, &format!("/v1/schedules/{name}"));
        read_pages(api, &format!("/v1/schedules/{name}/fates?limit=1000"));
    }
}

/// Jobs that have not ended. A page may be empty and still have a next one: the filter looks at a bounded number of
/// rows.
fn unfinished(api: &mut Logged) -> usize {
    read_pages(api, "/v1/jobs?state=waiting,ready,running,uncertain&limit=1000")
}

fn tell_all(api: &mut Logged, word: &str) {
    for (name, _) in SCHEDULES {
        api.must("POST", &format!("/v1/schedules/{name}/{word}"), None, 200);
    }
}

fn owes_a_backlog(api: &mut Logged) -> bool {
    let mut owes = |name: &str| !get(api, &format!("/v1/schedules/{name}"))["backlogs"].is_null();
    SCHEDULES.iter().any(|(name, _)| owes(name))
}

fn get(api: &mut Logged, path: &str) -> Value {
    api.must("GET", path, None, 200)
}

/// Reads a list to its end; gives the number of its items.
fn read_pages(api: &mut Logged, path: &str) -> usize {
    let (mut count, mut cursor) = (0, String::new());
    loop {
        let page = get(api, &format!("{path}{cursor}"));
        count += page["items"].as_array().unwrap().len();
        let Some(next) = page["next"].as_str() else {
            return count;
        };
        cursor = format!("&cursor={next}");
    }
}
