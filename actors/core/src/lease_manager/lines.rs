//! Lines of ready jobs, and which of them an offer asks for.
//!
//! Owns: that no job is granted to a worker that does not run its kind: what only some workers run stands in a line of
//! its own beside its queue's. Must never: look into a job. Next: `ready.rs`, `grants.rs`, `../name.rs`.

use crate::name::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// The lines that an offer asks for.
#[derive(Clone, Debug, Hash)]
pub(super) struct Lines {
    /// Only these; empty means all queues'.
    only: BTreeSet<Name>,
    /// Those of commands, too.
    commands: bool,
}

impl Lines {
    /// Of an offer that names these queues, or none for all of them.
    pub(super) fn of(queues: Vec<Name>, commands: bool) -> Lines {
        let mut only: BTreeSet<Name> = queues.into_iter().collect();
        if commands {
            let beside: Vec<Name> = only
                .iter()
                .filter(|line| line.is_queue())
                .map(Name::command_line)
                .collect();
            only.extend(beside);
        }
        Lines { only, commands }
    }

    /// Whether it is one of them.
    pub(super) fn takes(&self, line: &Name) -> bool {
        match self.only.is_empty() {
            true => !line.is_remote_line() && (self.commands || !line.is_command_line()),
            false => self.only.contains(line),
        }
    }

    /// Whether they are those of a claim.
    pub(super) fn are_remote(&self) -> bool {
        self.only.first().is_some_and(Name::is_remote_line)
    }

    /// The next of them, in turn after this one, that is among the lines.
    pub(super) fn next_after<L>(&self, turn: Option<&Name>, lines: &BTreeMap<Name, L>) -> Option<Name> {
        let after = turn.map_or(Bound::Unbounded, Bound::Excluded);
        if self.only.is_empty() {
            let mut rest = lines.range::<Name, _>((after, Bound::Unbounded));
            let next = rest.find(|(line, _)| self.takes(line));
            let next = next.or_else(|| lines.iter().find(|(line, _)| self.takes(line)));
            return next.map(|(line, _)| line.clone());
        }
        let mut rest = self.only.range::<Name, _>((after, Bound::Unbounded));
        let next = rest.find(|line| lines.contains_key(*line));
        next.or_else(|| self.only.iter().find(|line| lines.contains_key(*line)))
            .cloned()
    }

    /// Whether any of them is among the lines.
    pub(super) fn are_among<L>(&self, lines: &BTreeMap<Name, L>) -> bool {
        self.next_after(None, lines).is_some()
    }
}
