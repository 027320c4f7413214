//! Limits on the memory for responses that clients have not read yet. The memory counts for the caller, so that a
//! client that reads nothing blocks only itself.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::web::Bytes;
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse, ResponseError as _};
use countersign_service::error::Error;

use super::quota::QuotaPermit;
use crate::api::problem::Problem;
use crate::pages::shared::error_page::PageError;
use crate::rate_limit_key::RateLimitKey;
use crate::state::{Capability, EdgeConfig, FromState as _};

/// The limit for one caller. A single larger response is allowed.
pub const OF_ONE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The limit for all callers.
pub const ALL_BYTES_MAX: usize = 512 * 1024 * 1024;

/// Smaller responses are not counted, and larger ones are sent in parts of this size. A connection buffers about as
/// much.
const PIECE_BYTES: usize = 64 * 1024;

/// Counts a long response until the client has read it or disconnects.
pub async fn counted(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    let answer = next.call(request).await?.map_into_boxed_body();
    // The key is removed, because this middleware runs twice for pages and a response must count once.
    let Some(RateLimitKey(asker)) = answer.request().extensions_mut().remove() else { return Ok(answer) };
    let size = answer.response().body().size();
    let bytes = match size {
        // A length that does not fit is larger than any limit.
        BodySize::Sized(bytes) => usize::try_from(bytes).unwrap_or(usize::MAX),
        // A stream has its own limits, and its length is unknown.
        BodySize::None | BodySize::Stream => 0,
    };
    if bytes <= PIECE_BYTES {
        return Ok(answer);
    }
    let edge = Capability::<EdgeConfig>::of(answer.request());
    let unread = &edge.unread;
    // A request that has changed something gets its response, even over the limit.
    let seat = match answer.request().method().is_safe() {
        true => unread.acquire_amount(&asker, bytes),
        false => Some(unread.acquire_unchecked(&asker, bytes)),
    };
    match seat {
        Some(seat) => {
            Ok(answer.map_body(|_, body| BoxBody::new(BufferedBody { body, piece: Bytes::new(), size, _seat: seat })))
        }
        None => {
            let refusal = refused(answer.request(), Error::TooMany);
            Ok(answer.into_response(refusal))
        }
    }
}

/// Returns a problem for API calls and a page for browsers.
pub fn refused(request: &HttpRequest, error: Error) -> HttpResponse {
    match request.path().starts_with("/v1/") {
        // API clients expect a problem document, and browsers a page.
        true => Problem::of(request, error).error_response(),
        false => PageError::of(request, error).error_response(),
    }
}

/// A body that is sent in parts and counted until the last one.
struct BufferedBody {
    body: BoxBody,
    piece: Bytes,
    size: BodySize,
    _seat: QuotaPermit,
}

impl MessageBody for BufferedBody {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        self.size
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        if self.piece.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_next(cx)) {
                Some(Ok(bytes)) => self.piece = bytes,
                end => return Poll::Ready(end),
            }
        }
        // Small parts let the connection's own buffer stop the sender (backpressure).
        let length = self.piece.len().min(PIECE_BYTES);
        Poll::Ready(Some(Ok(self.piece.split_to(length))))
    }
}
