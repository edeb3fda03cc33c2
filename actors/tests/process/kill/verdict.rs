//! Runs the judge, a program of its own, on the two logs of a run.
//!
//! Owns: the process and what it says. Must never: have an opinion. Next: `judge/main.rs`.

use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// What the judge said.
#[derive(Debug)]
pub struct Verdict {
    /// 0: every promise held; 1: one was broken; 2: the logs do not tell.
    pub code: i32,
    /// The first broken promises.
    pub faults: Vec<String>,
    /// Counts over the run.
    pub whole: Value,
    /// Why the logs do not tell.
    pub why: String,
}

impl Verdict {
    pub fn number(&self, name: &str) -> u64 {
        self.whole[name].as_u64().unwrap_or(0)
    }
}

/// The verdict over the log of requests and the log of the sink.
pub fn judge(logs: &[PathBuf; 2]) -> Verdict {
    let output = Command::new(env!("CARGO_BIN_EXE_kill-judge"))
        .args(logs)
        .env_clear()
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let mut lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let whole = lines.pop().unwrap_or(Value::Null);
    let fault = |line: &Value| line["fault"].as_str().unwrap().to_owned();
    Verdict {
        code: output.status.code().unwrap(),
        faults: lines.iter().map(fault).collect(),
        whole,
        why: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
