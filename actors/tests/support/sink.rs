//! A service on loopback that jobs call: guarded by key and token, with a record of every call.
//!
//! Owns: the ledger of effects. It can be slow, say it is busy, and hang up after it applied an effect. Must
//! never: apply an effect without the guard.

use super::api::{read_headers, read_line};
use fencepost::guard::ledger::MemoryLedger;
use fencepost::guard::{Answer, Call, Guard};
use fencepost_core::ids::Token;
use fencepost_core::time::StoreTime;
use serde_json::Value;
use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A call of an attempt, as it arrived.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub path: String,
    /// `Idempotency-Key`.
    pub key: String,
    /// `Fencepost-Token`.
    pub token: String,
    /// `Fencepost-Attempt`.
    pub attempt: u32,
    /// `Fencepost-Scheduled-For`.
    pub scheduled_for: String,
    pub body: Value,
}

/// What the service answers.
pub enum Say {
    /// This status with these header lines.
    Status(u16, &'static str),
    /// Nothing: it hangs up.
    HangUp,
    /// Nothing, until the caller hangs up.
    Silence,
}

/// The service; stops when dropped.
pub struct Sink {
    pub address: SocketAddr,
    stopping: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Sink {
    /// Serves each call by `serve`, several at once.
    pub fn start(serve: impl Fn(&Arrival) -> Say + Send + Sync + 'static) -> Sink {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stopping = Arc::new(AtomicBool::new(false));
        let (listener, serve) = (Arc::new(listener), Arc::new(serve));
        let thread = |_| {
            let (listener, serve, stopping) = (listener.clone(), serve.clone(), stopping.clone());
            std::thread::spawn(move || {
                while let Ok((stream, _)) = listener.accept() {
                    if stopping.load(Ordering::SeqCst) {
                        return;
                    }
                    let _ = exchange(stream, &*serve);
                }
            })
        };
        Sink {
            address,
            threads: (0..24).map(thread).collect(),
            stopping,
        }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            while !thread.is_finished() {
                drop(TcpStream::connect(self.address));
            }
        }
    }
}

fn exchange(stream: TcpStream, serve: &dyn Fn(&Arrival) -> Say) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let arrival = read_arrival(&mut stream)?;
    match serve(&arrival) {
        Say::Status(status, headers) => {
            let answer = format!("HTTP/1.1 {status} X\r\n{headers}content-length: 0\r\nconnection: close\r\n\r\n");
            stream.get_mut().write_all(answer.as_bytes())
        }
        Say::HangUp => Ok(()),
        Say::Silence => stream.read(&mut [0]).map(drop),
    }
}

fn read_arrival(stream: &mut BufReader<TcpStream>) -> io::Result<Arrival> {
    let line = read_line(stream)?;
    let headers = read_headers(stream)?;
    let header = |name: &str| {
        let found = headers.iter().find(|(known, _)| known == name);
        found.map_or_else(String::new, |(_, value)| value.clone())
    };
    let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
    stream.read_exact(&mut body)?;
    Ok(Arrival {
        path: line.split(' ').nth(1).unwrap_or_default().to_owned(),
        key: header("idempotency-key"),
        token: header("fencepost-token"),
        attempt: header("fencepost-attempt").parse().unwrap_or(0),
        scheduled_for: header("fencepost-scheduled-for"),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    })
}

/// The product's own guard over a ledger in memory.
pub struct Guarded(Guard<MemoryLedger>);

impl Guarded {
    pub fn new() -> Guarded {
        Guarded(Guard::new(MemoryLedger::default()))
    }

    /// Applies the effect of this call, once for its key.
    pub fn apply(&self, arrival: &Arrival) -> Answer {
        let token: Token = arrival.token.parse().expect("a token of the fixed form");
        let call = Call {
            key: &arrival.key,
            token,
            line: None,
            now: StoreTime(0),
        };
        self.0.apply(&call, |_| Ok(Vec::new())).unwrap()
    }
}
