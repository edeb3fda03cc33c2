//! What a server says of itself, judged by `doctor`.
//!
//! Owns: the words for readiness, version, upgrade, store, clock, zone data and quarantine. Must never: ask. Next:
//! `doctor.rs` (asks), `crate::api::routes::node` (answers).

use super::doctor::{Finding, fail, ok, warn};
use super::output::{cell, counted};
use crate::api::text;
use fencepost_core::limits::DOCTOR_CLOCK_GAP_MS;
use fencepost_core::time::StoreTime;
use fencepost_core::zone::ZoneVersion;
use fencepost_storage::model::MODEL_ENGINE;
use fencepost_storage::remote::REMOTE_ENGINE;
use serde_json::Value;

/// Further apart than this, clocks are worth a look.
const CLOCK_GAP_MICROS: u64 = DOCTOR_CLOCK_GAP_MS * 1_000;

/// Where a server keeps what it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeps {
    /// In its folder, or it does not say.
    Here,
    /// On another node.
    Elsewhere,
    /// In memory: there is no folder.
    InMemory,
}

/// Where this server keeps what it knows.
pub(super) fn keeps(facts: &Value) -> Keeps {
    match cell(facts, &["engine"]).as_str() {
        MODEL_ENGINE => Keeps::InMemory,
        engine if engine.starts_with(REMOTE_ENGINE) => Keeps::Elsewhere,
        _ => Keeps::Here,
    }
}

/// What the server at this address says in `GET /v1/facts`.
pub(super) fn judge_server(at: &str, facts: &Value, now: StoreTime) -> Vec<Finding> {
    let text = |key: &str| cell(facts, &[key]);
    let yes = |key: &str| facts.get(key) == Some(&Value::Bool(true));
    let mut findings = vec![
        match (yes("ready"), yes("draining")) {
            (true, false) => ok("server", format!("ready at {at}")),
            (_, true) => warn(
                "server",
                format!("draining at {at}"),
                "wait for its end, then start it again",
            ),
            _ => warn("server", format!("{at}: {}", not_ready(facts)), "see its log"),
        },
        match text("version") == env!("CARGO_PKG_VERSION") {
            true => ok("version", text("version")),
            false => warn(
                "version",
                format!("server {}", text("version")),
                "use a command line of the server's version",
            ),
        },
        ok("store", of_store(facts)),
    ];
    findings.extend(judge_upgrade(facts));
    findings.push(judge_clock(&text("store_time"), yes("clock_doubt"), now));
    findings.push(judge_offset(facts));
    findings.push(match text("zone_version") == ZoneVersion::bundled().to_string() {
        true => ok("server's zone data", text("zone_version")),
        false => warn(
            "server's zone data",
            text("zone_version"),
            "previews here may differ from what fires there",
        ),
    });
    findings.push(match facts.get("quarantined").and_then(Value::as_u64) {
        Some(0) => ok("quarantine", "empty"),
        count => fail(
            "quarantine",
            count.map_or_else(|| "unknown".to_owned(), |count| counted(count, "row")),
            "see GET /v1/quarantine; edit or delete what it names",
        ),
    });
    findings
}

/// Whether the cell is at the level of the server's version; one of the version before does not say.
fn judge_upgrade(facts: &Value) -> Option<Finding> {
    let number = |key: &str| facts.get(key).and_then(Value::as_u64);
    let (level, known) = number("level").zip(number("level_known"))?;
    Some(match level < known {
        false => ok("upgrade", format!("finished, the cell is at level {level}")),
        true => warn(
            "upgrade",
            format!("not finished: the cell is at level {level}, the server's version knows level {known}"),
            "when 'fencepost upgrade status' shows this version everywhere and nobody is to go back, run 'fencepost \
             upgrade finish'",
        ),
    })
}

/// A node without the store knows of its sequence what it heard at its start, which says nothing now.
fn of_store(facts: &Value) -> String {
    let text = |key: &str| cell(facts, &[key]);
    let (engine, shards) = (text("engine"), text("shards"));
    let whose = format!("{engine} · cell {} · generation {}", text("cell"), text("generation"));
    match keeps(facts) == Keeps::Elsewhere {
        true => format!("{whose} · {shards} shards"),
        false => {
            let chain: String = text("chain").chars().take(16).collect();
            let high_water = text("high_water");
            format!("{whose} · {shards} shards · high water {high_water} · chain {chain}")
        }
    }
}

/// With the reasons that a server of this version gives.
fn not_ready(facts: &Value) -> String {
    let said = facts.get("reasons").and_then(Value::as_array);
    let reasons: Vec<&str> = said.into_iter().flatten().filter_map(Value::as_str).collect();
    match reasons.is_empty() {
        true => "not ready".to_owned(),
        false => format!("not ready: {}", reasons.join("; ")),
    }
}

