//! `/account/passkeys`: registers and removes passkeys. Also the passkey form of the sign-in page.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template as _;
use countersign_domain::identity::passkey::{Assertion, Passkey, Registration};
use countersign_domain::primitives::id::PasskeyId;
use countersign_service::error::{Error, Result};
use countersign_service::identity::Identity;
use countersign_service::identity::passkeys::{ChallengePurpose, NewPasskey, PasskeyConfirmation, PasskeySignIn};
use serde::Deserialize;

use super::passkeys_view::{
    AddPasskeyForm, PasskeyAvailability, PasskeyChallengeView, PasskeyConfirmationView, PasskeyRow, PasskeysPage,
};
use super::sign_in::page_again;
use crate::pages::shared::anonymous_session::{SignInCapabilities, sign_in_origin, signed_in};
use crate::pages::shared::form::{AnonymousForm, SignedInForm};
use crate::pages::shared::format::{html, moment, see_other};
use crate::pages::shared::layout::{FlashNotice, Tone};
use crate::pages::shared::return_path::LocalPath;
use crate::pages::shared::safe_text::SafeLine;
use crate::pages::shared::visitor::Visitor;
use crate::state::Capability;

pub const PASSKEYS_URL: &str = "/account/passkeys";

/// `?done=`: the result of the previous form.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct PasskeyFlashQuery {
    done: String,
}

/// Fields of the forms of this page. A field that a form leaves out is empty.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct PasskeyFields {
    name: String,
    password: String,
    challenge: String,
    registration: String,
    confirm_challenge: String,
    assertion: String,
    passkey: String,
}

/// Fields of the passkey form on the sign-in page.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct SignInFields {
    next: String,
    challenge: String,
    assertion: String,
    account: String,
}

/// `GET /account/passkeys`.
pub async fn show(
    identity: Capability<Identity>,
    visitor: Visitor,
    done: web::Query<PasskeyFlashQuery>,
) -> Result<PasskeysPage> {
    let notice = match done.done.as_str() {
        "added" => Some("Passkey registered. You can use it to sign in and to sign your decisions."),
        "removed" => Some("Passkey removed. It can no longer sign you in."),
        _ => None,
    };
    let notice = notice.map(|words| FlashNotice { tone: Tone::Good, words: words.to_owned() });
    page(&identity, &visitor, notice, "").await
}

/// Redirects a `GET` of an address that accepts only forms.
pub async fn back() -> HttpResponse {
    see_other(PASSKEYS_URL)
}

/// `POST /account/passkeys`: registers a passkey.
pub async fn add(identity: Capability<Identity>, sent: SignedInForm<PasskeyFields>) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let name = form.name.clone();
    let added = async {
        let new = new_passkey(form)?;
        identity.add_passkey(&visitor.0.signed_in, new).await
    };
    match added.await {
        // The redirect keeps a reload from sending the registration again.
        Ok(_) => Ok(see_other(&format!("{PASSKEYS_URL}?done=added"))),
        // The typed name stays in the form, so that only the passkey has to be repeated.
        Err(error) => again(&identity, &visitor, error, &name).await,
    }
}

/// `POST /account/passkeys/removal`: removes a passkey.
pub async fn remove(identity: Capability<Identity>, sent: SignedInForm<PasskeyFields>) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let removed = async {
        let id = PasskeyId::try_from(form.passkey.as_str()).map_err(|_| Error::NotFound("passkey"))?;
        let confirmation = confirmation(form)?;
        identity.remove_passkey(&visitor.0.signed_in, &id, confirmation).await
    };
    match removed.await {
        // The redirect keeps a reload from sending the removal again.
        Ok(()) => Ok(see_other(&format!("{PASSKEYS_URL}?done=removed"))),
        Err(error) => again(&identity, &visitor, error, "").await,
    }
}

/// `POST /sign-in/passkey`.
pub async fn sign_in(
    app: SignInCapabilities,
    request: HttpRequest,
    sent: AnonymousForm<SignInFields>,
) -> Result<HttpResponse> {
    let (door, form) = sent.parts();
    let next = LocalPath::of(&form.next);
    let again = |status, words: &str| page_again(&app, &request, status, &next, words);
    let assertion = parsed::<Assertion>(&form.assertion);
    // A cancelled prompt or a disabled script leaves the field empty, so the page offers the password.
    let Ok(assertion) = assertion else {
        return again(StatusCode::BAD_REQUEST, "Your browser sent no passkey. Use your password, or try again.");
    };
    let attempt = PasskeySignIn {
        door: door.secret(),
        challenge: &form.challenge,
        assertion: &assertion,
        account: &form.account,
        origin: sign_in_origin(&app.edge, &request).origin,
    };
    match app.identity.sign_in_with_passkey(&attempt).await {
        Ok((person, secret)) => Ok(signed_in(&app, &person, secret, &next)),
        // One sentence covers unknown passkeys and disabled accounts, so it does not disclose which accounts exist.
        Err(Error::Unauthenticated) => again(
            StatusCode::UNAUTHORIZED,
            "This passkey does not belong to an active account. Use your password, or try again.",
        ),
        Err(error) => Err(error),
    }
}

