//! The judge as a program against logs with one planted loss each, and against one good run.
//!
//! Owns: the proof that what the files say reaches the verdict. Next: `judge/verdict_tests.rs` has every rule.

use super::verdict::{Verdict, judge};
use serde_json::{Value, json};

/// A run in two logs, line by line.
struct Run {
    requests: Vec<Value>,
    sink: Vec<Value>,
    lines: u64,
}

const SECOND: i64 = 1_000_000;

fn instant(at: i64) -> String {
    format!("1970-01-01T00:00:{:02}.{:06}Z", at / SECOND, at % SECOND)
}

impl Run {
    fn request(&mut self, mut line: Value) {
        self.lines += 1;
        line["at"] = json!(self.lines);
        self.requests.push(line);
    }

    fn asks(&mut self, method: &str, path: &str, more: Value, status: u16, body: Value) {
        let n = self.lines;
        let mut line = json!({"n": n, "client": 0, "method": method, "path": path, "wall": 4 * SECOND + 1});
        for (name, value) in more.as_object().into_iter().flatten() {
            line[name] = value.clone();
        }
        self.request(line);
        self.request(json!({"n": n, "status": status, "body": body}));
    }

    fn creates(&mut self, key: &str, id: &str) {
        self.asks("POST", "/v1/jobs", json!({"key": key}), 201, json!({"id": id}));
    }

    fn sees(&mut self, id: &str, state: &str) {
        let path = format!("/v1/jobs/{id}");
        self.asks("GET", &path, Value::Null, 200, json!({"id": id, "state": state}));
    }

    /// A call that arrives and what the guard says.
    fn calls(&mut self, mut call: Value, token: &str, said: &str) {
        for mut line in [call.take(), json!({"guard": said})] {
            if line["path"].is_string() {
                line["token"] = json!(token);
            }
            self.lines += 1;
            line["at"] = json!(self.lines);
            line["call"] = json!(self.lines - u64::from(line["guard"].is_string()));
            self.sink.push(line);
        }
    }

    fn applies(&mut self, key: &str, token: &str) {
        self.calls(json!({"path": "/effect", "body": {"key": key}}), token, "applied");
    }

    /// The lists at the end: a schedule of one second from 0.5 s to 2.5 s that fired twice.
    fn reads_lists(&mut self, jobs: &[&str], fates: &[(i64, i64)]) {
        let half = SECOND / 2;
        self.asks(
            "POST",
            "/v1/schedules/tick/pause",
            json!({"wall": 2 * SECOND + 1}),
            200,
            Value::Null,
        );
        let facts = json!({"created_at": instant(half), "decided_until": instant(2 * SECOND + half)});
        self.asks("GET", "/v1/schedules/tick", Value::Null, 200, facts);
        let fate =
            |(from, to): &(i64, i64)| json!({"from": instant(*from), "to": instant(*to), "fate": "fired_on_time"});
        let fates: Vec<Value> = fates.iter().map(fate).collect();
        let page = json!({"items": fates});
        self.asks("GET", "/v1/schedules/tick/fates?limit=1000", Value::Null, 200, page);
        let fired = [1, 2].map(|n| {
            let occurrence = json!({"schedule": "tick", "nominal_at": instant(n * SECOND)});
            json!({"id": format!("fired-{n}"), "state": "succeeded", "occurrence": occurrence})
        });
        let made: Vec<Value> = jobs.iter().map(|id| json!({"id": id, "state": "succeeded"})).collect();
        let first = json!({"items": made, "next": "more"});
        self.asks("GET", "/v1/jobs?limit=1000", Value::Null, 200, first);
        let last = json!({"items": fired});
        self.asks("GET", "/v1/jobs?limit=1000&cursor=more", Value::Null, 200, last);
    }

    /// The start of every run: a schedule, its two effects, and two jobs with theirs over a kill.
    fn begun() -> Run {
        let mut run = Run {
            requests: Vec::new(),
            sink: Vec::new(),
            lines: 1,
        };
        let rule = json!({"body": {"name": "tick", "cron": ["* * * * * *"]}});
        run.asks("POST", "/v1/schedules", rule, 201, Value::Null);
        for n in [1, 2] {
            let call = json!({"path": "/fired/tick", "scheduled_for": instant(n * SECOND)});
            run.calls(call, "00", "applied");
        }
        run.creates("a", "1");
        run.request(json!({"n": 900, "client": 0, "method": "POST", "path": "/v1/jobs", "key": "b", "wall": 0}));
        run.request(json!({"kill": 7}));
        run.request(json!({"n": 900, "answer": "none"}));
        run.creates("b", "2");
        run.applies("a", "01");
        run.sees("1", "succeeded");
        run.applies("b", "02");
        run
    }

