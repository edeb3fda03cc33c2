//! Lines of ready jobs, and which of them an offer asks for.
//!
//! Owns: that no job is granted to a worker that does not run its kind: what only some workers run stands in a line of
//! its own beside its queue's. Must never: look into a job, or walk over lines that were not
//! asked for. Next: `ready.rs`, `grants.rs`, `../name.rs`.

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
        match self.only.is_empty() {
            true => self.next_of_all(turn, lines),
            false => self
                .next_of_named(after, lines)
                .or_else(|| self.next_of_named(Bound::Unbounded, lines)),
        }
    }

    /// Lines of a kind lie together: nothing is passed over, however many there are of the others.
    fn next_of_all<L>(&self, turn: Option<&Name>, lines: &BTreeMap<Name, L>) -> Option<Name> {
        let (from, to) = (Name::lines_from(self.commands), Name::lines_to());
        let first_in = |from| lines.range::<Name, _>((from, Bound::Excluded(&to))).next();
        let turn = turn.filter(|turn| (&from..&to).contains(turn));
        let next = turn.and_then(|turn| first_in(Bound::Excluded(turn)));
        next.or_else(|| first_in(Bound::Included(&from)))
            .map(|(line, _)| line.clone())
    }

    /// Each side leaps to where the other stands: the shorter one bounds the work.
    fn next_of_named<L>(&self, from: Bound<&Name>, lines: &BTreeMap<Name, L>) -> Option<Name> {
        let mut asked = self.only.range::<Name, _>((from, Bound::Unbounded)).next()?;
        loop {
            let (there, _) = lines.range::<Name, _>(asked..).next()?;
            if there == asked {
                return Some(asked.clone());
            }
            asked = self.only.range::<Name, _>(there..).next()?;
        }
    }

    /// Whether any of them is among the lines.
    pub(super) fn are_among<L>(&self, lines: &BTreeMap<Name, L>) -> bool {
        self.next_after(None, lines).is_some()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The choice as a walk over all lines makes it.
    fn naive(asked: &Lines, turn: Option<&Name>, lines: &BTreeMap<Name, ()>) -> Option<Name> {
        let taken = || lines.keys().filter(|line| asked.takes(line));
        let next = taken().find(|line| turn.is_none_or(|turn| *line > turn));
        next.or_else(|| taken().next()).cloned()
    }

    /// A few queues of each kind, with names at both ends of the alphabet.
    fn any_line() -> impl Strategy<Value = Name> {
        let queue = prop::sample::select(vec!["0", "9-", "A", "Z_", "a", "m.n", "z", "zz"]);
        (queue, 0..3_u8).prop_map(|(queue, kind)| {
            let queue = Name::new(queue).unwrap();
            match kind {
                0 => queue,
                1 => queue.command_line(),
                _ => queue.remote_line(),
            }
        })
    }

    proptest! {
        #[test]
        fn the_next_line_is_the_one_that_a_walk_finds(
            there in prop::collection::btree_set(any_line(), 0..12),
            only in prop::collection::vec(any_line(), 0..6),
            commands: bool,
            turn in prop::option::of(any_line()),
        ) {
            let lines: BTreeMap<Name, ()> = there.into_iter().map(|line| (line, ())).collect();
            let asked = Lines::of(only, commands);
            let next = asked.next_after(turn.as_ref(), &lines);
            prop_assert_eq!(&next, &naive(&asked, turn.as_ref(), &lines));
            prop_assert_eq!(asked.are_among(&lines), next.is_some());
        }
    }
}
