//! Bytes that are no frames, and frames that hold none of our messages, sent to a real process: what each costs it.
//!
//! Owns: the costs, by the kernel's books: memory at its most and time on a processor. Without certificates, so that
//! bytes get past the greeting; the secret is known to whoever sends. Next: `../mesh/frames.rs` for each refusal.

use crate::pace;
use crate::server::Server;
use crate::split::store_on;
use fencepost::api::token::read_token;
use fencepost::clock::{SharedClock, SystemClock};
use fencepost::mesh::envelope::{BOARD, Request, STORE, ServiceId, put_request};
use fencepost::mesh::frame::{FrameKind, GREETING, HEAD_BYTES, Origin, PROTOCOL, read_frame, write_frame};
use fencepost::mesh::greeting::{Hello, Welcome, proof_of};
use fencepost::mesh::{MeshSecret, NodeFacts, Roles};
use fencepost_core::limits::FRAME_BYTES_MAX;
use fencepost_core::name::Name;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Of each kind, one after the other.
const TIMES: usize = 8;
const MEMORY_KIB_MAX: u64 = 1_024;
/// Beyond what as many good bytes cost in the same run: reading and checking them is the machine's speed, not ours.
const PROCESSOR_MAX: Duration = Duration::from_millis(5);
/// A connection on which nothing comes any more is closed within this.
const STALLED_MAX: Duration = Duration::from_secs(10);

/// What a process has used so far.
#[derive(Clone, Copy, Debug)]
struct Used {
    memory_kib: u64,
    processor: Duration,
}

impl Used {
    fn by(server: &Server) -> Used {
        let pid = server.pid();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let spent = |thread: std::io::Result<std::fs::DirEntry>| {
            let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        };
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        Used {
            memory_kib: line.split_whitespace().next().unwrap().parse().unwrap(),
            processor: Duration::from_nanos(threads.filter_map(spent).sum()),
        }
    }
}

/// A store, and who knows its secret.
struct Target {
    server: Server,
    at: SocketAddr,
    secret: MeshSecret,
    clock: SharedClock,
    _folder: tempfile::TempDir,
}

impl Target {
    fn start() -> Target {
        let folder = tempfile::tempdir().unwrap();
        let (server, at) = store_on(folder.path(), "127.0.0.1:0".parse().unwrap(), false);
        Target {
            server,
            at,
            secret: MeshSecret::of(&read_token(&folder.path().join("store/mesh-secret")).unwrap()),
            clock: Arc::new(SystemClock::new()),
            _folder: folder,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.at).await.unwrap()
    }

    /// A connection that has been greeted, and where its frames belong.
    async fn greeted(&self) -> (TcpStream, Origin) {
        let hello = hello();
        let mut stream = self.connect().await;
        let origin = origin();
        stream
            .write_all(&frame(FrameKind::Hello, origin, 0, &hello.encode()))
            .await
            .unwrap();
        let answer = read_frame(&mut stream, &self.clock, FRAME_BYTES_MAX).await.unwrap();
        let welcome = Welcome::decode(&answer.payload).unwrap();
        let proof = proof_of(&self.secret, "dialer", &hello, (&welcome.nonce, welcome.link));
        let proof = frame(FrameKind::Prove, origin, 0, &proof);
        stream.write_all(&proof).await.unwrap();
        let origin = Origin {
            cell: welcome.cell.unwrap(),
            link: welcome.link,
            version: welcome.version,
            ..origin
        };
        (stream, origin)
    }
}

fn hello() -> Hello {
    Hello {
        oldest: PROTOCOL,
        newest: PROTOCOL,
        cell: None,
        facts: NodeFacts {
            node: Name::new("strange").unwrap(),
            boot: 2,
            roles: Roles::SCHEDULER.with(Roles::COORDINATOR),
        },
        nonce: [9; 16],
    }
}

fn origin() -> Origin {
    Origin {
        version: GREETING,
        cell: 0,
        sender: 2,
        link: 0,
    }
}

fn frame(kind: FrameKind, origin: Origin, sequence: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_frame(kind, &origin, sequence, payload, &mut out);
    out
}

fn call(origin: Origin, service: ServiceId, body: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    let request = Request {
        id: 1,
        service,
        wait_ms: 1_000,
        body,
    };
    put_request(&request, &mut payload);
    frame(FrameKind::Request, origin, 1, &payload)
}

/// A number as our messages write it: 2^64 - 1.
const ENDLESS: [u8; 9] = [253, 255, 255, 255, 255, 255, 255, 255, 255];

/// What is sent after a greeting; all of it ends the connection.
fn frames(origin: Origin) -> Vec<(&'static str, Vec<u8>)> {
    let good = call(origin, STORE, &[1]);
    let changed = |at: usize, bytes: &[u8]| {
        let mut frame = good.clone();
        frame[at..at + bytes.len()].copy_from_slice(bytes);
        frame
    };
    vec![
        ("length 2^64 - 1", [&[0xff; 8], &good[8..]].concat()),
        ("length 2^32 - 1", changed(0, &[0xff; 4])),
        ("length 0", changed(0, &[0; 4])),
        (
            "a little too long",
            changed(0, &(FRAME_BYTES_MAX as u32 + 1_000).to_be_bytes()),
        ),
        ("unknown version", changed(8, &[0xff, 0xff])),
        ("a damaged byte", changed(HEAD_BYTES, &[0xff])),
        (
            "a call of three bytes",
            frame(FrameKind::Request, origin, 1, &[1, 2, 3]),
        ),
        ("an answer of one byte", frame(FrameKind::Answer, origin, 1, &[1])),
        ("nothing told", frame(FrameKind::Tell, origin, 1, &[])),
    ]
}

