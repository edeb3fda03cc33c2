//! The examples of workers in other languages keep the rules, and the kit finds those that do not.
//!
//! Owns: the two example programs and what is broken in copies of them. Where an interpreter is missing the test
//! says so and checks nothing. Next: `docs/workers/`, `actors/src/conformance/`.
#![cfg(not(madsim))]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

#[path = "support/mod.rs"]
mod support;

use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/workers").join(name)
}

/// Whether the interpreter is there.
fn is_there(interpreter: &str) -> bool {
    let mut asked = Command::new(interpreter);
    asked.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    let there = asked.status().is_ok_and(|status| status.success());
    if !there {
        println!("not run: {interpreter} is not there");
    }
    there
}

/// Case by case: its name, and whether the worker kept the rule.
fn check(interpreter: &str, program: &Path, cases: &[&str]) -> Vec<(String, bool)> {
    let mut kit = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    kit.args(["worker", "check", "-o", "jsonl"]);
    kit.args(cases.iter().flat_map(|case| ["--case", case]));
    kit.args(["--", interpreter])
        .arg(program)
        .args(["--queues", "conformance"]);
    let output = kit.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let verdicts = text.lines().map(|line| {
        let verdict: Value = serde_json::from_str(line).unwrap();
        println!("{verdict}");
        (
            verdict["case"].as_str().unwrap().to_owned(),
            verdict["kept"].as_bool().unwrap(),
        )
    });
    let verdicts: Vec<_> = verdicts.collect();
    let all_kept = verdicts.iter().all(|(_, kept)| *kept);
    assert_eq!(output.status.code(), Some(if all_kept { 0 } else { 1 }));
    verdicts
}

fn keeps_every_rule(interpreter: &str, program: &str) {
    if !is_there(interpreter) {
        return;
    }
    let verdicts = check(interpreter, &example(program), &[]);
    assert_eq!(verdicts.len(), 11);
    assert!(verdicts.iter().all(|(_, kept)| *kept), "{verdicts:?}");
}

#[test]
fn the_python_worker_keeps_every_rule() {
    keeps_every_rule("python3", "worker.py");
}

#[test]
fn the_javascript_worker_keeps_every_rule() {
    keeps_every_rule("node", "worker.mjs");
}

/// Exit code and what a worker without the right token says, in one line.
fn refused(interpreter: &str, program: &str, token: Option<&str>) -> (Option<i32>, String) {
    let mut worker = Command::new(interpreter);
    worker.arg(example(program)).env_remove("FENCEPOST_TOKEN");
    let mut place = support::server::Place::new(&[]);
    let server = place.start();
    worker.env("FENCEPOST_SERVER", server.url());
    worker.envs(token.map(|token| ("FENCEPOST_TOKEN", token)));
    let output = worker.stdin(Stdio::null()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn an_example_with_a_wrong_token_says_so_in_one_line() {
    for (interpreter, program) in [("python3", "worker.py"), ("node", "worker.mjs")] {
        if !is_there(interpreter) {
            continue;
        }
        let (code, said) = refused(interpreter, program, Some("fp_0123456789abcdef"));
        assert_eq!((code, said.lines().count()), (Some(4), 1), "{said}");
        assert!(said.contains("[token_wrong]") && said.contains("data folder"), "{said}");
        let (code, said) = refused(interpreter, program, None);
        assert_eq!((code, said.lines().count()), (Some(2), 1), "{said}");
    }
}

#[test]
fn an_example_whose_server_is_not_there_says_so_and_goes_on() {
    for (interpreter, program) in [("python3", "worker.py"), ("node", "worker.mjs")] {
        if !is_there(interpreter) {
            continue;
        }
        let mut worker = Command::new(interpreter);
        worker
            .arg(example(program))
            .env("FENCEPOST_SERVER", "http://127.0.0.1:1");
        worker
            .env("FENCEPOST_TOKEN", "fp_0123456789abcdef")
            .stdin(Stdio::null());
        let mut worker = worker.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(worker.stderr.take().unwrap())
            .read_line(&mut said)
            .unwrap();
        let ended = worker.try_wait().unwrap();
        worker.kill().unwrap();
        worker.wait().unwrap();
        assert!(said.contains("no answer from http://127.0.0.1:1,"), "{program}: {said}");
        assert_eq!(ended, None, "{program}: it asks until somebody answers");
    }
}

/// A copy of the Python worker in which one thing is wrong breaks this rule.
fn is_found(case: &str, right: &str, wrong: &str) {
    if !is_there("python3") {
        return;
    }
    let text = std::fs::read_to_string(example("worker.py")).unwrap();
    assert_eq!(text.matches(right).count(), 1, "the example has changed: {right}");
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("worker.py");
    std::fs::write(&program, text.replace(right, wrong)).unwrap();
    assert_eq!(check("python3", &program, &[case]), [(case.to_owned(), false)]);
}

#[test]
fn a_worker_without_heartbeats_is_found() {
    is_found(
        "heartbeat",
        "            attempt.renew(state, asked_at)\n",
        "            pass\n",
    );
}

/// As soon as it has ended, not when the case's patience is over.
#[test]
fn a_worker_that_ends_by_itself_is_told_with_its_exit_code() {
    let mut kit = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    kit.args(["worker", "check", "-o", "jsonl", "--", "sh", "-c", "exit 9"]);
    let output = kit.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    let faults = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["fault"].to_string());
    let faults: Vec<_> = faults.collect();
    assert_eq!(faults.len(), 11, "{text}");
    assert!(faults.iter().all(|fault| fault.contains("exit code 9")), "{text}");
}

#[test]
fn a_claim_under_a_new_number_is_found() {
    let right = "answer = self.server.post(\"/v1/worker/claim\", body, timeout=20)";
    let wrong = "answer = self.server.post(\"/v1/worker/claim\", {**body, \"claim\": str(uuid.uuid4())}, timeout=20)";
    is_found("lost claim", right, wrong);
}

#[test]
fn a_report_that_is_sent_once_is_found() {
    is_found(
        "refused report",
        "if not refused.retryable:\n                    raise\n            except OSError:\n                pass\n            if until():",
        "raise\n            except OSError:\n                pass\n            if until():",
    );
}

#[test]
fn a_worker_without_a_fence_is_found() {
    is_found(
        "fence",
        "return time.monotonic() >= min(self.mine_until, self.timeout_at)",
        "return False",
    );
}

#[test]
fn a_worker_that_drops_its_work_is_found() {
    is_found("stop", "        worker.stopping = True\n", "        os._exit(0)\n");
}

#[test]
fn a_cancel_that_is_ignored_is_found() {
    is_found("cancel", "if self.cancelled or self.is_lost():", "if self.is_lost():");
}
