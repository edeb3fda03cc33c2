//! Handlers as users write them: returning, failing, panicking, hanging, stopping.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::targets::signal::attempt_signal;
use fencepost_core::ids::{Epoch, Generation};
use fencepost_core::target::Target;

const GRACE: Span = Span::from_millis(20);

const TOKEN: Token = Token {
    generation: Generation(1),
    epoch: Epoch(2),
    sequence: 3,
};

fn attempt(timeout: Span) -> AttemptContext {
    AttemptContext {
        job: JobId::from_bytes([1; 16]).unwrap(),
        tenant: name("default"),
        queue: name("default"),
        schedule: None,
        token: TOKEN,
        attempt: 3,
        scheduled_for: StoreTime::from_secs(1_700_000_000),
        timeout,
        target: Target::Handler(name("mine")),
        payload: Payload::empty(),
    }
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

async fn run(handler: impl Handler + 'static, cancel: CancelSignal, timeout: Span) -> Outcome {
    let mut registry = HandlerRegistry::default();
    registry.register(name("mine"), handler);
    registry.run(&name("mine"), &attempt(timeout), cancel, GRACE).await
}

async fn run_freely(handler: impl Handler + 'static) -> Outcome {
    run(handler, CancelSignal::never(), Span::from_secs(60)).await
}

#[tokio::test]
async fn a_handler_sees_its_facts_and_its_output_is_kept() {
    let outcome = run_freely(|context: HandlerContext| async move {
        context.progress("half");
        let (key, attempt) = (context.idempotency_key, context.attempt);
        Ok(format!("{key} {attempt} {} {:?}", context.token, context.timeout).into_bytes())
    })
    .await;
    assert_eq!(outcome.verdict, Verdict::Succeeded);
    let want = format!(
        "job_{} 3 {} {:?}",
        "01".repeat(16),
        "0000000100000000000000020000000000000003",
        Span::from_secs(60)
    );
    assert_eq!(std::str::from_utf8(&outcome.output), Ok(want.as_str()));
}

#[tokio::test]
async fn errors_say_whether_to_try_again_and_whether_something_happened() {
    for (error, retry, effect) in [
        (HandlerError::retry("a"), RetryAdvice::ByPolicy, EffectProof::Unproven),
        (HandlerError::stop("a"), RetryAdvice::Stop, EffectProof::Unproven),
        (
            HandlerError::retry("a").without_effect(),
            RetryAdvice::ByPolicy,
            EffectProof::NoEffect,
        ),
    ] {
        let outcome = run_freely(move |_| {
            let error = error.clone();
            async move { Err(error) }
        })
        .await;
        assert_eq!(outcome.verdict, Verdict::Failed { retry, effect });
        assert_eq!(outcome.error.as_deref(), Some("handler_error: a"));
    }
}

#[tokio::test]
async fn a_panic_is_a_failed_attempt_and_marked_as_the_handlers() {
    async fn boom(marked: bool) -> Result<Vec<u8>, HandlerError> {
        panic!("boom, marked: {marked}")
    }
    let outcome = run_freely(|_| boom(panic_is_a_handlers())).await;
    assert!(matches!(
        outcome.verdict,
        Verdict::Failed {
            effect: EffectProof::Unproven,
            ..
        }
    ));
    assert_eq!(outcome.error.as_deref(), Some("handler_panicked: boom, marked: true"));
    assert!(!panic_is_a_handlers(), "the mark ends with the poll");
}

#[tokio::test]
async fn a_panic_before_the_first_await_is_caught_too() {
    #[derive(Debug)]
    struct Never;
    impl Handler for Never {
        fn run(&self, _: HandlerContext) -> BoxFuture<'static, Result<Vec<u8>, HandlerError>> {
            panic!("at once")
        }
    }
    let outcome = run_freely(Never).await;
    assert_eq!(outcome.error.as_deref(), Some("handler_panicked: at once"));
}

#[tokio::test]
async fn a_handler_that_hangs_is_dropped_at_its_timeout() {
    let hang = |_| std::future::pending::<Result<Vec<u8>, HandlerError>>();
    let outcome = run(hang, CancelSignal::never(), Span::from_millis(5)).await;
    assert_eq!(
        outcome.verdict,
        Verdict::TimedOut {
            effect: EffectProof::Unproven
        }
    );
}

#[tokio::test]
async fn a_stopped_handler_may_finish_or_give_up_within_the_grace() {
    let (control, cancel) = attempt_signal(None);
    control.stop(StopReason::CancelRequested);
    let finishes = |context: HandlerContext| async move {
        context.cancel.stopped().await;
        Ok(b"done all the same".to_vec())
    };
    let outcome = run(finishes, cancel.clone(), Span::from_secs(60)).await;
    assert_eq!(outcome.verdict, Verdict::Succeeded);
    let gives_up = |context: HandlerContext| async move {
        context.cancel.stopped().await;
        Err(HandlerError::retry("stopped early").without_effect())
    };
    let outcome = run(gives_up, cancel.clone(), Span::from_secs(60)).await;
    assert_eq!(
        outcome.verdict,
        Verdict::Cancelled {
            effect: EffectProof::NoEffect
        }
    );
    let hang = |_| std::future::pending::<Result<Vec<u8>, HandlerError>>();
    let outcome = run(hang, cancel, Span::from_secs(60)).await;
    assert_eq!(
        outcome.verdict,
        Verdict::Cancelled {
            effect: EffectProof::Unproven
        }
    );
}

#[tokio::test]
async fn noop_is_built_in_and_an_unknown_name_proves_no_effect() {
    let registry = HandlerRegistry::default();
    let run = |text| {
        let (registry, name) = (registry.clone(), name(text));
        async move { registry.run(&name, &attempt(GRACE), CancelSignal::never(), GRACE).await }
    };
    assert_eq!(run("noop").await.verdict, Verdict::Succeeded);
    let unknown = run("other").await;
    assert_eq!(
        unknown.verdict,
        Verdict::Failed {
            retry: RetryAdvice::ByPolicy,
            effect: EffectProof::NoEffect
        }
    );
    assert!(unknown.error.unwrap().starts_with("handler_unknown: "));
    assert_eq!(registry.names().collect::<Vec<_>>(), ["noop"]);
}

#[tokio::test]
async fn a_lost_lease_drops_the_handler_and_the_job_goes_on() {
    let (control, cancel) = attempt_signal(None);
    control.stop(StopReason::LeaseLost);
    let hang = |_| std::future::pending::<Result<Vec<u8>, HandlerError>>();
    let outcome = run(hang, cancel, Span::from_secs(60)).await;
    let by_policy = |effect| Verdict::Failed {
        retry: RetryAdvice::ByPolicy,
        effect,
    };
    assert_eq!(outcome.verdict, by_policy(EffectProof::Unproven));
    let (control, cancel) = attempt_signal(None);
    control.stop(StopReason::Draining);
    let gives_up = |context: HandlerContext| async move {
        context.cancel.stopped().await;
        Err(HandlerError::retry("the node goes away").without_effect())
    };
    let outcome = run(gives_up, cancel, Span::from_secs(60)).await;
    assert_eq!(
        outcome.verdict,
        by_policy(EffectProof::NoEffect),
        "a drain cancels nothing"
    );
}
