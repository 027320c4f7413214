//! OpenID Connect sign-in: the redirect to the provider and the callback.

use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template as _;
use countersign_domain::primitives::secret::Secret;
use countersign_service::error::{Error, Result};
use countersign_service::identity::oidc_sign_in::OidcCallback;
use countersign_service::identity::oidc_sign_in::{AuthorizationResponse, AuthorizationResult};
use countersign_service::platform::core::Core;
use serde::Deserialize;

use super::sign_in_view::RedirectPage;
use crate::limits::rate_limit::RateLimiter;
use crate::pages::shared::anonymous_session::{AnonymousSession, SignInCapabilities, let_in, sign_in_origin};
use crate::pages::shared::error_page::unreadable_input;
use crate::pages::shared::form::AnonymousForm;
use crate::pages::shared::format::html;
use crate::pages::shared::layout::PageLayout;
use crate::pages::shared::return_path::{LocalPath, NextPathQuery};
use crate::state::{Capability, EdgeConfig};

/// Burst of sign-ins that one address may start. An office shares one address, and its people sign in at the same hour.
const BEGUN_AT_ONCE: u32 = 60;
/// Time per further sign-in after the burst. Each start writes a row to the database, so the rate is limited.
const BEGUN_EACH: Duration = Duration::from_secs(2);

/// Maximum length of a callback parameter. Authorization codes have some hundred characters.
const PARAMETER_CHARS_MAX: usize = 4096;

/// Limits how many sign-ins an address starts or completes.
pub fn throttle() -> RateLimiter {
    RateLimiter::new(BEGUN_AT_ONCE, BEGUN_EACH)
}

/// Parameters of the callback. Other parameters are ignored.
#[derive(Deserialize)]
pub struct OidcCallbackQuery {
    state: Option<String>,
    code: Option<String>,
    error: Option<String>,
    iss: Option<String>,
}

/// `POST /sign-in/oidc`: sends the browser to the provider.
///
/// The answer is a page that forwards, not a redirect: the content security policy allows forms to lead only to this
/// gateway, and the provider's own redirects are unknown.
pub async fn submit(
    app: SignInCapabilities,
    core: Capability<Core>,
    request: HttpRequest,
    sent: AnonymousForm<NextPathQuery>,
) -> Result<HttpResponse> {
    let (door, form) = sent.parts();
    // The limit comes first, because each start writes a row to the database.
    check_rate_limit(&app.edge, &core, &request)?;
    // Only a local path is used, so that the sign-in cannot end at another site.
    let next = LocalPath::of(&form.next);
    let begun = app.identity.oidc_authorize(door.secret(), next.as_str()).await;
    let url = begun?;
    Ok(redirect_page(url, "Signing in", "Your organisation's sign-in page opens and returns you here."))
}

/// `GET /sign-in/oidc/return`: completes the sign-in with the provider's answer.
pub async fn oidc_callback(
    app: SignInCapabilities,
    core: Capability<Core>,
    request: HttpRequest,
    brought: web::Query<OidcCallbackQuery>,
) -> Result<HttpResponse> {
    check_rate_limit(&app.edge, &core, &request)?;
    // Never create a session here: an answer that does not belong to this browser must not be accepted (login CSRF).
    let door = AnonymousSession::shown(&app.edge, &request);
    let mut back = read(brought.into_inner()).ok_or_else(unreadable_input)?;
    back.origin = sign_in_origin(&app.edge, &request).origin;
    let came_in = app.identity.oidc_callback(door.as_ref().map(AnonymousSession::secret), &back).await;
    let came_in = came_in?;
    Ok(let_in(&app.edge, came_in.secret, &LocalPath::of(&came_in.next)))
}

/// Returns a page that forwards to an external address at once and without a script.
pub fn redirect_page(url: String, title: &str, lead: &str) -> HttpResponse {
    let page = RedirectPage { shell: PageLayout::anonymous(), url, title: title.to_owned(), lead: lead.to_owned() };
    html(StatusCode::OK, page.render())
}

fn check_rate_limit(edge: &EdgeConfig, core: &Core, request: &HttpRequest) -> Result<()> {
    // Before sign-in there is no account to limit, so the limit is per network address.
    let address = edge.peers.asker_of(request).to_string();
    let taken = edge.elsewhere.take(address.as_str(), core.now());
    taken.map_err(|_| Error::TooMany)
}

fn read(brought: OidcCallbackQuery) -> Option<OidcCallback> {
    let OidcCallbackQuery { state, code, error, iss } = brought;
    let all = [&state, &code, &error, &iss];
    // The parameters come from outside, so their length is limited before use.
    let short = all.into_iter().flatten().all(|it| it.len() <= PARAMETER_CHARS_MAX);
    // An answer with both a code and an error, or with neither, is invalid by the specification.
    let said = match (code, error) {
        (Some(code), None) => AuthorizationResult::Code(Secret::new(code)),
        (None, Some(error)) => AuthorizationResult::No(error),
        _ => return None,
    };
    // An answer without a state cannot be matched to a sign-in that this browser started.
    let state = state.filter(|_| short)?;
    Some(OidcCallback { state: Secret::new(state), answer: AuthorizationResponse { said, issuer: iss }, origin: None })
}
