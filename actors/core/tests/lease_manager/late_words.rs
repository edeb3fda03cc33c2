//! What a worker says of an attempt that ended by its silence: F18 behind a claim over HTTP.

use crate::histories_outcomes::at_most_once;
use crate::support::lease_harness::Leases;
use crate::support::make::{failed, failed_with, item, job_id, spec, succeeded, worker};
use fencepost_core::job::{AttemptResult, EffectProof, JobState, Outcome, RetryAdvice, Verdict};
use fencepost_core::lease_manager::io::Recorded;
use fencepost_core::limits::ERROR_BYTES_MAX;
use fencepost_core::silence::SILENT_TO_THE_END;
use fencepost_core::time::Span;
use std::sync::Arc;

/// What a desk says of an attempt whose worker over HTTP was silent.
fn silent() -> Outcome {
    Outcome {
        error: Some(Arc::from("worker_lost: silent")),
        ..failed()
    }
}

#[test]
fn f18_what_a_silent_worker_says_later_is_not_taken_for_what_is_recorded() {
    for late in [
        succeeded(),
        failed(),
        failed_with(RetryAdvice::Stop, EffectProof::NoEffect),
    ] {
        let (mut leases, w) = (Leases::new(), worker("a", 1));
        leases.create(item(1, spec())).unwrap();
        let old = leases.offer(&w, 1).remove(0);
        leases.report(&w, job_id(1), old.token, silent());
        let before = leases.state(1);
        assert_eq!(leases.report(&w, job_id(1), old.token, late.clone()), Recorded::Stale);
        assert_eq!(leases.state(1), before, "it changes nothing");
        let noted = leases.job(1).attempts[0].error.clone().unwrap();
        assert!(
            noted.starts_with("worker_lost: silent; it came back later and reported "),
            "{noted}"
        );
        let rows = leases.rows.rows.clone();
        for (said, answer) in [(late, Recorded::Stale), (silent(), Recorded::Recorded)] {
            assert_eq!(leases.report(&w, job_id(1), old.token, said), answer);
            assert_eq!(leases.rows.rows, rows, "said again");
        }
        leases.check();
    }
}

#[test]
fn f18_what_a_silent_worker_says_later_settles_an_uncertain_job() {
    let (mut leases, w, grant) = at_most_once(true);
    leases.report(&w, grant.job.id, grant.token, silent());
    assert_eq!(leases.state(1), JobState::Uncertain);
    leases.restart();
    for _ in 0..2 {
        let answer = leases.report(&w, grant.job.id, grant.token, succeeded());
        assert_eq!(answer, Recorded::Recorded);
        assert_eq!(leases.state(1), JobState::Succeeded);
    }
    assert_eq!(leases.job(1).attempts[0].result, AttemptResult::Succeeded);
    leases.check();
}

/// Two claims may speak of one attempt: what one of them makes up of silence must leave room for the worker's word.
#[test]
fn f18_a_silence_is_no_evidence_and_takes_no_place() {
    let to_the_end = Outcome {
        error: Some(Arc::from(SILENT_TO_THE_END)),
        verdict: Verdict::TimedOut {
            effect: EffectProof::Unproven,
        },
        ..failed()
    };
    for silence in [silent(), to_the_end] {
        let (mut leases, w) = (Leases::new(), worker("a", 1));
        leases.create(item(1, spec())).unwrap();
        let old = leases.offer(&w, 1).remove(0);
        leases.pass(Span::from_secs(60));
        let rows = leases.rows.rows.clone();
        assert_eq!(leases.report(&w, job_id(1), old.token, silence), Recorded::Stale);
        assert_eq!(leases.rows.rows, rows, "nothing was said");
        assert_eq!(leases.report(&w, job_id(1), old.token, succeeded()), Recorded::Stale);
        let noted = leases.job(1).attempts[0].error.clone().unwrap();
        assert!(noted.ends_with("reported success"), "{noted}");
        leases.check();
    }
}

#[test]
fn f18_evidence_fits_beside_the_longest_error() {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    leases.create(item(1, spec())).unwrap();
    let old = leases.offer(&w, 1).remove(0);
    let long = Outcome {
        error: Some(Arc::from("\u{e9}".repeat(ERROR_BYTES_MAX))),
        ..failed()
    };
    leases.report(&w, job_id(1), old.token, long);
    assert_eq!(leases.report(&w, job_id(1), old.token, succeeded()), Recorded::Stale);
    let noted = leases.job(1).attempts[0].error.clone().unwrap();
    assert!(
        noted.len() <= ERROR_BYTES_MAX && noted.ends_with("reported success"),
        "{noted}"
    );
    leases.check();
}
