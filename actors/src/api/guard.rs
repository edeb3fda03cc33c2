//! Who may speak to the API: own hosts, own origins, the token.
//!
//! Owns: the checks before a request reaches a route. A page in a browser cannot reach the API through a name
//! that resolves to this machine (Host), nor from another site (Origin). Must never: say which part of a
//! token is wrong. Next: `server.rs`, `token.rs`.

use super::token::TokenDigest;
use crate::problem::Problem;
use http_body_util::BodyExt as _;
use hyper::header::{AUTHORIZATION, HOST, ORIGIN};
use hyper::{HeaderMap, Uri};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

/// Paths that answer without a token: probes have none, and learn nothing but "well" or "not".
pub const OPEN_PATHS: &[&str] = &["/livez", "/readyz"];

/// The names and the token that a listener accepts.
#[derive(Clone, Debug)]
pub struct Guard {
    hosts: BTreeSet<String>,
    token: TokenDigest,
}

impl Guard {
    /// For a listener at `address`; `names` are further host names that lead to it.
    pub fn new(address: SocketAddr, names: impl IntoIterator<Item = String>, token: TokenDigest) -> Guard {
        let mut hosts: BTreeSet<String> = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned).into();
        hosts.insert(match address.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        });
        hosts.extend(names.into_iter().map(|name| name.to_ascii_lowercase()));
        Guard { hosts, token }
    }

    /// Checks a request's head.
    ///
    /// # Errors
    /// 400 without a Host, 403 for a foreign Host or Origin, 401 without the token.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        self.check_host(uri, headers)?;
        self.check_origin(headers)?;
        if OPEN_PATHS.contains(&uri.path()) {
            return Ok(());
        }
        self.token
            .check(headers.get(AUTHORIZATION).map(|value| value.as_bytes()))
    }

    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let mut hosts = headers.get_all(HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.to_str().ok(),
            _ => None,
        };
        let Some(host) = host else {
            let hint = "Send one Host header that names this server.";
            return Err(Problem::http(
                400,
                "host_missing",
                "The request names no host, or several.",
                hint,
            ));
        };
        let named = [Some(host), uri.authority().map(|authority| authority.as_str())];
        if named.into_iter().flatten().all(|name| self.is_own(name)) {
            return Ok(());
        }
        let hint = "Call the server as localhost or 127.0.0.1.";
        Err(Problem::http(
            403,
            "host_foreign",
            "The request is meant for another host.",
            hint,
        ))
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let refuse = || {
            let hint = "Pages of other sites may not call this server.";
            Err(Problem::http(
                403,
                "origin_foreign",
                "The request comes from a page of another site.",
                hint,
            ))
        };
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        for origin in headers.get_all(ORIGIN) {
            let own = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
            if own.is_none() || own != host {
                return refuse();
            }
        }
        match headers.get("sec-fetch-site").map(|site| site.as_bytes()) {
            None | Some(b"same-origin" | b"none") => Ok(()),
            Some(_) => refuse(),
        }
    }

    fn is_own(&self, authority: &str) -> bool {
        self.hosts.contains(&without_port(authority).to_ascii_lowercase())
    }
}

fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => authority,
    }
}

/// Why an address may not be listened on.
///
/// # Errors
/// It is not loopback.
pub fn check_listen(address: SocketAddr) -> Result<(), fencepost_core::refusal::Refusal> {
    use fencepost_core::refusal::{Refusal, RefusalKind};
    if address.ip().is_loopback() || cfg!(madsim) {
        return Ok(());
    }
    let detail = format!("The API does not listen on {address}: it speaks without encryption.");
    let hint = "Listen on 127.0.0.1 and put a proxy with TLS, or an ssh tunnel, in front.";
    Err(Refusal::new(RefusalKind::Forbidden, "listen_not_loopback", detail, hint).at("listen"))
}

/// Reads a body within its bounds of size and time.
///
/// # Errors
/// 413 when it is too large, 408 when it comes too slowly, 400 when it breaks off.
pub async fn read_body<B>(body: B, bytes_max: usize, time: std::time::Duration) -> Result<hyper::body::Bytes, Problem>
where
    B: hyper::body::Body<Data = hyper::body::Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let too_large = || {
        let detail = format!("The body has more than {bytes_max} bytes.");
        Problem::http(413, "body_too_large", detail, "Send less at once.")
    };
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(too_large());
    }
    let limited = http_body_util::Limited::new(body, bytes_max);
    match tokio::time::timeout(time, limited.collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(Problem::http(
            400,
            "body_broken",
            "The body broke off or was framed wrongly.",
            "Send the request again.",
        )),
        Err(_) => Err(Problem::http(
            408,
            "body_too_slow",
            format!("The body did not arrive within {} s.", time.as_secs()),
            "Send it faster, or send less at once.",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(pairs: &[(&'static str, &str)]) -> String {
        let address = "127.0.0.1:4480".parse().unwrap();
        let guard = Guard::new(address, ["Fence.Example".to_owned()], TokenDigest::of("fp_secret"));
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, "Bearer fp_secret".parse().unwrap());
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        let checked = guard.check(&"/v1/jobs".parse().unwrap(), &headers);
        checked
            .err()
            .map_or_else(|| "ok".to_owned(), |problem| problem.code.into())
    }

    #[test]
    fn only_own_hosts_are_answered() {
        for host in [
            "127.0.0.1:4480",
            "localhost",
            "LOCALHOST:1",
            "[::1]:4480",
            "[::1]",
            "fence.example",
        ] {
            assert_eq!(code(&[("host", host)]), "ok", "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.",
            "2130706433",
            "127.1",
            "localhost:80:80",
        ] {
            assert_eq!(code(&[("host", host)]), "host_foreign", "{host}");
        }
        assert_eq!(code(&[]), "host_missing");
        assert_eq!(code(&[("host", "localhost"), ("host", "localhost")]), "host_missing");
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let with = |name: &'static str, value: &str| code(&[("host", "localhost:4480"), (name, value)]);
        assert_eq!(with("origin", "http://localhost:4480"), "ok");
        for origin in [
            "null",
            "http://evil.example",
            "https://localhost:4480",
            "http://localhost:1",
            "http://localhost:4480/",
        ] {
            assert_eq!(with("origin", origin), "origin_foreign", "{origin}");
        }
        assert_eq!(with("sec-fetch-site", "cross-site"), "origin_foreign");
        assert_eq!(with("sec-fetch-site", "same-origin"), "ok");
    }

    #[test]
    fn only_loopback_is_listened_on() {
        for address in ["127.0.0.1:0", "127.8.9.1:1", "[::1]:0"] {
            assert!(check_listen(address.parse().unwrap()).is_ok(), "{address}");
        }
        for address in [
            "0.0.0.0:0",
            "[::]:0",
            "192.168.1.1:80",
            "8.8.8.8:1",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert_eq!(
                check_listen(address.parse().unwrap()).unwrap_err().code,
                "listen_not_loopback",
                "{address}"
            );
        }
    }
}
