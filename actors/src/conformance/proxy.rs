//! The network between the worker and the node: every request is seen, some are lost, some answers are.
//!
//! Owns: the faults, and the sink for ticks. One request a connection. Must never: change what it passes on. Next:
//! `world.rs`.

use crate::net::rt::spawn;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// More than any message of these cases.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Where a worker sends its ticks.
pub(super) const TICK: &str = "/tick";

/// What the network does, and what it has seen.
#[derive(Clone, Default)]
pub(super) struct Network(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Answers with content to requests to these paths that are still to be lost.
    lost_answers: BTreeMap<&'static str, u32>,
    /// Requests to these paths that are still to be refused with 503.
    refused: BTreeMap<&'static str, u32>,
    /// Nothing passes to or from the node.
    is_cut: bool,
    /// Tokens of ticks, in order.
    ticks: Vec<String>,
}

/// A request or an answer.
struct Message {
    first_line: String,
    bytes: Vec<u8>,
    body_at: usize,
}

impl Network {
    /// Listens and passes on to the node.
    pub(super) async fn open(&self, node: SocketAddr) -> std::io::Result<SocketAddr> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let network = self.clone();
        spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let network = network.clone();
                spawn(async move {
                    // A connection that breaks is what the worker must live with.
                    let _ = network.serve(stream, node).await;
                });
            }
        });
        Ok(address)
    }

    pub(super) fn lose_answers(&self, path: &'static str, count: u32) {
        self.state().lost_answers.insert(path, count);
    }

    pub(super) fn refuse(&self, path: &'static str, count: u32) {
        self.state().refused.insert(path, count);
    }

    pub(super) fn cut(&self, is_cut: bool) {
        self.state().is_cut = is_cut;
    }

    pub(super) fn calm_down(&self) {
        let mut state = self.state();
        state.lost_answers.clear();
        state.refused.clear();
        state.is_cut = false;
        state.ticks.clear();
    }

    /// Whether every fault that was ordered for this path has come about.
    pub(super) fn is_spent(&self, path: &str) -> bool {
        let state = self.state();
        let spent = |faults: &BTreeMap<&'static str, u32>| faults.get(path).is_none_or(|count| *count == 0);
        spent(&state.lost_answers) && spent(&state.refused)
    }

    pub(super) fn ticks(&self) -> Vec<String> {
        self.state().ticks.clone()
    }

    async fn serve(&self, mut stream: TcpStream, node: SocketAddr) -> std::io::Result<()> {
        let request = read(&mut stream).await?;
        let path = request.first_line.split(' ').nth(1).unwrap_or_default().to_owned();
        if path == TICK {
            let token = request.bytes.get(request.body_at..).unwrap_or_default();
            self.state().ticks.push(String::from_utf8_lossy(token).into_owned());
            return stream
                .write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
                .await;
        }
        if self.state().is_cut {
            return Ok(());
        }
        if self.take(&path, |state| &mut state.refused) {
            let body = r#"{"code":"shard_unavailable","detail":"Refused by the kit.","retryable":true}"#;
            let head = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\nretry-after: 1";
            let answer = format!(
                "{head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            return stream.write_all(answer.as_bytes()).await;
        }
        let mut server = TcpStream::connect(node).await?;
        server.write_all(&request.bytes).await?;
        let answer = read(&mut server).await?;
        let body = answer.bytes.get(answer.body_at..).unwrap_or_default();
        // An empty answer to a claim tells nothing: losing it would be no fault.
        let has_content = !String::from_utf8_lossy(body).contains("\"attempts\":[]");
        let is_lost = self.state().is_cut || has_content && self.take(&path, |state| &mut state.lost_answers);
        if is_lost {
            return Ok(());
        }
        stream.write_all(&closing(&answer)).await
    }

    fn take(&self, path: &str, faults: impl Fn(&mut State) -> &mut BTreeMap<&'static str, u32>) -> bool {
        let mut state = self.state();
        let left = faults(&mut state).get_mut(path).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer, with a word that this connection ends.
fn closing(answer: &Message) -> Vec<u8> {
    let head = answer.first_line.len() + 2;
    let mut bytes = answer.bytes.get(..head).unwrap_or_default().to_vec();
    bytes.extend_from_slice(b"connection: close\r\n");
    bytes.extend_from_slice(answer.bytes.get(head..).unwrap_or_default());
    bytes
}

/// Reads a message with a content length.
async fn read(stream: &mut TcpStream) -> std::io::Result<Message> {
    let mut bytes = Vec::new();
    loop {
        if let Some(body_at) = bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4) {
            let head = String::from_utf8_lossy(bytes.get(..body_at).unwrap_or_default()).into_owned();
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                let is_length = name.trim().eq_ignore_ascii_case("content-length");
                is_length.then(|| value.trim().parse::<usize>().ok())?
            });
            if bytes.len() >= body_at + length.unwrap_or(0) {
                let first_line = head.lines().next().unwrap_or_default().to_owned();
                return Ok(Message {
                    first_line,
                    bytes,
                    body_at,
                });
            }
        }
        if bytes.len() > MESSAGE_BYTES_MAX || stream.read_buf(&mut bytes).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
}
