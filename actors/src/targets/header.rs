//! Which request headers a job may set.
//!
//! Owns: the allow-list and the form of a value. Must never: let a job change how the request is framed
//! or routed, or speak in our name. Next: `http`, which adds our own headers.

use fencepost_core::limits::{TARGET_HEADER_BYTES_MAX, TARGET_HEADER_COUNT_MAX};

/// Allowed by name. Beside these, `x-…` headers pass unless they are on `REFUSED_X`.
const ALLOWED: &[&str] = &[
    "accept",
    "accept-language",
    "baggage",
    "cache-control",
    "content-language",
    "content-type",
    "if-match",
    "if-none-match",
    "prefer",
    "traceparent",
    "tracestate",
];

/// Beginnings of `x-…` names that proxies and frameworks believe about who calls, where or how.
const REFUSED_X: &[&str] = &[
    "x-forwarded",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-original-",
    "x-rewrite-url",
    "x-http-method",
    "x-method-override",
    "x-host",
    "x-envoy-",
    "x-amzn-",
    "x-aws-",
    "x-google-",
    "x-ms-",
    "x-fencepost-",
];

/// Why a header is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Too many headers.
    #[error("an http target has at most {TARGET_HEADER_COUNT_MAX} headers")]
    Count,
    /// Not a header name in lower case.
    #[error("a header name is made of a-z, 0-9, '-' and '_'")]
    Name,
    /// A name that is not on the allow-list.
    #[error(
        "this header may not be set by a job; allowed are content-type, accept, traceparent and the others in the guide to targets, and x- headers of your own"
    )]
    NotAllowed,
    /// Credentials while the operator has not allowed them.
    #[error("the authorization header is not allowed on this server; an operator can allow it")]
    Authorization,
    /// Set twice.
    #[error("each header may be set once")]
    Twice,
    /// Control characters, bytes beyond ASCII, blanks at an end, or too long.
    #[error("a header value holds visible ASCII and inner blanks, at most {TARGET_HEADER_BYTES_MAX} bytes")]
    Value,
}

impl HeaderError {
    /// The stable code of this refusal.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Count => "header_count",
            Self::Name => "header_name",
            Self::NotAllowed => "header_not_allowed",
            Self::Authorization => "header_authorization_not_allowed",
            Self::Twice => "header_twice",
            Self::Value => "header_value",
        }
    }
}

/// Checks all headers of a target; the error comes with the place of the first bad one.
///
/// # Errors
/// Place and reason.
pub fn check_headers(headers: &[(String, String)], authorization: bool) -> Result<(), (usize, HeaderError)> {
    if headers.len() > TARGET_HEADER_COUNT_MAX {
        return Err((TARGET_HEADER_COUNT_MAX, HeaderError::Count));
    }
    for (at, (name, value)) in headers.iter().enumerate() {
        check_name(name, authorization).map_err(|why| (at, why))?;
        if headers.iter().take(at).any(|(earlier, _)| earlier == name) {
            return Err((at, HeaderError::Twice));
        }
        if !is_value(value) {
            return Err((at, HeaderError::Value));
        }
    }
    Ok(())
}

fn check_name(name: &str, authorization: bool) -> Result<(), HeaderError> {
    let known = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
    if name.is_empty() || name.len() > 128 || !name.bytes().all(known) {
        return Err(HeaderError::Name);
    }
    if name == "authorization" {
        return if authorization {
            Ok(())
        } else {
            Err(HeaderError::Authorization)
        };
    }
    // Some servers read '_' as '-': a name is judged in both readings.
    let dashed = name.replace('_', "-");
    let own_x = name.len() > 2 && name.starts_with("x-") && !REFUSED_X.iter().any(|bad| dashed.starts_with(bad));
    if ALLOWED.contains(&name) || own_x {
        Ok(())
    } else {
        Err(HeaderError::NotAllowed)
    }
}

fn is_value(value: &str) -> bool {
    value.len() <= TARGET_HEADER_BYTES_MAX
        && value.bytes().all(|b| (0x20..0x7f).contains(&b) || b == b'\t')
        && value.trim_matches([' ', '\t']) == value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, value: &str) -> Result<(), HeaderError> {
        check_headers(&[(name.into(), value.into())], false).map_err(|(_, why)| why)
    }

    #[test]
    fn headers_that_frame_route_or_impersonate_are_refused() {
        for name in [
            "host",
            "transfer-encoding",
            "content-length",
            "connection",
            "te",
            "trailer",
            "upgrade",
            "expect",
            "keep-alive",
            "proxy-authorization",
            "proxy-connection",
            "cookie",
            "forwarded",
            "via",
            "range",
            "user-agent",
            "idempotency-key",
            "fencepost-token",
            "fencepost-attempt",
            "webhook-id",
            "webhook-signature",
            "x-forwarded-for",
            "x-forwarded-host",
            "x_forwarded_for",
            "x-forwarded_for",
            "x-real-ip",
            "x-original-url",
            "x-http-method-override",
            "x-aws-ec2-metadata-token",
            "x-",
            "metadata-flavor",
            "metadata",
            "content-encoding",
            "referer",
            "origin",
        ] {
            assert_eq!(check(name, "v"), Err(HeaderError::NotAllowed), "{name}");
        }
        assert_eq!(check("authorization", "Bearer x"), Err(HeaderError::Authorization));
        assert_eq!(
            check_headers(&[("authorization".into(), "Bearer x".into())], true),
            Ok(())
        );
    }

    #[test]
    fn values_cannot_break_out_of_their_line() {
        for value in [
            "a\r\nhost: b",
            "a\nb",
            "a\rb",
            "a\0b",
            " a",
            "a ",
            "a\t",
            "\u{e9}",
            "a\u{7f}",
        ] {
            assert_eq!(check("x-note", value), Err(HeaderError::Value), "{value:?}");
        }
        assert_eq!(
            check("x-note", &"v".repeat(TARGET_HEADER_BYTES_MAX + 1)),
            Err(HeaderError::Value)
        );
        assert_eq!(check("x-note", "one\ttwo three"), Ok(()));
        assert_eq!(check("content-type", ""), Ok(()));
    }

    #[test]
    fn names_are_plain_and_come_once() {
        for name in ["", "X-Note", "x note", "x:note", "x-n\u{f6}te", "x\r"] {
            assert_eq!(check(name, "v"), Err(HeaderError::Name), "{name:?}");
        }
        let twice = [("x-a".to_owned(), "1".to_owned()), ("x-a".to_owned(), "2".to_owned())];
        assert_eq!(check_headers(&twice, false), Err((1, HeaderError::Twice)));
        let many: Vec<_> = (0..=TARGET_HEADER_COUNT_MAX)
            .map(|i| (format!("x-{i}"), String::new()))
            .collect();
        assert_eq!(
            check_headers(&many, false),
            Err((TARGET_HEADER_COUNT_MAX, HeaderError::Count))
        );
    }
}
