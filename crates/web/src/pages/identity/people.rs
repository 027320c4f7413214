//! `/people`: lists the accounts, and creates and withdraws invitations.

use std::collections::BTreeSet;

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use askama::Template as _;
use countersign_domain::identity::account::{Account, AccountCredential, LinkPurpose, PersonRole};
use countersign_domain::primitives::id::{GroupName, SessionId};
use countersign_domain::primitives::time::Timestamp;
use countersign_service::error::{Error, Result};
use countersign_service::identity::Identity;
use countersign_service::identity::accounts::NewAccount;
use countersign_service::identity::actor::OPERATOR;
use countersign_service::identity::administration::{INVITATION_TTL, OpenLink};
use serde::Deserialize;

use super::people_view::{LinkRow, PeoplePage, PersonFormInput, PersonRow, SecretPage};
use crate::pages::shared::flash::FlashQuery;
use crate::pages::shared::form::{EmptyForm, SignedInForm};
use crate::pages::shared::format::{html, lines, listed, moment, see_other};
use crate::pages::shared::layout::{FlashNotice, Tone};
use crate::pages::shared::responder::or_page_again;
use crate::pages::shared::safe_text::SafeLine;
use crate::pages::shared::visitor::Visitor;
use crate::state::Capability;

const ADDRESS: &str = "/people";

/// Notices after a submitted form, by the value of `?done=`.
const DONE: &[(&str, Tone, &str)] = &[("withdrawn", Tone::Good, "Link withdrawn. It no longer works.")];

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct InvitationFields {
    username: String,
    role: String,
    groups: String,
}

/// `GET /people`.
pub async fn show(
    identity: Capability<Identity>,
    visitor: Visitor,
    done: web::Query<FlashQuery>,
) -> Result<PeoplePage> {
    let typed = PersonFormInput { role: PersonRole::Reviewer.as_str().to_owned(), ..PersonFormInput::default() };
    page(&identity, &visitor, done.notice(DONE), typed).await
}

/// Redirects a `GET` of an address that accepts only forms.
pub async fn back() -> HttpResponse {
    see_other(ADDRESS)
}

/// `POST /people/invitations`: creates an invitation and shows its link once.
pub async fn invite(identity: Capability<Identity>, sent: SignedInForm<InvitationFields>) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let invited = invited(&identity, &visitor, &form).await;
    let page = async |notice| {
        let InvitationFields { username: name, role, groups } = form;
        page(&identity, &visitor, Some(notice), PersonFormInput { name, role, groups }).await
    };
    // The link is shown only in this response, so a redirect would lose it.
    or_page_again(invited.map(|it| html(StatusCode::OK, it.render())), page).await
}

async fn invited(identity: &Identity, visitor: &Visitor, form: &InvitationFields) -> Result<SecretPage> {
    let (role, groups) = (role_of(&form.role)?, groups_of(&form.groups)?);
    let new = NewAccount { name: form.username.trim().to_owned(), role, groups };
    let secret = identity.invite(&visitor.0.signed_in.account, &new).await?;
    let now = visitor.now();
    Ok(SecretPage {
        shell: visitor.shell(None).await?,
        title: format!("Invitation for {}", new.name),
        lead: "Send this link only to the invited person: the first person to use it sets the password. The link is \
               shown only now and works once.",
        label: "Link",
        // The administrator sends this link by other means, so it needs the public URL and not a path.
        secret: format!("{}/password/{secret}", visitor.public_url()),
        until: Some(moment(now.plus(INVITATION_TTL), now)),
        note: None,
        findings: Vec::new(),
        back: ADDRESS,
        back_words: "Back to People",
    })
}

/// `POST /people/links/{link}/withdrawal`.
pub async fn withdraw(
    identity: Capability<Identity>,
    sent: EmptyForm,
    link: web::Path<String>,
) -> Result<HttpResponse> {
    let (visitor, _) = sent.parts();
    let done = async {
        let id = SessionId::try_from(link.as_str()).map_err(|_| Error::NotFound("link"))?;
        identity.withdraw_link(&visitor.0.signed_in.account, &id).await?;
        // The redirect keeps a reload from sending the withdrawal again.
        Ok(see_other("/people?done=withdrawn"))
    };
    let page = async |notice| page(&identity, &visitor, Some(notice), PersonFormInput::default()).await;
    or_page_again(done.await, page).await
}

