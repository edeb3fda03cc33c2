//! The planted bugs: each must be found by its own checker within its budget of seeds.
//!
//! Owns: their list. The switches live in the production path, compiled only for the simulator
//! (`fencepost::planted`), and in the model store. Must never: be on in a run that does not ask.
//! Next: `checkers/`, `tests/seeds.rs`.

use fencepost::planted::Bug;
use fencepost_storage::model::Planted;

/// A planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlantedBug {
    entry: &'static Entry,
}

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    name: &'static str,
    checker: &'static str,
    seeds_max: u64,
    /// The file of `scenarios/` that must find it; without one the swarm does.
    scenario: Option<&'static str>,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Product(Bug),
    Store(Planted),
    Simulator(Canary),
}

/// A bug of the simulator itself, for the checks of its own reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    /// Something of the real process is in the trace: no two runs are the same.
    LeaksTheRealWorld,
    /// A fixed share of seeds must fail.
    RepeatsAnEffect,
}

const BUGS: &[Entry] = &[
    Entry {
        name: "ack-before-sync",
        checker: "acked_survives",
        seeds_max: 40,
        scenario: None,
        place: Place::Store(Planted::AckBeforeSync),
    },
    Entry {
        name: "released-before-durable",
        checker: "acked_survives",
        seeds_max: 40,
        scenario: Some("faults/sick-disk.toml"),
        place: Place::Product(Bug::ReleasedBeforeDurable),
    },
    Entry {
        name: "unknown-taken-for-durable",
        checker: "acked_survives",
        seeds_max: 40,
        scenario: Some("faults/store-outage.toml"),
        place: Place::Product(Bug::UnknownTakenForDurable),
    },
    Entry {
        name: "unknown-never-sent-again",
        checker: "settles",
        seeds_max: 20,
        scenario: None,
        place: Place::Product(Bug::UnknownNeverSentAgain),
    },
    Entry {
        name: "key-per-attempt",
        checker: "no_double_effect",
        seeds_max: 20,
        scenario: Some("faults/worker-crash.toml"),
        place: Place::Product(Bug::KeyPerAttempt),
    },
    Entry {
        name: "fires-ahead",
        checker: "never_early",
        seeds_max: 10,
        scenario: Some("faults/clock-skew.toml"),
        place: Place::Product(Bug::FiresAhead),
    },
    Entry {
        name: "missed-window-dropped",
        checker: "no_missed_fire",
        seeds_max: 40,
        scenario: Some("faults/scheduler-down.toml"),
        place: Place::Product(Bug::MissedWindowDropped),
    },
    Entry {
        name: "fires-under-another-id",
        checker: "no_double_fire",
        seeds_max: 40,
        scenario: Some("faults/two-owners.toml"),
        place: Place::Product(Bug::FiresUnderAnotherId),
    },
    Entry {
        name: "epoch-not-raised",
        checker: "epochs_grow",
        seeds_max: 20,
        scenario: Some("faults/stale-leader.toml"),
        place: Place::Store(Planted::EpochNotRaised),
    },
    Entry {
        name: "cancel-sees-the-unfinished",
        checker: "legal_moves",
        seeds_max: 40,
        scenario: Some("faults/cancel-race.toml"),
        place: Place::Product(Bug::CancelSeesTheUnfinished),
    },
    Entry {
        name: "running-told-as-cancelled",
        checker: "cancel_holds",
        seeds_max: 40,
        scenario: Some("faults/cancel-race.toml"),
        place: Place::Product(Bug::RunningToldAsCancelled),
    },
    Entry {
        name: "fault-taken-for-success",
        checker: "books_balance",
        seeds_max: 20,
        scenario: Some("faults/downstream-errors.toml"),
        place: Place::Product(Bug::FaultTakenForSuccess),
    },
    Entry {
        name: "not-now-told-as-fault",
        checker: "answers",
        seeds_max: 20,
        scenario: Some("faults/store-outage.toml"),
        place: Place::Product(Bug::NotNowToldAsFault),
    },
    Entry {
        name: "request-forgotten",
        checker: "answers",
        seeds_max: 20,
        scenario: None,
        place: Place::Product(Bug::RequestForgotten),
    },
    Entry {
        name: "due-by-own-clock",
        checker: "never_early",
        seeds_max: 20,
        scenario: Some("faults/clock-skew.toml"),
        place: Place::Product(Bug::DueByOwnClock),
    },
    Entry {
        name: "repeated-hour-fires-twice",
        checker: "no_missed_fire",
        seeds_max: 20,
        scenario: Some("clock-changes/berlin-autumn.toml"),
        place: Place::Product(Bug::RepeatedHourFiresTwice),
    },
    Entry {
        name: "gap-time-dropped",
        checker: "no_missed_fire",
        seeds_max: 20,
        scenario: Some("clock-changes/cairo-spring.toml"),
        place: Place::Product(Bug::GapTimeDropped),
    },
    Entry {
        name: "once-tried-again",
        checker: "no_double_effect",
        seeds_max: 20,
        scenario: Some("faults/lost-ack.toml"),
        place: Place::Product(Bug::OnceTriedAgain),
    },
    Entry {
        name: "lost-worker-uncounted",
        checker: "settles",
        seeds_max: 20,
        scenario: Some("faults/poison.toml"),
        place: Place::Product(Bug::LostWorkerUncounted),
    },
    Entry {
        name: "write-free-reply-released-early",
        checker: "acked_survives",
        seeds_max: 40,
        scenario: Some("faults/slow-disk.toml"),
        place: Place::Product(Bug::WriteFreeReplyEarly),
    },
    Entry {
        name: "key-names-the-job",
        checker: "answers",
        seeds_max: 80,
        scenario: None,
        place: Place::Product(Bug::KeyNamesTheJob),
    },
    Entry {
        name: "shard-count-changed",
        checker: "settles",
        seeds_max: 40,
        scenario: Some("faults/waiting-jobs.toml"),
        place: Place::Product(Bug::ShardCountChanged),
    },
    Entry {
        name: "owner-unchecked",
        checker: "one_authority",
        seeds_max: 20,
        scenario: Some("faults/two-owners.toml"),
        place: Place::Store(Planted::OwnerIgnored),
    },
    Entry {
        name: "open-without-compare",
        checker: "one_authority",
        seeds_max: 20,
        scenario: Some("faults/slow-opening.toml"),
        place: Place::Store(Planted::OpenWithoutCompare),
    },
    Entry {
        name: "open-without-assignment",
        checker: "one_authority",
        seeds_max: 40,
        scenario: Some("faults/frozen-opening.toml"),
        place: Place::Store(Planted::OpenWithoutAssignment),
    },
    Entry {
        name: "repeated-batch-applied-again",
        checker: "one_authority",
        seeds_max: 20,
        scenario: Some("faults/slow-disk.toml"),
        place: Place::Store(Planted::DuplicateApplied),
    },
    Entry {
        name: "read-unsynced",
        checker: "acked_survives",
        seeds_max: 40,
        scenario: Some("faults/power-between.toml"),
        place: Place::Store(Planted::ReadUnsynced),
    },
    Entry {
        name: "late-word-taken-for-recorded",
        checker: "acked_survives",
        seeds_max: 20,
        scenario: Some("faults/remote-workers.toml"),
        place: Place::Product(Bug::LateWordTakenForRecorded),
    },
    Entry {
        name: "hand-back-dropped",
        checker: "settles",
        seeds_max: 20,
        scenario: Some("faults/remote-workers.toml"),
        place: Place::Product(Bug::HandBackDropped),
    },
    Entry {
        name: "fence-without-margin",
        checker: "one_authority",
        seeds_max: 40,
        scenario: Some("faults/remote-drift.toml"),
        place: Place::Product(Bug::FenceWithoutMargin),
    },
    Entry {
        name: "leaks-the-real-world",
        checker: "determinism",
        seeds_max: 1,
        scenario: None,
        place: Place::Simulator(Canary::LeaksTheRealWorld),
    },
    Entry {
        name: "repeats-an-effect",
        checker: "no_double_effect",
        seeds_max: 60,
        scenario: None,
        place: Place::Simulator(Canary::RepeatsAnEffect),
    },
];

