//! The timeline in a real browser, where there is one, and by its data everywhere.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

mod support;

use fencepost_sim::report::timeline::{DATA_BEGINS, DATA_ENDS};
use serde_json::Value;
use support::browser::{self, Browser};
use support::{CANARY, Folder, chosen, sim, told};

/// The page of a run that fails, and its bundle.
fn failing(folder: &Folder) -> (String, Value) {
    let seed = chosen().next().unwrap().to_string();
    let ran = sim(&[
        "run",
        "--seed",
        &seed,
        "--plant",
        CANARY,
        "--bundles",
        folder.name(),
        "--html",
        folder.name(),
    ]);
    assert_eq!(ran.status.code(), Some(1), "{}", told(&ran));
    let name = format!("seed-{seed}-{CANARY}");
    let bundle = serde_json::from_str(&folder.text(&format!("{name}.json"))).unwrap();
    (format!("{name}.html"), bundle)
}

#[test]
fn the_first_violation_is_one_click_away_and_names_job_and_token() {
    let folder = Folder::new("timeline");
    let (page, bundle) = failing(&folder);
    let violation = &bundle["violations"][0];
    let (job, token) = (violation["job"].as_str().unwrap(), violation["token"].as_str().unwrap());
    assert!(job.starts_with("job_") && token.len() == 40, "{violation}");

    let text = folder.text(&page);
    let (_, rest) = text.split_once(DATA_BEGINS).unwrap();
    let data: Value = serde_json::from_str(rest.split_once(DATA_ENDS).unwrap().0).unwrap();
    let shown = &data["violations"][0];
    assert_eq!(
        (shown["job"].as_str(), shown["token"].as_str()),
        (Some(job), Some(token))
    );
    let leases = data["leases"].as_array().unwrap();
    assert!(
        leases
            .iter()
            .any(|lease| lease["token"] == token && lease["wrong"] == true)
    );
    let calls = data["calls"].as_array().unwrap();
    assert_eq!(calls.iter().filter(|call| call["wrong"] == true).count(), 1);

    let Some(program) = browser::find() else {
        println!("not run, 1 of 2: no Chromium (CHROMIUM, or chromium on the path): the page was read, not clicked");
        return;
    };
    let own = folder.join("browser");
    std::fs::create_dir_all(&own).unwrap();
    let mut browser = Browser::start(&program, &own);
    browser.load(&folder.join(&page));
    assert_eq!(browser.text("[data-field=token]"), "");
    browser.click("#first");
    assert_eq!(browser.text("[data-field=job]"), job);
    assert_eq!(browser.text("[data-field=token]"), token);
    assert!(browser.text("#details .story").contains("EFFECT APPLIED"));
    let drawn = browser.value("document.querySelectorAll('#lanes .lease.wrong, #lanes .call.wrong').length");
    assert!(drawn.as_u64() > Some(0), "{drawn}");
    // The filter leaves one job's bars, and fades the others.
    let intent = bundle["intents"][job].as_str().unwrap();
    browser.value(&format!(
        "(() => {{ const box = document.getElementById('filter'); box.value = {intent:?}; box.oninput(); \
         document.getElementById('fit').click(); return 0; }})()"
    ));
    let left = browser
        .value("[...document.querySelectorAll('#lanes .lease:not(.faded)')].length")
        .as_u64()
        .unwrap();
    let of_job = leases.iter().filter(|lease| lease["job"] == job).count() as u64;
    assert_eq!(left, of_job);
}

#[test]
fn a_run_that_passed_has_its_picture_too() {
    let folder = Folder::new("passed");
    let ran = sim(&["run", "--seed", "3", "--html", folder.name()]);
    assert_eq!(ran.status.code(), Some(0), "{}", told(&ran));
    let text = folder.text("seed-3.html");
    assert!(text.contains("\"violations\":[]") && text.contains("seed 3 · passed"));
}
