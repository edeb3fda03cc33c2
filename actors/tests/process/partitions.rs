//! A cell whose processes cannot reach each other for a while, under load, and can again.
//!
//! Owns: cuts, ways that go in one direction only, and what must have begun once they are healed, with no process
//! started anew. `FENCEPOST_CELL_CYCLES` adds a number of drawn partitions for the long run. Next: `cell/net.rs`.

use crate::api::Api;
use crate::cell::{Cell, Chance, LEASE, Load, Net, OWNER, Process, Way, apis, number};
use crate::pace;
use crate::split::ROLES;
use fencepost::api::text::parse_instant;
use std::collections::BTreeSet;
use std::time::Duration;

const STORE: &str = "store";
const NODES: [(&str, &str); 4] = [("a", ROLES), ("b", ROLES), ("s", OWNER), ("w", "worker")];
/// Schedules, spread over shards by their names.
const SCHEDULES: usize = 6;
/// Within this after a healing, all that is due has begun.
const HEALED: Duration = Duration::from_secs(60);

/// A cell with a door in front of each of its processes.
struct Parted {
    net: Net,
    processes: Vec<Process>,
    schedules: Vec<String>,
    cell: Cell,
}

impl Parted {
    fn start() -> Parted {
        let (cell, mut net) = (Cell::start(), Net::new());
        let store = net.door(STORE);
        net.leads(STORE, cell.at());
        net.knows(cell.store().pid(), STORE);
        let mut processes = Vec::new();
        for (name, roles) in NODES {
            let door = net.door(name).to_string();
            let mut more = vec!["--lease", "1s"];
            if roles != "worker" {
                more.extend(["--mesh-advertise", &door]);
            }
            let place = cell.place_over(store, (name, roles), &more);
            let process = Process::spawn_at(place, name, roles);
            net.knows(process.server().pid(), name);
            if roles != "worker" {
                net.leads(name, listens_at(&process));
            }
            processes.push(process);
        }
        processes.iter_mut().for_each(Process::wait);
        let schedules: Vec<String> = (0..SCHEDULES).map(|number| format!("tick-{number}")).collect();
        let mut api = processes[0].api().unwrap();
        for name in &schedules {
            cell.tick(&mut api, name);
        }
        Parted {
            net,
            processes,
            schedules,
            cell,
        }
    }

    fn apis(&self) -> Vec<Api> {
        apis(&self.processes)
    }

    /// Breaks ways, leaves them broken for a while, heals them, and waits until all that was due has begun.
    fn broken(&self, what: &str, load: &Load, breaks: impl FnOnce(&Net)) {
        breaks(&self.net);
        self.net.heal();
        let (made, now) = (load.made(), pace::wall_micros());
        let owed = || {
            let seen = self.cell.effects.seen();
            let jobs = made.iter().filter(|id| !seen.held.contains(*id)).count();
            let fires: usize = self
                .schedules
                .iter()
                .map(|name| owed_fires(&seen.fired_for, name, now))
                .sum();
            (jobs, fires)
        };
        let (all, took) = pace::took(|| pace::within(HEALED, || (owed() == (0, 0)).then_some(())));
        assert!(
            all.is_some(),
            "{what}: jobs and fires that had not begun {HEALED:?} after it was healed: {:?}",
            owed()
        );
        println!("figure: {what}: all that was due had begun {took:?} after it was healed; the bound is {HEALED:?}");
    }

    fn judge(mut self, load: Load) {
        let (made, _) = load.stop();
        self.cell.judge(&mut self.apis(), &made, &self.schedules);
        for process in &mut self.processes {
            assert!(process.is_there(), "{} was not to end", process.name);
        }
    }
}

/// Where it listens for others, by its own log.
fn listens_at(process: &Process) -> std::net::SocketAddr {
    pace::until("where it listens", || {
        let said = process.server().said();
        let (_, rest) = said.split_once("listens for other nodes")?;
        let (_, address) = rest.split_once("address=")?;
        address.split_whitespace().next()?.parse().ok()
    })
}

/// Whole seconds of a schedule up to now that nothing arrived for.
fn owed_fires(fired: &std::collections::BTreeMap<(String, String), u32>, name: &str, now: i64) -> usize {
    let instants = fired.keys().filter(|(schedule, _)| schedule == name);
    let seen: BTreeSet<i64> = instants.map(|(_, instant)| parse_instant(instant).unwrap().0).collect();
    let Some(first) = seen.first() else { return 1 };
    let due = (*first..=now).step_by(1_000_000);
    due.filter(|instant| !seen.contains(instant)).count()
}

/// A while that is longer than a session and an attempt's lease.
fn pass(span: Duration) {
    pace::reach(pace::from_now(span));
}

#[test]
fn what_was_due_in_a_partition_begins_once_it_is_healed_and_nothing_is_lost_or_done_twice() {
    let parted = Parted::start();
    let load = Load::start(&parted.cell, Duration::from_millis(20), || parted.apis());
    let while_broken = LEASE * 5 / 2;
    pass(LEASE);
    parted.broken("halves", &load, |net| {
        net.part(&[STORE, "a", "w"], &["b", "s"], Way::Held);
        pass(while_broken);
    });
    parted.broken("one way, from an owner", &load, |net| {
        [STORE, "a", "s", "w"].iter().for_each(|to| net.set("b", to, Way::Lost));
        pass(while_broken);
    });
    parted.broken("one way, to an owner", &load, |net| {
        [STORE, "b", "s", "w"]
            .iter()
            .for_each(|from| net.set(from, "a", Way::Lost));
        pass(while_broken);
    });
    parted.broken("one way, to a worker", &load, |net| {
        [STORE, "a", "b", "s"]
            .iter()
            .for_each(|from| net.set(from, "w", Way::Lost));
        pass(while_broken);
    });
    parted.broken("an isolated owner", &load, |net| {
        net.part(&["s"], &[STORE, "a", "b", "w"], Way::Cut);
        pass(while_broken);
    });
    parted.broken("flapping", &load, |net| flap(net, &mut Chance::of_run(3)));
    parted.broken("slow", &load, |net| {
        net.part(&["a"], &[STORE, "b", "s", "w"], Way::Slow(Duration::from_millis(30)));
        pass(while_broken);
    });
    let mut chance = Chance::of_run(4);
    for cycle in 0..number("FENCEPOST_CELL_CYCLES", 0) {
        parted.broken(&format!("cycle {cycle}"), &load, |net| draw(net, &mut chance));
    }
    parted.judge(load);
}

/// Each way is drawn on its own.
fn draw(net: &Net, chance: &mut Chance) {
    let names = [STORE, "a", "b", "s", "w"];
    for one in names {
        for other in names.iter().filter(|other| **other != one) {
            let way = [Way::Open, Way::Open, Way::Held, Way::Lost, Way::Cut][chance.below(5)];
            net.set(one, other, way);
        }
    }
    pass(chance.millis(300, 5_000));
}

/// Ways that break and heal again and again, each for less than anybody's patience.
fn flap(net: &Net, chance: &mut Chance) {
    for turn in 0..12 {
        let (one, other) = [(STORE, "a"), ("b", STORE), ("a", "b"), ("w", "s")][turn % 4];
        net.part(&[one], &[other], [Way::Cut, Way::Held, Way::Lost][turn % 3]);
        pass(chance.millis(50, 400));
        net.heal();
        pass(chance.millis(20, 150));
    }
}
