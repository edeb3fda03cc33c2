//! Lines of commands: who does not run them is not granted them, and finds everything else as if they were not there.

use crate::steps;
use crate::support::lease_harness::Leases;
use crate::support::make::{failed, item, job_id, name, spec, succeeded, worker};
use fencepost_core::ids::{OfferId, WorkerId};
use fencepost_core::job::{JobSpec, JobState};
use fencepost_core::lease_manager::io::{LeaseEffect, LeaseInput};
use fencepost_core::level;
use fencepost_core::limits::{CLASS_COUNT_MAX, LINE_MOVES_PER_STEP_MAX, READY_WINDOW_JOBS};
use fencepost_core::row::{Row, RowKey};
use fencepost_core::time::Span;

fn command() -> JobSpec {
    JobSpec {
        target: steps::command(),
        ..spec()
    }
}

/// What a worker is granted that runs commands, or none.
fn granted(leases: &mut Leases, commands: bool, slots: u32) -> Vec<u64> {
    granted_of(leases, commands, slots, &[])
}

fn granted_of(leases: &mut Leases, commands: bool, slots: u32, queues: &[&str]) -> Vec<u64> {
    leases.commands = commands;
    leases.offers += 1;
    let grants = leases.offer_as(&worker("a", 1 + u64::from(commands)), leases.offers, slots, queues);
    leases.check();
    let number = |job| (1..20_000).find(|number| job_id(*number) == job).unwrap();
    grants.iter().map(|grant| number(grant.job.id)).collect()
}

#[test]
fn who_runs_no_commands_is_granted_everything_else() {
    for queues in [&[][..], &["default"][..]] {
        let mut leases = Leases::new();
        for number in 1..=6 {
            let spec = if number % 2 == 1 { command() } else { spec() };
            leases.create(item(number, spec)).unwrap();
        }
        assert_eq!(granted_of(&mut leases, false, 9, queues), [2, 4, 6]);
        assert!(
            granted_of(&mut leases, false, 9, queues).is_empty(),
            "not even if nothing else is there"
        );
        assert!(granted_of(&mut leases, true, 9, &["other"]).is_empty());
        assert_eq!(granted_of(&mut leases, true, 9, queues), [1, 3, 5]);
    }
}

#[test]
fn f30_any_number_of_commands_before_it_keeps_no_other_job_waiting() {
    let mut leases = Leases::new();
    let flood = READY_WINDOW_JOBS as u64 + 500;
    for number in 1..=flood {
        leases.create(item(number, command())).unwrap();
    }
    leases.create(item(flood + 1, spec())).unwrap();
    for _ in 0..2 {
        assert_eq!(granted(&mut leases, false, 9), [flood + 1]);
        leases.restart();
        leases.pass(Span::from_secs(40));
    }
    let mut all = 0;
    while all < flood {
        let some = granted(&mut leases, true, 1_000).len() as u64;
        assert!(some > 0, "{all} of {flood}");
        all += some;
    }
}

