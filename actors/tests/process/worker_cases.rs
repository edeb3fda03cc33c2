//! Cases of workers that die, are slow, are stopped or are killed by their job, with workers as processes of their own.
//!
//! Owns: BEH-W01, W02, W09 and R02 in a cell. The same rules in one machine: `../../core/tests/lease_manager/`. Next:
//! `workers.rs`, `worker_killer.rs` for a server that works itself.

use crate::cell::{Cell, LEASE, OWNER, Process, once, succeeded, tries};
use crate::pace::{self, until_true};
use crate::worker_killer::killer;
use serde_json::json;

const WORDS: [&str; 2] = ["--lease", "1s"];

fn owner(cell: &Cell) -> Process {
    Process::start(cell, "s", OWNER, &WORDS)
}

fn worker(cell: &Cell, name: &str) -> Process {
    Process::start(
        cell,
        name,
        "worker",
        &[&WORDS[..], &["--slots", "2", "--drain", "1h"]].concat(),
    )
}

fn lost_then_well(lost: &str, well: &str) -> Vec<(String, String)> {
    let lost = (lost.to_owned(), "worker_lost".to_owned());
    [vec![lost], once(well)].concat()
}

#[test]
fn beh_w01_a_killed_workers_job_runs_on_another_process_after_its_lease_and_its_key_has_no_twin() {
    let cell = Cell::shut();
    let (owner, mut first) = (owner(&cell), worker(&cell, "w1"));
    let mut api = owner.api().unwrap();
    let mut made = cell.create_all(&mut api, "a", 2);
    until_true("both run", || cell.effects.held() == 2);
    let _second = worker(&cell, "w2");
    first.kill();
    // What is made now is not granted to the dead, and keys that are there make no twins.
    made.extend(cell.create_all(&mut api, "b", 4));
    assert_eq!(cell.create_all(&mut api, "a", 2), made[..2]);
    cell.effects.open_gate();
    let (_, took) = pace::took(|| cell.all_done(&mut [owner.api().unwrap()], &made));
    println!("figure: a worker was killed, and all it ran had run elsewhere after {took:?}; its lease was {LEASE:?}");
    for (id, expected) in made
        .iter()
        .zip([vec![lost_then_well("w1", "w2"); 2], vec![once("w2"); 4]].concat())
    {
        assert_eq!(tries(&mut api, id), expected);
    }
}

#[test]
fn beh_w02_a_job_of_twenty_leases_stays_with_its_process_and_beh_w09_so_it_does_when_that_is_stopped() {
    let cell = Cell::shut();
    let (owner, mut busy) = (owner(&cell), worker(&cell, "w1"));
    let mut api = owner.api().unwrap();
    let id = cell.create(&mut api, "slow");
    until_true("it runs", || cell.effects.held() == 1);
    let mut idle = worker(&cell, "w2");
    let other = cell.create_all(&mut api, "other", 1);
    pace::reach(pace::from_now(LEASE * 15));
    busy.server().terminate();
    pace::reach(pace::from_now(LEASE * 5));
    assert!(busy.is_there(), "it waits for what it runs");
    cell.effects.open_gate();
    let mut api = owner.api().unwrap();
    succeeded(std::slice::from_mut(&mut api), &id);
    assert_eq!(tries(&mut api, &id), once("w1"), "the idle one never got it");
    let (code, said) = busy.stopped();
    assert_eq!(code, Some(0), "{said}");
    cell.all_done(&mut [owner.api().unwrap()], &[vec![id], other].concat());
    assert!(idle.is_there());
}

#[test]
fn beh_w09_an_idle_process_gets_the_job_of_a_stopping_one_only_when_that_is_killed() {
    let cell = Cell::shut();
    let (owner, mut busy) = (owner(&cell), worker(&cell, "w1"));
    let mut api = owner.api().unwrap();
    let id = cell.create(&mut api, "slow");
    until_true("it runs", || cell.effects.held() == 1);
    let _idle = worker(&cell, "w2");
    busy.server().terminate();
    pace::reach(pace::from_now(LEASE * 2));
    assert!(busy.is_there(), "it waits for what it runs");
    busy.kill();
    cell.effects.open_gate();
    cell.all_done(&mut [owner.api().unwrap()], std::slice::from_ref(&id));
    assert_eq!(tries(&mut api, &id), lost_then_well("w1", "w2"));
}

#[test]
fn beh_r02_a_job_that_kills_worker_processes_is_dead_after_three_starts_and_others_pay_once() {
    let cell = Cell::shut();
    let (owner, mut victim) = (owner(&cell), worker(&cell, "w1"));
    let mut api = owner.api().unwrap();
    let innocent = cell.create(&mut api, "innocent");
    until_true("the innocent one runs", || cell.effects.held() == 1);
    std::fs::write(victim.place().path().join("go"), "").unwrap();
    let made = api.post("/v1/jobs", &killer(victim.place())).expect(201);
    let id = made["id"].as_str().unwrap().to_owned();
    let mut kills = 0;
    until_true("the end of the killer", || {
        if !victim.is_there() {
            kills += 1;
            assert!(kills <= 3, "it was started a fourth time");
            cell.effects.open_gate();
            victim.spawn_again();
        }
        api.get(&format!("/v1/jobs/{id}")).expect(200)["ended_at"].is_string()
    });
    // The third kill may not have been looked at yet.
    assert!((2..=3).contains(&kills), "{kills} kills");
    let dead = api.get(&format!("/v1/jobs/{id}")).expect(200);
    assert_eq!(
        (&dead["state"], &dead["reason"]),
        (&json!("dead"), &json!("worker lost")),
        "{dead}"
    );
    let lost = ("w1".to_owned(), "worker_lost".to_owned());
    assert_eq!(tries(&mut api, &id), vec![lost.clone(); 3]);
    if !victim.is_there() {
        victim.spawn_again();
    }
    cell.all_done(&mut [owner.api().unwrap()], std::slice::from_ref(&innocent));
    let paid = tries(&mut api, &innocent)
        .into_iter()
        .filter(|one| *one == lost)
        .count();
    assert!(paid <= 1, "it was charged {paid} times");
}
