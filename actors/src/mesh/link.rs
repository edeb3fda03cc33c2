//! A connection at work: frames in, frames out, until it breaks.
//!
//! Owns: the checks on each frame (cell, sender, connection, sequence) and the bounds on calls in
//! work. Must never: take a broken connection for a dead node. Next: `peer.rs`, `frame.rs`.

use crate::mesh::envelope::{
    Answer, Request, Status, put_answer, put_request, put_tell, take_answer, take_request, take_tell,
};
use crate::mesh::frame::{Frame, FrameError, FrameKind, Origin, read_frame, write_frame};
use crate::mesh::peer::{Peer, Shared};
use crate::mesh::queue::Item;
use crate::mesh::{LinkNews, MeshParts, NodeFacts, Service};
use crate::net::rt;
use fencepost_core::limits::{CALLS_IN_WORK_MAX, FRAME_BYTES_MAX, LINK_PING_MS, LINK_SILENT_MS};
use fencepost_core::time::{Monotonic, Span};
use fencepost_storage::wire::WireError;
use futures_util::future::{Either, select};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, ReadHalf, WriteHalf};
use tokio::sync::Semaphore;

/// Bytes of a call that count as one more in work: the largest takes all the room there is.
const CALL_WEIGHT: usize = FRAME_BYTES_MAX / (CALLS_IN_WORK_MAX - 1);
/// Bytes that are written at once.
const WRITE_STEP: usize = 64 << 10;

/// A connection after its greeting.
pub(super) struct Link<S> {
    pub(super) stream: S,
    /// What this side stamps on its frames.
    pub(super) ours: Origin,
    /// What the other side must stamp.
    pub(super) theirs: Origin,
    /// Who is there.
    pub(super) facts: NodeFacts,
    /// This side made it.
    pub(super) is_ours: bool,
}

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkEnd {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("a frame of another cell, process or connection")]
    Foreign,
    #[error("frames are missing before number {0}")]
    Gap(u64),
    #[error("a frame that cannot be read: {0}")]
    Payload(#[from] WireError),
    #[error("the other side took nothing for too long")]
    Stalled,
    #[error("closed by this node")]
    Closed,
}

impl From<io::Error> for LinkEnd {
    fn from(error: io::Error) -> LinkEnd {
        LinkEnd::Frame(error.into())
    }
}

/// Works until the connection breaks or the peer is closed; calls that were sent then have no answer.
pub(super) async fn run<S: AsyncRead + AsyncWrite + Send + 'static>(
    parts: &Arc<MeshParts>,
    peer: &Peer,
    link: Link<S>,
) -> LinkEnd {
    parts.counts.opened.add();
    let Link {
        stream,
        ours,
        theirs,
        facts,
        is_ours,
    } = link;
    peer.shared.set_facts(Some((facts.clone(), ours.version)));
    let (begun, ended) = match is_ours {
        true => (LinkNews::Reached, LinkNews::Cut),
        false => (LinkNews::Came(peer), LinkNews::Went(peer)),
    };
    tell_services(parts, &facts, begun);
    let (read_half, write_half) = tokio::io::split(stream);
    let reader = Reader {
        parts,
        peer,
        theirs,
        facts: facts.clone(),
        last: 0,
        in_work: Arc::new(Semaphore::new(CALLS_IN_WORK_MAX)),
    };
    let reading = pin!(reader.run(read_half));
    let writing = pin!(write_all_frames(parts, &peer.shared, ours, write_half));
    let end = match select(reading, writing).await {
        Either::Left((end, _)) | Either::Right((end, _)) => end,
    };
    peer.shared.set_facts(None);
    peer.shared.queue.drop_answers();
    peer.shared.fail_sent();
    parts.counts.closed.add();
    count_end(parts, &end);
    tell_services(parts, &facts, ended);
    end
}

