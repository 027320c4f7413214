//! Forms from before there is a session: what they carry is derived from a cookie that only this origin can set.

use actix_web::cookie::{Cookie, SameSite};
use actix_web::{HttpRequest, HttpResponse};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::failure::Failure;
use super::local::LocalPath;
use super::parts::see_other;
use crate::random;
use crate::web::app::App;
use crate::web::auth::{check_form, csrf_of, session_cookie};

/// 256 bits: nobody guesses one.
const SECRET_BYTES: usize = 32;

/// What a visitor without a session has: a secret of the browser's own.
pub struct Door {
    secret: String,
}

fn cookie_name(app: &App) -> &'static str {
    if app.edge.secure { "__Host-countersign-door" } else { "countersign-door" }
}

impl Door {
    /// The browser's secret, or a new one. One that is there is kept, so that forms in other tabs stay good.
    pub fn of(app: &App, request: &HttpRequest) -> Self {
        let secret = request.cookie(cookie_name(app)).map(|it| it.value().to_owned()).filter(|it| well_formed(it));
        Self { secret: secret.unwrap_or_else(|| URL_SAFE_NO_PAD.encode(random::bytes::<SECRET_BYTES>())) }
    }

    /// What the form carries.
    pub fn csrf(&self) -> String {
        csrf_of(&self.secret)
    }

    /// Puts the secret into the browser.
    pub fn hold_open(&self, app: &App, mut response: HttpResponse) -> HttpResponse {
        let cookie = Cookie::build(cookie_name(app), self.secret.clone())
            .path("/")
            .http_only(true)
            .secure(app.edge.secure)
            .same_site(SameSite::Lax)
            .finish();
        // A cookie of base64 always fits into a header; without it the form would only have to be sent again.
        let _ = response.add_cookie(&cookie);
        response
    }

    /// Whether a form comes from a page that this browser was given.
    pub fn check(app: &App, request: &HttpRequest, given: &str) -> Result<(), Failure> {
        let cookie = request.cookie(cookie_name(app)).filter(|it| well_formed(it.value()));
        let checked = match cookie {
            Some(cookie) => check_form(app, request, &csrf_of(cookie.value()), given),
            None => Err(crate::service::error::Error::Forbidden(
                "this form is older than your browser's cookies; open the page again",
            )),
        };
        checked.map_err(|error| Failure::of(request, error))
    }
}

fn well_formed(secret: &str) -> bool {
    URL_SAFE_NO_PAD.decode(secret).is_ok_and(|it| it.len() == SECRET_BYTES)
}

/// Lets somebody in: the session's cookie, and on to where they wanted.
pub fn let_in(app: &App, secret: String, next: &LocalPath) -> HttpResponse {
    let mut response = see_other(next.as_str());
    let _ = response.add_cookie(&session_cookie(app, secret));
    response
}