    fn judged(&self) -> Verdict {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, lines: &[Value]| {
            let path = folder.path().join(name);
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            std::fs::write(&path, text).unwrap();
            path
        };
        judge(&[write("requests", &self.requests), write("sink", &self.sink)])
    }
}

const HALF: i64 = SECOND / 2;
const TILED: [(i64, i64); 2] = [(HALF, SECOND + HALF), (SECOND + HALF, 2 * SECOND + HALF)];

/// A run with one thing planted between its load and its end.
fn planted(plant: impl FnOnce(&mut Run)) -> Verdict {
    let mut run = Run::begun();
    plant(&mut run);
    run.reads_lists(&["1", "2"], &TILED);
    run.judged()
}

fn is_broken(verdict: &Verdict, faults: &[&str]) {
    assert_eq!(
        (verdict.code, verdict.faults.as_slice()),
        (1, &*owned(faults)),
        "{verdict:?}"
    );
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn the_judge_lets_a_good_run_pass_and_counts_it() {
    let verdict = planted(|_| {});
    assert_eq!((verdict.code, verdict.faults.len()), (0, 0), "{verdict:?}");
    let counts = [
        "kills",
        "kills_in_flight",
        "acknowledged",
        "unanswered",
        "applied",
        "fired",
    ];
    let counts = counts.map(|name| verdict.number(name));
    assert_eq!(counts, [1, 1, 2, 1, 4, 2], "{verdict:?}");
}

#[test]
fn the_judge_finds_a_lost_job() {
    let mut run = Run::begun();
    run.reads_lists(&["2"], &TILED);
    is_broken(&run.judged(), &[r#"AcknowledgedLost { key: "a" }"#]);
    let unlisted_and_without_effect = planted(|run| run.creates("c", "3"));
    let faults = [r#"AcknowledgedLost { key: "c" }"#, r#"EffectMissing { effect: "c" }"#];
    is_broken(&unlisted_and_without_effect, &faults);
}

#[test]
fn the_judge_finds_a_doubled_effect() {
    is_broken(
        &planted(|run| run.applies("b", "02")),
        &[r#"EffectTwice { effect: "b" }"#],
    );
}

#[test]
fn the_judge_finds_a_reverted_completion() {
    let reverted = [r#"Reverted { key: "a" }"#];
    is_broken(&planted(|run| run.sees("1", "ready")), &reverted);
    let call = json!({"path": "/effect", "body": {"key": "a"}});
    is_broken(&planted(|run| run.calls(call, "09", "already")), &reverted);
}

#[test]
fn the_judge_finds_an_occurrence_with_two_fates_or_none() {
    let judged = |fates: &[(i64, i64)]| {
        let mut run = Run::begun();
        run.reads_lists(&["1", "2"], fates);
        run.judged()
    };
    let twice = judged(&[(HALF, 2 * SECOND), TILED[1]]);
    assert!(
        twice
            .faults
            .contains(&r#"FateTwice { schedule: "tick", at: 2000000 }"#.to_owned()),
        "{twice:?}"
    );
    let none = judged(&[TILED[0]]);
    assert!(
        none.faults
            .contains(&r#"FateMissing { schedule: "tick", at: 2000000 }"#.to_owned()),
        "{none:?}"
    );
    assert_eq!((twice.code, none.code), (1, 1));
}

#[test]
fn the_judge_passes_no_log_that_does_not_tell() {
    let unread = Run::begun().judged();
    assert_eq!(unread.code, 2, "the lists were never read: {unread:?}");
    let odd = planted(|run| run.request(json!({"n": 77_777, "status": 200})));
    assert_eq!(odd.code, 2, "an answer to nothing: {odd:?}");
    let verdict = judge(&["/nowhere/requests".into(), "/nowhere/sink".into()]);
    assert_eq!(verdict.code, 2, "no logs: {verdict:?}");
    assert!(verdict.why.contains("/nowhere/requests"), "{verdict:?}");
}
