//! The command line's own HTTP client: one request, one answer, every wait bounded.
//!
//! Owns: finding the token, connecting, and knowing what is unknown: a change that was sent and not answered
//! has an unknown outcome (exit code 7), a read has not. Must never: follow a redirect, or print the token.
//! Next: `failure.rs`.

use super::failure::Failure;
use super::output::one_line;
use crate::api::token::{TOKEN_FILE, read_token};
use crate::net::rt::{HyperExecutor, HyperIo};
use crate::problem::{Exit, OUTCOME_UNKNOWN, Problem, plain};
use clap::Args;
use fencepost_core::duration;
use fencepost_core::ids::Token;
use fencepost_core::limits::{CLI_ANSWER_BYTES_MAX, CLI_ANSWER_MS};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, USER_AGENT};
use hyper::rt::Executor as _;
use hyper::{Method, Request};
use std::path::PathBuf;
use std::time::Duration;

/// The address a server listens on when nobody says otherwise.
pub const SERVER_DEFAULT: &str = "http://127.0.0.1:4480";
/// The data folder when nobody says otherwise.
pub use crate::config::table::DATA_DEFAULT;

/// How to reach a server.
#[derive(Clone, Debug, Args)]
pub struct ServerArgs {
    /// Where the server listens; http://127.0.0.1:4480 by default.
    #[arg(
        long,
        value_name = "URL",
        env = "FENCEPOST_SERVER",
        hide_env_values = true,
        help_heading = "Server"
    )]
    pub server: Option<String>,
    /// File with the token; ./fencepost-data/token by default.
    #[arg(
        long,
        value_name = "FILE",
        env = "FENCEPOST_TOKEN_FILE",
        hide_env_values = true,
        help_heading = "Server"
    )]
    pub token_file: Option<PathBuf>,
    /// How long to wait for an answer; 30s by default.
    #[arg(long, value_name = "TIME", value_parser = parse_span, help_heading = "Server")]
    pub timeout: Option<Duration>,
}

impl ServerArgs {
    /// Where the server is.
    pub fn at(&self) -> &str {
        self.server.as_deref().unwrap_or(SERVER_DEFAULT)
    }
}

/// A length of time on the command line.
pub fn parse_span(text: &str) -> Result<Duration, String> {
    duration::parse(text)
        .map(|span| span.to_std())
        .map_err(|error| format!("{error}; {}", error.hint()))
}

/// A server that can be asked.
#[derive(Debug)]
pub struct Client {
    authority: String,
    token: String,
    timeout: Duration,
}

/// An answer with a good status.
#[derive(Debug)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

/// One request.
#[derive(Debug)]
pub struct Call<'a> {
    method: Method,
    path: &'a str,
    headers: Vec<(&'static str, String)>,
    body: Option<Vec<u8>>,
    extra: Duration,
}

