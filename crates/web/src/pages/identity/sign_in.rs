//! Sign-in by password or one-time link, and sign-out.

use actix_web::cookie::Cookie;
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template as _;
use countersign_domain::identity::account::LinkPurpose;
use countersign_service::error::{Error, Result};
use countersign_service::identity::Identity;
use countersign_service::identity::passkeys::ChallengePurpose;
use countersign_service::identity::sign_in_config::LocalAccounts;
use serde::Deserialize;

use super::oidc::redirect_page;
use super::passkeys_view::PasskeyChallengeView;
use super::sign_in_view::{SignInLinkPage, SignInPage};
use crate::auth::extractors::cookie_name;
use crate::pages::shared::anonymous_session::{AnonymousSession, SignInCapabilities, sign_in_origin, signed_in};
use crate::pages::shared::form::{AnonymousForm, EmptyForm};
use crate::pages::shared::format::{html, see_other};
use crate::pages::shared::layout::PageLayout;
use crate::pages::shared::return_path::{LocalPath, NextPathQuery};
use crate::pages::shared::safe_text::SafeLine;

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
pub struct SignInForm {
    username: String,
    password: String,
    next: String,
}

/// `GET /sign-in`.
pub async fn show(
    app: SignInCapabilities,
    request: HttpRequest,
    onward: web::Query<NextPathQuery>,
) -> Result<HttpResponse> {
    // Only a local path is accepted, so that a crafted link cannot lead to another site after the sign-in.
    let next = LocalPath::of(&onward.next);
    if let Some(cookie) = request.cookie(&cookie_name(&app.edge))
        // An expired or unknown session gets the form, so the cookie alone is not enough.
        && app.identity.session_of(cookie.value()).await.is_ok()
    {
        return Ok(see_other(next.as_str()));
    }
    Ok(page(&app, &request, StatusCode::OK, &next, "", None))
}

/// `POST /sign-in`. The service limits failed sign-ins.
pub async fn submit(
    app: SignInCapabilities,
    request: HttpRequest,
    sent: AnonymousForm<SignInForm>,
) -> Result<HttpResponse> {
    let (_, form) = sent.parts();
    let SignInForm { username, password, next, .. } = form;
    let (next, from) = (LocalPath::of(&next), sign_in_origin(&app.edge, &request));
    let again = |status, problem: &str| page(&app, &request, status, &next, &username, Some(problem.to_owned()));
    match app.identity.sign_in_throttled(&username, password, &from).await {
        Ok((person, secret)) => Ok(signed_in(&app, &person, secret, &next)),
        // A known browser has its own limit, so that an attacker cannot lock a person out.
        Err(Error::TooMany) => Ok(again(
            StatusCode::TOO_MANY_REQUESTS,
            "Too many failed sign-ins. Wait a few minutes, then try again. A browser in which you have signed in \
             before does not have to wait.",
        )),
        // The sentence is the same for an unknown name, so that the page does not disclose which accounts exist.
        Err(Error::Unauthenticated) => Ok(again(StatusCode::UNAUTHORIZED, "User name and password do not match.")),
        Err(error) => Err(error),
    }
}

fn page(
    app: &SignInCapabilities,
    request: &HttpRequest,
    status: StatusCode,
    next: &LocalPath,
    username: &str,
    problem: Option<String>,
) -> HttpResponse {
    let door = AnonymousSession::of(&app.edge, request);
    let ways = app.identity.ways();
    let page = SignInPage {
        shell: PageLayout::anonymous(),
        csrf: door.csrf().shown(),
        next: next.as_str().to_owned(),
        // The user name stays in the form after a failure, but the password is never sent back.
        username: SafeLine::new(username),
        elsewhere: ways.provider.as_ref().map(|it| SafeLine::new(it.settings.button.as_str())),
        asks_password: ways.local == LocalAccounts::On,
        problem,
        passkey: passkey(&app.identity, &door),
    };
    door.with_secret_cookie(&app.edge, html(status, page.render()))
}

/// Renders the page again after a sign-in other than by password was refused.
pub(in crate::pages) fn page_again(
    app: &SignInCapabilities,
    request: &HttpRequest,
    status: StatusCode,
    next: &LocalPath,
    problem: &str,
) -> Result<HttpResponse> {
    Ok(page(app, request, status, next, "", Some(problem.to_owned())))
}

/// Returns the challenge for a sign-in by passkey, or `None` if passkeys are unavailable at this address.
fn passkey(identity: &Identity, door: &AnonymousSession) -> Option<PasskeyChallengeView> {
    // Passkeys belong to local accounts, so a gateway without local accounts offers none.
    identity.require_local_accounts().ok()?;
    let party = identity.relying_party()?;
    let challenge = identity.passkey_challenge(&ChallengePurpose::SignIn { door: door.secret() }).ok()?;
    // The empty list lets the browser offer any passkey, so the page does not disclose which accounts exist.
    Some(PasskeyChallengeView { rp_id: party.id().to_owned(), challenge, allow: String::new() })
}

/// `GET /sign-in/{secret}`. Opening the link does not use it: link previews of mail and chat programs would spend it.
pub async fn show_link(
    app: SignInCapabilities,
    request: HttpRequest,
    secret: web::Path<String>,
    onward: web::Query<NextPathQuery>,
) -> Result<HttpResponse> {
    let link = app.identity.link_of(&secret).await?;
    // Links with another purpose get the same error as unknown ones, because they must not sign anybody in.
    let LinkPurpose::SignIn { account } = &link.record.purpose else { return Err(Error::NotFound("link")) };
    // Who has the link can sign in as this person, so the name discloses nothing.
    let person = app.identity.account_row(account).await?;
    let door = AnonymousSession::of(&app.edge, &request);
    let page = SignInLinkPage {
        shell: PageLayout::anonymous(),
        action: request.path().to_owned(),
        person: SafeLine::new(&person.record.name),
        csrf: door.csrf().shown(),
        next: LocalPath::of(&onward.next).as_str().to_owned(),
    };
    Ok(door.with_secret_cookie(&app.edge, html(StatusCode::OK, page.render())))
}

/// `POST /sign-in/{secret}`: signs in and uses up the link.
pub async fn use_link(
    app: SignInCapabilities,
    sent: AnonymousForm<NextPathQuery>,
    secret: web::Path<String>,
) -> Result<HttpResponse> {
    let (_, form) = sent.parts();
    let (person, session) = app.identity.use_sign_in_link(&secret).await?;
    // The page after sign-in comes from the form, so only a local path is accepted here too.
    Ok(signed_in(&app, &person, session, &LocalPath::of(&form.next)))
}

/// `POST /sign-out`.
pub async fn sign_out(app: SignInCapabilities, sent: EmptyForm) -> Result<HttpResponse> {
    let (visitor, _) = sent.parts();
    // The session ends first, so that a failure at the identity provider cannot keep it open.
    app.identity.sign_out(&visitor.0.signed_in).await?;
    let mut response = match app.identity.oidc_logout_url(&visitor.0.signed_in).await {
        Some(url) => {
            redirect_page(url, "You are signed out of Countersign", "Your organisation's sign-out page opens next.")
        }
        None => see_other("/sign-in"),
    };
    let mut gone = Cookie::build(cookie_name(&app.edge), "").path("/").secure(app.edge.secure).finish();
    gone.make_removal();
    // The error is ignored: the session has ended on the server, and the cookie alone opens nothing.
    let _ = response.add_cookie(&gone);
    Ok(response)
}
