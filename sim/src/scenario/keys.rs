//! What may stand in a scenario file: sections, kinds, keys, words.
//!
//! Owns: the tables that `reader.rs` reads by. Must never: hold a default that `plan.rs` decides otherwise.
//! Next: `reader.rs`, `plan.rs`.

use super::states::STATES;
use fencepost_history::checkers::NAMES;
use fencepost_history::zones::{CHANGE_NAMES, ZONE_NAMES};

/// What a key wants.
#[derive(Clone, Copy, Debug)]
pub enum Want {
    /// A sentence.
    Text,
    /// A number, or `"1..3"`.
    Count {
        /// Lowest.
        least: u64,
        /// Highest.
        most: u64,
    },
    /// A length of time: `"5s"`, `"0.5..4 lease"`.
    Length {
        /// Longest, in microseconds.
        most: i64,
    },
    /// A length that may be below zero.
    Offset {
        /// Furthest, in microseconds.
        most: i64,
    },
    /// True or false.
    Switch,
    /// One of these words; of a list the seed takes one.
    OneOf(&'static [&'static str]),
    /// Any of these words; of a list all.
    AllOf(&'static [&'static str]),
    /// Cron expressions with seconds, alone or in a list.
    Crons,
    /// One of this program's handlers; of a list the seed takes one.
    Handler,
    /// JSON texts, alone or in a list.
    Payloads,
    /// A section of its own.
    Section(&'static [Key]),
}

/// A key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it wants.
    pub want: Want,
    /// Whether it must be there.
    pub is_needed: bool,
}

const fn may(name: &'static str, want: Want) -> Key {
    Key {
        name,
        want,
        is_needed: false,
    }
}

const fn must(name: &'static str, want: Want) -> Key {
    Key {
        name,
        want,
        is_needed: true,
    }
}

/// A kind of workload or fault, with the keys that only it has.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its word.
    pub name: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

const MINUTE: i64 = 60_000_000;
const PERCENT: Want = Want::Count { least: 1, most: 100 };
const ATTEMPTS: Want = Want::Count { least: 1, most: 100 };
/// Longest that workloads go on.
pub const OVER_MAX: i64 = 20 * MINUTE;
const WITHIN: Want = Want::Length { most: OVER_MAX };

/// Sections at the top.
pub const SECTIONS: &[&str] = &["topology", "workload", "fault", "expect"];

/// Where nodes stand, by role.
pub const NODES: &[Key] = &[
    may("store", Want::Count { least: 0, most: 1 }),
    must("scheduler", Want::Count { least: 1, most: 3 }),
    may("worker", Want::Count { least: 0, most: 6 }),
    may("remote", Want::Count { least: 0, most: 6 }),
];

/// `[topology]`.
pub const TOPOLOGY: &[Key] = &[
    must("nodes", Want::Section(NODES)),
    may("shards", Want::Count { least: 1, most: 16 }),
    may("slots", Want::Count { least: 1, most: 64 }),
    may("schedulers_work", Want::Switch),
    may("lease", Want::Length { most: MINUTE }),
    may("heartbeat", Want::Length { most: MINUTE }),
    may("latency", Want::Length { most: 500_000 }),
    may("starts", Want::OneOf(CHANGE_NAMES)),
    may("starts_before", Want::Length { most: 10 * MINUTE }),
];

const EFFECTS: &[&str] = &["key", "token", "neither"];
const DELIVERIES: &[&str] = &["at-least-once", "at-most-once"];

/// `[[workload]]`, by kind.
pub const WORKLOADS: &[Kind] = &[
    Kind {
        name: "one-shot-jobs",
        keys: &[
            must("count", Want::Count { least: 1, most: 20_000 }),
            must("over", WITHIN),
            may("clients", Want::Count { least: 1, most: 8 }),
            may("effect", Want::OneOf(EFFECTS)),
            may("handler", Want::Handler),
            may("payload", Want::Payloads),
            may("delivery", Want::OneOf(DELIVERIES)),
            may("attempts", ATTEMPTS),
            may("timeout", Want::Length { most: 10 * MINUTE }),
            may("takes", Want::Length { most: 10 * MINUTE }),
            may("delay", WITHIN),
            may("kills_its_worker", Want::Switch),
            may("remote", Want::Switch),
            may("works", Want::Length { most: 10 * MINUTE }),
        ],
    },
    Kind {
        name: "schedules",
        keys: &[
            must("count", Want::Count { least: 1, most: 500 }),
            must("over", WITHIN),
            may("cron", Want::Crons),
            may("every", WITHIN),
            may("tz", Want::OneOf(ZONE_NAMES)),
            may("gap", Want::OneOf(&["next-valid", "skip"])),
            may("overlap", Want::OneOf(&["first", "second", "both"])),
            may("misfire", Want::OneOf(&["latest", "coalesce", "all", "skip"])),
            may("cap", Want::Count { least: 1, most: 1_000 }),
            may("tolerance", WITHIN),
            may("grace", WITHIN),
            may("jitter", WITHIN),
            may("effect", Want::OneOf(EFFECTS)),
            may("handler", Want::Handler),
            may("payload", Want::Payloads),
            may("delivery", Want::OneOf(DELIVERIES)),
            may("attempts", ATTEMPTS),
            may("timeout", Want::Length { most: 10 * MINUTE }),
            may("takes", Want::Length { most: 10 * MINUTE }),
            may("remote", Want::Switch),
            may("works", Want::Length { most: 10 * MINUTE }),
        ],
    },
    Kind {
        name: "cancels",
        keys: &[must("percent", PERCENT), may("after", WITHIN)],
    },
    Kind {
        name: "looks",
        keys: &[
            must("over", WITHIN),
            may("every", WITHIN),
            may("clients", Want::Count { least: 1, most: 4 }),
        ],
    },
    Kind {
        name: "edits",
        keys: &[may("works", Want::AllOf(WORKS)), may("every", WITHIN)],
    },
];

