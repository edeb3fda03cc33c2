//! Random steps as data: what may happen to a shard, and the jobs and outcomes it is made of.

use crate::support::lease_harness::START;
use crate::support::make::{failed_with, item, name, outcome, spec, succeeded};
use fencepost_core::job::{Delivery, EffectProof, Outcome, RetryAdvice, Verdict};
use fencepost_core::lease_manager::io::CreateItem;
use fencepost_core::target::{CommandTarget, Payload, PayloadKind, Target};
use fencepost_core::time::Span;
use proptest::prelude::*;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub enum Op {
    Create {
        number: u64,
        kind: u8,
        delay: u64,
    },
    Cancel(u64),
    RetryDead(u64),
    Settle(u64, u8),
    Offer {
        who: u8,
        slots: u32,
    },
    RepeatOffer(u8),
    /// An offer that waits while there is nothing.
    LetWait {
        who: u8,
        slots: u32,
    },
    Heartbeat(u8),
    Begin(usize),
    Report {
        which: usize,
        verdict: u8,
    },
    /// Everything a worker ever held, reported in one message, some of it twice.
    ReportAll {
        who: u8,
        verdict: u8,
    },
    /// Jobs in one request, of which some share ids or keys.
    CreateSome {
        number: u64,
        kinds: Vec<u8>,
    },
    HandBack(usize),
    Pass(u64),
    Absent(u64),
    StoreClock(i64),
    Doubt(bool),
    HoldLoads(bool),
    HoldReleases(bool),
    Restart {
        dead: bool,
    },
    /// The cell's level.
    Raise,
}

/// Any step.
pub fn op() -> impl Strategy<Value = Op> {
    let number = 0..24_u64;
    prop_oneof![
        9 => (number.clone(), any::<u8>(), 0..40_u64).prop_map(|(number, kind, delay)| Op::Create { number, kind, delay }),
        2 => number.clone().prop_map(Op::Cancel),
        1 => number.clone().prop_map(Op::RetryDead),
        1 => (number, 0..3_u8).prop_map(|(number, verdict)| Op::Settle(number, verdict)),
        5 => (0..3_u8, 1..4_u32).prop_map(|(who, slots)| Op::Offer { who, slots }),
        1 => (0..3_u8).prop_map(Op::RepeatOffer),
        2 => (0..3_u8, 1..4_u32).prop_map(|(who, slots)| Op::LetWait { who, slots }),
        3 => (0..3_u8).prop_map(Op::Heartbeat),
        2 => any::<usize>().prop_map(Op::Begin),
        6 => (any::<usize>(), 0..8_u8).prop_map(|(which, verdict)| Op::Report { which, verdict }),
        1 => (0..3_u8, 0..8_u8).prop_map(|(who, verdict)| Op::ReportAll { who, verdict }),
        1 => (0..24_u64, prop::collection::vec(any::<u8>(), 1..6)).prop_map(|(number, kinds)| Op::CreateSome { number, kinds }),
        1 => any::<usize>().prop_map(Op::HandBack),
        4 => (1..45_u64).prop_map(Op::Pass),
        1 => (1..90_u64).prop_map(Op::Absent),
        1 => (-100..100_i64).prop_map(Op::StoreClock),
        1 => any::<bool>().prop_map(Op::Doubt),
        1 => any::<bool>().prop_map(Op::HoldLoads),
        1 => any::<bool>().prop_map(Op::HoldReleases),
        1 => any::<bool>().prop_map(|dead| Op::Restart { dead }),
        1 => Just(Op::Raise),
    ]
}

/// A job of this kind: queue, priority, delivery, attempts, expiry, due instant and key are drawn.
pub fn asked(number: u64, kind: u8, delay: u64) -> CreateItem {
    let mut spec = spec();
    spec.queue = name(["a", "b"][usize::from(kind & 1)]);
    spec.priority = (kind >> 1) & 1;
    if number.is_multiple_of(3) {
        spec.target = command();
    }
    spec.retry.attempt_count_max = 1 + u32::from(kind >> 6);
    if kind & 4 != 0 {
        spec.delivery = Delivery::AtMostOnce;
    }
    if kind & 0b1_1000 == 0b1_1000 {
        spec.expires_at = Some(START + Span::from_secs(300));
    }
    if delay.is_multiple_of(3) {
        spec.payload = large();
    }
    let mut item = item(number, spec);
    match (kind & 32 != 0, delay.is_multiple_of(2)) {
        (true, true) => item.due_at = Some(START + Span::from_secs(delay * 5)),
        (true, false) => item.delay = Some(Span::from_secs(delay)),
        (false, _) => {}
    }
    if kind & 16 != 0 {
        item.key = Some((format!("key-{}", number % 3).into(), [kind & 1; 32]));
    }
    item
}

/// What the first of the workers does not run.
pub fn command() -> Target {
    Target::Command(CommandTarget {
        argv: vec!["true".to_owned()],
        shell: false,
        env: Vec::new(),
        directory: None,
        grace: Span::from_secs(1),
    })
}

/// So large that a window holds four of them: horizons move all the time.
pub fn large() -> Payload {
    thread_local! {
        static BYTES: Arc<[u8]> = vec![1; 1_000_000].into();
    }
    Payload {
        kind: PayloadKind::Bytes,
        bytes: BYTES.with(Arc::clone),
    }
}

/// An outcome of this kind.
pub fn verdict_of(verdict: u8) -> Outcome {
    let effect = if verdict & 1 == 0 {
        EffectProof::NoEffect
    } else {
        EffectProof::Unproven
    };
    match verdict {
        0..=2 => succeeded(),
        3 => failed_with(RetryAdvice::Stop, effect),
        4 => outcome(Verdict::TimedOut { effect }),
        5 => outcome(Verdict::Cancelled { effect }),
        6 => failed_with(RetryAdvice::After(Span::from_secs(7)), effect),
        _ => failed_with(RetryAdvice::ByPolicy, effect),
    }
}
