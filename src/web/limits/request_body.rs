//! Hearing a request out: what is sent comes in its time, within its sender's share of the memory, and counts as said when its
//! last byte is there. Whoever was let in at the first byte may not be any more by then.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::header::CONTENT_LENGTH;

use super::quota::{CallerQuota, QuotaPermit};
use crate::service::error::Error;

/// Whoever sends for longer has hung up, or holds on to what others need.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes of one sender's requests that are not all there yet. One alone may be longer.
const OF_ONE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of everybody's who is known.
const ALL_BYTES_MAX: usize = 512 * 1024 * 1024;

/// The same of those at one address of whom nobody knows yet who they are.
const OF_UNKNOWN_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The same of all who are unknown: they take nothing from those who are known.
const ALL_UNKNOWN_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How long it is waited for what is sent, and how much of it may be waited for at once.
pub struct RequestBodyLimits {
    patience: Duration,
    unheard: CallerQuota,
    unknown: CallerQuota,
}

pub struct ReceivedBody<T> {
    pub sent: T,
    /// Whether it was waited for: then whoever sent it is looked at again.
    pub late: bool,
}

#[derive(Clone, Copy)]
pub enum BodySender<'a> {
    /// The holder of this token.
    Token(&'a str),
    /// Somebody at this address. Whoever signs what they send is known when all of it is there.
    Address(&'a str),
}

/// Whose bytes they are, and how many at most.
pub struct BodyAllowance<'a> {
    pub by: BodySender<'a>,
    /// Their bytes.
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
    /// What a request says of its length. Without a word about it, it may be as long as any.
    pub fn of(by: BodySender<'a>, request: &HttpRequest, longest: usize) -> Self {
        let said = request.headers().get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse().ok());
        Self { by, bytes: said.unwrap_or(longest).min(longest) }
    }
}

impl RequestBodyLimits {
    fn seat(&self, share: &BodyAllowance<'_>) -> Option<QuotaPermit> {
        match share.by {
            BodySender::Token(id) => self.unheard.acquire_amount(id, share.bytes),
            BodySender::Address(address) => self.unknown.acquire_amount(address, share.bytes),
        }
    }

    /// All that somebody sends. What is there at once is taken as it is; what has no share is too short to be counted.
    pub async fn read_body<T>(
        &self,
        share: Option<BodyAllowance<'_>>,
        sent: impl Future<Output = T>,
    ) -> Result<ReceivedBody<T>, Error> {
        let mut sent = pin!(sent);
        if let Some(sent) = at_once(sent.as_mut()).await {
            return Ok(ReceivedBody { sent, late: false });
        }
        let _seat = match share {
            Some(it) => Some(self.seat(&it).ok_or(Error::TooMany)?),
            None => None,
        };
        let slow = |_| Error::invalid("", "the body did not come to its end in time; send it again");
        Ok(ReceivedBody { sent: tokio::time::timeout(self.patience, sent).await.map_err(slow)?, late: true })
    }
}

/// What is there already. The server hands on what came with a request's head after the first look.
async fn at_once<T>(mut sent: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    let mut looks = 0..2;
    poll_fn(|context| match (sent.as_mut().poll(context), looks.next()) {
        (Poll::Ready(sent), _) => Poll::Ready(Some(sent)),
        (Poll::Pending, Some(0)) => {
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
    async fn what_is_there_at_once_needs_no_seat_and_what_never_comes_is_given_up() {
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
