//! A cell of processes under load, of which one at random is killed, frozen or drained, again and again.
//!
//! Owns: the cycles. `FENCEPOST_CELL_CYCLES` sets their number (30 kills, 30 freezes of owners, 30 of workers, 10
//! drains), `FENCEPOST_CELL_SEED` repeats the choices of a run. Must never: ask the product whether it did right:
//! acknowledged jobs are the clients' notes, effects the sink's. Next: `cell/`, `partitions.rs` for what lies between
//! the processes, `kill/` for one server.

use crate::cell::{Asked, Cell, Chance, Effects, LEASE, Load, OWNER, Process, apis, number, once, tries};
use crate::pace;
use crate::split::ROLES;
use fencepost_history::rules::PlainRule;
use std::time::{Duration, Instant};

const NODES: usize = 3;
const KILLS: u64 = 30;
const FREEZES: u64 = 30;
const WORKER_FREEZES: u64 = 30;
const DRAINS: u64 = 10;
/// A part of the cell that is nobody's is somebody's within this.
const TAKEOVER: Duration = Duration::from_secs(3);
/// A part of the cell whose owner stops is another's within this.
const HANDOVER: Duration = Duration::from_millis(500);
const _: () = assert!(TAKEOVER.as_millis() == LEASE.as_millis() + 2_000);

fn cycles(usual: u64) -> u64 {
    number("FENCEPOST_CELL_CYCLES", usual)
}

/// Whether a number of cycles was asked for.
fn is_long() -> bool {
    number("FENCEPOST_CELL_CYCLES", 0) > 0
}

fn pass(span: Duration) {
    pace::reach(pace::from_now(span));
}

/// A schedule for every second, and clients at all nodes.
fn under_load(cell: &Cell, nodes: &[Process], pause: Duration) -> Load {
    cell.tick(&mut apis(nodes)[0], "tick");
    Load::start(cell, pause, || apis(nodes))
}

fn judge(cell: &mut Cell, nodes: &[Process], made: &[String]) {
    cell.judge(&mut apis(nodes), made, &["tick".to_owned()]);
}

/// How long, and who made it wait longest.
type Pause = (Duration, (usize, u16, Duration));

/// The longest wait for an acknowledgement between each of these instants and the next one: how long a part of the cell
/// was nobody's. With each, who made it wait longest.
fn takeovers(instants: &[(Instant, bool)], asked: &[Asked]) -> Vec<Pause> {
    let end = pace::from_now(Duration::ZERO);
    let ends = instants.iter().skip(1).map(|(at, _)| *at).chain([end]);
    let windows = instants.iter().zip(ends).filter(|((_, counts), _)| *counts);
    let mut all: Vec<Pause> = windows
        .filter_map(|((from, _), to)| {
            let within = asked.iter().filter(|one| one.at + one.took >= *from && one.at < to);
            within
                .map(|one| {
                    let (begun, done) = (one.at.max(*from), (one.at + one.took).min(to));
                    (done.saturating_duration_since(begun), one.longest)
                })
                .max()
        })
        .collect();
    all.sort();
    all
}

/// The long run holds the bound. In the short one the next one may come before a takeover is over, and other tests run
/// beside it: it is told the figure only.
fn tell_pauses(what: &str, all: &[Pause], bound: Duration) {
    let (Some((p50, _)), Some((p99, _))) = (
        all.get(all.len() / 2),
        all.get((all.len() * 99 / 100).min(all.len().saturating_sub(1))),
    ) else {
        return;
    };
    println!(
        "figure: {what}: {} pauses, p50 {p50:?}, p99 {p99:?}, the longest {:?}; the bound is {bound:?}",
        all.len(),
        &all[all.len().saturating_sub(5)..],
    );
    assert!(!is_long() || *p99 <= bound, "{what}: p99 {p99:?}");
}

