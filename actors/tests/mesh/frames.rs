//! What strangers and broken peers send: no panic, no memory, no state changed, the connection closed.

use crate::hand_clock::HandClock;
use crate::pair::{CELL, ECHO, Echo, Listening, facts, listen, parts};
use crate::tls::until;
use fencepost::clock::SharedClock;
use fencepost::mesh::envelope::{Answer, Request, Status, put_request, take_answer};
use fencepost::mesh::frame::{
    FrameError, FrameKind, GREETING, HEAD_BYTES, MAGIC, Origin, PROTOCOL, read_frame, write_frame,
};
use fencepost::mesh::greeting::{Hello, RefusedGreeting, Welcome, is_proof, proof_of};
use fencepost::mesh::{MeshSecret, Roles};
use fencepost_core::limits::{FRAME_BYTES_MAX, FRAME_MS_MAX, LINK_SILENT_MS};
use fencepost_core::time::Span;
use proptest::prelude::*;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const ORIGIN: Origin = Origin {
    version: GREETING,
    cell: CELL,
    sender: 2,
    link: 0,
};

fn hello(oldest: u16, newest: u16) -> Hello {
    Hello {
        oldest,
        newest,
        cell: Some(CELL),
        facts: facts("dialer", 2, Roles::SCHEDULER),
        nonce: [9; 16],
    }
}

fn frame(kind: FrameKind, origin: Origin, sequence: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_frame(kind, &origin, sequence, payload, &mut out);
    out
}

fn call(id: u64) -> Vec<u8> {
    let mut payload = Vec::new();
    let request = Request {
        id,
        service: ECHO,
        wait_ms: 1_000,
        body: &id.to_be_bytes(),
    };
    put_request(&request, &mut payload);
    payload
}

/// A connection greeted by hand, as the other side sees it.
struct ByHand {
    stream: TcpStream,
    clock: SharedClock,
    origin: Origin,
}

impl ByHand {
    async fn greeted(listening: &Listening) -> ByHand {
        let mut by_hand = ByHand {
            stream: TcpStream::connect(listening.address).await.unwrap(),
            clock: listening.parts.clock.clone(),
            origin: ORIGIN,
        };
        let greeting = frame(FrameKind::Hello, ORIGIN, 0, &hello(PROTOCOL, PROTOCOL).encode());
        by_hand.send(&greeting).await;
        let answer = read_frame(&mut by_hand.stream, &by_hand.clock, 4_096).await.unwrap();
        let welcome = Welcome::decode(&answer.payload).unwrap();
        let challenge = (&welcome.nonce, welcome.link);
        let said = hello(PROTOCOL, PROTOCOL);
        assert!(is_proof(
            &welcome.proof,
            &proof_of(&MeshSecret::of("secret"), "listener", &said, challenge)
        ));
        let proof = proof_of(&MeshSecret::of("secret"), "dialer", &said, challenge);
        by_hand.send(&frame(FrameKind::Prove, ORIGIN, 0, &proof)).await;
        (by_hand.origin.link, by_hand.origin.version) = (welcome.link, welcome.version);
        by_hand
    }

    async fn send(&mut self, bytes: &[u8]) {
        // The other side may have closed already.
        let _ = self.stream.write_all(bytes).await;
    }

    async fn call(&mut self, id: u64, sequence: u64) {
        let bytes = frame(FrameKind::Request, self.origin, sequence, &call(id));
        self.send(&bytes).await;
    }

    /// The number of the next call that is answered; pings are skipped.
    async fn answered(&mut self) -> u64 {
        loop {
            let frame = read_frame(&mut self.stream, &self.clock, FRAME_BYTES_MAX)
                .await
                .unwrap();
            if frame.kind == FrameKind::Answer {
                let Answer { id, status, .. } = take_answer(&frame.payload).unwrap();
                assert_eq!(status, Status::Done);
                return id;
            }
        }
    }

    /// Whether the other side closed the connection.
    async fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        let read = self.stream.read_to_end(&mut rest).await;
        read.is_ok() || read.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
    }
}

async fn echoing() -> (Listening, Arc<Echo>) {
    let echo = Echo::new(usize::MAX >> 4);
    let parts = parts(Some(CELL), facts("listener", 1, Roles::STORE), &[(ECHO, echo.clone())]);
    (listen(parts).await, echo)
}

