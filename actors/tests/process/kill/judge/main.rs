//! Judges a kill run from two logs and nothing else: `kill-judge REQUESTS SINK`.
//!
//! Owns: the program. The clients wrote the first file (each request as it was sent, each answer as it came),
//! the service that jobs call wrote the second (each call, and what the guard said to it). It prints one JSON
//! line for each broken promise and one for the whole, and ends with 0 where all held, 1 where one was broken,
//! 2 where the logs do not tell. Must never: talk to a server or look into its folder. Next: `log.rs`, `verdict.rs`.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a program for tests, never part of a release"
)]

mod history;
mod log;
mod verdict;
#[cfg(test)]
mod verdict_tests;

use serde_json::json;
use std::process::ExitCode;

/// Faults that are printed; the last line counts them all.
const SHOWN_MAX: usize = 50;

fn main() -> ExitCode {
    let files: Vec<_> = std::env::args_os().skip(1).collect();
    let [requests, sink] = files.as_slice() else {
        return cannot_tell("two files are needed: the log of requests and the log of the sink");
    };
    match log::read(requests.as_ref(), sink.as_ref()) {
        Ok((events, end)) => tell(&events, &end),
        Err(why) => cannot_tell(&why),
    }
}

fn cannot_tell(why: &str) -> ExitCode {
    eprintln!("kill-judge: {why}");
    ExitCode::from(2)
}

fn tell(events: &[history::Event], end: &history::End) -> ExitCode {
    let (faults, tally) = verdict::judge(events, end);
    for fault in faults.iter().take(SHOWN_MAX) {
        println!("{}", json!({"fault": format!("{fault:?}")}));
    }
    let whole = json!({
        "faults": faults.len(), "kills": tally.kills, "kills_in_flight": tally.kills_in_flight,
        "acknowledged": tally.acknowledged, "unanswered": tally.unanswered, "applied": tally.applied,
        "repeated_calls": tally.repeated_calls, "fired": end.jobs.iter().filter(|job| job.occurrence.is_some()).count(),
    });
    println!("{whole}");
    ExitCode::from(u8::from(!faults.is_empty()))
}
