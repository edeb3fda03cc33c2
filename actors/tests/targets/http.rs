//! What an `http` target sends, and how each kind of answer is judged, through real sockets.

use fencepost::targets::{CancelSignal, HandlerRegistry, StopReason, TargetRunner, TargetsConfig, attempt_signal};
use fencepost_core::job::{EffectProof, Outcome, RetryAdvice, Verdict};
use fencepost_core::limits::OUTPUT_TAIL_BYTES_MAX;
use fencepost_core::target::{HttpTarget, Target};
use fencepost_core::time::Span;
use tokio::io::AsyncWriteExt;

use crate::peers::{Peer, pace, until};
use crate::{attempt, text};

fn runner() -> TargetRunner {
    TargetRunner::new(TargetsConfig::for_dev(), HandlerRegistry::default())
}

fn post(url: &str) -> HttpTarget {
    HttpTarget {
        method: "POST".into(),
        url: url.into(),
        headers: vec![("x-note".into(), "hi".into())],
    }
}

async fn run(target: HttpTarget, timeout: Span) -> Outcome {
    let attempt = fencepost::targets::AttemptContext {
        timeout,
        ..attempt(Target::Http(target))
    };
    runner().run(attempt, CancelSignal::never()).await
}

async fn call(peer: &Peer) -> Outcome {
    run(post(&peer.url()), Span::from_secs(60)).await
}

/// Long enough for loopback, short enough to wait for.
const SHORT: Span = Span::from_millis(500);

const UNPROVEN: EffectProof = EffectProof::Unproven;

fn failed(effect: EffectProof) -> Verdict {
    Verdict::Failed {
        retry: RetryAdvice::ByPolicy,
        effect,
    }
}

