//! One end of a connection between nodes, with what befalls it.
//!
//! Owns: the order of bytes, which stays as TCP has it; only whole frames are ever played twice or later. An end that
//! was reset fails at once; a deaf one hears nothing, and what it says goes nowhere. Must never: lose or invent a byte
//! while no fault touches it. Next: `links.rs`.

use super::World;
use super::links::Played;
use crate::runtime::{Stream, sleep_here};
use futures_util::future::BoxFuture;
use std::collections::VecDeque;
use std::io::{Error, ErrorKind, Result};
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

const WHOLE: u8 = 0;
const BROKEN: u8 = 1;
const DEAF: u8 = 2;

/// What others see of an end, and may do to it.
pub struct End {
    /// Whose it is.
    pub local: Ipv4Addr,
    /// Where the other end is.
    pub peer: Ipv4Addr,
    state: AtomicU8,
    reader: Mutex<Option<Waker>>,
}

impl End {
    /// Of a connection that works.
    pub fn new(local: Ipv4Addr, peer: Ipv4Addr) -> End {
        End {
            local,
            peer,
            state: AtomicU8::new(WHOLE),
            reader: Mutex::default(),
        }
    }

    /// It fails from now on.
    pub fn reset(&self) {
        self.turn(BROKEN);
    }

    /// It neither hears nor is heard from now on, and is not told.
    pub fn deafen(&self) {
        self.turn(DEAF);
    }

    fn turn(&self, state: u8) {
        let _ = self
            .state
            .compare_exchange(WHOLE, state, Ordering::SeqCst, Ordering::SeqCst);
        if let Some(waker) = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take() {
            waker.wake();
        }
    }

    fn state(&self) -> u8 {
        self.state.load(Ordering::SeqCst)
    }

    fn is_read_by(&self, context: &Context<'_>) {
        *self.reader.lock().unwrap_or_else(PoisonError::into_inner) = Some(context.waker().clone());
    }
}

/// An end as its node has it.
pub struct Rough {
    world: World,
    inner: TcpStream,
    end: Arc<End>,
    own: Stream,
    /// What may be read now.
    ready: VecDeque<u8>,
    /// What comes when it has waited.
    held: Option<(BoxFuture<'static, ()>, Vec<u8>)>,
    /// The begin of a frame whose rest has not come.
    part: Vec<u8>,
    /// A frame that comes after the next.
    later: Option<Vec<u8>>,
    /// Frames may be played otherwise in this run: they are taken apart.
    has_frames: bool,
    has_unsent: bool,
}

/// Largest segment that is read at once.
const SEGMENT: usize = 64 << 10;

impl Rough {
    /// Around a stream that nothing was read from.
    pub fn new(world: &World, inner: TcpStream, end: Arc<End>, own: Stream) -> Rough {
        let plan = world.options.plan.as_ref();
        let has_frames = plan.is_some_and(|plan| plan.has(&["duplicate", "reorder"]));
        Rough {
            world: world.clone(),
            inner,
            end,
            own,
            ready: VecDeque::new(),
            held: None,
            part: Vec::new(),
            later: None,
            has_frames,
            has_unsent: false,
        }
    }

    fn way(&self) -> (Ipv4Addr, Ipv4Addr) {
        (self.end.local, self.end.peer)
    }

    fn hand_out(&mut self, out: &mut ReadBuf<'_>) {
        let (front, _) = self.ready.as_slices();
        let count = front.len().min(out.remaining());
        out.put_slice(front.get(..count).unwrap_or_default());
        self.ready.drain(..count);
    }

    /// Takes a segment: `None` at the end of the stream.
    fn poll_segment(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Vec<u8>>>> {
        let mut segment = vec![0; SEGMENT];
        let mut buffer = ReadBuf::new(&mut segment);
        match Pin::new(&mut self.inner).poll_read(context, &mut buffer) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) => {}
        }
        let count = buffer.filled().len();
        segment.truncate(count);
        Poll::Ready(Ok((count > 0).then_some(segment)))
    }

    /// Whole frames of what has come, in the order in which they are heard; all of it where none is played otherwise.
    fn heard(&mut self, segment: Vec<u8>) -> Vec<u8> {
        if !self.has_frames {
            return segment;
        }
        self.part.extend(segment);
        let mut heard = Vec::new();
        while let Some(length) = frame_length(&self.part).filter(|length| *length <= self.part.len()) {
            let frame: Vec<u8> = self.part.drain(..length).collect();
            let played = self
                .world
                .links
                .play(&self.world, (self.end.local, self.end.peer), &mut self.own);
            match (played, self.later.take()) {
                (Played::Later, None) => self.later = Some(frame),
                (played, later) => {
                    heard.extend_from_slice(&frame);
                    if played == Played::Twice {
                        heard.extend_from_slice(&frame);
                    }
                    heard.extend(later.unwrap_or_default());
                }
            }
        }
        heard
    }
}

/// Of the frame that begins here, with the four bytes that tell it.
fn frame_length(bytes: &[u8]) -> Option<usize> {
    let length = u32::from_be_bytes(*bytes.first_chunk::<4>()?);
    usize::try_from(length).ok()?.checked_add(4)
}

impl AsyncRead for Rough {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        loop {
            match self.end.state() {
                BROKEN => return Poll::Ready(Err(Error::from(ErrorKind::ConnectionReset))),
                DEAF => return Poll::Pending,
                _ => self.end.is_read_by(context),
            }
            if !self.ready.is_empty() {
                self.hand_out(out);
                return Poll::Ready(Ok(()));
            }
            if let Some((waiting, _)) = self.held.as_mut() {
                if waiting.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                self.ready = self.held.take().map_or_else(VecDeque::new, |(_, bytes)| bytes.into());
                continue;
            }
            if !self.has_frames && self.world.links.is_calm() {
                return Pin::new(&mut self.inner).poll_read(context, out);
            }
            let segment = match self.poll_segment(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(Some(segment))) => segment,
                Poll::Ready(Ok(None)) => return Poll::Ready(Ok(())),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            };
            let way = self.way();
            let (world, count) = (self.world.clone(), segment.len());
            let late = world.links.late(&world, way, count, &mut self.own);
            let heard = self.heard(segment);
            match late {
                0 => self.ready = heard.into(),
                late => self.held = Some((Box::pin(sleep_here(late)), heard)),
            }
        }
    }
}

impl AsyncWrite for Rough {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        self.has_unsent = true;
        match self.end.state() {
            BROKEN => Poll::Ready(Err(Error::from(ErrorKind::ConnectionReset))),
            DEAF => Poll::Ready(Ok(bytes.len())),
            _ => Pin::new(&mut self.inner).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        if std::mem::take(&mut self.has_unsent) {
            self.world.links.sent(self.end.local, self.end.peer);
        }
        match self.end.state() {
            BROKEN => Poll::Ready(Err(Error::from(ErrorKind::ConnectionReset))),
            DEAF => Poll::Ready(Ok(())),
            _ => Pin::new(&mut self.inner).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
