//! A client that keeps its connection, as a well-made client of the API does.
//!
//! Owns: one connection and the requests on it, one after the other. Must never: retry. Next:
//! `create_http.rs`, `child.rs`.

use crate::net::rt::{HyperExecutor, HyperIo};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::rt::Executor as _;
use hyper::{Method, Request, StatusCode};
use std::net::SocketAddr;

/// Whom to ask, and by what right.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Where it listens.
    pub address: SocketAddr,
    /// The token's text.
    pub token: String,
}

/// An open connection.
pub struct Connection {
    peer: Peer,
    sender: SendRequest<Full<Bytes>>,
}

impl Connection {
    /// Connects.
    pub async fn open(peer: Peer) -> Result<Connection, String> {
        let stream = tokio::net::TcpStream::connect(peer.address)
            .await
            .map_err(|error| error.to_string())?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        let (sender, connection) = handshake(HyperIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
        HyperExecutor.execute(async move {
            let _ = connection.await;
        });
        Ok(Connection { peer, sender })
    }

    /// Reads.
    pub async fn get(&mut self, path: &str) -> Result<(StatusCode, Bytes), String> {
        self.send(Method::GET, path, Bytes::new()).await
    }

    /// Posts JSON.
    pub async fn post(&mut self, path: &str, body: Bytes) -> Result<(StatusCode, Bytes), String> {
        self.send(Method::POST, path, body).await
    }

    async fn send(&mut self, method: Method, path: &str, body: Bytes) -> Result<(StatusCode, Bytes), String> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.peer.address.to_string())
            .header(AUTHORIZATION, format!("Bearer {}", self.peer.token));
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request.body(Full::new(body)).map_err(|error| error.to_string())?;
        self.sender.ready().await.map_err(|error| error.to_string())?;
        let response = self
            .sender
            .send_request(request)
            .await
            .map_err(|error| error.to_string())?;
        let status = response.status();
        let body = response
            .into_body()
            .collect()
            .await
            .map_err(|error| error.to_string())?;
        Ok((status, body.to_bytes()))
    }
}