impl PlantedBug {
    /// All of them.
    pub fn all() -> impl Iterator<Item = PlantedBug> {
        BUGS.iter().map(|entry| PlantedBug { entry })
    }

    /// By its name.
    pub fn named(name: &str) -> Option<PlantedBug> {
        PlantedBug::all().find(|bug| bug.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.entry.name
    }

    /// The checker that must find it.
    pub fn checker(self) -> &'static str {
        self.entry.checker
    }

    /// Seeds within which it must be found.
    pub fn seeds_max(self) -> u64 {
        self.entry.seeds_max
    }

    /// The file of `scenarios/` in which it must be found; without one the swarm finds it.
    pub fn scenario(self) -> Option<&'static str> {
        self.entry.scenario
    }

    /// The bug in the model store, if it lies there.
    pub fn in_store(self) -> Option<Planted> {
        match self.entry.place {
            Place::Store(bug) => Some(bug),
            Place::Product(_) | Place::Simulator(_) => None,
        }
    }

    /// The bug in the product, if it lies there.
    pub fn in_product(self) -> Option<Bug> {
        match self.entry.place {
            Place::Product(bug) => Some(bug),
            Place::Store(_) | Place::Simulator(_) => None,
        }
    }

    /// The canary, if it lies in the simulator itself.
    pub fn canary(self) -> Option<Canary> {
        match self.entry.place {
            Place::Simulator(canary) => Some(canary),
            Place::Product(_) | Place::Store(_) => None,
        }
    }

    /// Whether it lies in the simulator itself.
    pub fn is_canary(self) -> bool {
        self.canary().is_some()
    }

    /// Where it lies, for people.
    pub fn place(self) -> &'static str {
        match self.entry.place {
            Place::Product(_) => "product",
            Place::Store(_) => "model store",
            Place::Simulator(_) => "simulator (canary)",
        }
    }
}
