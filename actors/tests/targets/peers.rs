//! Servers on loopback that answer exactly what a test says, and a resolver that does too.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencepost::targets::connector::Resolve;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A server that stops when this is dropped.
pub struct Peer {
    pub address: SocketAddr,
    /// The raw requests seen, one for each connection.
    requests: Arc<Mutex<Vec<String>>>,
    accepting: JoinHandle<()>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Peer {
    /// Reads a whole request from each connection, then lets `answer` speak.
    pub async fn start<A, F>(answer: A) -> Self
    where
        A: Fn(TcpStream) -> F + Send + 'static,
        F: Future<Output = ()> + Send,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let request = read_request(&mut stream).await;
                seen.lock().unwrap().push(request);
                answer(stream).await;
            }
        });
        Self {
            address,
            requests,
            accepting,
        }
    }

    /// Answers these bytes and closes.
    pub async fn saying(answer: &'static str) -> Self {
        Self::start(move |mut stream| async move {
            stream.write_all(answer.as_bytes()).await.ok();
            stream.shutdown().await.ok();
        })
        .await
    }

    /// Writes `first`, then `again` for as long as the other end takes it.
    pub async fn flooding(first: &'static str, again: &'static str) -> Self {
        Self::start(move |mut stream| async move {
            stream.write_all(first.as_bytes()).await.ok();
            while stream.write_all(again.as_bytes()).await.is_ok() {}
        })
        .await
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook?x=1", self.address)
    }

    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// A pace for slow peers: lets this much time pass on their side.
pub async fn pace(millis: u64) {
    tokio::time::timeout(Duration::from_millis(millis), std::future::pending::<()>())
        .await
        .ok();
}

/// Waits for another process or connection to get this far; a minute is for ever.
pub async fn until(what: &str, is_there: impl Fn() -> bool) {
    for _ in 0..6_000 {
        if is_there() {
            return;
        }
        pace(10).await;
    }
    panic!("never came: {what}");
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .unwrap_or("0");
            if body.len() >= length.parse().unwrap() {
                return text;
            }
        }
        match stream.read(&mut chunk).await {
            Ok(count) if count > 0 => bytes.extend_from_slice(&chunk[..count]),
            _ => return text,
        }
    }
}

/// Gives these addresses for every name, and the next list at the next question.
pub struct Scripted {
    answers: Mutex<Vec<Vec<IpAddr>>>,
}

impl Scripted {
    pub fn new(answers: &[&[&str]]) -> Arc<Self> {
        let read = |list: &&[&str]| list.iter().map(|ip| ip.parse().unwrap()).collect();
        Arc::new(Self {
            answers: Mutex::new(answers.iter().map(read).collect()),
        })
    }
}

impl Resolve for Scripted {
    fn resolve<'a>(&'a self, _: &'a str, port: u16) -> BoxFuture<'a, std::io::Result<Vec<SocketAddr>>> {
        let mut answers = self.answers.lock().unwrap();
        let now = if answers.len() > 1 {
            answers.remove(0)
        } else {
            answers[0].clone()
        };
        Box::pin(async move { Ok(now.into_iter().map(|ip| SocketAddr::new(ip, port)).collect()) })
    }
}