/// Bytes that no dialer of ours sends first.
fn strange_starts() -> Vec<Vec<u8>> {
    let good = frame(FrameKind::Hello, ORIGIN, 0, &hello(1, 1).encode());
    let changed = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    let long = |length: u32| [&length.to_be_bytes(), &good[4..]].concat();
    vec![
        b"GET / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 12\r\n\r\n0123456789abcdef".to_vec(),
        vec![0xff; 64],
        vec![0; 64],
        long(u32::MAX),
        long(0),
        long(HEAD_BYTES as u32 - 5),
        long(5_000),
        changed(4, b'X'),
        changed(9, 9),
        changed(11, 1),
        changed(HEAD_BYTES, 9),
        frame(FrameKind::Request, ORIGIN, 1, &call(1)),
        frame(FrameKind::Hello, ORIGIN, 0, b""),
        frame(FrameKind::Hello, ORIGIN, 0, &[hello(1, 1).encode(), vec![0]].concat()),
        frame(FrameKind::Hello, ORIGIN, 0, &vec![0xff; 4_000]),
        frame(FrameKind::Hello, ORIGIN, 0, &hello(2, 1).encode()),
        frame(FrameKind::Hello, ORIGIN, 0, &hello(7, 9).encode()),
    ]
}

#[tokio::test]
async fn no_stranger_gets_further_than_the_greeting() {
    let (listening, echo) = echoing().await;
    for (turn, start) in strange_starts().into_iter().enumerate() {
        let mut stream = TcpStream::connect(listening.address).await.unwrap();
        let _ = stream.write_all(&start).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        if answer.len() > HEAD_BYTES {
            let refused = RefusedGreeting::decode(&answer[HEAD_BYTES..]).unwrap();
            assert!(
                !refused.code.is_empty() && !refused.why.contains('{') && !refused.why.contains('('),
                "{refused:?}"
            );
        }
        until(|| listening.parts.counts.refused.get() == turn as u64 + 1).await;
    }
    assert_eq!(listening.parts.counts.opened.get(), 0);
    assert!(echo.seen.lock().unwrap().is_empty());
    let mut good = ByHand::greeted(&listening).await;
    good.call(1, 1).await;
    assert_eq!(good.answered().await, 1);
}

