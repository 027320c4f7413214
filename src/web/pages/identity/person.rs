//! `/people/{account}`: one person, and what administrators do about them.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template as _;
use serde::Deserialize;

use super::people::{groups_of, person_row, role_of};
use super::people_view::{PersonEditability, PersonFormInput, PersonPage, SecretPage};
use crate::domain::identity::account::{Account, PersonRole};
use crate::domain::primitives::id::AccountId;
use crate::service::error::{Error, Result};
use crate::service::identity::administration::RESET_TTL;
use crate::service::identity::revocation::SignInAccess;
use crate::web::pages::shared::error_page::PageError;
use crate::web::pages::shared::flash::{FlashQuery, refusal};
use crate::web::pages::shared::form::{EmptyForm, SignedInForm};
use crate::web::pages::shared::format::{html, moment, see_other};
use crate::web::pages::shared::layout::{FlashNotice, Tone};
use crate::web::pages::shared::safe_text::SafeLine;
use crate::web::pages::shared::visitor::Visitor;
use crate::web::state::AppState;

/// What the page says after a form was taken.
const DONE: &[(&str, Tone, &str)] = &[
    ("changed", Tone::Good, "Changed. It counts from now on; the log says who changed it."),
    ("disabled", Tone::Care, "Disabled. They are signed out everywhere, and no vote of theirs counts any more."),
    ("unlocked", Tone::Good, "Unlocked. They need not wait any more."),
    ("passkeys", Tone::Care, "Their passkeys are removed, and what those signed in has ended. They register others."),
    ("enabled", Tone::Good, "Enabled. They can sign in again."),
];

/// What the form about what somebody may do sends.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct AccessFields {
    role: String,
    groups: String,
}

/// What the form about letting somebody in sends.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct AdmissionFields {
    admission: String,
}

/// `GET /people/{account}`.
pub async fn show(
    app: web::Data<AppState>,
    visitor: Visitor,
    account: web::Path<String>,
    done: web::Query<FlashQuery>,
) -> Result<PersonPage> {
    let account = find(&app, &account).await?;
    page(&app, &visitor, &account, done.notice(DONE)).await
}

/// `POST /people/{account}/access`.
pub async fn change_access(
    app: web::Data<AppState>,
    request: HttpRequest,
    sent: SignedInForm<AccessFields>,
    account: web::Path<String>,
) -> std::result::Result<HttpResponse, PageError> {
    let (visitor, form) = sent.parts();
    let changed = async |account: &Account| {
        let (role, groups) = (role_of(&form.role)?, groups_of(&form.groups)?);
        app.service.change_access(&visitor.0.signed_in.account, &account.id, (role, &groups)).await?;
        Ok(see_other(&format!("/people/{}?done=changed", account.id)))
    };
    answered(&app, &request, &visitor, (&account, changed)).await
}

/// `POST /people/{account}/admission`.
pub async fn admit(
    app: web::Data<AppState>,
    request: HttpRequest,
    sent: SignedInForm<AdmissionFields>,
    account: web::Path<String>,
) -> std::result::Result<HttpResponse, PageError> {
    let (visitor, form) = sent.parts();
    let admitted = async |account: &Account| {
        let (admission, done) = match form.admission.as_str() {
            "disable" => (SignInAccess::Barred, "disabled"),
            "enable" => (SignInAccess::Open, "enabled"),
            _ => return Err(Error::invalid("/admission", "say disable or enable")),
        };
        app.service.set_admission_by(&visitor.0.signed_in.account, &account.name, admission).await?;
        Ok(see_other(&format!("/people/{}?done={done}", account.id)))
    };
    answered(&app, &request, &visitor, (&account, admitted)).await
}

