//! A server whose data folder goes while nobody asks it for anything, and starts that were killed while they made one.
//!
//! Owns: that it ends by itself, and that no start leaves a file of secrets empty. Next: `broken.rs`,
//! `fencepost_storage::fjall_store`, decision 0058.

use crate::server::Place;
use serde_json::json;

#[test]
fn an_idle_server_ends_with_70_once_its_folder_is_gone() {
    let mut place = Place::new(&[]);
    let mut server = place.start();
    let body = json!({"target": {"type": "handler", "name": "noop"}, "delay": "1h"});
    server.api().post("/v1/jobs", &body).expect(201);
    // At one instant: files may be made in it meanwhile.
    std::fs::rename(place.data(), place.path().join("elsewhere")).unwrap();
    assert_eq!(server.exit_code(), Some(70), "{}", server.said());
    let said = server.said();
    for word in ["the store is broken", "in the folder", "is gone"] {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[cfg(feature = "test-switches")]
#[test]
fn a_start_that_is_killed_while_it_makes_a_secret_is_made_good_by_the_next() {
    use std::os::unix::process::ExitStatusExt as _;
    let mut place = Place::new(&[]).with_switches();
    for name in ["grant-key", "token"] {
        let switch = place.switches().join(format!("die-making-{name}"));
        std::fs::write(&switch, "").unwrap();
        let mut server = place.spawn();
        assert_eq!(server.end().signal(), Some(9), "{name}: {}", server.said());
        std::fs::remove_file(&switch).unwrap();
        assert!(!place.data().join(name).exists(), "{name} is not there yet");
    }
    let mut server = place.start();
    assert_eq!(server.stop(), Some(0), "{}", server.said());
    for entry in std::fs::read_dir(place.data()).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(!name.to_string_lossy().ends_with(".new"), "{name:?} is left over");
    }
}
