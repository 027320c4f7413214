//! `/people/{account}`: one account, and the forms by which administrators change it.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use askama::Template as _;
use countersign_domain::identity::account::{Account, PersonRole};
use countersign_domain::primitives::id::AccountId;
use countersign_service::delivery::Deliveries;
use countersign_service::error::{Error, Result};
use countersign_service::identity::Identity;
use countersign_service::identity::password_reset::RESET_TTL;
use countersign_service::identity::revocation::SignInAccess;
use serde::Deserialize;

use super::people::{groups_of, person_row, role_of};
use super::people_view::{PersonEditability, PersonFormInput, PersonPage, SecretPage};
use crate::pages::shared::flash::FlashQuery;
use crate::pages::shared::form::{EmptyForm, SignedInForm};
use crate::pages::shared::format::{html, moment, see_other};
use crate::pages::shared::layout::{FlashNotice, Tone};
use crate::pages::shared::responder::or_page_again;
use crate::pages::shared::safe_text::SafeLine;
use crate::pages::shared::visitor::Visitor;
use crate::state::{Capability, capabilities};

capabilities! {
    /// The capabilities of the page about one account.
    pub struct AccountCapabilities {
        delivery: Capability<Deliveries>,
        identity: Capability<Identity>,
    }
}

/// Notices after a submitted form, by the value of `?done=`.
const DONE: &[(&str, Tone, &str)] = &[
    ("changed", Tone::Good, "Role and groups changed. The change applies now and is in the audit log."),
    ("disabled", Tone::Care, "Account disabled. All sessions have ended, and this person's votes no longer count."),
    ("unlocked", Tone::Good, "Sign-in unlocked. This person can sign in again without waiting."),
    (
        "passkeys",
        Tone::Care,
        "Passkeys removed, and the sessions that they started have ended. This person can register new passkeys.",
    ),
    ("enabled", Tone::Good, "Account enabled. This person can sign in again."),
];

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct AccessFields {
    role: String,
    groups: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct AdmissionFields {
    admission: String,
}

/// `GET /people/{account}`.
pub async fn show(
    app: AccountCapabilities,
    visitor: Visitor,
    account: web::Path<String>,
    done: web::Query<FlashQuery>,
) -> Result<PersonPage> {
    let account = find(&app.identity, &account).await?;
    page(&app, &visitor, &account, done.notice(DONE)).await
}

/// `POST /people/{account}/access`.
pub async fn change_access(
    app: AccountCapabilities,
    sent: SignedInForm<AccessFields>,
    account: web::Path<String>,
) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let changed = async |account: &Account| {
        let (role, groups) = (role_of(&form.role)?, groups_of(&form.groups)?);
        app.identity.change_access(&visitor.0.signed_in.account, &account.id, role, &groups).await?;
        Ok(see_other(&format!("/people/{}?done=changed", account.id)))
    };
    answered(&app, &visitor, &account, changed).await
}

/// `POST /people/{account}/admission`.
pub async fn admit(
    app: AccountCapabilities,
    sent: SignedInForm<AdmissionFields>,
    account: web::Path<String>,
) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let admitted = async |account: &Account| {
        let (admission, done) = match form.admission.as_str() {
            "disable" => (SignInAccess::Barred, "disabled"),
            "enable" => (SignInAccess::Open, "enabled"),
            _ => return Err(Error::invalid("/admission", "choose disable or enable")),
        };
        app.identity.set_admission_by(&visitor.0.signed_in.account, &account.name, admission).await?;
        Ok(see_other(&format!("/people/{}?done={done}", account.id)))
    };
    answered(&app, &visitor, &account, admitted).await
}