fn tell_services(parts: &MeshParts, facts: &NodeFacts, news: LinkNews<'_>) {
    let open = parts
        .services
        .values()
        .filter(|service| service.is_open_to(facts.roles));
    open.for_each(|service| service.on_link(facts, news));
}

fn count_end(parts: &MeshParts, end: &LinkEnd) {
    match end {
        LinkEnd::Foreign => parts.counts.foreign.add(),
        LinkEnd::Gap(_) => parts.counts.gaps.add(),
        LinkEnd::Payload(_) => parts.counts.unreadable.add(),
        LinkEnd::Frame(FrameError::Ended(_) | FrameError::Silent) | LinkEnd::Stalled | LinkEnd::Closed => {}
        LinkEnd::Frame(_) => parts.counts.unreadable.add(),
    }
}

struct Reader<'a> {
    parts: &'a Arc<MeshParts>,
    peer: &'a Peer,
    theirs: Origin,
    facts: NodeFacts,
    last: u64,
    in_work: Arc<Semaphore>,
}

impl Reader<'_> {
    async fn run<S: AsyncRead + Send>(mut self, half: ReadHalf<S>) -> LinkEnd {
        let mut stream = BufReader::with_capacity(WRITE_STEP, half);
        loop {
            let frame = match read_frame(&mut stream, &self.parts.clock, FRAME_BYTES_MAX).await {
                Ok(frame) => frame,
                Err(error) => return error.into(),
            };
            match self.is_next(&frame) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(end) => return end,
            }
            if let Err(end) = self.on_frame(frame).await {
                return end;
            }
        }
    }

    /// Whether the frame is the next of this connection; one that came before is dropped.
    fn is_next(&mut self, frame: &Frame) -> Result<bool, LinkEnd> {
        if frame.origin != self.theirs {
            return Err(LinkEnd::Foreign);
        }
        if frame.sequence <= self.last {
            self.parts.counts.repeated.add();
            return Ok(false);
        }
        if frame.sequence != self.last + 1 {
            return Err(LinkEnd::Gap(frame.sequence));
        }
        self.last = frame.sequence;
        Ok(true)
    }

    async fn on_frame(&mut self, frame: Frame) -> Result<(), LinkEnd> {
        match frame.kind {
            FrameKind::Request => self.on_request(take_request(&frame.payload)?).await,
            FrameKind::Answer => {
                let answer = take_answer(&frame.payload)?;
                self.peer.shared.on_answer(answer.id, answer.status, answer.body);
            }
            FrameKind::Tell => {
                let (service, body) = take_tell(&frame.payload)?;
                if let Ok(service) = self.service(service) {
                    service.tell(&self.facts, self.peer, body);
                }
            }
            FrameKind::Ping => {}
            FrameKind::Hello | FrameKind::Welcome | FrameKind::Refused | FrameKind::Prove | FrameKind::Other(_) => {
                self.parts.counts.unknown.add();
            }
        }
        Ok(())
    }

    fn service(&self, id: crate::mesh::envelope::ServiceId) -> Result<&Arc<dyn Service>, ()> {
        let Some(service) = self.parts.services.get(&id) else {
            self.parts.counts.unknown.add();
            return Err(());
        };
        if !service.is_open_to(self.facts.roles) {
            self.parts.counts.forbidden.add();
            return Err(());
        }
        Ok(service)
    }

    /// Hands the call to its service at once, so that calls reach it in their order; waits first while
    /// too many are in work, so that the other side slows down. Nobody waits for one that is late.
    async fn on_request(&mut self, request: Request<'_>) {
        let (link, id) = (self.theirs.link, request.id);
        let Ok(service) = self.service(request.service).cloned() else {
            self.peer.shared.queue.push(Item::Answer {
                link,
                id,
                status: Status::NoService,
                body: Vec::new(),
                _room: None,
            });
            return;
        };
        let clock = &self.parts.clock;
        let late_at = clock.mono() + Span::from_millis(u64::from(request.wait_ms));
        let weight = u32::try_from(1 + request.body.len() / CALL_WEIGHT).unwrap_or(u32::MAX);
        let room = self.in_work.clone().acquire_many_owned(weight).await.ok();
        if room.is_none() || clock.mono() > late_at {
            return;
        }
        let answering = service.call(&self.facts, request.body);
        let shared = self.peer.shared.clone();
        rt::spawn(async move {
            let body = answering.await;
            shared.queue.push(Item::Answer {
                link,
                id,
                status: Status::Done,
                body,
                _room: room,
            });
        });
    }
}

