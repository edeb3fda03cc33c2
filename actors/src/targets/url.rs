//! The address of an `http` target as a user writes it, read strictly.
//!
//! Owns: which URLs are accepted, at creation and again before each attempt. Must never: guess. What two
//! readers could read differently (userinfo, odd spellings of IP addresses, escapes in the host) is refused,
//! because the reader that checks and the reader that connects must see the same host. Next: `connector`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fencepost_core::limits::URL_BYTES_MAX;
use hyper::http::uri::PathAndQuery;

/// Whether the connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Plain text.
    Http,
    /// TLS.
    Https,
}

/// Where the request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// A name to be resolved, in lower case.
    Name(String),
    /// An address in its one canonical spelling.
    Address(IpAddr),
}

/// A URL that passed every check which needs no network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetUrl {
    /// `http` or `https`.
    pub scheme: Scheme,
    /// Name or address.
    pub host: Host,
    /// The port, given or the scheme's own.
    pub port: u16,
    /// Path and query as sent; at least `/`.
    pub path_and_query: PathAndQuery,
}

/// Why a URL is refused. The text names what is wrong and what to write instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Longer than the limit.
    #[error("the URL is longer than {URL_BYTES_MAX} bytes")]
    TooLong,
    /// A byte that is not visible ASCII, or a backslash.
    #[error(
        "the URL may hold visible ASCII characters only, without backslash; percent-encode the path, write the host in its xn-- form"
    )]
    Characters,
    /// Neither http nor https.
    #[error("the URL must begin with http:// or https://")]
    Scheme,
    /// A user name or password before the host.
    #[error("the URL must not hold a user name or password; send credentials in an allowed header")]
    UserInfo,
    /// A fragment, which no server ever receives.
    #[error("the URL must not hold a fragment (#); it would never be sent")]
    Fragment,
    /// Not a host name and not an address in its usual spelling.
    #[error(
        "the host must be a DNS name, an IPv4 address as four plain decimal numbers, or an IPv6 address in brackets without a zone"
    )]
    Host,
    /// Not a port number.
    #[error("the port must be a number from 1 to 65535")]
    Port,
    /// A port that targets may not use.
    #[error("the port must be 80, 443 or at least 1024, and none of this server's own")]
    PortNotAllowed,
    /// Path or query cannot be sent as they are.
    #[error("the path or query holds characters that must be percent-encoded")]
    Path,
}

impl UrlError {
    /// The stable code of this refusal.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::TooLong => "url_too_long",
            Self::Characters => "url_characters",
            Self::Scheme => "url_scheme",
            Self::UserInfo => "url_user_info",
            Self::Fragment => "url_fragment",
            Self::Host => "url_host",
            Self::Port => "url_port",
            Self::PortNotAllowed => "url_port_not_allowed",
            Self::Path => "url_path",
        }
    }
}

impl TargetUrl {
    /// Reads a URL, refusing everything that is not plain.
    ///
    /// # Errors
    /// The first thing wrong with it.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        if text.len() > URL_BYTES_MAX {
            return Err(UrlError::TooLong);
        }
        if !text.bytes().all(|b| b.is_ascii_graphic() && b != b'\\') {
            return Err(UrlError::Characters);
        }
        let (scheme, rest) = split_scheme(text)?;
        if rest.contains('#') {
            return Err(UrlError::Fragment);
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(UrlError::UserInfo);
        }
        let (host, port) = split_port(authority)?;
        let port = port.unwrap_or(match scheme {
            Scheme::Http => 80,
            Scheme::Https => 443,
        });
        if port != 80 && port != 443 && port < 1024 {
            return Err(UrlError::PortNotAllowed);
        }
        Ok(Self {
            scheme,
            host: parse_host(host)?,
            port,
            path_and_query: parse_path(path)?,
        })
    }

    /// The value of the `Host` header: the port only where it is not the scheme's own.
    #[must_use]
    pub fn authority(&self) -> String {
        let host = match &self.host {
            Host::Name(name) => name.clone(),
            Host::Address(IpAddr::V4(ip)) => ip.to_string(),
            Host::Address(IpAddr::V6(ip)) => format!("[{ip}]"),
        };
        match (self.scheme, self.port) {
            (Scheme::Http, 80) | (Scheme::Https, 443) => host,
            (Scheme::Http | Scheme::Https, port) => format!("{host}:{port}"),
        }
    }
}

fn split_scheme(text: &str) -> Result<(Scheme, &str), UrlError> {
    let (scheme, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
    if scheme.eq_ignore_ascii_case("http") {
        Ok((Scheme::Http, rest))
    } else if scheme.eq_ignore_ascii_case("https") {
        Ok((Scheme::Https, rest))
    } else {
        Err(UrlError::Scheme)
    }
}

/// Splits `host[:port]`; an IPv6 address keeps its brackets.
fn split_port(authority: &str) -> Result<(&str, Option<u16>), UrlError> {
    let host_end = match authority.strip_prefix('[') {
        Some(_) => authority.find(']').ok_or(UrlError::Host)? + 1,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, rest) = authority.split_at(host_end);
    if rest.is_empty() {
        return Ok((host, None));
    }
    let digits = rest.strip_prefix(':').ok_or(UrlError::Host)?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(UrlError::Port);
    }
    match digits.parse::<u16>() {
        Ok(0) | Err(_) => Err(UrlError::Port),
        Ok(port) => Ok((host, Some(port))),
    }
}

fn parse_host(host: &str) -> Result<Host, UrlError> {
    if let Some(inner) = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        let address: Ipv6Addr = inner.parse().map_err(|_| UrlError::Host)?;
        return Ok(Host::Address(IpAddr::V6(address)));
    }
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        return Ok(Host::Address(IpAddr::V4(address)));
    }
    let name_ok = host.len() <= 253 && host.split('.').all(is_label);
    let last = host.rsplit('.').next().unwrap_or_default();
    if !name_ok || is_numberlike(last) {
        return Err(UrlError::Host);
    }
    Ok(Host::Name(host.to_ascii_lowercase()))
}

fn is_label(label: &str) -> bool {
    let bytes = label.as_bytes();
    !bytes.is_empty()
        && bytes.len() <= 63
        && bytes.first() != Some(&b'-')
        && bytes.last() != Some(&b'-')
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || *b == b'-' || *b == b'_')
}

/// A last label that some reader would take for a number makes the whole host an IPv4 address for it.
fn is_numberlike(label: &str) -> bool {
    let hex = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    label.bytes().all(|b| b.is_ascii_digit()) || hex.is_some_and(|h| h.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn parse_path(path: &str) -> Result<PathAndQuery, UrlError> {
    let full = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    };
    PathAndQuery::try_from(full).map_err(|_| UrlError::Path)
}

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
