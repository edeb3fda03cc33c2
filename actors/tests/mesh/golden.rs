//! The golden bytes of frames and greetings: what the first version wrote stays as it is.

use crate::pair::facts;
use fencepost::mesh::envelope::{Answer, Request, STORE, Status, put_answer, put_request, put_tell};
use fencepost::mesh::frame::{FrameKind, Origin, write_frame};
use fencepost::mesh::greeting::{Hello, RefusedGreeting, Welcome, proof_of};
use fencepost::mesh::{MeshSecret, Roles};

const GOLDEN: &str = include_str!("golden-v1.hex");

fn written() -> Vec<String> {
    let origin = Origin {
        version: 1,
        cell: 1 << 100,
        sender: 3,
        link: 4,
    };
    let hello = Hello {
        oldest: 1,
        newest: 2,
        cell: Some(5),
        facts: facts("a", 6, Roles::STORE.with(Roles::WORKER)),
        nonce: [1; 16],
    };
    let welcome = Welcome {
        version: 1,
        cell: None,
        facts: facts("b", 7, Roles::ALL),
        link: 8,
        nonce: [2; 16],
        proof: proof_of(&MeshSecret::of("secret"), "listener", &hello, (&[2; 16], 8)),
    };
    let proof = proof_of(&MeshSecret::of("secret"), "dialer", &hello, (&[2; 16], 8));
    let refused = RefusedGreeting {
        code: "other-cell".to_owned(),
        why: "check".to_owned(),
    };
    let mut request = Vec::new();
    let sent = Request {
        id: 9,
        service: STORE,
        wait_ms: 10,
        body: b"body",
    };
    put_request(&sent, &mut request);
    let mut answer = Vec::new();
    let sent = Answer {
        id: 9,
        status: Status::Busy,
        body: b"why",
    };
    put_answer(&sent, &mut answer);
    let mut tell = Vec::new();
    put_tell(STORE, b"hint", &mut tell);
    let frames = [
        (FrameKind::Hello, hello.encode()),
        (FrameKind::Welcome, welcome.encode()),
        (FrameKind::Refused, refused.encode()),
        (FrameKind::Request, request),
        (FrameKind::Answer, answer),
        (FrameKind::Tell, tell),
        (FrameKind::Ping, Vec::new()),
        (FrameKind::Prove, proof.to_vec()),
    ];
    assert_eq!(Hello::decode(&frames[0].1), Ok(hello));
    assert_eq!(Welcome::decode(&frames[1].1), Ok(welcome));
    assert_eq!(RefusedGreeting::decode(&frames[2].1), Ok(refused));
    frames
        .into_iter()
        .zip(1..)
        .map(|((kind, payload), sequence)| {
            let mut out = Vec::new();
            write_frame(kind, &origin, sequence, &payload, &mut out);
            let hex: String = out.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{kind:?} {hex}")
        })
        .collect()
}

#[test]
fn frames_are_written_as_they_always_were() {
    let written = written();
    assert_eq!(
        GOLDEN.lines().collect::<Vec<_>>(),
        written,
        "as they would be now:\n{}",
        written.join("\n")
    );
}
