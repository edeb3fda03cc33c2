//! A client of the API over plain sockets: one request at a time, and an honest "unknown".
//!
//! Owns: the wire. Must never: send a request twice by itself; what is not answered is the caller's to settle.

use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// What came back.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl Answer {
    /// The problem's code, or nothing.
    pub fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body, where the status is as it must be.
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        self.body
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub enum NoAnswer {
    /// Nothing was sent.
    NotSent,
    /// It was sent, or may have been.
    Unknown,
}

/// A client with one connection, kept while it holds.
pub struct Api {
    address: SocketAddr,
    token: String,
    stream: Option<BufReader<TcpStream>>,
}

impl Api {
    pub fn new(address: SocketAddr, token: &str) -> Api {
        Api {
            address,
            token: token.to_owned(),
            stream: None,
        }
    }

    pub fn get(&mut self, path: &str) -> Answer {
        self.must("GET", path, &[], None)
    }

    pub fn post(&mut self, path: &str, body: &Value) -> Answer {
        self.must("POST", path, &[], Some(body))
    }

    /// A POST without a body.
    pub fn act(&mut self, path: &str) -> Answer {
        self.must("POST", path, &[], None)
    }

    /// A call to a server that is there.
    pub fn must(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&Value>) -> Answer {
        self.call(method, path, headers, body)
            .unwrap_or_else(|why| panic!("{method} {path}: no answer ({why:?})"))
    }

    /// One request, sent at most once.
    pub fn call(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Answer, NoAnswer> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => connect(self.address).map_err(|_| NoAnswer::NotSent)?,
        };
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n",
            self.address,
            self.token,
            body.len()
        );
        if !body.is_empty() {
            head.push_str("content-type: application/json\r\n");
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let request = format!("{head}\r\n{body}");
        let answer = stream
            .get_mut()
            .write_all(request.as_bytes())
            .and_then(|()| read_answer(&mut stream))
            .map_err(|_| NoAnswer::Unknown)?;
        if answer.header("connection") != Some("close") {
            self.stream = Some(stream);
        }
        Ok(answer)
    }
}

fn connect(address: SocketAddr) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(90)))?;
    Ok(BufReader::new(stream))
}

fn read_answer(stream: &mut BufReader<TcpStream>) -> io::Result<Answer> {
    let status = read_line(stream)?;
    let status = status.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.ok_or(io::ErrorKind::InvalidData)?;
    let headers = read_headers(stream)?;
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(0, |(_, value)| value.parse().unwrap_or(0));
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let text = || Value::String(String::from_utf8_lossy(&body).into_owned());
    let body = serde_json::from_slice(&body).unwrap_or_else(|_| text());
    Ok(Answer { status, headers, body })
}

/// Header lines, names in lower case.
pub fn read_headers(stream: &mut impl BufRead) -> io::Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    loop {
        let line = read_line(stream)?;
        let Some((name, value)) = line.split_once(':') else {
            return Ok(headers);
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

/// A line without its end; the end of the stream is an error.
pub fn read_line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}