#[test]
fn processes_that_are_killed_at_random_lose_nothing_and_repeat_nothing() {
    let mut chance = Chance::of_run(0);
    let mut cell = Cell::start();
    let mut nodes: Vec<_> = (0..NODES)
        .map(|number| Process::start(&cell, &format!("node-{number}"), ROLES, &["--lease", "1s"]))
        .collect();
    // It owns nothing: what it runs is another's once its lease is over.
    nodes.push(Process::start(&cell, "w", "worker", &["--slots", "4", "--lease", "1s"]));
    let load = under_load(&cell, &nodes, Duration::from_millis(10));
    let (mut killed, mut after_store) = (Vec::<(Instant, bool)>::new(), false);
    for _ in 0..cycles(KILLS) {
        pass(chance.millis(50, 800));
        if let Some((at, _)) = killed.last().filter(|_| is_long()) {
            // A takeover is seen alone.
            pace::reach(*at + TAKEOVER);
        }
        // The last one is the store.
        let victim = chance.below(nodes.len() + 1);
        killed.push((pace::from_now(Duration::ZERO), victim < NODES && !after_store));
        after_store = victim == nodes.len();
        let pause = chance.millis(0, 1_500);
        match nodes.get_mut(victim) {
            Some(node) => {
                node.kill();
                pass(pause);
                node.spawn_again();
            }
            None => {
                cell.kill_store();
                pass(pause);
                cell.start_store();
            }
        }
    }
    let (made, asked) = load.stop();
    tell_pauses("kills", &takeovers(&killed, &asked), TAKEOVER);
    judge(&mut cell, &nodes, &made);
}

#[test]
fn owners_that_are_frozen_at_random_lose_nothing_and_repeat_nothing() {
    let mut chance = Chance::of_run(1);
    let mut cell = Cell::start();
    let nodes: Vec<_> = (0..NODES)
        .map(|number| Process::start(&cell, &format!("node-{number}"), ROLES, &["--lease", "1s"]))
        .collect();
    let load = under_load(&cell, &nodes, Duration::from_millis(10));
    freeze(&nodes, cycles(FREEZES), &mut chance);
    let (made, _) = load.stop();
    judge(&mut cell, &nodes, &made);
}

/// One at a time, for half a lease to four.
fn freeze(victims: &[Process], cycles: u64, chance: &mut Chance) {
    let lease = u64::try_from(LEASE.as_millis()).unwrap();
    for _ in 0..cycles {
        pass(chance.millis(50, 500));
        let victim = &victims[chance.below(victims.len())];
        victim.server().freeze(true);
        pass(chance.millis(lease / 2, lease * 4));
        victim.server().freeze(false);
    }
}

#[test]
fn workers_that_are_frozen_at_random_lose_nothing_and_repeat_nothing() {
    let mut chance = Chance::of_run(2);
    let mut cell = Cell::with(Effects::lasting(Duration::from_millis(100)));
    let mut nodes = vec![Process::start(&cell, "s", OWNER, &["--lease", "1s"])];
    let workers = ["w1", "w2"].map(|name| Process::start(&cell, name, "worker", &["--slots", "4", "--lease", "1s"]));
    let load = under_load(&cell, &nodes, Duration::from_millis(50));
    freeze(&workers, cycles(WORKER_FREEZES), &mut chance);
    let (made, _) = load.stop();
    judge(&mut cell, &nodes, &made);
    nodes.extend(workers);
    assert!(nodes.iter_mut().all(Process::is_there));
}

#[test]
fn workers_that_are_frozen_for_half_a_lease_keep_what_they_run() {
    let cell = Cell::shut();
    // Not one second: half of it, a heartbeat and a busy machine would be as long as the lease.
    let lease = Duration::from_secs(4);
    let owner = Process::start(&cell, "s", OWNER, &["--lease", "4s"]);
    let workers = ["w1", "w2"].map(|name| Process::start(&cell, name, "worker", &["--slots", "4", "--lease", "4s"]));
    let mut api = owner.api().unwrap();
    let made = cell.create_all(&mut api, "a", 8);
    pace::until_true("both work", || cell.effects.held() == 8);
    for _ in 0..2 {
        workers.iter().for_each(|worker| worker.server().freeze(true));
        pass(lease / 2);
        workers.iter().for_each(|worker| worker.server().freeze(false));
        // Until each has been heard again.
        pass(lease / 2);
    }
    cell.effects.open_gate();
    cell.all_done(&mut [owner.api().unwrap()], &made);
    for id in &made {
        let tries = tries(&mut api, id);
        assert!(
            [once("w1"), once("w2")].contains(&tries),
            "a living worker was taken for dead: {tries:?}"
        );
    }
}

