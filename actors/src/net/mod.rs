//! Network plumbing that the HTTP server, the HTTP client and the mesh share.
//!
//! Owns: the glue between hyper and the runtime. Must never: decide what a request means, or reach for
//! hyper-util's own executor and timer (they panic in the simulator). Next: `rt` for the glue itself.

pub mod rt;
#[cfg(madsim)]
pub mod seam;

use tokio::io::{AsyncRead, AsyncWrite};

/// A stream of bytes in both directions, secured or not.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}