/// Parses the role field of a form.
pub fn role_of(text: &str) -> Result<PersonRole> {
    let all = [PersonRole::Reviewer, PersonRole::Admin, PersonRole::Auditor];
    let found = all.into_iter().find(|it| it.as_str() == text);
    found.ok_or_else(|| Error::invalid("/role", "choose a role: reviewer, admin or auditor"))
}

/// Parses the groups field of a form. Commas or spaces separate the names.
pub fn groups_of(text: &str) -> Result<BTreeSet<GroupName>> {
    let named = text.split([',', ' ']).map(str::trim).filter(|it| !it.is_empty());
    let groups: std::result::Result<BTreeSet<GroupName>, _> = named.map(GroupName::try_from).collect();
    groups.map_err(|error| Error::invalid("/groups", error.to_string()))
}

async fn page(
    identity: &Identity,
    visitor: &Visitor,
    notice: Option<FlashNotice>,
    typed: PersonFormInput,
) -> Result<PeoplePage> {
    let now = visitor.now();
    let people = identity.people().await?;
    let links = identity.open_links().await?;
    let name_of = |link: &OpenLink| match &link.purpose {
        // A reset link stores only the id, so the name comes from the account.
        LinkPurpose::Reset { account, .. } => people.iter().find(|it| it.id == *account).map(|it| it.name.clone()),
        _ => None,
    };
    let ids: Vec<String> = people.iter().map(|it| format!("account/{}", it.id)).collect();
    // One query reads the times of all people, so the number of rows does not matter.
    let seen = identity.last_seen(&ids).await?;
    Ok(PeoplePage {
        links: links.iter().filter_map(|it| link_row(it, name_of(it), now)).collect(),
        people: people.iter().zip(&ids).map(|(it, id)| person_row(it, visitor, seen.get(id).copied(), now)).collect(),
        shell: visitor.shell(notice).await?,
        csrf: visitor.0.csrf.shown(),
        may_change: visitor.account().role == PersonRole::Admin,
        typed,
    })
}

pub fn person_row(account: &Account, visitor: &Visitor, seen: Option<Timestamp>, now: Timestamp) -> PersonRow {
    PersonRow {
        url: format!("{ADDRESS}/{}", account.id),
        name: SafeLine::new(account.name.as_str()),
        role: account.role.as_str(),
        groups: lines(account.groups.iter().map(|it| it.as_str())),
        disabled: account.disabled,
        way: match account.sign_in {
            AccountCredential::Password { .. } => "a password",
            AccountCredential::Oidc { .. } => "an OpenID provider",
        },
        created: moment(account.created_at, now),
        changed: account.changed.as_ref().map(|it| (SafeLine::new(it.name.as_str()), moment(it.at, now))),
        seen: seen.map(|it| moment(it, now)),
        me: account.id == visitor.account().id,
    }
}

fn link_row(link: &OpenLink, named: Option<String>, now: Timestamp) -> Option<LinkRow> {
    let (name, words, by) = match &link.purpose {
        LinkPurpose::Invite { name, role, groups, by } => {
            let groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
            let of = if groups.is_empty() { String::new() } else { format!(" in {}", listed(&groups, "and")) };
            (name.clone(), format!("invitation as {}{of}", role.as_str()), Some(by))
        }
        // A reset link is left out if its account cannot be found.
        LinkPurpose::Reset { by, .. } => (named?, "password reset".to_owned(), by.as_ref()),
        // Set-up and sign-in links are made elsewhere, so this list leaves them out.
        _ => return None,
    };
    Some(LinkRow {
        id: link.id.to_string(),
        words,
        name: SafeLine::new(name),
        by: SafeLine::new(by.map_or(OPERATOR, |by| by.name.as_str())),
        until: moment(link.expires_at, now),
    })
}
