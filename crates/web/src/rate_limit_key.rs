//! Attributes responses to callers, for the middleware that limits their memory.

use actix_web::{HttpMessage as _, HttpRequest};
use countersign_service::error::Error;

use super::state::{Capability, EdgeConfig, FromState as _};

/// The caller of a response: a token or an account.
pub(super) struct RateLimitKey(pub(super) String);

/// Attributes the response to a caller. A request that changes something is refused first if the caller has too many
/// unread responses, because its response could not be refused after the change.
pub(super) fn is_for(request: &HttpRequest, asker: &str) -> Result<(), Error> {
    // A change is refused before it begins, because a request that has changed something must get its response.
    if !request.method().is_safe() && !Capability::<EdgeConfig>::of(request).unread.has_capacity(asker) {
        return Err(Error::TooMany);
    }
    request.extensions_mut().insert(RateLimitKey(asker.to_owned()));
    Ok(())
}
