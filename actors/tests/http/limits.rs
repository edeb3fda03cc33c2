//! Connections that are silent, slow, too large or do not listen.

use crate::{TOKEN, World, run};
use fencepost::api::server::HttpLimits;
use fencepost_core::limits::{HEADER_BYTES_MAX, HEADER_COUNT_MAX};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

fn short() -> HttpLimits {
    HttpLimits {
        head: Duration::from_millis(150),
        body: Duration::from_millis(150),
        stall: Duration::from_millis(150),
        body_bytes_max: 1_000,
        ..HttpLimits::default()
    }
}

/// Everything that comes until the server closes.
async fn read_all(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn say(world: &World, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

#[test]
fn silent_connections_and_slow_heads_are_closed() {
    run(async {
        let world = World::with_limits(short()).await;
        assert_eq!(read_all(say(&world, "").await).await, "");
        assert_eq!(
            read_all(say(&world, "GET /livez HTTP/1.1\r\nhost: local").await).await,
            ""
        );
        // One that sends a byte now and then is no better off. Not so many that the head is too large.
        let mut stream = say(&world, "GET /livez HTTP/1.1\r\n").await;
        let mut sent = 0;
        loop {
            let mut byte = [0];
            tokio::select! {
                biased;
                read = stream.read(&mut byte) => {
                    assert_eq!(read.unwrap_or(0), 0);
                    break;
                }
                () = tokio::task::yield_now(), if sent < 1_000 => {
                    sent += 1;
                    if stream.write_all(b"x").await.is_err() {
                        break;
                    }
                }
            }
        }
        let kept = say(&world, "GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
        assert!(
            read_all(kept).await.starts_with("HTTP/1.1 200"),
            "an idle connection is closed after its answer"
        );
    });
}

#[test]
fn heads_that_are_too_large_are_refused() {
    run(async {
        let world = World::new().await;
        let long = format!(
            "GET /livez HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n",
            "a".repeat(HEADER_BYTES_MAX)
        );
        assert!(read_all(say(&world, &long).await).await.starts_with("HTTP/1.1 431"));
        let many = "x: y\r\n".repeat(HEADER_COUNT_MAX);
        let many = format!("GET /livez HTTP/1.1\r\nhost: localhost\r\n{many}\r\n");
        assert!(read_all(say(&world, &many).await).await.starts_with("HTTP/1.1 431"));
        let uri = format!(
            "GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n",
            "a".repeat(HEADER_BYTES_MAX)
        );
        assert!(read_all(say(&world, &uri).await).await.starts_with("HTTP/1.1 4"));
        assert!(
            read_all(say(&world, "\u{0}\r\n\r\n").await)
                .await
                .starts_with("HTTP/1.1 400")
        );
    });
}

fn head(framing: &str) -> String {
    format!(
        "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/json\r\n{framing}\r\n\r\n"
    )
}

#[test]
fn bodies_that_are_too_large_or_too_slow_are_refused() {
    run(async {
        let world = World::with_limits(short()).await;
        let announced = read_all(say(&world, &head("content-length: 1001")).await).await;
        assert!(
            announced.starts_with("HTTP/1.1 413") && announced.contains("body_too_large"),
            "{announced}"
        );
        let chunk = format!("3e9\r\n{}\r\n", "a".repeat(1001));
        let chunked = read_all(say(&world, &(head("transfer-encoding: chunked") + &chunk)).await).await;
        assert!(
            chunked.starts_with("HTTP/1.1 413") && chunked.contains("body_too_large"),
            "{chunked}"
        );
        let slow = read_all(say(&world, &(head("content-length: 100") + "{")).await).await;
        assert!(
            slow.starts_with("HTTP/1.1 408") && slow.contains("body_too_slow"),
            "{slow}"
        );
        let mut broken = say(&world, &(head("content-length: 100") + "{")).await;
        broken.shutdown().await.unwrap();
        let broken = read_all(broken).await;
        assert!(broken.is_empty() || broken.contains("body_broken"), "{broken}");
        let jobs = world.get("/v1/jobs").await.json();
        assert_eq!(jobs["items"].as_array().unwrap().len(), 0);
    });
}

#[test]
fn large_bodies_wait_for_their_turn() {
    run(async {
        let limits = HttpLimits {
            bodies_bytes_max: 1_000,
            ..short()
        };
        let world = World::with_limits(limits).await;
        let order = std::cell::RefCell::new(Vec::new());
        // It takes all the room and sends one byte of its thousand.
        let mut holder = say(&world, &(head("content-length: 1000") + "{")).await;
        assert_eq!(
            world.get("/livez").await.status,
            200,
            "requests without a body need no room"
        );
        let slow = async {
            let mut first = [0];
            holder.read_exact(&mut first).await.unwrap();
            order.borrow_mut().push("refused as too slow");
        };
        let waiting = async {
            let reply = world
                .post("/v1/jobs", r#"{"target":{"type":"handler","name":"noop"}}"#)
                .await;
            assert_eq!(reply.status, 201, "{:?}", reply.body);
            order.borrow_mut().push("made after it");
        };
        tokio::join!(waiting, slow);
        assert_eq!(*order.borrow(), ["refused as too slow", "made after it"]);
    });
}

#[test]
fn a_client_that_takes_no_answers_is_closed() {
    run(async {
        let world = World::with_limits(short()).await;
        let stream = TcpStream::connect(world.address).await.unwrap();
        let (mut reader, mut writer) = stream.into_split();
        let request = format!("GET /openapi.json HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\r\n");
        // It asks until the server gives up on it: a write fails once the connection is gone.
        while writer.write_all(request.as_bytes()).await.is_ok() {}
        let mut rest = Vec::new();
        let _ = reader.read_to_end(&mut rest).await;
        assert!(rest.starts_with(b"HTTP/1.1 200"));
    });
}

#[test]
fn further_connections_wait_while_the_most_are_open() {
    run(async {
        let limits = HttpLimits {
            connection_count_max: 2,
            head: Duration::from_millis(300),
            ..HttpLimits::default()
        };
        let world = World::with_limits(limits).await;
        let (one, two) = (say(&world, "").await, say(&world, "").await);
        // Both places are taken by silent connections; this one is answered once they were closed.
        let reply = world.get("/livez").await;
        assert_eq!(reply.status, 200);
        assert_eq!(
            (read_all(one).await, read_all(two).await),
            (String::new(), String::new())
        );
    });
}

#[test]
fn a_body_without_the_json_content_type_is_refused() {
    run(async {
        let world = World::new().await;
        let body: Option<&[u8]> = Some(br#"{"target":{"type":"handler","name":"noop"}}"#);
        let token = format!("Bearer {TOKEN}");
        for kind in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "application/jsonx",
            "",
        ] {
            let headers = [("authorization", token.as_str()), ("content-type", kind)];
            let reply = world.send_raw("POST", "/v1/jobs", &headers, body).await;
            assert_eq!(reply.problem(), (415, "content_type".into()), "{kind}");
        }
        let headers = [("content-encoding", "gzip")];
        assert_eq!(world.send("POST", "/v1/jobs", &headers, body).await.problem().0, 415);
        let headers = [
            ("authorization", token.as_str()),
            ("content-type", "Application/JSON; charset=utf-8"),
        ];
        assert_eq!(world.send_raw("POST", "/v1/jobs", &headers, body).await.status, 201);
    });
}
