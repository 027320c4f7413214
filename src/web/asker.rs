//! Whose answer it is, for what stands around the handlers.

use actix_web::http::Method;
use actix_web::{HttpMessage as _, HttpRequest};

/// Whoever is answered: a token, or an account.
pub(super) struct Asker(pub(super) String);

/// Says whose answer it will be. What changes something is answered in any case.
pub(super) fn is_for(request: &HttpRequest, asker: &str) {
    if request.method() == Method::GET {
        request.extensions_mut().insert(Asker(asker.to_owned()));
    }
}