/// Bodies of calls that nobody wrote, for every kind of message that there is or may be.
fn bodies() -> Vec<(&'static str, Vec<u8>)> {
    let mut bodies = vec![
        ("no body", Vec::new()),
        ("unknown version", vec![99; 40]),
        ("a megabyte of zeros", vec![0; 1 << 20]),
    ];
    for kind in 0..12 {
        let starts = |rest: Vec<u8>| [vec![1, kind], rest].concat();
        bodies.push(("counts of 2^64 - 1", starts(ENDLESS.repeat(20))));
        bodies.push(("empty lists, then junk", starts([vec![0; 60], vec![7; 500]].concat())));
        // A number of four bytes: lists of so many of the smallest elements.
        bodies.push(("lists of 2^32 - 1", starts([[252, 255, 255, 255, 255]; 20].concat())));
        bodies.push(("a megabyte of ones", starts(vec![1; 1 << 20])));
    }
    bodies
}

/// Sends it on connections of its own, and waits for an answer or the end of each.
async fn send_all(target: &Target, make: impl Fn(Origin) -> Vec<u8>, must_end: bool) {
    for _ in 0..TIMES {
        let (mut stream, origin) = target.greeted().await;
        let _ = stream.write_all(&make(origin)).await;
        if must_end {
            let mut rest = Vec::new();
            let _ = tokio::time::timeout(pace::LONG, stream.read_to_end(&mut rest))
                .await
                .unwrap();
            continue;
        }
        let _ = tokio::time::timeout(pace::LONG, read_frame(&mut stream, &target.clock, FRAME_BYTES_MAX))
            .await
            .unwrap();
    }
}

/// What one of `times` inputs cost since `before`: KiB in all, and time each.
fn cost(target: &Target, times: usize, before: Used) -> (u64, Duration) {
    let after = Used::by(&target.server);
    let memory = after.memory_kib.saturating_sub(before.memory_kib);
    (memory, after.processor.saturating_sub(before.processor) / times as u32)
}

/// Nothing that was sent costs more than it may; `fair`: what as many good bytes cost.
fn judge((what, fair): (&str, Duration), (memory, processor): (u64, Duration)) {
    assert!(memory <= MEMORY_KIB_MAX, "{what}: {memory} KiB");
    assert!(
        processor <= fair + PROCESSOR_MAX,
        "{what}: {processor:?} each, good ones {fair:?}"
    );
}

#[test]
fn malformed_frames_and_messages_cost_a_process_little_and_end_nothing_but_their_connection() {
    let mut target = Target::start();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut stalled = Vec::new();
        for sent in [1, HEAD_BYTES - 1, HEAD_BYTES, HEAD_BYTES + 5] {
            let (mut stream, origin) = target.greeted().await;
            let whole = call(origin, STORE, &[7; 100]);
            stream.write_all(&whole[..sent]).await.unwrap();
            stalled.push((stream, pace::from_now(STALLED_MAX)));
        }
        // What connections need at all, and then what a megabyte costs that is read whole and refused for its service.
        let nobody = ServiceId(u8::MAX);
        send_all(&target, |origin| call(origin, nobody, &vec![1; 1 << 20]), false).await;
        let before = Used::by(&target.server);
        send_all(&target, |origin| call(origin, nobody, &vec![1; 1 << 20]), false).await;
        let (_, fair) = cost(&target, TIMES, before);
        let mut most = (0, Duration::ZERO);
        let kinds = frames(origin()).len();
        for kind in 0..kinds {
            let (what, before) = (frames(origin())[kind].0, Used::by(&target.server));
            send_all(&target, |origin| frames(origin).swap_remove(kind).1, true).await;
            let spent = cost(&target, TIMES, before);
            judge((what, fair), spent);
            most = (most.0.max(spent.0), most.1.max(spent.1));
        }
        for (what, body) in bodies() {
            let before = Used::by(&target.server);
            for service in [STORE, BOARD] {
                send_all(&target, |origin| call(origin, service, &body), false).await;
            }
            let spent = cost(&target, 2 * TIMES, before);
            judge((what, fair), spent);
            most = (most.0.max(spent.0), most.1.max(spent.1));
        }
        println!(
            "figure: of {} malformed inputs, each {TIMES} times, the dearest took {} KiB and {:?}; a good megabyte {fair:?}",
            kinds + bodies().len(),
            most.0,
            most.1
        );
        for (mut stream, end) in stalled {
            let mut rest = Vec::new();
            let limit = tokio::time::Instant::from_std(end);
            let closed = tokio::time::timeout_at(limit, stream.read_to_end(&mut rest)).await;
            assert!(
                closed.is_ok(),
                "a stalled connection is still open after {STALLED_MAX:?}"
            );
        }
    });
    assert!(!target.server.has_ended(), "{}", target.server.said());
    assert!(!target.server.said().contains("panic"), "{}", target.server.said());
    assert_eq!(target.server.stop(), Some(0));
}
