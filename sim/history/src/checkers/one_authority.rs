//! P4: at each instant at most one holder is one whose writes the store accepts, and it is the one that was named.
//!
//! Owns: the contract of opens and batches (PROTOCOL F2, F6), judged by what the store was asked and said, and when.
//! Must never: judge calls that overlap by an order that nobody saw. Next: `epochs_grow.rs` (the order of batches).

use super::{Evidence, Subject, Verdict};
use crate::seen::{BatchTold, Named, Opening, Seen, Word};
use fencepost_core::ids::{BatchNo, Epoch, Holder, JobId, Scope};
use std::collections::BTreeMap;

/// Judges every open that was granted, and every word about a batch.
pub fn check(evidence: &Evidence<'_>, verdict: &mut Verdict) {
    let seen = evidence.seen;
    let raised = raised(seen);
    for opening in &seen.openings {
        check_open(seen, opening, verdict);
    }
    check_holders(seen, verdict);
    for told in seen.batches.iter().filter(|told| is_in(told.word)) {
        let newest = newest_before(&raised, told.scope, told.asked_at);
        verdict.expect_of(told.epoch >= newest, || {
            let what = format!("{told:?} was accepted after epoch {} was opened", newest.0);
            (Subject::default().at(told.told_at), what)
        });
    }
    check_repeats(seen, verdict);
    check_handed(seen, verdict);
}

/// An attempt that is handed out over HTTP is one process's.
fn check_handed(seen: &Seen, verdict: &mut Verdict) {
    let mut processes: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for handed in &seen.handed {
        let attempt = (handed.job.as_str(), handed.token.as_str());
        let first = *processes.entry(attempt).or_insert(&handed.to);
        verdict.expect_of(first == handed.to, || {
            let what = format!(
                "{}: attempt {} was handed to {first} and to {}",
                handed.job, handed.token, handed.to
            );
            (about(handed.at, &handed.job, &handed.token), what)
        });
    }
    check_begun(seen, verdict);
}

/// Whoever begins an effect over HTTP has the attempt: its owner has not ended it.
fn check_begun(seen: &Seen, verdict: &mut Verdict) {
    let mut over: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for ended in &seen.over {
        over.entry((&ended.job, &ended.token)).or_insert(ended.at);
    }
    for begun in &seen.begun {
        let ended = over.get(&(begun.job.as_str(), begun.token.as_str()));
        verdict.expect_of(ended.is_none_or(|ended| begun.at <= *ended), || {
            let late = begun.at.saturating_sub(ended.copied().unwrap_or_default());
            let what = format!(
                "{}: attempt {} was begun {late} us after its owner had ended it",
                begun.job, begun.token
            );
            (about(begun.at, &begun.job, &begun.token), what)
        });
    }
}

fn about(at: u64, job: &str, token: &str) -> Subject {
    Subject {
        job: JobId::parse(job),
        token: Some(token.to_owned()),
        at: Some(at),
        occurrence: None,
    }
}

fn is_in(word: Word) -> bool {
    match word {
        Word::Committed | Word::Already => true,
        Word::Lost | Word::Conflict => false,
    }
}

/// An open is a compare-and-set, for the node that is named.
fn check_open(seen: &Seen, opening: &Opening, verdict: &mut Verdict) {
    let about = || Subject::default().at(opening.told_at);
    verdict.expect_of(opening.epoch.0 == opening.expected.0 + 1, || {
        (about(), format!("{opening:?} did not raise the epoch that it expected"))
    });
    if matches!(opening.scope, Scope::Shard(_)) {
        verdict.expect_of(was_named(seen, opening), || {
            (about(), format!("{opening:?} was not for the node that is named"))
        });
    }
}

/// Whether the node may have been the one named at some moment between the question and the answer.
fn was_named(seen: &Seen, opening: &Opening) -> bool {
    let of_scope = || seen.named.values().filter(|named| named.scope == opening.scope);
    let is_over = |one: &Named| {
        let later = |other: &Named| other.by > one.by && other.told_at.is_some_and(|at| at < opening.asked_at);
        of_scope().any(later)
    };
    let may_be = |one: &&Named| one.node == opening.node && one.asked_at <= opening.told_at && !is_over(one);
    of_scope().any(|named| may_be(&named))
}

