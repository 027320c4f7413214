//! Whose answer it is, for what stands around the handlers.

use actix_web::{HttpMessage as _, HttpRequest};

use super::state::AppState;
use crate::service::error::Error;

/// Whoever is answered: a token, or an account.
pub(super) struct RateLimitKey(pub(super) String);

/// Says whose answer it will be. What changes something is answered in any case once it is begun, so it is not begun for
/// whoever reads no answers.
pub(super) fn is_for(request: &HttpRequest, app: &AppState, asker: &str) -> Result<(), Error> {
    if !request.method().is_safe() && !app.edge.unread.has_room(asker) {
        return Err(Error::TooMany);
    }
    request.extensions_mut().insert(RateLimitKey(asker.to_owned()));
    Ok(())
}