#[test]
fn processes_that_are_drained_at_random_under_load_cut_nothing_short() {
    let mut chance = Chance::of_run(3);
    let mut cell = Cell::with(Effects::lasting(Duration::from_millis(150)));
    // Longer than any pause here, so that a lost lease is a fault and no accident.
    let more = ["--lease", "15s", "--drain", "30s", "--slots", "4"];
    let mut all: Vec<_> = [("a", ROLES), ("b", ROLES), ("w1", "worker"), ("w2", "worker")]
        .iter()
        .map(|(name, roles)| Process::start(&cell, name, roles, &more))
        .collect();
    let load = under_load(&cell, &all, Duration::from_millis(40));
    let (mut slowest, mut drained) = (Duration::ZERO, Vec::new());
    // A board that has just come up gives nothing away for a session: it may not have heard of every owner yet.
    pass(LEASE * 2);
    for cycle in 0..cycles(DRAINS) {
        pass(chance.millis(100, 600));
        let victim = chance.below(all.len());
        drained.push((pace::from_now(Duration::ZERO), all[victim].api().is_some()));
        let ((code, said), took) = pace::took(|| all[victim].stop());
        assert_eq!(code, Some(0), "cycle {cycle}, {}: {said}", all[victim].name);
        slowest = slowest.max(took);
        // Coming is another pause, and not of this bound.
        drained.push((pace::from_now(Duration::ZERO), false));
        all[victim].start_again();
    }
    let (made, asked) = load.stop();
    tell_pauses("handovers", &takeovers(&drained, &asked), HANDOVER);
    println!("figure: {} drains, the longest took {slowest:?}", cycles(DRAINS));
    cell.all_done(&mut apis(&all), &made);
    let mut api = all[0].api().unwrap();
    for id in &made {
        let tries = tries(&mut api, id);
        // A grant on its way to a worker that stops goes back.
        let is_whole = tries
            .iter()
            .all(|(_, result)| result == "succeeded" || result == "handed_back");
        assert!(is_whole, "{id} was cut short: {tries:?}");
    }
    judge(&mut cell, &all, &made);
}

#[test]
fn the_checkers_find_in_the_record_of_processes_what_is_planted_there() {
    let mut cell = Cell::start();
    let nodes = [Process::start(&cell, "a", ROLES, &["--lease", "1s"])];
    let mut api = nodes[0].api().unwrap();
    cell.tick(&mut api, "tick");
    let made = cell.create_all(&mut api, "a", 3);
    judge(&mut cell, &nodes, &made);
    let violated = || {
        let verdicts = cell.effects.record.judged(&cell.store_folder());
        let bad = verdicts
            .into_iter()
            .filter(|(_, verdict)| !verdict.violations.is_empty());
        bad.map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(violated(), <[&str; 0]>::default());
    let history = cell.effects.record.history();
    let again = history.lock().calls.last().unwrap().clone();
    history.lock().calls.push(again);
    assert_eq!(violated(), ["books_balance", "no_double_effect"]);
    history.lock().calls.pop();
    history.lock().calls[0].at = 0;
    history.lock().acks[0].intent = "nobody's".to_owned();
    let spec = history.lock().specs["tick.1"].clone();
    history.lock().specs.get_mut("tick.1").unwrap().rule = PlainRule::Every {
        every: 500_000,
        anchor: 0,
    };
    assert_eq!(violated(), ["acked_survives", "never_early", "no_missed_fire"]);
    history.lock().specs.insert(spec.tag.clone(), spec);
    assert_eq!(violated(), ["acked_survives", "never_early"]);
}
