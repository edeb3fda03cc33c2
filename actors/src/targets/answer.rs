//! What an HTTP answer means for the attempt.
//!
//! Owns: status → verdict (PROTOCOL F15) and Retry-After. Must never: read a clock; a date is counted from
//! the answer's own `Date`, so no two machines' clocks are compared. Next: `http`, its only caller.

use chrono::DateTime;
use fencepost_core::job::{EffectProof, RetryAdvice, Verdict};
use fencepost_core::limits::RETRY_AFTER_MS_MAX;
use fencepost_core::time::Span;
use hyper::StatusCode;
use hyper::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};

/// The verdict of a complete answer, with the error text where it is no success.
#[must_use]
pub fn judge_answer(status: StatusCode, headers: &HeaderMap) -> (Verdict, Option<String>) {
    if status.is_success() {
        return (Verdict::Succeeded, None);
    }
    #[cfg(madsim)]
    if crate::planted::is_planted(crate::planted::Bug::FaultTakenForSuccess) {
        return (Verdict::Succeeded, None);
    }
    let wait = retry_after(headers);
    let by_policy_or_wait = wait.map_or(RetryAdvice::ByPolicy, RetryAdvice::After);
    let (retry, effect) = match (status, wait) {
        (StatusCode::GONE, _) => (RetryAdvice::Stop, EffectProof::Unproven),
        (StatusCode::TOO_MANY_REQUESTS, _) => (by_policy_or_wait, EffectProof::NoEffect),
        (StatusCode::SERVICE_UNAVAILABLE, Some(wait)) => (RetryAdvice::After(wait), EffectProof::NoEffect),
        _ => (RetryAdvice::ByPolicy, EffectProof::Unproven),
    };
    (Verdict::Failed { retry, effect }, Some(error_text(status)))
}

fn error_text(status: StatusCode) -> String {
    let reason = status.canonical_reason().unwrap_or("a status without a name");
    let number = status.as_u16();
    if status == StatusCode::GONE {
        format!("http_gone: the target answered {number} {reason}; it is not tried again")
    } else if status.is_redirection() {
        format!("http_redirect: the target answered {number} {reason}; redirects are not followed, give the final URL")
    } else {
        format!("http_status: the target answered {number} {reason}")
    }
}

/// The wait that the answer asks for: seconds, or a date counted from the answer's own date. Capped.
fn retry_after(headers: &HeaderMap) -> Option<Span> {
    let text = text_of(headers, RETRY_AFTER)?;
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        // More digits than fit are a very long wait.
        return Some(capped(text.parse().unwrap_or(u64::MAX)));
    }
    let until = http_date(text)?;
    let from = http_date(text_of(headers, DATE)?)?;
    Some(capped(u64::try_from(until.saturating_sub(from)).unwrap_or(0)))
}

fn capped(secs: u64) -> Span {
    Span::from_secs(secs).min(Span::from_millis(RETRY_AFTER_MS_MAX))
}

fn text_of(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
}

fn http_date(text: &str) -> Option<i64> {
    DateTime::parse_from_rfc2822(text).ok().map(|at| at.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn judge(status: u16, headers: &[(HeaderName, &str)]) -> Verdict {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(name.clone(), HeaderValue::from_str(value).unwrap());
        }
        judge_answer(StatusCode::from_u16(status).unwrap(), &map).0
    }

    fn failed(retry: RetryAdvice, effect: EffectProof) -> Verdict {
        Verdict::Failed { retry, effect }
    }

    #[test]
    fn any_2xx_succeeds() {
        for status in [200, 201, 202, 204, 206, 299] {
            assert_eq!(judge(status, &[]), Verdict::Succeeded);
        }
    }

    #[test]
    fn f15_only_429_and_503_with_retry_after_prove_no_effect() {
        let (policy, after) = (RetryAdvice::ByPolicy, RetryAdvice::After(Span::from_secs(7)));
        let header = [(RETRY_AFTER, "7")];
        assert_eq!(judge(429, &[]), failed(policy, EffectProof::NoEffect));
        assert_eq!(judge(429, &header), failed(after, EffectProof::NoEffect));
        assert_eq!(judge(503, &header), failed(after, EffectProof::NoEffect));
        for status in [199, 300, 304, 307, 400, 404, 408, 409, 418, 500, 502, 503, 504, 599] {
            assert_eq!(judge(status, &[]), failed(policy, EffectProof::Unproven), "{status}");
        }
        assert_eq!(judge(500, &header), failed(policy, EffectProof::Unproven));
    }

    #[test]
    fn gone_stops() {
        assert_eq!(
            judge(410, &[(RETRY_AFTER, "7")]),
            failed(RetryAdvice::Stop, EffectProof::Unproven)
        );
    }

    #[test]
    fn retry_after_reads_seconds_and_dates_and_is_capped() {
        let wait = |headers: &[(HeaderName, &str)]| match judge(503, headers) {
            Verdict::Failed {
                retry: RetryAdvice::After(span),
                ..
            } => Some(span),
            _ => None,
        };
        let cap = Span::from_millis(RETRY_AFTER_MS_MAX);
        assert_eq!(wait(&[(RETRY_AFTER, "0")]), Some(Span::ZERO));
        assert_eq!(wait(&[(RETRY_AFTER, "99999999")]), Some(cap));
        assert_eq!(wait(&[(RETRY_AFTER, "99999999999999999999999999")]), Some(cap));
        let (date, later) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:50:07 GMT");
        assert_eq!(wait(&[(RETRY_AFTER, later), (DATE, date)]), Some(Span::from_secs(30)));
        assert_eq!(wait(&[(RETRY_AFTER, date), (DATE, later)]), Some(Span::ZERO));
        for bad in ["", "-1", "1.5", "soon", "+3", "Sun, 06 Nov"] {
            assert_eq!(wait(&[(RETRY_AFTER, bad), (DATE, date)]), None, "{bad}");
        }
        assert_eq!(
            wait(&[(RETRY_AFTER, later)]),
            None,
            "a date says nothing without the answer's own"
        );
    }
}
