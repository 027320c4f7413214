//! Reads responses within limits and classifies failures.

use std::error::Error;
use std::io;
use std::time::Duration;

use chrono::DateTime;
use countersign_domain::delivery::failure::FailureCode;
use countersign_domain::primitives::time::Timestamp;
use reqwest::Response;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use super::ssrf_guard::ForbiddenAddress;

/// The limit of `Retry-After`. The longest delay of this gateway's own backoff is the same.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);
/// The limit of causes that are searched. Real chains have a few.
const CAUSES_MAX: usize = 16;

/// The stored part of a body.
pub(super) struct BoundedBody {
    pub(super) kept: Vec<u8>,
    pub(super) cut: bool,
}

/// The number of bytes that are stored, and the number that are read at most so that the connection can be reused.
#[derive(Clone, Copy)]
pub(super) struct BodyLimits {
    pub(super) kept_bytes: usize,
    pub(super) read_bytes: usize,
}

/// Reads a body. If the body exceeds the limit, the rest stays unread and the connection is dropped.
pub(super) async fn read(mut response: Response, bounds: BodyLimits) -> Result<BoundedBody, reqwest::Error> {
    let (mut kept, mut seen) = (Vec::new(), 0_usize);
    while let Some(chunk) = response.chunk().await? {
        let left = bounds.kept_bytes - kept.len();
        kept.extend_from_slice(&chunk[..chunk.len().min(left)]);
        seen += chunk.len();
        if seen > bounds.read_bytes {
            break;
        }
    }
    Ok(BoundedBody { cut: seen > kept.len(), kept })
}

/// Returns the delay in `Retry-After`, as seconds or as a date. An invalid value is ignored.
pub(super) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let after = match text.bytes().all(|it| it.is_ascii_digit()) {
        true if text.is_empty() => return None,
        // A number that does not fit is still a long delay.
        true => text.parse().map_or(RETRY_AFTER_MAX, Duration::from_secs),
        false => {
            let then = DateTime::parse_from_rfc2822(text).ok()?;
            now.until(Timestamp::from_millis(then.timestamp_millis()))
        }
    };
    Some(after.min(RETRY_AFTER_MAX))
}

/// Returns the code of a library error. The error's text is not used because it quotes URLs, which can be secrets.
pub(super) fn meaning(error: &reqwest::Error) -> FailureCode {
    if any_cause(error, |it| it.is::<ForbiddenAddress>()) {
        FailureCode::Refused
    } else if error.is_timeout() {
        FailureCode::TimedOut
    } else if error.is_dns() {
        FailureCode::NotFound
    } else if any_cause(error, |it| it.is::<rustls::Error>()) {
        FailureCode::Tls
    } else if error.is_connect() && any_cause(error, is_early_end) {
        // TCP connected, so the TLS handshake failed.
        FailureCode::Tls
    } else if error.is_connect() {
        FailureCode::Unreachable
    } else if error.is_builder() {
        FailureCode::Unsendable
    } else {
        FailureCode::Broken
    }
}

fn is_early_end(cause: &(dyn Error + 'static)) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
    matches!(kind, Some(BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof))
}

fn any_cause(error: &(dyn Error + 'static), wanted: impl Fn(&(dyn Error + 'static)) -> bool) -> bool {
    let mut next = Some(error);
    for _ in 0..CAUSES_MAX {
        let Some(cause) = next else { return false };
        if wanted(cause) {
            return true;
        }
        // The inner error of an IO error is not its `source`, so it has to be read separately.
        let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match inner {
            Some(inner) => Some(inner),
            None => cause.source(),
        };
    }
    false
}
