//! `/password/{secret}`: the one-time link of an invitation or a password reset, where the user sets a password.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template as _;
use countersign_domain::identity::account::LinkPurpose;
use countersign_service::error::{Error, Result};
use countersign_service::identity::Identity;
use countersign_service::identity::actor::OPERATOR;
use countersign_service::identity::password_hash::PASSWORD_CHARS_MIN;
use serde::Deserialize;

use super::account_view::PasswordPage;
use crate::pages::shared::anonymous_session::{AnonymousSession, SignInCapabilities, sign_in_origin, signed_in};
use crate::pages::shared::flash::refusal;
use crate::pages::shared::form::AnonymousForm;
use crate::pages::shared::format::{html, lines};
use crate::pages::shared::layout::PageLayout;
use crate::pages::shared::return_path::LocalPath;
use crate::pages::shared::safe_text::SafeLine;

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct ChoosePasswordFields {
    password: String,
    again: String,
}

/// `GET /password/{secret}`. Opening the link does not use it: link previews of mail and chat programs would spend it.
pub async fn show(app: SignInCapabilities, request: HttpRequest, secret: web::Path<String>) -> Result<HttpResponse> {
    answer(&app, &request, &secret, StatusCode::OK, None).await
}

/// `POST /password/{secret}`: sets the password and uses up the link.
pub async fn submit(
    app: SignInCapabilities,
    request: HttpRequest,
    sent: AnonymousForm<ChoosePasswordFields>,
    secret: web::Path<String>,
) -> Result<HttpResponse> {
    let (_, form) = sent.parts();
    // The comparison comes first, so that a typing error does not use up the link.
    if form.password != form.again {
        let problem = "The two passwords do not match. Enter the same password twice.".to_owned();
        return answer(&app, &request, &secret, StatusCode::UNPROCESSABLE_ENTITY, Some(problem)).await;
    }
    let origin = sign_in_origin(&app.edge, &request).origin;
    match app.identity.choose_password(&secret, form.password, origin).await {
        // The link and the new password prove the identity, so no separate sign-in follows.
        Ok((person, session)) => Ok(signed_in(&app, &person, session, &LocalPath::inbox())),
        Err(error) => {
            let problem = refusal(error)?.words;
            answer(&app, &request, &secret, StatusCode::UNPROCESSABLE_ENTITY, Some(problem)).await
        }
    }
}

async fn answer(
    app: &SignInCapabilities,
    request: &HttpRequest,
    secret: &str,
    status: StatusCode,
    problem: Option<String>,
) -> Result<HttpResponse> {
    let door = AnonymousSession::of(&app.edge, request);
    let page = page(&app.identity, request, secret, &door, problem).await?;
    Ok(door.with_secret_cookie(&app.edge, html(status, page.render())))
}

async fn page(
    identity: &Identity,
    request: &HttpRequest,
    secret: &str,
    door: &AnonymousSession,
    problem: Option<String>,
) -> Result<PasswordPage> {
    let link = identity.link_of(secret).await?;
    let (title, name, invited, by) = match link.record.purpose {
        LinkPurpose::Invite { name, role, groups, by } => {
            ("Welcome", name, Some((role.as_str(), lines(groups.iter().map(|it| it.as_str())))), Some(by))
        }
        // A reset link stores only the id, so the name comes from the account.
        LinkPurpose::Reset { account, by } => {
            ("Set a new password", identity.account_row(&account).await?.record.name, None, by)
        }
        // Set-up and sign-in links are valid, but must not set a password here.
        _ => return Err(Error::NotFound("link")),
    };
    Ok(PasswordPage {
        shell: PageLayout::anonymous(),
        // The secret of the link is part of the path, so the form posts to the address of its page.
        action: request.path().to_owned(),
        csrf: door.csrf().shown(),
        title,
        name: SafeLine::new(name),
        invited,
        by: SafeLine::new(by.map_or_else(|| OPERATOR.to_owned(), |by| by.name)),
        password_chars_min: PASSWORD_CHARS_MIN,
        problem,
    })
}
