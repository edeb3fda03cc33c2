//! A cell of real processes as the simulator's checkers see one: what clients were told, what the target saw, and
//! every row that the store holds in the end.
//!
//! Owns: the record, and reading the rows of a store whose process is gone. Must never: judge; the checkers in
//! `sim/history` do, the same ones that judge a simulated run. Next: `verdict.rs`.

use super::effects::TICK;
use crate::closed_shard::{block_on, store_in};
use crate::pace::wall_micros;
use crate::sink::Arrival;
use fencepost::api::text::{instant, parse_instant};
use fencepost_core::ids::JobId;
use fencepost_core::row::Row;
use fencepost_core::time::StoreTime;
use fencepost_history::checkers::{Evidence, Verdict, judge_by, unmet};
use fencepost_history::rules::PlainRule;
use fencepost_history::seen::{Ack, Answered, Call, History, Honours, Made};
use fencepost_history::setting::Setting;
use fencepost_history::spec::PlainSpec;
use fencepost_storage::codec::decode_row;
use fencepost_storage::keys::{KeyRange, Kind};
use fencepost_storage::store::Store;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Checkers that have what they need here. The others read commits as they happen, or cancels.
const CHECKERS: &[&str] = &[
    "no_missed_fire",
    "no_double_fire",
    "no_double_effect",
    "never_early",
    "acked_survives",
    "settles",
    "legal_moves",
    "books_balance",
    "answers",
];
/// Kinds of rows that these read.
const KINDS: &[Kind] = &[
    Kind::Definition,
    Kind::Cursor,
    Kind::Backlog,
    Kind::Fate,
    Kind::Edit,
    Kind::Job,
    Kind::Wait,
    Kind::Ready,
    Kind::Leased,
    Kind::Quarantine,
];
const SECOND: i64 = 1_000_000;

/// The record of one cell.
pub struct Record {
    history: History,
    starts_at: i64,
}

impl Record {
    pub fn begin() -> Record {
        let history = History::default();
        // Some process may be away or slow at any moment; so what is late needs no reason, what is missed does.
        history.disturb("a run of processes", 0);
        Record {
            history,
            starts_at: wall_micros(),
        }
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    /// The moment, for a call that arrives now.
    pub fn now(&self) -> u64 {
        u64::try_from(wall_micros() - self.starts_at).unwrap_or(0)
    }

    /// A call that the target took, which arrived at that moment.
    pub fn called(&self, arrival: &Arrival, at: u64, applied: bool) {
        let wish = arrival.body["intent"].as_str().unwrap_or("?").to_owned();
        let nominal = || parse_instant(&arrival.scheduled_for).unwrap().0;
        let intent = match arrival.path.starts_with(TICK) {
            true => format!("{wish}@{}", nominal()),
            false => wish,
        };
        self.history.lock().calls.push(Call {
            at,
            intent,
            key: arrival.key.clone(),
            token: arrival.token.clone(),
            attempt: u64::from(arrival.attempt),
            scheduled_for: arrival.scheduled_for.clone(),
            honours: Honours::Key,
            applied,
        });
    }

    /// A creation was answered.
    pub fn answered(&self, status: u16, code: &str) {
        self.history.lock().answers.push(Answered {
            op: "op:create",
            status,
            code: code.to_owned(),
        });
    }

    /// A client was told of a job.
    pub fn acknowledged(&self, key: &str, id: &str) {
        self.history.lock().acks.push(Ack {
            intent: key.to_owned(),
            job: JobId::parse(id).unwrap(),
            replayed: false,
        });
    }

    /// A definition of a schedule for every second, before it is asked for: its body, under a tag of its own.
    pub fn asks_for(&self, name: &str, turn: u32, ends_at: Option<i64>, job: &Value) -> Value {
        let tag = format!("{name}.{turn}");
        let mut body = json!({
            "every": "1s", "anchor": "2026-01-01T00:00:00Z", "misfire": "all", "tolerance": "1s", "job": job,
        });
        body["job"]["payload"] = json!({"intent": tag});
        if let Some(ends_at) = ends_at {
            body["ends_at"] = json!(instant(StoreTime(ends_at)));
        }
        let anchor = parse_instant("2026-01-01T00:00:00Z").unwrap().0;
        let spec = PlainSpec {
            tag: tag.clone(),
            rule: PlainRule::Every { every: SECOND, anchor },
            starts_at: None,
            ends_at: ends_at.unwrap_or(i64::MAX),
            count: None,
            excluded: None,
            weekday: None,
            jitter: 0,
            misfire: "all",
            cap: 0,
            tolerance: SECOND,
            grace: None,
            expires_at: None,
            body: body.clone(),
        };
        self.history.lock().specs.insert(tag, spec);
        body
    }

    /// That definition was acknowledged.
    pub fn made(&self, name: &str, turn: u32) {
        self.history.lock().made.push(Made {
            name: name.to_owned(),
            tag: format!("{name}.{turn}"),
        });
    }

    /// What the checkers find, once the store's process is gone.
    pub fn judged(&self, store: &Path) -> BTreeMap<&'static str, Verdict> {
        let rows = rows_in(store);
        let unmet = unmet(&rows, 0);
        let seen = self.history.lock();
        let evidence = Evidence {
            setting: Setting {
                starts_at: self.starts_at,
                // All of them read one clock.
                lies_max: 0,
                ..Setting::default()
            },
            seen: &seen,
            rows: &rows,
            unmet: unmet.as_deref(),
        };
        judge_by(&evidence, CHECKERS)
    }
}

fn rows_in(folder: &Path) -> Vec<Row> {
    let store = store_in(folder);
    let of_kind = |kind: &Kind| block_on(store.scan(KeyRange::kind(*kind).scan(usize::MAX))).unwrap();
    let rows = KINDS.iter().flat_map(of_kind);
    rows.map(|(key, value)| decode_row(&key, &value).unwrap()).collect()
}
