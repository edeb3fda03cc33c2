//! `dev` as a newcomer runs it: what it prints, and what it leaves behind.
//!
//! Owns: the line for each attempt, and `--ephemeral`. Next: `story/` for a day of `serve`.

use crate::api::Api;
use crate::pace::until;
use crate::server::Server;
use chrono::{DateTime, Utc};
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

/// A `dev` server in a folder of its own: standard output goes to `out`, standard error to `err`.
fn dev(folder: &Path, words: &[&str]) -> Server {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    command.arg("dev").args(["--listen", "127.0.0.1:0"]).args(words);
    command.current_dir(folder.join("here"));
    for name in ["FENCEPOST_LOG", "FENCEPOST_TOKEN", "FENCEPOST_TOKEN_FILE"] {
        command.env_remove(name);
    }
    command.stdout(Stdio::from(File::create(folder.join("out")).unwrap()));
    Server::start_as_is(command, folder.join("err"), folder.join("here/fencepost-data/token"))
}

fn printed(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("out")).unwrap();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(str::to_owned).collect()
}

/// The five facts of a line: schedule, nominal time, lateness, attempt, outcome.
fn facts(line: &str) -> (String, DateTime<Utc>, f64, u32, String) {
    let mut words = line.split_whitespace();
    let mut word = || words.next().unwrap_or_else(|| panic!("too short: {line}"));
    let schedule = word().to_owned();
    let nominal = DateTime::parse_from_rfc3339(word()).unwrap_or_else(|error| panic!("{error}: {line}"));
    assert_eq!(word(), "late", "{line}");
    let late = word();
    let millis = match late.strip_suffix("ms") {
        Some(millis) => millis.parse::<f64>().unwrap(),
        None => late.strip_suffix('s').unwrap().parse::<f64>().unwrap() * 1_000.0,
    };
    assert_eq!(word(), "attempt", "{line}");
    let attempt = word().parse().unwrap();
    let outcome = word().to_owned();
    (schedule, nominal.to_utc(), millis, attempt, outcome)
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("here")).unwrap();
    folder
}

#[test]
fn dev_prints_schedule_nominal_time_lateness_attempt_and_outcome_of_each_attempt() {
    let folder = folder();
    let mut server = dev(folder.path(), &[]);
    let lines = until("three lines of the sample that ticks", || {
        let lines = printed(folder.path());
        let ticks = lines.iter().filter(|line| line.starts_with("sample-tick "));
        (ticks.count() >= 3).then_some(lines)
    });
    let mut ticks = Vec::new();
    for line in &lines {
        let (schedule, nominal, late, attempt, outcome) = facts(line);
        assert!(schedule.starts_with("sample-"), "{line}");
        assert!((0.0..60_000.0).contains(&late), "{line}");
        assert_eq!((attempt, outcome.as_str()), (1, "succeeded"), "{line}");
        if schedule == "sample-tick" {
            ticks.push(nominal);
        }
    }
    assert!(
        ticks.iter().all(|at| at.timestamp_subsec_nanos() == 0),
        "at whole seconds: {ticks:?}"
    );
    assert!(
        ticks.windows(2).all(|pair| (pair[1] - pair[0]).num_seconds() >= 2),
        "{ticks:?}"
    );
    // What was printed is what is recorded.
    let mut api = server.api();
    let list = api.get("/v1/schedules/sample-tick/fates").expect(200);
    let from = list["items"][0]["from"].as_str().unwrap_or_else(|| panic!("{list}"));
    let from = DateTime::parse_from_rfc3339(from).unwrap();
    assert!(from < ticks[0], "the first tick lies in the first span: {list}");
    // A job of no schedule has a line, too, under its id.
    let body =
        serde_json::json!({"target": {"type": "command", "argv": ["no-such-program"]}, "retry": {"attempts": 1}});
    let made = api.post("/v1/jobs", &body).expect(201);
    let id = made["id"].as_str().unwrap_or_else(|| panic!("{made}"));
    let line = until("the line of a job without a schedule", || {
        printed(folder.path()).into_iter().find(|line| line.starts_with(id))
    });
    assert_eq!(facts(&line).4, "failed", "{line}");
    assert!(line.contains("command_not_started: there is no such program"), "{line}");
    server.interrupt();
    assert_eq!(server.exit_code(), Some(0), "{}", server.said());
    assert!(folder.path().join("here/fencepost-data").is_dir());
}

#[test]
fn dev_ephemeral_fires_answers_with_its_token_and_leaves_no_folder() {
    let folder = folder();
    let mut server = dev(folder.path(), &["--ephemeral"]);
    until("a line of the sample that ticks", || {
        let lines = printed(folder.path());
        lines.iter().any(|line| facts(line).4 == "succeeded").then_some(())
    });
    let said = server.said();
    let token = said
        .split("export FENCEPOST_TOKEN=")
        .nth(1)
        .and_then(|rest| rest.lines().next());
    let mut api = Api::new(server.address(), token.unwrap_or_else(|| panic!("no token: {said}")));
    let jobs: Value = api.get("/v1/jobs?state=succeeded").expect(200);
    assert!(!jobs["items"].as_array().unwrap().is_empty(), "{jobs}");
    let doctor = Command::new(env!("CARGO_BIN_EXE_fencepost"))
        .args(["doctor", "--server", &server.url()])
        .env("FENCEPOST_TOKEN", token.unwrap())
        .current_dir(folder.path().join("here"))
        .output()
        .unwrap();
    let found = String::from_utf8_lossy(&doctor.stdout);
    assert!(
        doctor.status.success() && !found.contains("data folder") && !found.contains("warn"),
        "{found}"
    );
    server.interrupt();
    assert_eq!(server.exit_code(), Some(0), "{}", server.said());
    let left: Vec<_> = std::fs::read_dir(folder.path().join("here")).unwrap().collect();
    assert!(left.is_empty(), "nothing is left: {left:?}");
}