/// An epoch is one holder's.
fn check_holders(seen: &Seen, verdict: &mut Verdict) {
    let opened = seen.openings.iter().map(|one| (one.scope, one.epoch, one.holder));
    let wrote = seen.batches.iter().filter(|told| is_in(told.word));
    let wrote = wrote.map(|told| (told.scope, told.epoch, told.holder));
    let mut holders: BTreeMap<(Scope, Epoch), Holder> = BTreeMap::new();
    for (scope, epoch, holder) in opened.chain(wrote) {
        let first = *holders.entry((scope, epoch)).or_insert(holder);
        verdict.expect(first == holder, || {
            format!("{scope:?}: epoch {} is held by {first:?} and by {holder:?}", epoch.0)
        });
    }
}

/// What tells a batch from every other.
type Batch = (Scope, Epoch, Holder, BatchNo, u64);

/// The same bytes under the same number get the same answer for ever: they are in once, and never in conflict then.
fn check_repeats(seen: &Seen, verdict: &mut Verdict) {
    let mut words: BTreeMap<Batch, Vec<&BatchTold>> = BTreeMap::new();
    for told in &seen.batches {
        let batch = (told.scope, told.epoch, told.holder, told.number, told.digest);
        words.entry(batch).or_default().push(told);
    }
    for told in words.into_values() {
        verdict.expect_of(!is_answered_twice(&told), || {
            let about = told
                .last()
                .map_or_else(Subject::default, |last| Subject::default().at(last.told_at));
            (
                about,
                format!("one batch, sent again, was answered differently: {told:?}"),
            )
        });
    }
}

fn is_answered_twice(told: &[&BatchTold]) -> bool {
    let with = |word: Word| told.iter().filter(move |told| told.word == word);
    let first_in = told
        .iter()
        .filter(|told| told.word != Word::Conflict)
        .map(|told| told.told_at)
        .min();
    let is_in_conflict = first_in.is_some() && with(Word::Conflict).next().is_some();
    let comes_in_again = with(Word::Committed).any(|told| first_in.is_some_and(|at| at < told.asked_at));
    is_in_conflict || comes_in_again || with(Word::Committed).count() > 1
}

/// By scope, when an epoch was known to be there and none before it any more.
fn raised(seen: &Seen) -> BTreeMap<Scope, Vec<(u64, Epoch)>> {
    let mut raised: BTreeMap<Scope, Vec<(u64, Epoch)>> = BTreeMap::new();
    for opening in &seen.openings {
        let of_scope = raised.entry(opening.scope).or_default();
        of_scope.push((opening.told_at, opening.epoch));
    }
    for of_scope in raised.values_mut() {
        of_scope.sort_unstable();
        let mut highest = Epoch(0);
        for (_, epoch) in of_scope.iter_mut() {
            highest = highest.max(*epoch);
            *epoch = highest;
        }
    }
    raised
}