/// More than the windows hold: what nobody asks for must leave memory for what somebody does.
#[test]
fn f30_large_jobs_that_nobody_runs_keep_no_other_line_out_of_memory() {
    let mut leases = Leases::new();
    let large = |queue, is_command: bool| JobSpec {
        queue: name(queue),
        payload: steps::large(),
        ..if is_command { command() } else { spec() }
    };
    for (number, queue) in (1..).zip(["a", "b", "c", "d"]) {
        leases.create(item(number, large(queue, true))).unwrap();
    }
    for number in 5..=6 {
        leases.create(item(number, large("e", false))).unwrap();
    }
    leases.restart();
    let mut all = Vec::new();
    for _ in 0..4 {
        all.extend(granted(&mut leases, false, 1));
    }
    assert_eq!(all, [5, 6]);
    for _ in 0..8 {
        all.extend(granted(&mut leases, true, 1));
    }
    all.sort_unstable();
    assert_eq!(all, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn an_offer_that_waits_gets_no_command_that_comes() {
    let mut leases = Leases::new();
    let wait = |leases: &mut Leases, worker: WorkerId, offer, commands| {
        leases.take_effects();
        leases.step(LeaseInput::Offer {
            worker,
            offer: OfferId(offer),
            slots: 1,
            queues: Vec::new(),
            commands,
            waits: true,
            apart: 0,
        });
    };
    let sent = |leases: &mut Leases| {
        let effects = leases.take_effects();
        let to = effects.into_iter().filter_map(|effect| match effect {
            LeaseEffect::SendGrants { worker, grants, .. } if !grants.is_empty() => Some(worker),
            _ => None,
        });
        to.collect::<Vec<_>>()
    };
    wait(&mut leases, worker("without", 1), 1, false);
    leases.create(item(1, command())).unwrap();
    assert_eq!(sent(&mut leases), []);
    wait(&mut leases, worker("with", 1), 2, true);
    assert_eq!(sent(&mut leases), [worker("with", 1)]);
    leases.create(item(2, spec())).unwrap();
    assert_eq!(sent(&mut leases), [worker("without", 1)]);
    leases.check();
}

#[test]
fn a_command_that_lost_its_worker_is_tried_by_one_that_runs_it() {
    let mut leases = Leases::new();
    leases.create(item(1, command())).unwrap();
    assert_eq!(granted(&mut leases, true, 1), [1]);
    leases.pass(Span::from_secs(60));
    assert!(granted(&mut leases, false, 9).is_empty());
    assert_eq!(granted(&mut leases, true, 9), [1]);
    // And one that failed, after its wait.
    let token = leases.machine.current_attempt(job_id(1)).unwrap().token;
    leases.report(&worker("a", 2), job_id(1), token, failed());
    leases.pass(Span::from_secs(60));
    assert!(granted(&mut leases, false, 9).is_empty());
    assert_eq!(granted(&mut leases, true, 9), [1]);
    let token = leases.machine.current_attempt(job_id(1)).unwrap().token;
    leases.report(&worker("a", 2), job_id(1), token, succeeded());
    assert_eq!(leases.state(1), JobState::Succeeded);
    leases.check();
}

fn ready_lines(leases: &Leases) -> Vec<String> {
    let rows = leases.rows.rows.keys();
    let lines = rows.filter_map(|key| match key {
        RowKey::Ready(row) => Some(row.queue.to_string()),
        _ => None,
    });
    lines.collect()
}

#[test]
fn before_the_cell_is_raised_commands_stand_among_the_others_and_move_afterwards() {
    for restarts in [false, true] {
        let mut leases = Leases::new();
        leases.level = level::FIRST;
        leases.machine.set_level(level::FIRST);
        for number in 1..=3 {
            leases.create(item(number, command())).unwrap();
        }
        leases.create(item(4, spec())).unwrap();
        assert_eq!(ready_lines(&leases), ["default"; 4], "as the version before reads it");
        assert_eq!(granted(&mut leases, false, 1), [1], "as ever");
        leases.level = level::NEWEST;
        leases.machine.set_level(level::NEWEST);
        if restarts {
            leases.restart();
        }
        leases.cancel(2).unwrap();
        assert_eq!(granted(&mut leases, false, 9), [4]);
        assert_eq!(ready_lines(&leases), ["!default"]);
        assert!(granted(&mut leases, false, 9).is_empty());
        leases.restart();
        assert_eq!(granted(&mut leases, true, 9), [3]);
        assert_eq!(ready_lines(&leases), [""; 0]);
    }
}

/// Offers that wait are served in one step, and each may meet commands that stand among the others.
#[test]
fn one_step_moves_so_many_commands_and_the_next_goes_on() {
    let mut leases = Leases::new();
    leases.level = level::FIRST;
    leases.machine.set_level(level::FIRST);
    leases.machine.set_holds_back(true);
    for number in 1..=12 {
        leases.step(LeaseInput::Offer {
            worker: worker("without", number),
            offer: OfferId(number),
            slots: 1,
            queues: Vec::new(),
            commands: false,
            waits: true,
            apart: 0,
        });
    }
    let all = 2 * LINE_MOVES_PER_STEP_MAX + 9;
    for number in 1..=all as u64 {
        leases.create(item(number, command())).unwrap();
    }
    leases.level = level::NEWEST;
    leases.machine.set_level(level::NEWEST);
    leases.machine.set_holds_back(false);
    let moved = |leases: &Leases| ready_lines(leases).iter().filter(|line| *line == "!default").count();
    let (mut before, mut steps) = (0, 0);
    while before < all {
        let wake = leases.machine.next_wake().mono;
        assert!(
            steps == 0 || wake.is_some_and(|at| at <= leases.now.mono),
            "after {before}"
        );
        leases.step(LeaseInput::Tick);
        leases.answer_loads();
        leases.check();
        let now = moved(&leases);
        assert!(
            now > before && now - before <= LINE_MOVES_PER_STEP_MAX,
            "{before}, {now}"
        );
        (before, steps) = (now, steps + 1);
    }
    leases.step(LeaseInput::Tick);
    assert!(
        leases.machine.next_wake().mono.is_none_or(|at| at > leases.now.mono),
        "it rests"
    );
    assert_eq!(granted(&mut leases, true, 5).len(), 5);
}

/// A queue counts once in the directory, whichever of its lines have jobs.
#[test]
fn f30_a_full_directory_refuses_new_queues_and_no_line_of_a_known_one() {
    let mut leases = Leases::new();
    let in_queue = |number: u64, spec: JobSpec| {
        let queue = name(&format!("q{number}"));
        JobSpec { queue, ..spec }
    };
    let most = CLASS_COUNT_MAX as u64;
    for number in 1..=most {
        leases.create(item(number, in_queue(number, spec()))).unwrap();
    }
    let refused = |leases: &mut Leases, number, spec| leases.create(item(number, spec)).unwrap_err().code;
    for (number, spec) in [(most + 1, spec()), (most + 2, command())] {
        assert_eq!(refused(&mut leases, number, in_queue(number, spec)), "queue_limit");
    }
    for number in 1..=3 {
        leases
            .create(item(most + 10 + number, in_queue(number, command())))
            .unwrap();
    }
    leases.check();
    // A line that is worked off gives no room while its queue has another.
    assert_eq!(granted_of(&mut leases, false, 1, &["q1"]), [1]);
    assert_eq!(
        refused(&mut leases, most + 1, in_queue(most + 1, spec())),
        "queue_limit"
    );
    leases.cancel(most + 11).unwrap();
    // It had been pushed out of memory: that nothing is left of its line shows when a page of it is asked for.
    assert!(granted_of(&mut leases, true, 1, &["q1"]).is_empty());
    leases.create(item(most + 1, in_queue(most + 1, command()))).unwrap();
    assert_eq!(
        refused(&mut leases, most + 2, in_queue(most + 2, spec())),
        "queue_limit"
    );
    leases.check();
}

/// No worker has to ask for them first.
#[test]
fn f30_a_queue_whose_jobs_were_cancelled_or_expired_makes_room_at_once() {
    let mut leases = Leases::new();
    let in_queue = |number: u64, spec: JobSpec| {
        let queue = name(&format!("q{number}"));
        JobSpec { queue, ..spec }
    };
    let most = CLASS_COUNT_MAX as u64;
    let ends = Some(leases.now.store + Span::from_secs(5));
    for number in 1..=most {
        let expires_at = ends.filter(|_| number == 2);
        let spec = JobSpec { expires_at, ..spec() };
        leases.create(item(number, in_queue(number, spec))).unwrap();
    }
    let mut next = most;
    let mut takes_one_more = |leases: &mut Leases| {
        next += 1;
        leases.create(item(next, in_queue(next, spec()))).unwrap();
        leases.check();
        let refused = leases.create(item(most + 100, in_queue(most + 100, spec())));
        assert_eq!(refused.unwrap_err().code, "queue_limit");
    };
    leases.cancel(1).unwrap();
    takes_one_more(&mut leases);
    leases.pass(Span::from_secs(10));
    assert_eq!(leases.state(2), JobState::Expired);
    takes_one_more(&mut leases);
    // What stands in the other lines keeps its turn.
    for number in [3, 4] {
        assert_eq!(granted_of(&mut leases, true, 9, &[&format!("q{number}")]), [number]);
    }
    for gone in ["q1", "q2"] {
        assert!(granted_of(&mut leases, true, 9, &[gone]).is_empty());
    }
    leases.check();
}

#[test]
fn a_command_is_cancelled_in_whichever_line_and_window_it_stands() {
    for (at, raised) in [(level::FIRST, level::NEWEST), (level::NEWEST, level::NEWEST)] {
        let mut leases = Leases::new();
        (leases.level, leases.hold_loads) = (at, false);
        leases.machine.set_level(at);
        leases.create(item(1, command())).unwrap();
        leases.machine.set_level(raised);
        leases.level = raised;
        leases.hold_loads = true;
        // Nothing of the range is in memory.
        leases.restart();
        leases.cancel(1).unwrap();
        let places = leases
            .rows
            .rows
            .values()
            .filter(|row| matches!(row, Row::Ready(_) | Row::Wait(_)));
        assert_eq!(places.count(), 0);
        leases.hold_loads = false;
        leases.answer_loads();
        assert!(granted(&mut leases, true, 9).is_empty());
        leases.check();
    }
}

#[test]
fn the_names_of_lines_are_none_of_users() {
    let line = name("mail").command_line();
    assert!(fencepost_core::name::Name::new(line.as_str()).is_err());
    assert_eq!(fencepost_core::name::Name::line(line.as_str()), Ok(line));
}
