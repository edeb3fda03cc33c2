//! Random calls in random order: keys, lines and tokens mixed at will, checked after every call.

use std::collections::BTreeMap;

use fencepost::guard::Answer;
use proptest::prelude::*;

use crate::{call, in_memory, note, token};

#[derive(Clone, Debug)]
enum Step {
    Begin { key: usize, token: u64 },
    Finish { key: usize, token: u64 },
    Apply { key: usize, token: u64 },
    Seal { token: u64 },
    ByToken { token: u64 },
}

const KEYS: [&str; 3] = ["a", "b", "c"];
/// Keys a and b share a line; c has only itself.
const LINES: [Option<&str>; 3] = [Some("shared"), Some("shared"), None];

fn step() -> impl Strategy<Value = Step> {
    let token = 1..12_u64;
    prop_oneof![
        (0..3_usize, token.clone()).prop_map(|(key, token)| Step::Begin { key, token }),
        (0..3_usize, token.clone()).prop_map(|(key, token)| Step::Finish { key, token }),
        (0..3_usize, token.clone()).prop_map(|(key, token)| Step::Apply { key, token }),
        token.clone().prop_map(|token| Step::Seal { token }),
        token.prop_map(|token| Step::ByToken { token }),
    ]
}

/// What an outside observer knows: tokens that the guard let through, by what orders them.
#[derive(Default)]
struct Observer {
    passed: BTreeMap<&'static str, u64>,
    applied: BTreeMap<&'static str, usize>,
}

impl Observer {
    fn passes(&mut self, name: &'static str, token: u64) {
        let highest = self.passed.entry(name).or_default();
        assert!(token >= *highest, "{name}: {token} passed after {highest}");
        *highest = token;
    }

    fn applies(&mut self, what: &'static str) {
        let count = self.applied.entry(what).or_default();
        *count += 1;
        assert_eq!(*count, 1, "{what} was applied twice");
    }
}

proptest! {
    // The negative control fails here on purpose: what it finds is no regression to keep.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]
    #[test]
    fn whatever_arrives_nothing_is_applied_twice_or_out_of_order(steps in prop::collection::vec(step(), 1..60)) {
        let guard = in_memory();
        let mut observer = Observer::default();
        for step in steps {
            match step {
                Step::Begin { key, token } => {
                    if guard.begin(&call(KEYS[key], LINES[key], token)).unwrap() == fencepost::guard::Begun::Go {
                        observer.passes(LINES[key].unwrap_or(KEYS[key]), token);
                    }
                }
                Step::Finish { key, token } | Step::Apply { key, token } => {
                    let call = call(KEYS[key], LINES[key], token);
                    let answer = match step {
                        Step::Finish { .. } => guard.finish(&call, note("list", token)),
                        _ => guard.apply(&call, note("list", token)),
                    };
                    if matches!(answer.unwrap(), Answer::Applied(_)) {
                        observer.passes(LINES[key].unwrap_or(KEYS[key]), token);
                        observer.applies(KEYS[key]);
                    }
                }
                Step::Seal { token: sequence } => {
                    if guard.seal("sealed", token(sequence)).unwrap() {
                        observer.passes("sealed", sequence);
                    }
                }
                Step::ByToken { token: sequence } => {
                    let answer = guard.apply_by_token("sealed", token(sequence), note("list", sequence)).unwrap();
                    if matches!(answer, Answer::Applied(_)) {
                        observer.passes("sealed", sequence);
                    }
                }
            }
        }
    }
}