#[tokio::test]
async fn the_request_carries_the_payload_and_the_facts() {
    let peer = Peer::saying("HTTP/1.1 202 Accepted\r\ncontent-length: 4\r\n\r\ndone").await;
    let outcome = call(&peer).await;
    assert_eq!(outcome.verdict, Verdict::Succeeded);
    assert_eq!((outcome.error, text(&outcome.output)), (None, "done"));
    let requests = peer.requests();
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    assert_eq!(body, r#"{"amount":7}"#);
    let mut lines: Vec<&str> = head.lines().collect();
    assert_eq!(lines.remove(0), "POST /hook?x=1 HTTP/1.1");
    lines.sort_unstable();
    let host = format!("host: {}", peer.address);
    let agent = concat!("user-agent: fencepost/", env!("CARGO_PKG_VERSION"));
    let mut want = vec![
        "content-length: 12",
        "content-type: application/json",
        "fencepost-attempt: 2",
        "fencepost-scheduled-for: 2026-01-01T00:00:00.500Z",
        "fencepost-token: 0000000100000000000000020000000000000003",
        "idempotency-key: job_01010101010101010101010101010101",
        "x-note: hi",
        agent,
        &host,
    ];
    want.sort_unstable();
    assert_eq!(lines, want);
}

#[tokio::test]
async fn get_and_head_carry_no_body() {
    for method in ["GET", "HEAD"] {
        let peer = Peer::saying("HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\n").await;
        let target = HttpTarget {
            method: method.into(),
            ..post(&peer.url())
        };
        let outcome = run(target, Span::from_secs(60)).await;
        let request = peer.requests().remove(0);
        assert!(
            request.starts_with(method) && request.ends_with("\r\n\r\n"),
            "{request}"
        );
        assert!(!request.contains("content-"), "{request}");
        // Only HEAD's answer is complete without the promised body.
        let complete = outcome.verdict == Verdict::Succeeded;
        assert_eq!(complete, method == "HEAD");
    }
}

#[tokio::test]
async fn the_jobs_own_content_type_wins() {
    let peer = Peer::saying("HTTP/1.1 204 No Content\r\n\r\n").await;
    let headers = vec![("content-type".into(), "application/cloudevents+json".into())];
    let outcome = run(
        HttpTarget {
            headers,
            ..post(&peer.url())
        },
        Span::from_secs(60),
    )
    .await;
    assert_eq!(outcome.verdict, Verdict::Succeeded);
    let request = peer.requests().remove(0);
    assert_eq!(request.matches("content-type").count(), 1);
    assert!(request.contains("content-type: application/cloudevents+json\r\n"));
}

#[tokio::test]
async fn statuses_are_judged_over_the_wire() {
    let after = RetryAdvice::After(Span::from_secs(9));
    let no_effect = EffectProof::NoEffect;
    for (answer, verdict, code) in [
        (
            "HTTP/1.1 500 X\r\ncontent-length: 0\r\n\r\n",
            failed(UNPROVEN),
            "http_status",
        ),
        (
            "HTTP/1.1 404 X\r\ncontent-length: 0\r\n\r\n",
            failed(UNPROVEN),
            "http_status",
        ),
        (
            "HTTP/1.1 302 X\r\nlocation: http://127.0.0.1/\r\ncontent-length: 0\r\n\r\n",
            failed(UNPROVEN),
            "http_redirect",
        ),
        (
            "HTTP/1.1 308 X\r\nlocation: file:///etc/passwd\r\ncontent-length: 0\r\n\r\n",
            failed(UNPROVEN),
            "http_redirect",
        ),
        (
            "HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n",
            Verdict::Failed {
                retry: RetryAdvice::Stop,
                effect: UNPROVEN,
            },
            "http_gone",
        ),
        (
            "HTTP/1.1 429 X\r\ncontent-length: 0\r\n\r\n",
            failed(no_effect),
            "http_status",
        ),
        (
            "HTTP/1.1 503 X\r\nretry-after: 9\r\ncontent-length: 0\r\n\r\n",
            Verdict::Failed {
                retry: after,
                effect: no_effect,
            },
            "http_status",
        ),
    ] {
        let peer = Peer::saying(answer).await;
        let outcome = call(&peer).await;
        assert_eq!(outcome.verdict, verdict, "{answer}");
        assert!(outcome.error.unwrap().starts_with(&format!("{code}: ")), "{answer}");
        assert_eq!(peer.requests().len(), 1, "a redirect must not be followed: {answer}");
    }
}

#[tokio::test]
async fn broken_answers_are_failures_without_proof() {
    for answer in [
        "",
        "garbage\r\n\r\n",
        "HTTP/1.1 2000 X\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        "<html>HTTP/0.9</html>",
        "\u{16}\u{3}\u{1}\u{2}",
    ] {
        let outcome = call(&Peer::saying(answer).await).await;
        assert_eq!(outcome.verdict, failed(UNPROVEN), "{answer}");
        assert!(outcome.error.unwrap().starts_with("http_exchange: "), "{answer}");
    }
}

#[tokio::test]
async fn endless_headers_and_interim_answers_end_the_attempt() {
    for (first, again) in [
        ("HTTP/1.1 200 OK\r\n", "x-more: and more\r\n"),
        ("HTTP/1.1 200 OK\r\nx-long: ", "xxxxxxxxxxxxxxxx"),
        ("", "HTTP/1.1 102 Processing\r\n\r\n"),
        ("", "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"),
        ("", "\r\n"),
    ] {
        let outcome = call(&Peer::flooding(first, again).await).await;
        assert_eq!(outcome.verdict, failed(UNPROVEN), "{again:?}");
    }
}

#[tokio::test]
async fn an_endless_body_is_cut_and_its_status_counts() {
    let peer = Peer::flooding(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        "8\r\n12345678\r\n",
    )
    .await;
    let outcome = call(&peer).await;
    assert_eq!(outcome.verdict, Verdict::Succeeded);
    assert_eq!(outcome.output.len(), OUTPUT_TAIL_BYTES_MAX);
    let tiny_chunks = Peer::flooding("HTTP/1.1 500 No\r\ntransfer-encoding: chunked\r\n\r\n", "1\r\nx\r\n").await;
    assert_eq!(call(&tiny_chunks).await.verdict, failed(UNPROVEN));
}

#[tokio::test]
async fn a_slow_body_does_not_outlast_the_timeout() {
    let peer = Peer::start(|mut stream| async move {
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
            .await
            .ok();
        while stream.write_all(b"x").await.is_ok() {
            pace(5).await;
        }
    })
    .await;
    let outcome = run(post(&peer.url()), SHORT).await;
    assert_eq!(outcome.verdict, Verdict::TimedOut { effect: UNPROVEN });
    assert!(!outcome.output.is_empty(), "what came is kept");
}

#[tokio::test]
async fn a_peer_that_never_answers_times_out_unproven() {
    let peer = Peer::start(|stream| async move {
        std::future::pending::<()>().await;
        drop(stream);
    })
    .await;
    let outcome = run(post(&peer.url()), SHORT).await;
    assert_eq!(outcome.verdict, Verdict::TimedOut { effect: UNPROVEN });
    assert!(outcome.error.unwrap().starts_with("timed_out: "));
}

#[tokio::test]
async fn nobody_listening_proves_no_effect() {
    let peer = Peer::saying("").await;
    let url = peer.url();
    drop(peer);
    // The port is free once the aborted server has let go of it.
    let is_refused = |outcome: &Outcome| {
        let error = outcome.error.as_deref();
        error.is_some_and(|error| error.starts_with("connection_failed"))
    };
    let mut outcome = run(post(&url), Span::from_secs(60)).await;
    for _ in 0..1_000 {
        if is_refused(&outcome) {
            break;
        }
        outcome = run(post(&url), Span::from_secs(60)).await;
    }
    assert!(is_refused(&outcome), "{outcome:?}");
    assert_eq!(outcome.verdict, failed(EffectProof::NoEffect));
}

#[tokio::test]
async fn a_stop_ends_the_call_at_once() {
    let peer = Peer::start(|stream| async move {
        std::future::pending::<()>().await;
        drop(stream);
    })
    .await;
    let (control, cancel) = attempt_signal(None);
    let running = tokio::spawn({
        let attempt = attempt(Target::Http(post(&peer.url())));
        async move { runner().run(attempt, cancel).await }
    });
    until("the request", || !peer.requests().is_empty()).await;
    control.stop(StopReason::CancelRequested);
    assert_eq!(running.await.unwrap().verdict, Verdict::Cancelled { effect: UNPROVEN });
}

/// One connection to a peer on a thread of its own, which answers when it is told to and says when it has.
struct Threaded {
    url: String,
    asked: std::sync::mpsc::Receiver<()>,
    answer: std::sync::mpsc::Sender<()>,
    answered: std::sync::mpsc::Receiver<()>,
}

impl Threaded {
    #[allow(
        clippy::disallowed_methods,
        reason = "it answers while the test holds its own thread"
    )]
    fn start(text: &'static str) -> Self {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let ((ask, asked), (answer, told)) = (std::sync::mpsc::channel(), std::sync::mpsc::channel());
        let (say, answered) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(br#"{"amount":7}"#) {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.extend(byte);
            }
            ask.send(()).unwrap();
            told.recv().ok();
            stream.write_all(text.as_bytes()).unwrap();
            say.send(()).ok();
            // Open until the other end closes it.
            stream.read_to_end(&mut Vec::new()).ok();
        });
        Self {
            url,
            asked,
            answer,
            answered,
        }
    }
}