/// `POST /people/{account}/reset`: the answer has the link, this once.
pub async fn reset(
    app: web::Data<AppState>,
    request: HttpRequest,
    sent: EmptyForm,
    account: web::Path<String>,
) -> std::result::Result<HttpResponse, PageError> {
    let (visitor, _) = sent.parts();
    let made = async |account: &Account| {
        let secret = app.service.reset_link(&visitor.0.signed_in.account, &account.id).await?;
        let now = app.service.now();
        let page = SecretPage {
            shell: visitor.shell(&app.service, None).await?,
            title: format!("Another password for {}", account.name),
            lead: "Give this link to the person, and to nobody else: whoever opens it first chooses the password. It is \
                   shown this once, and works once. Their sessions have ended; their old password works until they \
                   have chosen another.",
            label: "Link",
            secret: format!("{}/password/{secret}", app.service.public_url()),
            until: Some(moment(now.plus(RESET_TTL), now)),
            note: None,
            back: "/people",
            back_words: "Back to People",
        };
        Ok(html(StatusCode::OK, page.render()))
    };
    answered(&app, &request, &visitor, (&account, made)).await
}

/// `POST /people/{account}/unlocking`.
pub async fn unlock(
    app: web::Data<AppState>,
    request: HttpRequest,
    sent: EmptyForm,
    account: web::Path<String>,
) -> std::result::Result<HttpResponse, PageError> {
    let (visitor, _) = sent.parts();
    let unlocked = async |account: &Account| {
        app.service.unlock(&visitor.0.signed_in.account, &account.id).await?;
        Ok(see_other(&format!("/people/{}?done=unlocked", account.id)))
    };
    answered(&app, &request, &visitor, (&account, unlocked)).await
}

/// `POST /people/{account}/passkeys`: takes those away that somebody has lost.
pub async fn remove_passkeys(
    app: web::Data<AppState>,
    request: HttpRequest,
    sent: EmptyForm,
    account: web::Path<String>,
) -> std::result::Result<HttpResponse, PageError> {
    let (visitor, _) = sent.parts();
    let removed = async |account: &Account| {
        app.service.remove_lost_passkeys(&visitor.0.signed_in.account, &account.id).await?;
        Ok(see_other(&format!("/people/{}?done=passkeys", account.id)))
    };
    answered(&app, &request, &visitor, (&account, removed)).await
}

async fn answered(
    app: &AppState,
    request: &HttpRequest,
    visitor: &Visitor,
    (account, run): (&str, impl AsyncFnOnce(&Account) -> Result<HttpResponse>),
) -> std::result::Result<HttpResponse, PageError> {
    let failed = |error| PageError::of(request, error);
    let account = find(app, account).await.map_err(failed)?;
    match run(&account).await {
        Ok(response) => Ok(response),
        Err(error) => {
            let notice = refusal(error).map_err(failed)?;
            let page = page(app, visitor, &account, Some(notice)).await.map_err(failed)?;
            Ok(html(StatusCode::CONFLICT, page.render()))
        }
    }
}

async fn find(app: &AppState, id: &str) -> Result<Account> {
    let id = AccountId::try_from(id).map_err(|_| Error::NotFound("person"))?;
    match app.service.account_row(&id).await {
        Err(Error::NotFound(_)) => Err(Error::NotFound("person")),
        other => other.map(|it| it.record),
    }
}

async fn page(app: &AppState, visitor: &Visitor, account: &Account, notice: Option<FlashNotice>) -> Result<PersonPage> {
    let now = app.service.now();
    let sessions = app.service.sessions_of(&account.id).await?.len();
    let groups: Vec<&str> = account.groups.iter().map(|it| it.as_str()).collect();
    let id = format!("account/{}", account.id);
    let seen = app.service.last_seen(std::slice::from_ref(&id)).await?.remove(&id);
    let person = person_row(account, visitor, (seen, now));
    let changing = match visitor.account().role {
        _ if person.me => PersonEditability::Oneself,
        PersonRole::Admin => PersonEditability::Open,
        PersonRole::Reviewer | PersonRole::Auditor => PersonEditability::Looking,
    };
    Ok(PersonPage {
        shell: visitor.shell(&app.service, notice).await?,
        csrf: visitor.0.csrf.shown(),
        person,
        changing,
        typed: PersonFormInput {
            name: account.name.clone(),
            role: account.role.as_str().to_owned(),
            groups: groups.join(", "),
        },
        sessions,
        passkeys: app.service.passkeys_of(&account.id).await?.len(),
        mail: app.service.contact_of(&account.id).await?.map(|it| SafeLine::new(it.mail.as_str())),
        slowed: app.service.throttled_until(account).await?.map(|it| moment(it, now)),
    })
}
