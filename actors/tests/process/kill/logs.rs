//! The two logs of a run, written by those who saw: clients their requests, the sink its calls.
//!
//! Owns: the files and the one order of their lines. Must never: leave out a request or a call. Of an answer
//! only what a judge reads is kept, else a long run fills the disk. Next: `judge/log.rs` has the form of the lines.

use crate::api::{Answer, Api, NoAnswer};
use crate::pace;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Fields of answers and of their items that are kept.
const KEPT: &[&str] = &[
    "id",
    "state",
    "code",
    "occurrence",
    "created_at",
    "decided_until",
    "from",
    "to",
    "fate",
    "count",
    "next",
];

struct Files {
    requests: BufWriter<File>,
    sink: BufWriter<File>,
    lines: u64,
    numbers: u64,
}

/// Both files.
pub struct Logs {
    files: Mutex<Files>,
    folder: PathBuf,
}

impl Logs {
    pub fn new(folder: &Path) -> Logs {
        let open = |path| BufWriter::new(File::create(path).unwrap());
        let files = Mutex::new(Files {
            requests: open(requests_of(folder)),
            sink: open(sink_of(folder)),
            lines: 0,
            numbers: 0,
        });
        let folder = folder.to_owned();
        Logs { files, folder }
    }

    /// The finished files, for the judge.
    pub fn finish(&self) -> [PathBuf; 2] {
        self.with(|files| {
            files.requests.flush().unwrap();
            files.sink.flush().unwrap();
        });
        [requests_of(&self.folder), sink_of(&self.folder)]
    }

    pub fn kill(&self, pid: u32) {
        self.with(|files| files.request(json!({"kill": pid})));
    }

    /// A call that arrived; gives its number.
    pub fn call(&self, mut line: Value) -> u64 {
        self.with(|files| {
            files.numbers += 1;
            line["call"] = json!(files.numbers);
            files.call(line);
            files.numbers
        })
    }

    /// What the guard said to a call.
    pub fn guard(&self, call: u64, said: &str) {
        self.with(|files| files.call(json!({"call": call, "guard": said})));
    }

    fn sent(&self, mut line: Value) -> u64 {
        self.with(|files| {
            files.numbers += 1;
            line["n"] = json!(files.numbers);
            files.request(line);
            files.numbers
        })
    }

    fn with<T>(&self, write: impl FnOnce(&mut Files) -> T) -> T {
        write(&mut self.files.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn requests_of(folder: &Path) -> PathBuf {
    folder.join("requests.jsonl")
}

fn sink_of(folder: &Path) -> PathBuf {
    folder.join("sink.jsonl")
}

impl Files {
    fn place(&mut self, mut line: Value) -> String {
        self.lines += 1;
        line["at"] = json!(self.lines);
        format!("{line}\n")
    }

    fn request(&mut self, line: Value) {
        let line = self.place(line);
        self.requests.write_all(line.as_bytes()).unwrap();
    }

    fn call(&mut self, line: Value) {
        let line = self.place(line);
        self.sink.write_all(line.as_bytes()).unwrap();
    }
}

/// A client whose every request and answer is logged.
pub struct Logged {
    api: Api,
    client: usize,
    logs: Arc<Logs>,
}

impl Logged {
    pub fn new(api: Api, client: usize, logs: Arc<Logs>) -> Logged {
        Logged { api, client, logs }
    }

    /// One request, sent at most once.
    pub fn call(
        &mut self,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: Option<&Value>,
    ) -> Result<Answer, NoAnswer> {
        let wall = pace::wall_micros();
        let mut line = json!({"client": self.client, "method": method, "path": path, "wall": wall});
        if let Some(key) = key {
            line["key"] = json!(key);
        }
        if let Some(body) = body {
            line["body"] = body.clone();
        }
        let n = self.logs.sent(line);
        let headers = key.map(|key| ("idempotency-key", key));
        let answer = self.api.call(method, path, headers.as_slice(), body);
        let line = match &answer {
            Ok(answer) => json!({"n": n, "status": answer.status, "body": kept(&answer.body)}),
            Err(NoAnswer::NotSent) => json!({"n": n, "answer": "not_sent"}),
            Err(NoAnswer::Unknown) => json!({"n": n, "answer": "none"}),
        };
        self.logs.with(|files| files.request(line));
        answer
    }

    /// A call to a server that is there and must answer so.
    pub fn must(&mut self, method: &str, path: &str, body: Option<&Value>, status: u16) -> Value {
        let answer = self.call(method, path, None, body);
        answer
            .unwrap_or_else(|why| panic!("{method} {path}: no answer ({why:?})"))
            .expect(status)
    }
}

fn kept(body: &Value) -> Value {
    let Some(fields) = body.as_object() else {
        return Value::Null;
    };
    let own = fields
        .iter()
        .filter(|(name, value)| KEPT.contains(&name.as_str()) && !value.is_null());
    let mut kept: Map<String, Value> = own.map(|(name, value)| (name.clone(), value.clone())).collect();
    if let Some(items) = fields.get("items").and_then(Value::as_array) {
        kept.insert("items".into(), items.iter().map(self::kept).collect());
    }
    Value::Object(kept)
}
