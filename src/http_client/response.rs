//! What came back: as much of it as is of use, and why there is none.

use std::error::Error;
use std::io;
use std::time::Duration;

use chrono::DateTime;
use reqwest::Response;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use super::ssrf_guard::ForbiddenAddress;
use crate::domain::delivery::failure::FailureCode;
use crate::domain::primitives::time::Timestamp;

/// Nobody asks in earnest to be left alone for longer than the longest of our own delays.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);
/// A chain of causes is a few long.
const CAUSES_MAX: usize = 16;

/// A body, as much of it as is kept.
pub(super) struct BoundedBody {
    pub(super) kept: Vec<u8>,
    pub(super) cut: bool,
}

/// How much of a body is kept, and how much of it is read at most, so that the connection can be used again.
#[derive(Clone, Copy)]
pub(super) struct BodyLimits {
    pub(super) kept_bytes: usize,
    pub(super) read_bytes: usize,
}

/// Reads a body. One that is longer than it may be is left where it is, and its connection is dropped with it.
pub(super) async fn read(mut response: Response, bounds: BodyLimits) -> Result<BoundedBody, reqwest::Error> {
    let (mut kept, mut seen) = (Vec::new(), 0_usize);
    while let Some(chunk) = response.chunk().await? {
        let room = bounds.kept_bytes - kept.len();
        kept.extend_from_slice(&chunk[..chunk.len().min(room)]);
        seen += chunk.len();
        if seen > bounds.read_bytes {
            break;
        }
    }
    Ok(BoundedBody { cut: seen > kept.len(), kept })
}

/// How long to leave them alone, if they say so in a way that can be understood: seconds, or a date.
pub(super) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let after = match text.bytes().all(|it| it.is_ascii_digit()) {
        true if text.is_empty() => return None,
        // More seconds than can be counted are still many.
        true => text.parse().map_or(RETRY_AFTER_MAX, Duration::from_secs),
        false => {
            let then = DateTime::parse_from_rfc2822(text).ok()?;
            now.until(Timestamp::from_millis(then.timestamp_millis()))
        }
    };
    Some(after.min(RETRY_AFTER_MAX))
}

/// What a library's error means. Its text goes nowhere: it quotes addresses.
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
        // The connection stood, so it was TLS that did not come about.
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
        // What is inside of an IO error is not its source, but comes before it.
        let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match inner {
            Some(inner) => Some(inner),
            None => cause.source(),
        };
    }
    false
}