fn newest_before(raised: &BTreeMap<Scope, Vec<(u64, Epoch)>>, scope: Scope, at: u64) -> Epoch {
    let none = Vec::new();
    let of_scope = raised.get(&scope).unwrap_or(&none);
    let before = of_scope.partition_point(|(told_at, _)| *told_at < at);
    let last = before.checked_sub(1).and_then(|last| of_scope.get(last));
    last.map_or(Epoch(0), |(_, epoch)| *epoch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::Setting;
    use fencepost_core::ids::ShardId;
    use fencepost_core::name::Name;

    const SHARD: Scope = Scope::Shard(ShardId(1));

    fn node(name: &str) -> Name {
        Name::new(name).expect("a legal name")
    }

    fn named(name: &str, number: u64, at: u64) -> Named {
        Named {
            scope: SHARD,
            node: node(name),
            by: (Epoch(1), BatchNo(number)),
            asked_at: at,
            told_at: Some(at + 1),
        }
    }

    fn opening(name: &str, epoch: u64, at: u64) -> Opening {
        Opening {
            scope: SHARD,
            holder: Holder(u128::from(epoch)),
            node: node(name),
            expected: Epoch(epoch - 1),
            epoch: Epoch(epoch),
            asked_at: at,
            told_at: at + 1,
        }
    }

    fn told(epoch: u64, word: Word, at: u64) -> BatchTold {
        BatchTold {
            scope: SHARD,
            epoch: Epoch(epoch),
            holder: Holder(u128::from(epoch)),
            number: BatchNo(1),
            digest: 7,
            word,
            asked_at: at,
            told_at: at + 1,
        }
    }

    /// `a` is named and opens, then `b` does.
    fn handed_over() -> Seen {
        Seen {
            named: BTreeMap::from([(0, named("a", 1, 0)), (1, named("b", 2, 20))]),
            openings: vec![opening("a", 1, 10), opening("b", 2, 30)],
            batches: vec![told(1, Word::Committed, 15), told(2, Word::Committed, 40)],
            ..Seen::default()
        }
    }

    fn violations(seen: &Seen) -> Vec<String> {
        let evidence = Evidence {
            setting: Setting::default(),
            seen,
            rows: &[],
            unmet: None,
        };
        let mut verdict = Verdict::default();
        check(&evidence, &mut verdict);
        verdict.violations
    }

    #[test]
    fn a_handover_is_legal_and_so_is_what_overlaps_it() {
        let mut seen = handed_over();
        assert_eq!(violations(&seen), Vec::<String>::new());
        // Asked before the second open was told.
        seen.batches.push(BatchTold {
            number: BatchNo(2),
            asked_at: 29,
            told_at: 90,
            ..told(1, Word::Committed, 0)
        });
        seen.batches.push(told(1, Word::Already, 25));
        assert_eq!(violations(&seen), Vec::<String>::new());
    }

    #[test]
    fn a_batch_of_an_old_epoch_is_found_even_if_it_was_called_committed_before() {
        for word in [Word::Committed, Word::Already] {
            let mut seen = handed_over();
            seen.batches.push(BatchTold {
                number: BatchNo(9),
                ..told(1, word, 50)
            });
            assert_eq!(violations(&seen).len(), 1, "{word:?}");
        }
    }

    #[test]
    fn an_open_that_compared_nothing_and_one_of_a_node_that_is_not_named_are_found() {
        let mut seen = handed_over();
        seen.names(named("b", 3, 42));
        seen.openings.push(Opening {
            expected: Epoch(1),
            ..opening("b", 3, 50)
        });
        assert_eq!(violations(&seen).len(), 1);
        let mut seen = handed_over();
        seen.openings.push(opening("a", 3, 50));
        assert_eq!(violations(&seen).len(), 1);
        // Nobody was told that the other is named.
        let mut seen = handed_over();
        seen.named.get_mut(&1).expect("two").told_at = None;
        seen.openings.push(opening("a", 3, 50));
        assert_eq!(violations(&seen), Vec::<String>::new());
    }

    #[test]
    fn an_epoch_of_two_holders_is_found() {
        let mut seen = handed_over();
        seen.openings.push(Opening {
            holder: Holder(99),
            ..opening("b", 2, 50)
        });
        assert_eq!(violations(&seen).len(), 1);
    }

    #[test]
    fn a_batch_that_is_in_and_then_in_conflict_is_found() {
        for first in [Word::Lost, Word::Committed, Word::Already] {
            let mut seen = handed_over();
            seen.batches.push(BatchTold {
                digest: 8,
                ..told(2, first, 50)
            });
            seen.batches.push(BatchTold {
                digest: 8,
                ..told(2, Word::Conflict, 60)
            });
            assert_eq!(violations(&seen).len(), 1, "{first:?}");
        }
        let mut seen = handed_over();
        seen.batches.push(told(2, Word::Already, 50));
        seen.batches.push(told(2, Word::Committed, 60));
        assert_eq!(violations(&seen).len(), 1, "applied again");
    }
}