fn new_passkey(form: PasskeyFields) -> Result<NewPasskey> {
    let registration = parsed::<Registration>(&form.registration)?;
    let (name, challenge) = (form.name.clone(), form.challenge.clone());
    Ok(NewPasskey { name, challenge, registration, confirmation: confirmation(form)? })
}

fn confirmation(form: PasskeyFields) -> Result<PasskeyConfirmation> {
    // The script fills this field only if the account has a passkey. Other accounts confirm by password.
    if form.assertion.is_empty() {
        return Ok(PasskeyConfirmation::Password(form.password));
    }
    Ok(PasskeyConfirmation::Passkey { challenge: form.confirm_challenge, assertion: parsed(&form.assertion)? })
}

/// Parses the JSON that the script of the page puts into a field.
pub fn parsed<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|_| Error::invalid("/passkey", "your browser sent no passkey; try again"))
}

/// Renders the page again with the reason of a refusal. Other errors get an error page.
async fn again(identity: &Identity, visitor: &Visitor, error: Error, name: &str) -> Result<HttpResponse> {
    let (status, words) = match &error {
        Error::Passkey(refused) => (StatusCode::CONFLICT, format!("Passkey rejected: {refused}.")),
        Error::Forbidden(why) => (StatusCode::FORBIDDEN, format!("Not changed: {why}.")),
        Error::WrongState(why) => (StatusCode::CONFLICT, format!("Not changed: {why}.")),
        Error::Invalid { detail, .. } => (StatusCode::BAD_REQUEST, format!("Not changed: {detail}.")),
        Error::TooMany => {
            (StatusCode::TOO_MANY_REQUESTS, "Too many failed attempts. Wait a few minutes, then try again.".to_owned())
        }
        _ => return Err(error),
    };
    let notice = Some(FlashNotice { tone: Tone::Bad, words });
    let page = page(identity, visitor, notice, name).await?;
    Ok(html(status, page.render()))
}

async fn page(
    identity: &Identity,
    visitor: &Visitor,
    notice: Option<FlashNotice>,
    typed: &str,
) -> Result<PasskeysPage> {
    let account = visitor.account();
    let own = identity.passkeys_of(&account.id).await?;
    let rows = own.iter().map(|it| row(identity, visitor, it, &own)).collect::<Result<Vec<_>>>()?;
    Ok(PasskeysPage {
        shell: visitor.shell(notice).await?,
        csrf: visitor.0.csrf.shown(),
        place: match identity.relying_party() {
            Some(party) => PasskeyAvailability::Here(add_form(identity, visitor, &own, party.id(), typed)?),
            // Browsers bind passkeys to an address, so the page names the one at which they work.
            None => PasskeyAvailability::Nowhere(visitor.public_url().to_owned()),
        },
        rows,
    })
}

fn add_form(
    identity: &Identity,
    visitor: &Visitor,
    own: &[Passkey],
    rp_id: &str,
    typed: &str,
) -> Result<AddPasskeyForm> {
    let (account, session) = (visitor.account(), visitor.0.signed_in.session.record.id.as_str());
    // The challenge names the session, so a registration from another session is refused.
    let challenge = identity.passkey_challenge(&ChallengePurpose::Add { session })?;
    let confirm = if own.is_empty() {
        if account.password_hash().is_some() {
            PasskeyConfirmationView::Password
        } else {
            // An account without a password signs in at the provider, so only a recent sign-in can confirm.
            PasskeyConfirmationView::FreshSession
        }
    } else {
        // A stolen session alone must not add a passkey, so a registered one has to sign the new registration.
        let purpose = ChallengePurpose::AllowAdding { session, registration: &challenge };
        PasskeyConfirmationView::Passkey(PasskeyChallengeView {
            rp_id: rp_id.to_owned(),
            challenge: identity.passkey_challenge(&purpose)?,
            allow: ids(own),
        })
    };
    Ok(AddPasskeyForm {
        name: SafeLine::new(typed),
        rp_id: rp_id.to_owned(),
        challenge,
        user: account.id.to_string(),
        user_name: account.name.clone(),
        confirm,
    })
}

fn row(identity: &Identity, visitor: &Visitor, passkey: &Passkey, own: &[Passkey]) -> Result<PasskeyRow> {
    let (now, session) = (visitor.now(), visitor.0.signed_in.session.record.id.as_str());
    // The challenge contains the passkey's id, so a signature for one removal cannot confirm another.
    let purpose = ChallengePurpose::AllowRemoving { session, passkey: passkey.id.as_str() };
    // An address without passkeys still shows the list, so a missing id must not be an error.
    let rp_id = identity.relying_party().map(|it| it.id().to_owned()).unwrap_or_default();
    Ok(PasskeyRow {
        id: passkey.id.to_string(),
        name: SafeLine::new(passkey.name.as_str()),
        added: moment(passkey.added_at, now),
        used: passkey.used_at.map(|it| moment(it, now)),
        kept: if passkey.backup_eligible { "may be synced to other devices" } else { "bound to one device" },
        remove: PasskeyChallengeView { rp_id, challenge: identity.passkey_challenge(&purpose)?, allow: ids(own) },
    })
}

pub fn ids(passkeys: &[Passkey]) -> String {
    passkeys.iter().map(|it| it.id.as_str()).collect::<Vec<_>>().join(" ")
}
