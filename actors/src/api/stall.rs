//! A stream whose writes must make progress.
//!
//! Owns: the one timer between a slow reader and our memory. Must never: change a byte.

use crate::net::rt::HyperTimer;
use hyper::rt::{Sleep, Timer as _};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Fails a write that the other side did not let move for `limit`.
pub struct StallGuard<S> {
    stream: S,
    limit: Duration,
    stalled: Option<Pin<Box<dyn Sleep>>>,
}

impl<S> StallGuard<S> {
    /// Around `stream`.
    pub fn new(stream: S, limit: Duration) -> StallGuard<S> {
        StallGuard {
            stream,
            limit,
            stalled: None,
        }
    }

    /// Passes progress on; while there is none, runs the timer.
    fn watch<T>(&mut self, cx: &mut Context<'_>, moved: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if moved.is_ready() {
            self.stalled = None;
            return moved;
        }
        let limit = self.limit;
        let sleep = self.stalled.get_or_insert_with(|| HyperTimer.sleep(limit));
        ready!(sleep.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the client takes no answer",
        )))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallGuard<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallGuard<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let moved = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.watch(cx, moved)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let moved = Pin::new(&mut this.stream).poll_flush(cx);
        this.watch(cx, moved)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let moved = Pin::new(&mut this.stream).poll_shutdown(cx);
        this.watch(cx, moved)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let moved = Pin::new(&mut this.stream).poll_write_vectored(cx, buffers);
        this.watch(cx, moved)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