/// What is done by hand to schedules.
pub const WORKS: &[&str] = &["edit", "pause", "run-now", "backfill", "delete"];

/// What a machine is for.
pub const ROLES: &[&str] = &["store", "scheduler", "worker"];
/// The same, and workers over HTTP, which have no part in what nodes say to each other.
const PROCESSES: &[&str] = &["store", "scheduler", "worker", "remote"];
/// The same, and the target.
const REACHED: &[&str] = &["store", "scheduler", "worker", "remote", "target"];

/// Keys of every fault.
pub const FAULT: &[Key] = &[
    may("after", WITHIN),
    may("times", Want::Count { least: 1, most: 500 }),
    may("every", WITHIN),
    may("lasts", WITHIN),
];

const ROLE: Key = must("role", Want::OneOf(ROLES));
/// Machines whose monotonic clocks may run at a pace of their own: the store's measures time for all.
const NODES_APART: &[&str] = &["scheduler", "worker", "remote"];
const PROCESS: Key = must("role", Want::OneOf(PROCESSES));
const FROM: Key = may("from", Want::OneOf(ROLES));
const SHARE: Key = may("percent", PERCENT);

/// Kinds of faults of the connections between nodes.
pub const LINKS: &[&str] = &["lossy", "slow-link", "reset", "half-open", "duplicate", "reorder"];

/// `[[fault]]`, by kind.
pub const FAULTS: &[Kind] = &[
    Kind {
        name: "crash",
        keys: &[PROCESS],
    },
    Kind {
        name: "power",
        keys: &[ROLE],
    },
    Kind {
        name: "pause",
        keys: &[PROCESS],
    },
    Kind {
        name: "cut",
        keys: &[
            must("role", Want::OneOf(REACHED)),
            may("from", Want::OneOf(REACHED)),
            may("ways", Want::OneOf(&["both", "in", "out"])),
        ],
    },
    Kind {
        name: "rolling-restart",
        keys: &[PROCESS, may("between", WITHIN)],
    },
    Kind {
        name: "clock",
        keys: &[ROLE, must("by", Want::Offset { most: 3_600_000_000 })],
    },
    Kind {
        name: "drift",
        keys: &[
            must("role", Want::OneOf(NODES_APART)),
            must("ppm", Want::Count { least: 1, most: 90_000 }),
        ],
    },
    Kind {
        name: "lossy",
        keys: &[ROLE, FROM, SHARE, may("by", Want::Length { most: MINUTE })],
    },
    Kind {
        name: "slow-link",
        keys: &[
            ROLE,
            FROM,
            must(
                "bandwidth",
                Want::Count {
                    least: 100,
                    most: 1_000_000_000,
                },
            ),
        ],
    },
    Kind {
        name: "reset",
        keys: &[ROLE, FROM],
    },
    Kind {
        name: "half-open",
        keys: &[ROLE, FROM],
    },
    Kind {
        name: "duplicate",
        keys: &[ROLE, FROM, SHARE],
    },
    Kind {
        name: "reorder",
        keys: &[ROLE, FROM, SHARE],
    },
    Kind {
        name: "store-away",
        keys: &[],
    },
    Kind {
        name: "store-full",
        keys: &[],
    },
    Kind {
        name: "store-slow",
        keys: &[SHARE, may("by", Want::Length { most: MINUTE })],
    },
    Kind {
        name: "store-unknown",
        keys: &[SHARE],
    },
    Kind {
        name: "store-sick",
        keys: &[],
    },
    Kind {
        name: "target-errors",
        keys: &[SHARE],
    },
    Kind {
        name: "target-loses-answers",
        keys: &[SHARE],
    },
    Kind {
        name: "target-hangs",
        keys: &[SHARE],
    },
    Kind {
        name: "target-slow",
        keys: &[SHARE, may("by", Want::Length { most: MINUTE })],
    },
];

/// `[expect]`.
pub const EXPECT: &[Key] = &[
    may("invariants", Want::AllOf(INVARIANTS)),
    may("sometimes", Want::AllOf(SEEN)),
    may("settles_within", Want::Length { most: 30 * MINUTE }),
];

const INVARIANTS: &[&str] = NAMES;
const SEEN: &[&str] = STATES;

/// Every list of keys with what holds it, to say where a key belongs.
pub fn places() -> Vec<(String, &'static [Key])> {
    let of = |section: &str, kinds: &'static [Kind]| {
        let named = kinds
            .iter()
            .map(|kind| (format!("a {section} of kind {}", kind.name), kind.keys));
        named.collect::<Vec<_>>()
    };
    let mut places = vec![
        ("[topology]".to_owned(), TOPOLOGY),
        ("nodes of [topology]".to_owned(), NODES),
        ("[expect]".to_owned(), EXPECT),
        ("a [[fault]]".to_owned(), FAULT),
    ];
    places.extend(of("[[workload]]", WORKLOADS));
    places.extend(of("[[fault]]", FAULTS));
    places
}