impl<'a> Call<'a> {
    /// Reads.
    pub fn get(path: &'a str) -> Call<'a> {
        Call::new(Method::GET, path)
    }

    /// Changes, without a body.
    pub fn post(path: &'a str) -> Call<'a> {
        Call::new(Method::POST, path)
    }

    /// Replaces.
    pub fn put(path: &'a str) -> Call<'a> {
        Call::new(Method::PUT, path)
    }

    /// Deletes.
    pub fn delete(path: &'a str) -> Call<'a> {
        Call::new(Method::DELETE, path)
    }

    fn new(method: Method, path: &'a str) -> Call<'a> {
        Call {
            method,
            path,
            headers: Vec::new(),
            body: None,
            extra: Duration::ZERO,
        }
    }

    /// With a JSON body.
    pub fn json(mut self, body: Vec<u8>) -> Call<'a> {
        self.body = Some(body);
        self
    }

    /// With a header, when there is a value.
    pub fn header(mut self, name: &'static str, value: Option<String>) -> Call<'a> {
        self.headers.extend(value.map(|value| (name, value)));
        self
    }

    /// The server holds the answer back for up to this long.
    pub fn held(mut self, extra: Duration) -> Call<'a> {
        self.extra = extra;
        self
    }

    fn changes(&self) -> bool {
        self.method != Method::GET
    }
}

impl Client {
    /// From arguments.
    ///
    /// # Errors
    /// The address is none, or there is no token.
    pub fn new(args: &ServerArgs) -> Result<Client, Failure> {
        let file = args
            .token_file
            .clone()
            .unwrap_or_else(|| PathBuf::from(DATA_DEFAULT).join(TOKEN_FILE));
        Client::with_token(args, || token_of(&file))
    }

    /// For paths that need no token.
    ///
    /// # Errors
    /// The address is none.
    pub fn without_token(args: &ServerArgs) -> Result<Client, Failure> {
        Client::with_token(args, || Ok(String::new()))
    }

    fn with_token(args: &ServerArgs, token: impl FnOnce() -> Result<String, Failure>) -> Result<Client, Failure> {
        let server = args.at();
        let wrong = || {
            let detail = format!("\"{}\" is no address of a server.", one_line(server));
            let hint = match server.starts_with("https://") {
                true => {
                    "The command line speaks no TLS: use http:// on the server's machine, or through an ssh tunnel."
                }
                false => "Use a form such as http://127.0.0.1:4480.",
            };
            Failure::new(Exit::Usage, "server_invalid", detail, hint).at("--server")
        };
        let authority = server.strip_prefix("http://").ok_or_else(wrong)?.trim_end_matches('/');
        let parsed: hyper::http::uri::Authority = authority.parse().map_err(|_| wrong())?;
        // A port that is none must not become the default: the token goes where it points.
        let port = match (parsed.port_u16(), authority.ends_with(parsed.host())) {
            (Some(port), _) => port,
            (None, true) => 80,
            (None, false) => return Err(wrong()),
        };
        if authority.contains('@') {
            return Err(wrong());
        }
        Ok(Client {
            authority: format!("{}:{port}", parsed.host()),
            token: token()?,
            timeout: args.timeout.unwrap_or(Duration::from_millis(CLI_ANSWER_MS)),
        })
    }

    /// The same, which waits no longer than this for an answer; a second at least.
    pub fn within(mut self, most: Duration) -> Client {
        self.timeout = self.timeout.min(most.max(Duration::from_secs(1)));
        self
    }

    /// Sends a request and reads its answer.
    ///
    /// # Errors
    /// The server cannot be reached, does not answer, or answers with a problem.
    pub async fn call(&self, call: Call<'_>) -> Result<Reply, Failure> {
        let reply = self.answer(call).await?;
        if reply.status < 400 {
            return Ok(reply);
        }
        Err(match serde_json::from_slice::<Problem>(&reply.body) {
            Ok(problem) => with_token_hint(Failure::from_problem(problem)),
            Err(_) => Failure::odd(reply.status),
        })
    }

    /// Sends a request and reads its answer, whatever its status.
    ///
    /// # Errors
    /// The server cannot be reached, or does not answer.
    pub async fn answer(&self, call: Call<'_>) -> Result<Reply, Failure> {
        let stream = self.connect().await?;
        let changes = call.changes();
        let limit = self.timeout + call.extra;
        let exchange = self.exchange(stream, call);
        match tokio::time::timeout(limit, exchange).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(reason)) => Err(broken(changes, &format!("the connection broke: {reason}"))),
            Err(_) => Err(broken(changes, &format!("no answer within {} s", limit.as_secs()))),
        }
    }

    async fn connect(&self) -> Result<tokio::net::TcpStream, Failure> {
        let unreachable = |reason: String| {
            let detail = format!("The server at {} cannot be reached: {reason}.", self.authority);
            let hint = "Start it with \"fencepost serve\" or \"fencepost dev\", or name it with --server.";
            Failure::new(Exit::Unreachable, "server_unreachable", detail, hint)
        };
        let connect = tokio::net::TcpStream::connect(self.authority.as_str());
        match tokio::time::timeout(self.timeout, connect).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(unreachable(plain(&error))),
            Err(_) => Err(unreachable("it does not take the connection".to_owned())),
        }
    }

    async fn exchange(&self, stream: tokio::net::TcpStream, call: Call<'_>) -> Result<Reply, String> {
        let _ = stream.set_nodelay(true);
        let text = |error: hyper::Error| error.to_string();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(HyperIo::new(stream))
            .await
            .map_err(text)?;
        HyperExecutor.execute(async move {
            let _ = connection.await;
        });
        let mut request = Request::builder()
            .method(call.method)
            .uri(call.path)
            .header(HOST, &self.authority)
            .header(USER_AGENT, concat!("fencepost/", env!("CARGO_PKG_VERSION")))
            .header(AUTHORIZATION, format!("Bearer {}", self.token));
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        if call.body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request
            .body(Full::new(Bytes::from(call.body.unwrap_or_default())))
            .map_err(|error| error.to_string())?;
        let response = sender.send_request(request).await.map_err(text)?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, CLI_ANSWER_BYTES_MAX)
            .collect()
            .await
            .map_err(|error| error.to_string())?;
        Ok(Reply {
            status: head.status.as_u16(),
            headers: head.headers,
            body: body.to_bytes(),
        })
    }
}

/// The server tells how a request shows a token; here it is told where this command took it from.
fn with_token_hint(mut failure: Failure) -> Failure {
    if &*failure.problem.code == "token_wrong" {
        let hint = match given_token() {
            Some(_) => {
                "It is from FENCEPOST_TOKEN, which wins over the file: put this server's token there, or unset it."
            }
            None => "Name the file token in this server's data folder with --token-file.",
        };
        failure.problem.hint = hint.into();
    }
    failure
}

/// The token: from `FENCEPOST_TOKEN` (a server in memory has no file), or from the file. What a job's program
/// finds under that name is the fencing token of its attempt.
fn token_of(file: &std::path::Path) -> Result<String, Failure> {
    given_token().map_or_else(|| read_token(file).map_err(Failure::of), Ok)
}

/// What `FENCEPOST_TOKEN` says, if it is the API's.
pub fn given_token() -> Option<String> {
    let token = std::env::var("FENCEPOST_TOKEN").ok()?;
    let is_fencing = token.parse::<Token>().is_ok();
    let is_plain = !token.is_empty() && token.bytes().all(|b| b.is_ascii_graphic());
    (is_plain && !is_fencing).then_some(token)
}

/// A request was sent, or may have been, and its answer did not come.
fn broken(changes: bool, reason: &str) -> Failure {
    if changes {
        let detail = format!("The outcome is unknown: {reason}.");
        let hint = "Look before you repeat it, or repeat it with the same --key.";
        return Failure::new(Exit::Unknown, OUTCOME_UNKNOWN, detail, hint);
    }
    let detail = format!("The server did not answer: {reason}.");
    Failure::new(
        Exit::Unreachable,
        "server_silent",
        detail,
        "Try again; see the server's log.",
    )
}

/// A part of a path, percent-encoded.
pub fn segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// A path with parameters; those without a value are left out.
pub fn with_query(path: &str, params: &[(&str, Option<String>)]) -> String {
    let pairs: Vec<_> = params
        .iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", segment(value.as_deref()?))))
        .collect();
    match pairs.is_empty() {
        true => path.to_owned(),
        false => format!("{path}?{}", pairs.join("&")),
    }
}