/// Sends what waits, all of it in one write, and a sign of life when nothing does.
async fn write_all_frames<S: AsyncWrite + Send>(
    parts: &Arc<MeshParts>,
    shared: &Arc<Shared>,
    ours: Origin,
    mut half: WriteHalf<S>,
) -> LinkEnd {
    let mut writer = Writer {
        ours,
        sequence: 0,
        out: Vec::with_capacity(WRITE_STEP),
        payload: Vec::new(),
    };
    loop {
        if shared.queue.is_closed() {
            let _ = half.shutdown().await;
            return LinkEnd::Closed;
        }
        while writer.out.len() < WRITE_STEP
            && let Some(item) = shared.queue.pop()
        {
            writer.put(parts.clock.mono(), shared, item);
        }
        if writer.out.is_empty() {
            let idle = parts.clock.sleep(Span::from_millis(LINK_PING_MS));
            if let Either::Left(((), _)) = select(pin!(shared.queue.pushed()), idle).await {
                continue;
            }
            writer.put_frame(FrameKind::Ping);
        }
        if let Err(end) = send(parts, &mut half, &writer.out).await {
            return end;
        }
        writer.out.clear();
        writer.out.shrink_to(4 * WRITE_STEP);
    }
}

async fn send<S: AsyncWrite + Send>(parts: &MeshParts, half: &mut WriteHalf<S>, bytes: &[u8]) -> Result<(), LinkEnd> {
    for step in bytes.chunks(WRITE_STEP) {
        let writing = async {
            half.write_all(step).await?;
            half.flush().await
        };
        let patience = parts.clock.sleep(Span::from_millis(LINK_SILENT_MS));
        match select(pin!(writing), patience).await {
            Either::Left((Ok(()), _)) => {}
            Either::Left((Err(error), _)) => return Err(error.into()),
            Either::Right(((), _)) => return Err(LinkEnd::Stalled),
        }
    }
    Ok(())
}

struct Writer {
    ours: Origin,
    sequence: u64,
    out: Vec<u8>,
    payload: Vec<u8>,
}

impl Writer {
    fn put(&mut self, now: Monotonic, shared: &Shared, item: Item) {
        self.payload.clear();
        let kind = match item {
            Item::Request {
                id,
                service,
                deadline,
                body,
            } => {
                let Some(body) = body.form(self.ours.version) else {
                    return shared.fail_unsaid(id);
                };
                if !shared.mark_sent(id) {
                    return;
                }
                let left = deadline.since(now).as_millis();
                let request = Request {
                    id,
                    service,
                    wait_ms: u32::try_from(left).unwrap_or(u32::MAX),
                    body,
                };
                put_request(&request, &mut self.payload);
                FrameKind::Request
            }
            // Of a connection that is gone: its caller has been told, and numbers begin anew.
            Item::Answer { link, .. } if link != self.ours.link => return,
            Item::Answer { id, status, body, .. } => {
                let answer = Answer {
                    id,
                    status,
                    body: &body,
                };
                put_answer(&answer, &mut self.payload);
                FrameKind::Answer
            }
            Item::Tell { service, body } => {
                put_tell(service, &body, &mut self.payload);
                FrameKind::Tell
            }
        };
        self.put_frame(kind);
    }

    fn put_frame(&mut self, kind: FrameKind) {
        self.sequence += 1;
        write_frame(kind, &self.ours, self.sequence, &self.payload, &mut self.out);
        self.payload.clear();
    }
}
