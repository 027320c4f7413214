//! Limits on the time and the memory for request bodies. A sender that was authenticated at the first byte is checked
//! again after the last one, because its token may have been revoked.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::header::CONTENT_LENGTH;
use countersign_service::error::Error;

use super::quota::{CallerQuota, QuotaPermit};

/// The time limit for a body. It protects against slow senders that block memory (slowloris).
const PATIENCE: Duration = Duration::from_secs(30);

/// The limit for unfinished bodies of one sender. A single larger body is allowed.
const OF_ONE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The limit for unfinished bodies of all authenticated senders.
const ALL_BYTES_MAX: usize = 512 * 1024 * 1024;

/// The limit for unfinished bodies of unauthenticated senders with one address.
const OF_UNKNOWN_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The limit for unfinished bodies of all unauthenticated senders. It is separate, so that they cannot use up the
/// memory of authenticated ones.
const ALL_UNKNOWN_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The limits on time and memory.
pub struct RequestBodyLimits {
    patience: Duration,
    unheard: CallerQuota,
    unknown: CallerQuota,
}

pub struct ReceivedBody<T> {
    pub sent: T,
    /// Whether the body arrived late. Then the sender is authenticated again.
    pub late: bool,
}

#[derive(Clone, Copy)]
pub enum BodySender<'a> {
    /// An authenticated token.
    Token(&'a str),
    /// A client address. A signed post is authenticated only after the whole body has arrived.
    Address(&'a str),
}

/// The sender of a body and its largest size.
pub struct BodyAllowance<'a> {
    pub by: BodySender<'a>,
    /// The number of bytes.
    pub bytes: usize,
}

impl Default for RequestBodyLimits {
    fn default() -> Self {
        Self {
            patience: PATIENCE,
            unheard: CallerQuota::new(OF_ONE_BYTES_MAX, ALL_BYTES_MAX),
            unknown: CallerQuota::new(OF_UNKNOWN_BYTES_MAX, ALL_UNKNOWN_BYTES_MAX),
        }
    }
}

impl<'a> BodyAllowance<'a> {
    /// Reads the announced length. Without one, the largest allowed length is assumed.
    pub fn of(by: BodySender<'a>, request: &HttpRequest, longest: usize) -> Self {
        let said = request.headers().get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse().ok());
        // A wrong announcement cannot exceed the limit of the call.
        Self { by, bytes: said.unwrap_or(longest).min(longest) }
    }
}

impl RequestBodyLimits {
    fn seat(&self, share: &BodyAllowance<'_>) -> Option<QuotaPermit> {
        match share.by {
            BodySender::Token(id) => self.unheard.acquire_amount(id, share.bytes),
            // Unauthenticated senders have their own budget, so that they cannot use up the memory for tokens.
            BodySender::Address(address) => self.unknown.acquire_amount(address, share.bytes),
        }
    }

    /// Reads a whole body. A body that has already arrived needs no share of the memory.
    pub async fn read_body<T>(
        &self,
        share: Option<BodyAllowance<'_>>,
        sent: impl Future<Output = T>,
    ) -> Result<ReceivedBody<T>, Error> {
        let mut sent = pin!(sent);
        // Most bodies have arrived with the head, and need neither time nor memory accounting.
        if let Some(sent) = at_once(sent.as_mut()).await {
            return Ok(ReceivedBody { sent, late: false });
        }
        let _seat = match share {
            Some(it) => Some(self.seat(&it).ok_or(Error::TooMany)?),
            None => None,
        };
        // The time limit frees the memory of a sender that stops in the middle (slowloris).
        let slow = |_| Error::invalid("", "the body did not arrive in time: send the request again");
        Ok(ReceivedBody { sent: tokio::time::timeout(self.patience, sent).await.map_err(slow)?, late: true })
    }
}

/// Returns the body if it has already arrived. The server delivers it only at the second poll.
async fn at_once<T>(mut sent: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    let mut looks = 0..2;
    poll_fn(|context| match (sent.as_mut().poll(context), looks.next()) {
        (Poll::Ready(sent), _) => Poll::Ready(Some(sent)),
        (Poll::Pending, Some(0)) => {
            // The first poll starts the body and the second one sees what the server has already received.
            context.waker().wake_by_ref();
            Poll::Pending
        }
        (Poll::Pending, _) => Poll::Ready(None),
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    fn share(bytes: usize) -> Option<BodyAllowance<'static>> {
        Some(BodyAllowance { by: BodySender::Token("a"), bytes })
    }

    #[tokio::test]
    async fn complete_body_needs_no_quota_and_a_missing_one_times_out() {
        let hearing = RequestBodyLimits {
            patience: Duration::ZERO,
            unheard: CallerQuota::new(10, 10),
            unknown: CallerQuota::new(10, 10),
        };
        let _all = hearing.unheard.acquire_amount("a", 10).unwrap();
        assert!(!hearing.read_body(share(1), ready(())).await.unwrap().late);
        assert!(matches!(hearing.read_body(share(1), pending::<()>()).await, Err(Error::TooMany)));
        for whose in [
            Some(BodyAllowance { by: BodySender::Token("b"), bytes: 0 }),
            Some(BodyAllowance { by: BodySender::Address("a"), bytes: 10 }),
            None,
        ] {
            assert!(matches!(hearing.read_body(whose, pending::<()>()).await, Err(Error::Invalid { .. })));
        }
        let patient = RequestBodyLimits::default();
        assert!(patient.read_body(share(1), tokio::time::sleep(Duration::from_millis(1))).await.unwrap().late);
        assert!(patient.unheard.acquire_amount("a", OF_ONE_BYTES_MAX).is_some(), "what it took was given back");
    }
}
