//! The worked example of a guarded service, called by real `http` targets, twice and out of order.

#[path = "../../examples/payments.rs"]
#[allow(dead_code, reason = "its main belongs to the example")]
mod example;

use std::sync::Arc;

use fencepost::guard::Guard;
use fencepost::guard::fjall::FjallLedger;
use fencepost::targets::{AttemptContext, CancelSignal, HandlerRegistry, TargetRunner, TargetsConfig};
use fencepost_core::ids::{JobId, Token};
use fencepost_core::job::{Outcome, Verdict};
use fencepost_core::target::{HttpTarget, Payload, PayloadKind, Target};
use futures_util::future::join_all;
use tokio::net::TcpListener;

use crate::{attempt, text};

/// The service on a port of its own; it stops with the test's runtime.
async fn start(folder: &std::path::Path) -> String {
    let service = Arc::new(Guard::new(FjallLedger::open(folder).unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(example::serve(listener, service));
    format!("http://{address}")
}

async fn send(method: &str, url: String, job: u8, sequence: u64, body: &str) -> Outcome {
    let target = HttpTarget {
        method: method.into(),
        url: url.into(),
        headers: vec![],
    };
    let attempt = AttemptContext {
        job: JobId::from_bytes([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, job]).unwrap(),
        token: Token {
            sequence,
            ..Token::default()
        },
        payload: Payload {
            kind: PayloadKind::Json,
            bytes: body.as_bytes().into(),
        },
        ..attempt(Target::Http(target))
    };
    TargetRunner::new(TargetsConfig::for_dev(), HandlerRegistry::default())
        .run(attempt, CancelSignal::never())
        .await
}

async fn charge(url: &str, job: u8, sequence: u64, cents: u64) -> Outcome {
    let body = format!(r#"{{"account":"ada","cents":{cents}}}"#);
    send("POST", format!("{url}/charges"), job, sequence, &body).await
}

async fn balance(url: &str) -> String {
    let outcome = send("GET", format!("{url}/accounts/ada"), 0, 1, "").await;
    text(&outcome.output).trim().to_owned()
}

#[tokio::test]
async fn each_job_is_charged_once_however_often_it_is_tried() {
    let folder = tempfile::tempdir().unwrap();
    let url = start(folder.path()).await;
    // Four jobs, three attempts of each, each call sent twice, all at once.
    let calls = (0..24_u64).map(|at| charge(&url, (at % 4) as u8, 1 + at % 12, 250));
    let outcomes = join_all(calls).await;
    for job in 0..4 {
        let newest = outcomes
            .iter()
            .enumerate()
            .filter(|(at, _)| at % 4 == job && at % 12 / 4 == 2);
        for (_, outcome) in newest {
            assert_eq!(
                outcome.verdict,
                Verdict::Succeeded,
                "the newest attempt is answered: {outcome:?}"
            );
        }
    }
    assert_eq!(balance(&url).await, r#"{"cents":9000}"#);
}

#[tokio::test]
async fn refusals_and_bad_calls_charge_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let url = start(folder.path()).await;
    let code = |outcome: &Outcome| {
        outcome
            .error
            .clone()
            .unwrap_or_default()
            .split(' ')
            .nth(4)
            .unwrap()
            .to_owned()
    };
    assert_eq!(code(&charge(&url, 1, 1, 99_999).await), "422");
    for body in [
        "",
        "{}",
        r#"{"account":"ada","cents":-1}"#,
        r#"{"account":"ada","cents":1,"more":1}"#,
    ] {
        assert_eq!(
            code(&send("POST", format!("{url}/charges"), 2, 1, body).await),
            "400",
            "{body}"
        );
    }
    assert_eq!(code(&send("GET", format!("{url}/charges"), 2, 1, "").await), "404");
    assert_eq!(balance(&url).await, r#"{"cents":10000}"#);
}
