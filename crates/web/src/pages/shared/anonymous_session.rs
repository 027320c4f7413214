//! Forms before sign-in. Their CSRF token is derived from a cookie that only this origin can set.

use actix_web::cookie::{Cookie, SameSite};
use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_adapters::random;
use countersign_domain::identity::account::SessionOrigin;
use countersign_service::identity::Identity;
use countersign_service::identity::password_sign_in::{DEVICE_TTL, SignInOrigin};
use countersign_service::identity::session::SignedIn;
use countersign_service::policies::Policies;

use super::format::see_other;
use super::return_path::LocalPath;
use crate::auth::csrf::CsrfToken;
use crate::auth::extractors::{named_cookie, session_cookie};
use crate::state::{Capability, EdgeConfig, capabilities};

capabilities! {
    /// The capabilities of the pages before sign-in.
    pub struct SignInCapabilities {
        edge: Capability<EdgeConfig>,
        identity: Capability<Identity>,
        policies: Capability<Policies>,
    }
}

/// 256 bits cannot be guessed.
const SECRET_BYTES: usize = 32;

/// The secret of a browser without a session.
pub struct AnonymousSession {
    secret: String,
}

fn cookie_name(edge: &EdgeConfig) -> String {
    named_cookie(edge, "countersign-door")
}

impl AnonymousSession {
    /// Returns the browser's secret, or a new one. An existing secret is reused, so that forms in other tabs stay
    /// valid.
    pub fn of(edge: &EdgeConfig, request: &HttpRequest) -> Self {
        // An existing secret is used again, so that forms in other tabs stay valid.
        let secret = request.cookie(&cookie_name(edge)).map(|it| it.value().to_owned()).filter(|it| well_formed(it));
        Self { secret: secret.unwrap_or_else(|| URL_SAFE_NO_PAD.encode(random::bytes::<SECRET_BYTES>())) }
    }

    pub fn csrf(&self) -> CsrfToken {
        CsrfToken::of(&self.secret)
    }

    /// Sets the cookie with the secret.
    pub fn with_secret_cookie(&self, edge: &EdgeConfig, mut response: HttpResponse) -> HttpResponse {
        // `HttpOnly` hides the secret from scripts, and `Lax` keeps it from forms of other sites.
        let cookie = Cookie::build(cookie_name(edge), self.secret.clone())
            .path("/")
            .http_only(true)
            .secure(edge.secure)
            .same_site(SameSite::Lax)
            .finish();
        // A base64 cookie always fits a header. Without the cookie, the visitor would only have to send the form again.
        let _ = response.add_cookie(&cookie);
        response
    }

    /// Returns the secret from the cookie.
    pub fn shown(edge: &EdgeConfig, request: &HttpRequest) -> Option<Self> {
        let cookie = request.cookie(&cookie_name(edge)).filter(|it| well_formed(it.value()))?;
        Some(Self { secret: cookie.value().to_owned() })
    }

    pub fn secret(&self) -> &str {
        &self.secret
    }
}

fn well_formed(secret: &str) -> bool {
    URL_SAFE_NO_PAD.decode(secret).is_ok_and(|it| it.len() == SECRET_BYTES)
}

fn device_cookie(edge: &EdgeConfig) -> String {
    named_cookie(edge, "countersign-device")
}

/// Returns the address, browser and device cookie of a sign-in request.
pub fn sign_in_origin(edge: &EdgeConfig, request: &HttpRequest) -> SignInOrigin {
    let agent = request.headers().get(header::USER_AGENT).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let network = edge.peers.network_of(request);
    SignInOrigin {
        address: Some(edge.peers.asker_of(request)),
        origin: network.map(|network| SessionOrigin { browser: browser_of(agent), network }),
        device: request.cookie(&device_cookie(edge)).map(|it| it.value().to_owned()),
    }
}

/// Returns a short name of the browser. The text of the header is never repeated, because an attacker controls it.
fn browser_of(agent: &str) -> String {
    const BROWSERS: [(&str, &str); 6] = [
        // Edge and Opera also name Chrome, and Chrome also names Safari, so the order matters.
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("CriOS/", "Chrome"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ];
    const SYSTEMS: [(&str, &str); 7] = [
        // Android also names Linux, and iOS devices also name Mac OS X, so the order matters here too.
        ("Android", "Android"),
        ("iPhone", "iOS"),
        ("iPad", "iOS"),
        ("Windows", "Windows"),
        ("Mac OS X", "macOS"),
        ("CrOS", "ChromeOS"),
        ("Linux", "Linux"),
    ];
    let of = |known: &[(&str, &'static str)]| known.iter().find(|it| agent.contains(it.0)).map(|it| it.1);
    match (of(&BROWSERS), of(&SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        (None, _) => "Another program".to_owned(),
    }
}

/// Answers a successful sign-in: sets both cookies and redirects to the requested page.
pub fn signed_in(app: &SignInCapabilities, person: &SignedIn, secret: String, next: &LocalPath) -> HttpResponse {
    known(app, person, let_in(&app.edge, secret, next))
}

/// Sets the device cookie, so that failed sign-ins of unauthenticated clients do not lock out this browser.
fn known(app: &SignInCapabilities, person: &SignedIn, mut response: HttpResponse) -> HttpResponse {
    // Signing in has already succeeded, and without this cookie the browser only counts as unknown.
    let Ok(device) = app.identity.device_of(&person.account.record) else { return response };
    let age = i64::try_from(DEVICE_TTL.as_secs()).unwrap_or(i64::MAX);
    let cookie = Cookie::build(device_cookie(&app.edge), device)
        .path("/")
        .http_only(true)
        .secure(app.edge.secure)
        .same_site(SameSite::Lax)
        .max_age(actix_web::cookie::time::Duration::seconds(age))
        .finish();
    // Without the cookie, the browser only counts as unknown at the next sign-in.
    let _ = response.add_cookie(&cookie);
    response
}

/// Sets the session cookie and redirects to the requested page.
pub fn let_in(edge: &EdgeConfig, secret: String, next: &LocalPath) -> HttpResponse {
    let mut response = see_other(next.as_str());
    // The error is ignored: without the cookie the next page asks to sign in again.
    let _ = response.add_cookie(&session_cookie(edge, secret));
    response
}

#[cfg(test)]
mod tests {
    use super::browser_of;

    #[test]
    fn a_browser_is_told_in_three_words_and_nothing_of_it_is_repeated() {
        let mozilla = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
        let phone = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1 CriOS/130.0 Safari/604.1";
        assert_eq!([browser_of(mozilla), browser_of(phone)], ["Firefox on Linux", "Chrome on iOS"]);
        for other in ["", "curl/8.0 <script>", "Linux"] {
            assert_eq!(browser_of(other), "Another program");
        }
    }
}