#[tokio::test]
async fn without_the_secret_nobody_is_let_in() {
    let (listening, echo) = echoing().await;
    let clock = listening.parts.clock.clone();
    let said = hello(PROTOCOL, PROTOCOL);
    // Nothing, a guess, the listener's own proof, one of another connection, and a call in place of one.
    let mut other = [0; 32];
    for turn in 0..5 {
        let mut stream = TcpStream::connect(listening.address).await.unwrap();
        stream
            .write_all(&frame(FrameKind::Hello, ORIGIN, 0, &said.encode()))
            .await
            .unwrap();
        let answer = read_frame(&mut stream, &clock, 4_096).await.unwrap();
        let welcome = Welcome::decode(&answer.payload).unwrap();
        let challenge = (&welcome.nonce, welcome.link);
        let guess = proof_of(&MeshSecret::of("guess"), "dialer", &said, challenge);
        let answer = match turn {
            0 => frame(FrameKind::Prove, ORIGIN, 0, &[]),
            1 => frame(FrameKind::Prove, ORIGIN, 0, &guess),
            2 => frame(FrameKind::Prove, ORIGIN, 0, &welcome.proof),
            3 => frame(FrameKind::Prove, ORIGIN, 0, &other),
            _ => frame(FrameKind::Request, ORIGIN, 1, &call(1)),
        };
        other = proof_of(&MeshSecret::of("secret"), "dialer", &said, challenge);
        let _ = stream.write_all(&answer).await;
        let _ = stream
            .write_all(&frame(
                FrameKind::Request,
                Origin {
                    link: welcome.link,
                    ..ORIGIN
                },
                1,
                &call(1),
            ))
            .await;
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
        assert!(rest.is_empty(), "turn {turn}");
    }
    assert_eq!(listening.parts.counts.forbidden.get(), 5);
    assert_eq!(listening.parts.counts.opened.get(), 0);
    assert!(echo.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_frame_that_comes_again_changes_nothing() {
    let (listening, echo) = echoing().await;
    let mut peer = ByHand::greeted(&listening).await;
    for sequence in [1, 1, 2, 1, 2, 3] {
        peer.call(sequence, sequence).await;
    }
    for id in 1..=3 {
        assert_eq!(peer.answered().await, id);
    }
    assert_eq!(echo.seen.lock().unwrap().len(), 3);
    assert_eq!(listening.parts.counts.repeated.get(), 3);
}

#[tokio::test]
async fn a_missing_frame_closes_the_connection() {
    let (listening, echo) = echoing().await;
    let mut peer = ByHand::greeted(&listening).await;
    peer.call(1, 1).await;
    assert_eq!(peer.answered().await, 1);
    peer.call(3, 3).await;
    assert!(peer.is_closed().await);
    assert_eq!(listening.parts.counts.gaps.get(), 1);
    assert_eq!(echo.seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_frame_of_another_connection_cell_or_process_closes_this_one_and_changes_nothing() {
    let (listening, echo) = echoing().await;
    let other = ByHand::greeted(&listening).await;
    let good = other.origin;
    for origin in [
        good,
        Origin { cell: 5, ..good },
        Origin { sender: 5, ..good },
        Origin { link: 5, ..good },
    ] {
        let mut peer = ByHand::greeted(&listening).await;
        peer.origin = match origin == good {
            true => good,
            false => Origin {
                link: if origin.link == 5 { 5 } else { peer.origin.link },
                ..origin
            },
        };
        peer.call(1, 1).await;
        assert!(peer.is_closed().await);
    }
    assert_eq!(listening.parts.counts.foreign.get(), 4);
    assert!(echo.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn kinds_of_a_later_build_are_counted_and_harm_nothing() {
    let (listening, _echo) = echoing().await;
    let mut peer = ByHand::greeted(&listening).await;
    for (sequence, kind) in [FrameKind::Other(99), FrameKind::Hello, FrameKind::Other(0)]
        .into_iter()
        .enumerate()
    {
        let bytes = frame(kind, peer.origin, sequence as u64 + 1, b"anything");
        peer.send(&bytes).await;
    }
    peer.call(4, 4).await;
    assert_eq!(peer.answered().await, 4);
    assert_eq!(listening.parts.counts.unknown.get(), 3);
}

#[tokio::test]
async fn a_damaged_or_short_frame_closes_the_connection() {
    let (listening, echo) = echoing().await;
    let damage = |bytes: &mut Vec<u8>| {
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
    };
    for turn in 0..3 {
        let mut peer = ByHand::greeted(&listening).await;
        let mut bytes = match turn {
            0 | 1 => frame(FrameKind::Request, peer.origin, 1, &call(1)),
            _ => frame(FrameKind::Request, peer.origin, 1, &[1, 2]),
        };
        if turn == 0 {
            damage(&mut bytes);
        }
        if turn == 1 {
            bytes[..4].copy_from_slice(&(FRAME_BYTES_MAX as u32 + 1_000).to_be_bytes());
        }
        peer.send(&bytes).await;
        assert!(peer.is_closed().await);
    }
    assert_eq!(listening.parts.counts.unreadable.get(), 3);
    assert!(echo.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn half_a_frame_then_silence_is_closed_within_ten_seconds() {
    let whole = frame(FrameKind::Request, ORIGIN, 1, &[7; 10_000]);
    for cut in [1, HEAD_BYTES - 1, HEAD_BYTES, HEAD_BYTES + 5_000] {
        let hand = Arc::new(HandClock::default());
        let clock: SharedClock = hand.clone();
        let (mut near, mut far) = tokio::io::duplex(1 << 20);
        near.write_all(&whole[..cut]).await.unwrap();
        let reading = tokio::spawn(async move { read_frame(&mut far, &clock, FRAME_BYTES_MAX).await });
        until(|| hand.sleepers() != 0).await;
        // Whatever it has read by now, it waits for bytes that do not come.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        const { assert!(LINK_SILENT_MS <= 10_000) };
        hand.advance(Span::from_millis(LINK_SILENT_MS));
        assert!(
            matches!(reading.await.unwrap(), Err(FrameError::Silent)),
            "cut at {cut}"
        );
    }
}

#[tokio::test]
async fn a_frame_that_drips_is_closed_too() {
    let hand = Arc::new(HandClock::default());
    let clock: SharedClock = hand.clone();
    let (mut near, mut far) = tokio::io::duplex(1 << 20);
    let whole = frame(FrameKind::Request, ORIGIN, 1, &[7; 10_000]);
    near.write_all(&whole[..HEAD_BYTES]).await.unwrap();
    let reading = tokio::spawn(async move { read_frame(&mut far, &clock, FRAME_BYTES_MAX).await });
    let mut at = HEAD_BYTES;
    while !reading.is_finished() {
        assert!(at < HEAD_BYTES + FRAME_MS_MAX as usize / 1_000 + 2, "never closed");
        near.write_all(&whole[at..=at]).await.unwrap();
        at += 1;
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        hand.advance(Span::from_secs(1));
    }
    assert!(matches!(reading.await.unwrap(), Err(FrameError::Silent)));
}

#[test]
fn a_head_is_as_long_as_it_says() {
    let bytes = frame(FrameKind::Ping, ORIGIN, 9, b"");
    assert_eq!(bytes.len(), HEAD_BYTES);
    assert_eq!(bytes[4..8], MAGIC);
}

proptest! {
    #[test]
    fn no_bytes_panic_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..300), flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let clock: SharedClock = Arc::new(HandClock::default());
        let mut valid = frame(FrameKind::Request, ORIGIN, 1, &bytes);
        for (at, byte) in flips {
            let at = at.index(valid.len());
            valid[at] = byte;
        }
        runtime.block_on(async {
            let _ = read_frame(&mut bytes.as_slice(), &clock, 1 << 20).await;
            let _ = read_frame(&mut valid.as_slice(), &clock, 1 << 20).await;
        });
        let _ = Hello::decode(&bytes);
        let _ = Welcome::decode(&bytes);
        let _ = RefusedGreeting::decode(&bytes);
    }
}
