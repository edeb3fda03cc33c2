//! What is left of a failure: its words, its bundle, the same run again, a smaller one; and the reports of many.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

mod support;

use serde_json::Value;
use support::{CANARY, Folder, chosen, sim, told};

/// The bundle of a failing run.
fn failing(folder: &Folder) -> (String, String) {
    let seed = chosen().next().unwrap().to_string();
    let ran = sim(&["run", "--seed", &seed, "--plant", CANARY, "--bundles", folder.name()]);
    assert_eq!(ran.status.code(), Some(1), "{}", told(&ran));
    let path = folder.join(&format!("seed-{seed}-{CANARY}.json"));
    (path.to_str().unwrap().to_owned(), told(&ran))
}

fn json(path: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_failure_says_all_that_is_needed_and_comes_out_again() {
    let folder = Folder::new("repro");
    let (bundle, words) = failing(&folder);
    let seed = chosen().next().unwrap();
    for part in [
        format!("seed {seed}: VIOLATION no_double_effect: "),
        format!("seed {seed}: no_double_effect promises: "),
        format!("seed {seed}: repeat with: cargo sim run --seed {seed} --plant {CANARY}\n"),
        format!("seed {seed}: bundle: {bundle}"),
        format!("seed {seed}: commit "),
        "token 0000".to_owned(),
    ] {
        assert!(words.contains(&part), "{part}: {words}");
    }
    let again = sim(&["repro", &bundle, "--html", folder.name()]);
    assert_eq!(again.status.code(), Some(1), "{}", told(&again));
    assert!(told(&again).contains("the same verdict and the same hash came out"));
    assert!(folder.join(&format!("seed-{seed}-{CANARY}.html")).is_file());
}

#[test]
fn a_bundle_that_cannot_be_used_is_refused_in_words() {
    let folder = Folder::new("refused");
    let (bundle, _) = failing(&folder);
    let changed = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut value = json(&bundle);
        change(&mut value);
        let path = folder.join(name);
        std::fs::write(&path, value.to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let newer = changed("newer.json", &|value| value["version"] = 9.into());
    let other = changed("other.json", &|value| {
        value["program"]["commit"] = "0123456789ab".into();
        value["program"]["digest"] = "0".into();
    });
    let torn = folder.join("torn.json").to_str().unwrap().to_owned();
    std::fs::write(&torn, &std::fs::read(&bundle).unwrap()[..300]).unwrap();
    for command in ["repro", "shrink"] {
        for (path, part) in [
            (newer.as_str(), "has version 9, this program knows version 1"),
            (torn.as_str(), "is not a whole bundle"),
            ("/nowhere/at-all.json", "cannot be read"),
            (other.as_str(), "the bundle is of commit 0123456789ab, this program of "),
        ] {
            let refused = sim(&[command, path]);
            assert_eq!(refused.status.code(), Some(2), "{command} {path}: {}", told(&refused));
            assert!(told(&refused).contains(part), "{command} {path}: {}", told(&refused));
        }
    }
    let all_the_same = sim(&["repro", &other, "--any-commit"]);
    assert_eq!(all_the_same.status.code(), Some(1), "{}", told(&all_the_same));
    assert!(told(&all_the_same).contains("warning: the bundle is of commit 0123456789ab"));
    // The same program that makes something else of a bundle's seed is not deterministic.
    let lying = changed("lying.json", &|value| value["hash"] = "0".into());
    assert_eq!(sim(&["repro", &lying]).status.code(), Some(3));
}

#[test]
fn what_a_failure_does_not_need_is_left_out() {
    let folder = Folder::new("shrink");
    let (bundle, _) = failing(&folder);
    let smaller = folder.join("smaller.json").to_str().unwrap().to_owned();
    let shrunk = sim(&["shrink", &bundle, "-o", &smaller, "--runs", "30"]);
    assert_eq!(shrunk.status.code(), Some(0), "{}", told(&shrunk));
    let (before, after) = (json(&bundle), json(&smaller));
    let jobs = |value: &Value| value["intents"].as_object().unwrap().len();
    assert!(
        jobs(&after) * 2 < jobs(&before),
        "{} of {}",
        jobs(&after),
        jobs(&before)
    );
    assert_eq!(after["violations"][0]["checker"], before["violations"][0]["checker"]);
    assert!(!after["without"].as_str().unwrap().is_empty());
    let again = sim(&["repro", &smaller]);
    assert_eq!(again.status.code(), Some(1), "{}", told(&again));
    assert!(told(&again).contains("the same verdict and the same hash came out"));
}

#[test]
fn a_scenarios_bundle_runs_again_without_its_file_and_shrinks() {
    let folder = Folder::new("scenario");
    let file = folder.join("lost.toml");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios/faults/lost-ack.toml");
    std::fs::copy(source, &file).unwrap();
    let story = [
        "run",
        file.to_str().unwrap(),
        "--seed",
        "0",
        "--plant",
        "once-tried-again",
    ];
    let ran = sim(&[&story[..], &["--bundles", folder.name(), "--html", folder.name()]].concat());
    assert_eq!(ran.status.code(), Some(1), "{}", told(&ran));
    let own = folder.path().file_name().unwrap().to_str().unwrap();
    let name = format!("{own}-lost-seed-0-once-tried-again");
    assert!(folder.join(&format!("{name}.html")).is_file(), "{}", told(&ran));
    let bundle = folder.join(&format!("{name}.json")).to_str().unwrap().to_owned();

    std::fs::remove_file(&file).unwrap();
    let again = sim(&["repro", &bundle]);
    assert_eq!(again.status.code(), Some(1), "{}", told(&again));
    assert!(told(&again).contains("is not as it was"), "{}", told(&again));
    assert!(told(&again).contains("the same verdict and the same hash came out"));

    let shrunk = sim(&["shrink", &bundle, "--runs", "30"]);
    assert_eq!(shrunk.status.code(), Some(0), "{}", told(&shrunk));
    let after = json(&bundle.replace(".json", ".shrunk.json"));
    assert_eq!(after["violations"][0]["checker"], "no_double_effect");
    let is_out = |fault: &Value| fault["left_out"] == true;
    let faults = after["faults"].as_array().unwrap();
    assert!(faults.iter().any(is_out) && !faults.iter().all(is_out), "{faults:?}");

    let refused = sim(&[&story[..2], &["--without", "family:slow"]].concat());
    assert_eq!(refused.status.code(), Some(2), "{}", told(&refused));
    assert!(told(&refused).contains("is of the swarm"), "{}", told(&refused));
}

#[test]
fn a_fault_that_is_left_out_moves_no_other() {
    let folder = Folder::new("without");
    let faults = |without: &str, seed: u64| {
        let seed_text = seed.to_string();
        let words = [
            "run",
            "--seed",
            &seed_text,
            "--plant",
            CANARY,
            "--bundles",
            folder.name(),
            "--without",
            without,
        ];
        sim(&words);
        let part = if without.is_empty() { "" } else { "-part" };
        let bundle = json(
            folder
                .join(&format!("seed-{seed}-{CANARY}{part}.json"))
                .to_str()
                .unwrap(),
        );
        let read = |fault: &Value| {
            let number = |field: &str| fault[field].as_u64().unwrap();
            (
                number("number"),
                fault["kind"].as_str().unwrap().to_owned(),
                number("from"),
                number("to"),
            )
        };
        bundle["faults"]
            .as_array()
            .unwrap()
            .iter()
            .map(read)
            .collect::<Vec<_>>()
    };
    let with_some = chosen()
        .map(|seed| (seed, faults("", seed)))
        .find(|(_, faults)| faults.len() > 4);
    let (seed, before) = with_some.unwrap();
    let second = &before[1];
    let after = faults(&format!("fault:2:{}", second.3 - second.2), seed);
    // Its end hangs on what the sleepers around it do, to the microsecond.
    let begins = |faults: &[(u64, String, u64, u64)]| -> Vec<(u64, String, u64)> {
        faults
            .iter()
            .map(|fault| (fault.0, fault.1.clone(), fault.2 / 1_000))
            .collect()
    };
    assert_eq!(begins(&before), begins(&after));
}

#[test]
fn a_canary_that_fails_a_share_of_seeds_is_told_in_every_report() {
    let folder = Folder::new("reports");
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (junit, report) = (file("junit.xml"), file("report.json"));
    let ran = sim(&[
        "run",
        "--seeds",
        "24",
        "--plant",
        CANARY,
        "--bundles",
        folder.name(),
        "--junit",
        &junit,
        "--json",
        &report,
        "--annotate",
        "github",
    ]);
    assert_eq!(ran.status.code(), Some(1), "{}", told(&ran));
    let failed: Vec<u64> = chosen().take_while(|seed| *seed < 24).collect();
    assert!(!failed.is_empty());
    let words = told(&ran);
    let total = format!(
        "{} seeds passed, {} failed: {failed:?}",
        24 - failed.len(),
        failed.len()
    );
    assert!(words.contains(&total), "{words}");
    for part in [
        "faults felt ",
        "states seen ",
        "operations ",
        "times as fast as real time",
        "no_double_effect ",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    let (report, junit) = (json(&report), std::fs::read_to_string(&junit).unwrap());
    assert_eq!(report["failed_seeds"], serde_json::json!(failed));
    assert!(report["ratio"].as_u64().unwrap() > 0 && report["faults_felt"].as_object().unwrap().len() > 3);
    for seed in &failed {
        assert!(words.contains(&format!("::error title=seed {seed}%3A no_double_effect::")));
        assert!(junit.contains(&format!("<failure message=\"seed {seed}: no_double_effect: ")));
        assert!(folder.join(&format!("seed-{seed}-{CANARY}.json")).is_file());
    }
    assert_eq!(junit.matches("<failure ").count(), failed.len());
    assert_eq!(junit.matches("<testcase ").count(), 24);
}

#[test]
fn the_catalogue_is_counted() {
    let stats = sim(&["stats"]);
    assert_eq!(stats.status.code(), Some(0));
    for part in [
        "checkers: ",
        "planted bugs: ",
        "canaries: 2 ",
        "no_double_effect",
        "scenario files: ",
    ] {
        assert!(told(&stats).contains(part), "{part}: {}", told(&stats));
    }
}
