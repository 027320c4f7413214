//! `/account`: password, email notifications and sessions of the signed-in user.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use askama::Template as _;
use countersign_domain::delivery::mail_contact::{MailAddress, MailContact, MailPace};
use countersign_domain::identity::account::Session;
use countersign_domain::primitives::id::SessionId;
use countersign_domain::primitives::time::Timestamp;
use countersign_service::delivery::Deliveries;
use countersign_service::error::{Error, Result};
use countersign_service::identity::Identity;
use countersign_service::identity::password_hash::PASSWORD_CHARS_MIN;
use countersign_service::identity::self_service::PasswordChangeOutcome;
use serde::Deserialize;

use super::account_view::{AccountPage, SessionRow};
use crate::pages::shared::flash::{FlashQuery, refusal};
use crate::pages::shared::form::SignedInForm;
use crate::pages::shared::format::{html, lines, moment, see_other};
use crate::pages::shared::layout::{FlashNotice, Tone};
use crate::pages::shared::safe_text::SafeLine;
use crate::pages::shared::visitor::Visitor;
use crate::state::Capability;

/// Notices after a submitted form, by the value of `?done=`.
const DONE: &[(&str, Tone, &str)] = &[
    ("password", Tone::Good, "Password changed. All your other sessions have ended."),
    ("ended", Tone::Good, "Session ended."),
    ("mail", Tone::Good, "Saved. New email notifications go to this address."),
    ("no-mail", Tone::Good, "Saved. You get no more email notifications."),
];

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct PasswordFields {
    old: String,
    password: String,
    again: String,
}

/// Form of `/account/sessions`: the id of one session, or [`OTHERS`].
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct SessionFields {
    session: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct ContactFields {
    mail: String,
    pace: String,
}

#[derive(Default)]
struct AccountFormState {
    password: Option<String>,
    /// The rejected input and the error.
    mail: Option<(String, String)>,
}

/// Form value that selects all other sessions. Session ids are longer, so the two cannot collide.
const OTHERS: &str = "others";

/// `GET /account`.
pub async fn show(
    identity: Capability<Identity>,
    delivery: Capability<Deliveries>,
    visitor: Visitor,
    done: web::Query<FlashQuery>,
) -> Result<AccountPage> {
    page(&identity, &delivery, &visitor, done.notice(DONE), AccountFormState::default()).await
}

/// `POST /account/password`. Wrong current passwords count towards the limit of failed sign-ins.
pub async fn change_password(
    identity: Capability<Identity>,
    delivery: Capability<Deliveries>,
    sent: SignedInForm<PasswordFields>,
) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let (status, problem) = match changed(&identity, &visitor, form).await {
        // The redirect keeps a reload from sending the passwords again.
        Ok(None) => return Ok(see_other("/account?done=password")),
        Ok(Some(problem)) => (StatusCode::UNPROCESSABLE_ENTITY, problem),
        // The limit also applies here, so that a stolen session cannot be used to guess the password.
        Err(Error::TooMany) => {
            (StatusCode::TOO_MANY_REQUESTS, "Too many failed attempts. Wait a few minutes, then try again.".to_owned())
        }
        // A refusal keeps the form on the page. All other errors get their own page.
        Err(error) => (StatusCode::CONFLICT, refusal(error)?.words),
    };
    let again = AccountFormState { password: Some(problem), ..AccountFormState::default() };
    let page = page(&identity, &delivery, &visitor, None, again).await?;
    Ok(html(status, page.render()))
}

async fn changed(identity: &Identity, visitor: &Visitor, form: PasswordFields) -> Result<Option<String>> {
    // The service gets only one of the two, so this is the only place that can compare them.
    if form.password != form.again {
        return Ok(Some("The two new passwords do not match. Your password is unchanged.".to_owned()));
    }
    Ok(match identity.change_password(&visitor.0.signed_in, form.old, form.password).await? {
        PasswordChangeOutcome::Yes => None,
        PasswordChangeOutcome::WrongPassword => {
            Some("The current password is wrong. Your password is unchanged.".to_owned())
        }
    })
}