/// What a server finds that was stopped for a while and goes on: a reason to stop the attempt, seen before the socket
/// in which the answer lies. Half an answer, or none, is none.
#[tokio::test]
async fn f18_an_answer_that_came_before_the_stop_is_how_the_call_ended() {
    let lost = failed(UNPROVEN);
    for (answer, reason, want) in [
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ndone",
            StopReason::LeaseLost,
            Verdict::Succeeded,
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ndone",
            StopReason::CancelRequested,
            Verdict::Succeeded,
        ),
        (
            "HTTP/1.1 429 X\r\ncontent-length: 0\r\n\r\n",
            StopReason::LeaseLost,
            failed(EffectProof::NoEffect),
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ndo",
            StopReason::LeaseLost,
            lost,
        ),
        ("", StopReason::LeaseLost, lost),
    ] {
        let peer = Threaded::start(answer);
        let (control, cancel) = attempt_signal(None);
        let running = tokio::spawn({
            let attempt = attempt(Target::Http(post(&peer.url)));
            async move { runner().run(attempt, cancel).await }
        });
        until("the request", || peer.asked.try_recv().is_ok()).await;
        // From here on nothing but the peer goes on, until its answer has come.
        peer.answer.send(()).unwrap();
        peer.answered.recv().unwrap();
        control.stop(reason);
        let outcome = running.await.unwrap();
        assert_eq!(outcome.verdict, want, "{answer:?} {:?}", outcome.error);
    }
}

#[tokio::test]
async fn a_bad_description_stops_without_effect() {
    let stop = Verdict::Failed {
        retry: RetryAdvice::Stop,
        effect: EffectProof::NoEffect,
    };
    let bad_header = HttpTarget {
        headers: vec![("host".into(), "a".into())],
        ..post("http://127.0.0.1:8080/")
    };
    let bad_method = HttpTarget {
        method: "TRACE".into(),
        ..post("http://127.0.0.1:8080/")
    };
    for (target, code) in [
        (post("http://127.0.0.1:25/"), "url_port_not_allowed: url: "),
        (post("http://user@127.0.0.1:8080/"), "url_user_info: url: "),
        (bad_header, "header_not_allowed: headers/0: "),
        (bad_method, "method_not_allowed: method: "),
    ] {
        let outcome = run(target, Span::from_secs(60)).await;
        assert_eq!(outcome.verdict, stop);
        assert!(outcome.error.unwrap().starts_with(code), "{code}");
    }
}