/// `POST /people/{account}/reset`: creates a link that resets the password, and shows it once.
pub async fn reset(app: AccountCapabilities, sent: EmptyForm, account: web::Path<String>) -> Result<HttpResponse> {
    let (visitor, _) = sent.parts();
    let made = async |account: &Account| {
        let secret = app.identity.reset_link(&visitor.0.signed_in.account, &account.id).await?;
        let now = visitor.now();
        let page = SecretPage {
            shell: visitor.shell(None).await?,
            title: format!("Password reset for {}", account.name),
            lead: "Send this link only to the owner of the account: the first person to use it sets the password. The \
                   link is shown only now and works once. All sessions of the account have ended. The old password works \
                   until a new one is set.",
            label: "Link",
            secret: format!("{}/password/{secret}", visitor.public_url()),
            until: Some(moment(now.plus(RESET_TTL), now)),
            note: None,
            findings: Vec::new(),
            back: "/people",
            back_words: "Back to People",
        };
        // The link is shown only in this response, so a redirect would lose it.
        Ok(html(StatusCode::OK, page.render()))
    };
    answered(&app, &visitor, &account, made).await
}

/// `POST /people/{account}/unlocking`.
pub async fn unlock(app: AccountCapabilities, sent: EmptyForm, account: web::Path<String>) -> Result<HttpResponse> {
    let (visitor, _) = sent.parts();
    let unlocked = async |account: &Account| {
        app.identity.unlock(&visitor.0.signed_in.account, &account.id).await?;
        Ok(see_other(&format!("/people/{}?done=unlocked", account.id)))
    };
    answered(&app, &visitor, &account, unlocked).await
}

/// `POST /people/{account}/passkeys`: removes the passkeys of a person who has lost them.
pub async fn remove_passkeys(
    app: AccountCapabilities,
    sent: EmptyForm,
    account: web::Path<String>,
) -> Result<HttpResponse> {
    let (visitor, _) = sent.parts();
    let removed = async |account: &Account| {
        app.identity.remove_lost_passkeys(&visitor.0.signed_in.account, &account.id).await?;
        Ok(see_other(&format!("/people/{}?done=passkeys", account.id)))
    };
    answered(&app, &visitor, &account, removed).await
}

async fn answered(
    app: &AccountCapabilities,
    visitor: &Visitor,
    account: &str,
    run: impl AsyncFnOnce(&Account) -> Result<HttpResponse>,
) -> Result<HttpResponse> {
    let account = find(&app.identity, account).await?;
    // A refusal keeps the page, so that the reader sees the present state next to the reason.
    or_page_again(run(&account).await, async |notice| page(app, visitor, &account, Some(notice)).await).await
}

async fn find(identity: &Identity, id: &str) -> Result<Account> {
    let id = AccountId::try_from(id).map_err(|_| Error::NotFound("person"))?;
    match identity.account_row(&id).await {
        // The page speaks of people, so its error names a person instead of an account.
        Err(Error::NotFound(_)) => Err(Error::NotFound("person")),
        other => other.map(|it| it.record),
    }
}

async fn page(
    app: &AccountCapabilities,
    visitor: &Visitor,
    account: &Account,
    notice: Option<FlashNotice>,
) -> Result<PersonPage> {
    let now = visitor.now();
    let sessions = app.identity.sessions_of(&account.id).await?.len();
    let groups: Vec<&str> = account.groups.iter().map(|it| it.as_str()).collect();
    let id = format!("account/{}", account.id);
    let seen = app.identity.last_seen(std::slice::from_ref(&id)).await?.remove(&id);
    let person = person_row(account, visitor, seen, now);
    let changing = match visitor.account().role {
        // Comes before the role: an administrator must not change their own role or groups (separation of duties).
        _ if person.me => PersonEditability::Oneself,
        PersonRole::Admin => PersonEditability::Open,
        PersonRole::Reviewer | PersonRole::Auditor => PersonEditability::Looking,
    };
    Ok(PersonPage {
        shell: visitor.shell(notice).await?,
        csrf: visitor.0.csrf.shown(),
        person,
        changing,
        typed: PersonFormInput {
            name: account.name.clone(),
            role: account.role.as_str().to_owned(),
            groups: groups.join(", "),
        },
        sessions,
        passkeys: app.identity.passkeys_of(&account.id).await?.len(),
        mail: app.delivery.contact_of(&account.id).await?.map(|it| SafeLine::new(it.mail.as_str())),
        slowed: app.identity.throttled_until(account).await?.map(|it| moment(it, now)),
    })
}