/// `POST /account/sessions`: ends one session, or all sessions except the current one.
pub async fn end_sessions(identity: Capability<Identity>, sent: SignedInForm<SessionFields>) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let me = &visitor.0.signed_in;
    if form.session == OTHERS {
        identity.end_other_sessions(me).await?;
    } else {
        // A malformed id names no session, so it gets 404 like an unknown one.
        let which = SessionId::try_from(form.session.as_str()).map_err(|_| Error::NotFound("session"))?;
        identity.end_session(me, &which).await?;
    }
    Ok(see_other("/account?done=ended"))
}

/// `POST /account/contact`: sets or removes the address for email notifications.
pub async fn set_contact(
    identity: Capability<Identity>,
    delivery: Capability<Deliveries>,
    sent: SignedInForm<ContactFields>,
) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let account = &visitor.account().id;
    let typed = form.mail.trim();
    // An empty field removes the address, so the page needs no second form for that.
    if typed.is_empty() {
        delivery.set_contact(account, None).await?;
        return Ok(see_other("/account?done=no-mail"));
    }
    let Ok(mail) = MailAddress::try_from(typed.to_owned()) else {
        let problem = "This is not a valid email address. Enter one like name@example.org. Your setting is unchanged.";
        let again =
            AccountFormState { mail: Some((typed.to_owned(), problem.to_owned())), ..AccountFormState::default() };
        let page = page(&identity, &delivery, &visitor, None, again).await?;
        return Ok(html(StatusCode::UNPROCESSABLE_ENTITY, page.render()));
    };
    let pace = if form.pace == "digest" { MailPace::Digest } else { MailPace::Each };
    let contact = MailContact { account: account.clone(), mail, pace, at: visitor.now() };
    delivery.set_contact(account, Some(contact)).await?;
    Ok(see_other("/account?done=mail"))
}

async fn page(
    identity: &Identity,
    delivery: &Deliveries,
    visitor: &Visitor,
    notice: Option<FlashNotice>,
    again: AccountFormState,
) -> Result<AccountPage> {
    let (account, now) = (visitor.account(), visitor.now());
    let sessions = identity.sessions_of(&account.id).await?;
    let ids: Vec<String> = sessions.iter().map(|it| format!("session/{}", it.id)).collect();
    // One query reads the times of all sessions, so the number of rows does not matter.
    let seen = identity.last_seen(&ids).await?;
    let this = &visitor.0.signed_in.session.record.id;
    let contact = delivery.contact_of(&account.id).await?;
    let (mail, mail_problem) = match again.mail {
        // The rejected input stays in the field, so that it can be corrected.
        Some((typed, problem)) => (typed, Some(problem)),
        None => (contact.as_ref().map(|it| it.mail.to_string()).unwrap_or_default(), None),
    };
    Ok(AccountPage {
        shell: visitor.shell(notice).await?,
        csrf: visitor.0.csrf.shown(),
        name: SafeLine::new(account.name.as_str()),
        role: account.role.as_str(),
        groups: lines(account.groups.iter().map(|it| it.as_str())),
        mail,
        digest: contact.is_some_and(|it| it.pace == MailPace::Digest),
        mail_problem,
        // An account of an identity provider has no password here, so it gets no form to change it.
        has_password: account.password_hash().is_some(),
        password_chars_min: PASSWORD_CHARS_MIN,
        sessions: sessions.iter().zip(&ids).map(|(it, id)| row(it, this, seen.get(id).copied(), now)).collect(),
        problem: again.password,
    })
}

fn row(session: &Session, this: &SessionId, seen: Option<Timestamp>, now: Timestamp) -> SessionRow {
    let origin = session.origin.as_ref();
    SessionRow {
        id: session.id.to_string(),
        this: session.id == *this,
        // The browser and the network come from a request, so both are sanitised.
        origin: origin.map(|it| (SafeLine::new(it.browser.as_str()), SafeLine::new(it.network.as_str()))),
        began: moment(session.created_at, now),
        seen: seen.map(|it| moment(it, now)),
        ends: moment(session.expires_at, now),
    }
}
