//! What each checker promises, in a sentence for a person who reads a violation.
//!
//! Owns: these sentences. Must never: miss a checker (a test looks).

/// Checker and promise.
const PROMISES: &[(&str, &str)] = &[
    (
        "no_missed_fire",
        "Every occurrence of a schedule has exactly one fate, one that its policy and what befell the cell explain.",
    ),
    ("no_double_fire", "One occurrence makes one job."),
    (
        "no_double_effect",
        "A job has one effect at a target that honours keys or tokens, under one key, and tokens only grow.",
    ),
    ("never_early", "Nothing starts before it is due."),
    (
        "one_authority",
        "At each instant at most one holder is one whose writes the store accepts: the node that is named, by its last open.",
    ),
    (
        "epochs_grow",
        "What the store accepts is one owner's per epoch; epochs and batch numbers only grow.",
    ),
    (
        "acked_survives",
        "What was acknowledged is there; what a client was told holds.",
    ),
    (
        "settles",
        "Once faults are over, everything due is done within a bound, with no help.",
    ),
    (
        "legal_moves",
        "A job's history is a path in the table of states, and its attempts keep to its policy.",
    ),
    ("cancel_holds", "Nothing starts after the answer that it is cancelled."),
    (
        "books_balance",
        "Jobs, outcomes and the target's ledger explain each other.",
    ),
    (
        "answers",
        "Clients get only answers that a well-formed request may get.",
    ),
    ("run", "A run ends, without a panic and within its limits."),
];

/// What a checker promises; empty for one that is not known here.
pub fn promise(checker: &str) -> &'static str {
    let found = PROMISES.iter().find(|(name, _)| *name == checker);
    found.map_or("", |(_, promise)| promise)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_checker_has_its_promise() {
        for checker in fencepost_history::checkers::names() {
            assert!(!promise(checker).is_empty(), "{checker}");
        }
    }
}
