//! A restore that is killed: what it leaves opens only once it was run again to its end.
//!
//! Owns: PROTOCOL F11 where a process ends half-way, with the feature `test-switches`. Next:
//! `fencepost_storage::fjall_store::restore`, whose own tests stop it between its steps.

use crate::server::Place;
use serde_json::json;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Output};

const STEPS: [&str; 7] = ["copy", "identify", "open", "park", "hold", "raise", "finish"];

fn restore(place: &Place, from: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    command.args(["store", "restore"]).args([from, &place.data()]);
    command
        .args(["-o", "json"])
        .env("FENCEPOST_TEST_SWITCHES", place.switches());
    command.output().unwrap()
}

/// A store with an at-most-once schedule, its server stopped; moved aside.
fn a_backup(place: &mut Place) -> std::path::PathBuf {
    let mut server = place.start();
    let job = json!({"target": {"type": "handler", "name": "noop"}, "delivery": "at-most-once"});
    let schedule = json!({"name": "bill", "every": "1h", "job": job});
    server.api().post("/v1/schedules", &schedule).expect(201);
    assert_eq!(server.stop(), Some(0), "{}", server.said());
    let backup = place.path().join("backup");
    std::fs::rename(place.data(), &backup).unwrap();
    backup
}

#[test]
fn f11_a_restore_that_is_killed_before_any_step_leaves_no_store_until_it_is_run_again() {
    let mut place = Place::new(&[]).with_switches();
    let backup = a_backup(&mut place);
    for step in STEPS {
        let switch = place.switches().join(format!("die-restore-{step}"));
        std::fs::write(&switch, "").unwrap();
        let killed = restore(&place, &backup);
        assert_eq!(killed.status.signal(), Some(9), "{step}: {killed:?}");
        std::fs::remove_file(&switch).unwrap();
        let mut server = place.spawn();
        assert_eq!(server.exit_code(), Some(72), "{step}: {}", server.said());
        let said = server.said();
        assert!(
            said.contains("store_unfinished") && said.contains("Run the same backup or restore again"),
            "{step}: {said}"
        );
    }
    let done = restore(&place, &backup);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let done: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(done["held"], json!(["bill"]), "{done}");
    assert!(done["generation"].as_u64() > Some(2), "{done}");
    let mut server = place.start();
    let mut api = server.api();
    let bill = api.get("/v1/schedules/bill").expect(200);
    assert_eq!(bill["status"], "paused", "{bill}");
    let edits = api.get("/v1/schedules/bill/edits").expect(200);
    assert!(edits["items"].to_string().contains("\"restored\""), "{edits}");
    api.act("/v1/schedules/bill/resume").expect(200);
    assert_eq!(server.stop(), Some(0), "{}", server.said());
}
