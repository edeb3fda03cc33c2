//! A shard that this build must not open, and a stop before the server was ever ready.
//!
//! Owns: rows written past the server, while it is down. Next: `refusals.rs` (whole folders).

use crate::api::Api;
use crate::pace::until;
use crate::server::Place;
use fencepost_core::ids::{BatchNo, Holder, Scope};
use fencepost_core::machine::{Expect, Write};
use fencepost_core::name::Name;
use fencepost_core::row::Row;
use fencepost_core::time::{Monotonic, StoreTime};
use fencepost_storage::clock::Clock;
use fencepost_storage::codec::{decode_row, encode_batch};
use fencepost_storage::fjall_store::{FjallStore, NewStore, Options};
use fencepost_storage::keys::{KeyRange, Kind};
use fencepost_storage::store::{Commit, Committed, Open, Store};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// Waits for a look into a store.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(work)
}

struct Wall;

impl Clock for Wall {
    fn wall(&self) -> StoreTime {
        StoreTime(crate::pace::wall_micros())
    }

    fn mono(&self) -> Monotonic {
        Monotonic(0)
    }
}

/// The store of a server that is down.
pub fn store_in(folder: &Path) -> FjallStore {
    let fresh = NewStore { store: 1, cell: 1 };
    until("the folder is let go of", || {
        FjallStore::start(folder, Options::new(fresh, Arc::new(Wall))).ok()
    })
}

/// Marks of owners, and what is in quarantine, by key.
pub fn quarantine_rows(folder: &Path) -> Vec<String> {
    let rows = block_on(store_in(folder).scan(KeyRange::kind(Kind::Quarantine).scan(100))).unwrap();
    let name = |(key, value): &(Arc<[u8]>, Arc<[u8]>)| match decode_row(key, value).unwrap() {
        Row::Quarantine(row) => String::from_utf8_lossy(&row.key).into_owned(),
        other => panic!("not in quarantine: {other:?}"),
    };
    rows.iter().map(name).collect()
}

/// Marks every cursor as planned with zone data that nobody has yet.
fn plan_with_newer_zone_data(folder: &Path) {
    let store = store_in(folder);
    let found = block_on(store.scan(KeyRange::kind(Kind::Cursor).scan(100))).unwrap();
    let newer = |(key, value): (Arc<[u8]>, Arc<[u8]>)| match decode_row(&key, &value).unwrap() {
        Row::Cursor(mut cursor) => {
            cursor.zone_version = "2999z".into();
            Write::Put {
                row: Row::Cursor(cursor),
                expect: Expect::Any,
            }
        }
        other => panic!("not a cursor: {other:?}"),
    };
    let writes: Vec<Write> = found.into_iter().map(newer).collect();
    assert_eq!(writes.len(), 1);
    let (scope, holder) = (Scope::Coordinator, Holder(99));
    let expected = block_on(store.epoch(scope)).unwrap();
    let node = Name::new("test").unwrap();
    let opened = block_on(store.open(Open {
        scope,
        holder,
        expected,
        node,
    }));
    let commit = Commit {
        scope,
        holder,
        epoch: opened.unwrap().epoch,
        number: BatchNo(1),
        batch: Arc::new(encode_batch(&writes, false).unwrap()),
    };
    let committed = block_on(store.commit(commit));
    assert!(matches!(committed, Committed::Committed(_)), "{committed:?}");
}

/// Makes jobs until one of them, in a shard that is open, has run.
pub fn runs_a_job(api: &mut Api) {
    let body = json!({"target": {"type": "handler", "name": "noop"}});
    let id = until("an open shard", || {
        let made = api.call("POST", "/v1/jobs", &[], Some(&body)).ok()?;
        Some(made.body["id"].as_str()?.to_owned())
    });
    let job = api.get(&format!("/v1/jobs/{id}/wait?timeout=60")).expect(200);
    assert_eq!(job["state"], "succeeded", "{job}");
}

/// A server that is down, with a schedule whose shard this build does not open.
pub fn place_with_a_shut_shard() -> Place {
    let mut place = Place::new(&[]);
    let mut server = place.start();
    let schedule =
        json!({"name": "daily", "cron": "0 9 * * *", "job": {"target": {"type": "handler", "name": "noop"}}});
    server.api().post("/v1/schedules", &schedule).expect(201);
    server.terminate();
    assert_eq!(server.exit_code(), Some(0), "{}", server.said());
    plan_with_newer_zone_data(&place.data());
    place
}

#[test]
fn f22_newer_zone_data_closes_its_shard_only_and_a_stop_is_heard_all_the_same() {
    let mut place = place_with_a_shut_shard();
    let mut server = place.spawn();
    until("somebody who listens", || {
        server.api().call("GET", "/livez", &[], None).ok().map(drop)
    });
    let mut api = server.api();
    runs_a_job(&mut api);
    assert_eq!(api.get("/readyz").status, 503, "one shard is not open");
    let refused = api.act("/v1/schedules/daily/pause");
    assert_eq!(
        (refused.status, refused.code()),
        (503, "shard_unavailable"),
        "{}",
        refused.body
    );
    server.terminate();
    assert_eq!(server.exit_code(), Some(0), "{}", server.said());
    assert!(server.said().contains("2999z"), "it says why: {}", server.said());
    let left = quarantine_rows(&place.data());
    assert!(
        left.is_empty(),
        "the end of an owner that never opened is no death: {left:?}"
    );
}