fn judge_clock(stated: &str, doubt: bool, now: StoreTime) -> Finding {
    if doubt {
        let fix = "set the machine's clock right, or, if it is right now, run 'fencepost clock confirm'; the doubt \
                   ends by itself once the clock has run steadily for five minutes";
        return fail("clock", format!("in doubt at {stated}: nothing fires"), fix);
    }
    let gap = text::parse_instant(stated).map_or(u64::MAX, |at| at.0.abs_diff(now.0));
    match gap {
        0..=CLOCK_GAP_MICROS => ok("clock", format!("{stated}, {} ms from here", gap / 1_000)),
        _ => warn(
            "clock",
            format!("{stated}, {} s from here", gap / 1_000_000),
            "compare both machines with a time server",
        ),
    }
}

/// The server's own measure: with its bounds, unlike the one from here.
fn judge_offset(facts: &Value) -> Finding {
    let offset = |end: &str| facts.pointer(&format!("/clock_offset/{end}")).and_then(Value::as_i64);
    let Some((low, high)) = offset("low_ms").zip(offset("high_ms")) else {
        return warn("clock offset", "not measured", "see whether the store answers");
    };
    let most = facts.get("clock_offset_max_ms").and_then(Value::as_u64).unwrap_or(0);
    let detail = format!("{low} to {high} ms from the store's, {most} ms allowed");
    match facts.get("clock_holds_back") == Some(&Value::Bool(true)) {
        false => ok("clock offset", detail),
        true => fail(
            "clock offset",
            format!("{detail}: this node takes and gives no work"),
            "set the clock of this machine, or of the store's; it goes on by itself",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::doctor::Level;
    use super::*;
    use serde_json::json;

    fn level(findings: &[Finding], check: &str) -> Option<Level> {
        findings
            .iter()
            .find(|finding| finding.check == check)
            .map(|finding| finding.level)
    }

    #[test]
    fn a_server_in_doubt_or_with_quarantined_rows_fails() {
        let now = text::parse_instant("2026-01-01T00:00:00Z").unwrap();
        let mut facts = json!({
            "version": env!("CARGO_PKG_VERSION"), "ready": true, "draining": false, "quarantined": 0, "clock_doubt": false,
            "store_time": "2026-01-01T00:00:01Z", "zone_version": ZoneVersion::bundled().to_string(),
            "clock_offset": {"low_ms": -1, "high_ms": 2}, "clock_offset_max_ms": 1_000, "clock_holds_back": false,
            "level": 2, "level_known": 2,
        });
        let good = judge_server("http://a", &facts, now);
        assert!(good.iter().all(|finding| finding.level == Level::Ok), "{good:?}");
        assert_eq!(level(&good, "upgrade"), Some(Level::Ok));
        facts["quarantined"] = json!(2);
        facts["clock_doubt"] = json!(true);
        facts["clock_holds_back"] = json!(true);
        let bad = judge_server("http://a", &facts, now);
        assert_eq!(
            (level(&bad, "quarantine"), level(&bad, "clock")),
            (Some(Level::Fail), Some(Level::Fail))
        );
        assert_eq!(level(&bad, "clock offset"), Some(Level::Fail));
        facts["clock_offset"] = Value::Null;
        assert_eq!(
            level(&judge_server("http://a", &facts, now), "clock offset"),
            Some(Level::Warn)
        );
        facts["clock_doubt"] = json!(false);
        facts["store_time"] = json!("2026-01-01T01:00:00Z");
        assert_eq!(
            level(&judge_server("http://a", &facts, now), "clock"),
            Some(Level::Warn)
        );
    }

    #[test]
    fn an_upgrade_that_is_not_finished_is_told_with_the_step_that_ends_it() {
        let unfinished = judge_upgrade(&json!({"level": 1, "level_known": 2})).unwrap();
        assert_eq!(unfinished.level, Level::Warn);
        let said = format!("{unfinished:?}");
        assert!(
            said.contains("level 1") && said.contains("'fencepost upgrade finish'"),
            "{said}"
        );
        assert!(judge_upgrade(&json!({"version": "of a server that does not say"})).is_none());
    }

    #[test]
    fn a_store_on_another_node_is_shown_without_what_only_that_node_knows() {
        let told = of_store(&json!({"engine": "remote fjall", "cell": "ab", "generation": 1, "shards": 16}));
        assert_eq!(told, "remote fjall · cell ab · generation 1 · 16 shards");
        let told = of_store(&json!({"engine": "fjall", "shards": 16, "high_water": 19, "chain": "0123456789abcdef01"}));
        assert!(told.ends_with("high water 19 · chain 0123456789abcdef"), "{told}");
    }
}
