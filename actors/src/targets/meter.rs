//! A stream that counts: what may still be read, and whether anything was written.
//!
//! Owns: the bound on bytes taken from a target, and the proof that no byte of a request left us, or no more of them.
//! Must never: interpret bytes. Next: `http`, which sets the budget.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The counters of one connection, shared with whoever judges the attempt.
#[derive(Debug)]
pub struct Meter {
    read_left: AtomicUsize,
    written: AtomicBool,
    ended: AtomicBool,
}

impl Meter {
    /// A meter that lets this many bytes be read.
    #[must_use]
    pub fn new(read_bytes_max: usize) -> Arc<Self> {
        Arc::new(Self {
            read_left: AtomicUsize::new(read_bytes_max),
            written: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        })
    }

    /// Sets anew how many bytes may be read from here on.
    pub fn allow_reading(&self, bytes: usize) {
        self.read_left.store(bytes, Ordering::Relaxed);
    }

    /// Whether a byte may have left: set before the first write is tried.
    #[must_use]
    pub fn has_written(&self) -> bool {
        self.written.load(Ordering::Relaxed)
    }

    /// From here on no byte leaves: a write waits until the connection is dropped.
    pub fn stop_writing(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    fn may_write(&self) -> Poll<()> {
        match self.ended.load(Ordering::Relaxed) {
            true => Poll::Pending,
            false => Poll::Ready(()),
        }
    }
}

/// A stream under a meter. A read begun within the budget may pass it by one buffer, the next one fails.
pub struct Metered<S> {
    inner: S,
    meter: Arc<Meter>,
}

impl<S> Metered<S> {
    /// Puts the stream under the meter.
    pub fn new(inner: S, meter: Arc<Meter>) -> Self {
        Self { inner, meter }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let left = self.meter.read_left.load(Ordering::Relaxed);
        if left == 0 {
            return Poll::Ready(Err(io::Error::other("the answer is larger than allowed")));
        }
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, buf);
        let read = buf.filled().len().saturating_sub(before);
        self.meter.read_left.store(left.saturating_sub(read), Ordering::Relaxed);
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.meter.may_write());
        self.meter.written.store(true, Ordering::Relaxed);
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.meter.may_write());
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.meter.may_write());
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
