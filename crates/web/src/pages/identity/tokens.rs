//! `/tokens`: lists, creates and revokes machine tokens.

use std::collections::BTreeSet;

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use askama::Template as _;
use countersign_domain::identity::account::{Account, MachineRole, PersonRole, Token};
use countersign_domain::primitives::id::{FlowId, NodeId, TokenId};
use countersign_domain::primitives::time::Timestamp;
use countersign_service::error::{Error, Result};
use countersign_service::identity::Identity;
use countersign_service::identity::accounts::NewToken;
use countersign_service::identity::owner_names::{NewOwner, excluded_by};
use countersign_service::policies::Policies;
use countersign_service::policy_changes::PolicyChanges;
use serde::Deserialize;

use super::people_view::{SecretPage, TokenFormInput, TokenRow, TokensPage};
use crate::pages::shared::findings::FindingRow;
use crate::pages::shared::flash::FlashQuery;
use crate::pages::shared::form::{EmptyForm, SignedInForm};
use crate::pages::shared::format::{html, lines, moment, see_other};
use crate::pages::shared::layout::{FlashNotice, Tone};
use crate::pages::shared::responder::or_page_again;
use crate::pages::shared::safe_text::SafeLine;
use crate::pages::shared::visitor::Visitor;
use crate::state::Capability;

/// Notices after a submitted form, by the value of `?done=`.
const DONE: &[(&str, Tone, &str)] =
    &[("revoked", Tone::Good, "Token revoked. The gateway rejects every request with it.")];

/// Maximum number of nodes in one form.
const NODES_MAX: usize = 64;

#[derive(Clone, Deserialize, Default)]
#[serde(default)]
pub struct TokenFields {
    name: String,
    role: String,
    owner: String,
    new_group: String,
    flow: String,
    nodes: String,
}

/// `GET /tokens`.
pub async fn show(
    policies: Capability<Policies>,
    identity: Capability<Identity>,
    visitor: Visitor,
    done: web::Query<FlashQuery>,
) -> Result<TokensPage> {
    let typed = TokenFormInput { role: MachineRole::Agent.as_str().to_owned(), ..TokenFormInput::default() };
    page(&policies, &identity, &visitor, done.notice(DONE), typed).await
}

/// `POST /tokens`: creates a token and shows it once.
pub async fn add(
    policies: Capability<Policies>,
    policy_changes: Capability<PolicyChanges>,
    identity: Capability<Identity>,
    sent: SignedInForm<TokenFields>,
) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let added = added(&policy_changes, &identity, &visitor, &form).await;
    let page = async |notice| {
        let TokenFields { name, role, owner, new_group, flow, nodes } = form;
        let typed = TokenFormInput { name, role, owner, new_group: !new_group.is_empty(), flow, nodes };
        page(&policies, &identity, &visitor, Some(notice), typed).await
    };
    // The token is shown only in this response, so a redirect would lose it.
    or_page_again(added.map(|it| html(StatusCode::OK, it.render())), page).await
}

async fn added(
    policy_changes: &PolicyChanges,
    identity: &Identity,
    visitor: &Visitor,
    form: &TokenFields,
) -> Result<SecretPage> {
    use countersign_domain::identity::account::MachineRole::{Admin, Agent, Auditor, Host, Instance, Monitor, Writer};
    let all = [Host, Agent, Instance, Writer, Auditor, Admin, Monitor];
    let role = all.into_iter().find(|it| it.as_str() == form.role);
    let role = role.ok_or_else(|| Error::invalid("/role", "choose a role"))?;
    let flow = match form.flow.trim() {
        "" => None,
        flow => Some(FlowId::try_from(flow).map_err(|error| Error::invalid("/flow", error.to_string()))?),
    };
    // People separate names by commas or spaces, so both are accepted.
    let named = form.nodes.split([',', ' ']).map(str::trim).filter(|it| !it.is_empty());
    let nodes: std::result::Result<BTreeSet<NodeId>, _> = named.take(NODES_MAX).map(NodeId::try_from).collect();
    let nodes = nodes.map_err(|error| Error::invalid("/nodes", error.to_string()))?;
    let (name, owner) = (form.name.trim().to_owned(), form.owner.trim().to_owned());
    // A new group must be requested, so that a misspelt owner does not create one.
    let owner = if form.new_group.is_empty() { NewOwner::Existing(owner) } else { NewOwner::Group(owner) };
    let new = NewToken { name, role, owner, flow, nodes };
    let (token, text) = identity.add_token_by(&visitor.0.signed_in.account, &new).await?;
    // The page names the excluded reviewers at once, because a wrong owner weakens separation of duties.
    let excluded = identity.excluded_by(&token.owner).await?;
    let findings = match &token.flow {
        Some(flow) => policy_changes.findings_of(flow).await?,
        None => Vec::new(),
    };
    Ok(SecretPage {
        shell: visitor.shell(None).await?,
        title: format!("Token {}", token.name),
        lead: "Store it only in the configuration of the machine. It is shown only now: the gateway stores only a \
               hash.",
        label: "Token",
        secret: text,
        until: None,
        note: Some(exclusion(&excluded)),
        findings: findings.iter().map(FindingRow::from).collect(),
        back: "/tokens",
        back_words: "Back to Tokens",
    })
}

/// `POST /tokens/{token}/revocation`.
pub async fn revoke(identity: Capability<Identity>, sent: EmptyForm, token: web::Path<String>) -> Result<HttpResponse> {
    let (visitor, _) = sent.parts();
    // A malformed id names no token, so it gets 404 like an unknown one.
    let id = TokenId::try_from(token.as_str()).map_err(|_| Error::NotFound("token"))?;
    identity.revoke_token_by(&visitor.0.signed_in.account, &id).await?;
    // The redirect keeps a reload from sending the revocation again.
    Ok(see_other("/tokens?done=revoked"))
}

async fn page(
    policies: &Policies,
    identity: &Identity,
    visitor: &Visitor,
    notice: Option<FlashNotice>,
    typed: TokenFormInput,
) -> Result<TokensPage> {
    let now = visitor.now();
    let mut tokens = identity.tokens().await?;
    // Revoked tokens go last: `false` sorts before `true`.
    tokens.sort_by(|one, other| (one.revoked, other.created_at).cmp(&(other.revoked, one.created_at)));
    let ids: Vec<String> = tokens.iter().map(|it| format!("token/{}", it.id)).collect();
    // One query reads the times of all tokens, so the number of rows does not matter.
    let seen = identity.last_seen(&ids).await?;
    let people = identity.people().await?;
    Ok(TokensPage {
        shell: visitor.shell(notice).await?,
        csrf: visitor.0.csrf.shown(),
        tokens: tokens.iter().zip(&ids).map(|(it, id)| row(it, &people, seen.get(id).copied(), now)).collect(),
        flows: lines(policies.flows().await?.iter().map(|it| it.as_str())),
        may_change: visitor.account().role == PersonRole::Admin,
        typed,
    })
}

/// Returns which reviewers cannot approve the proposals of a token.
fn exclusion(excluded: &[String]) -> String {
    match excluded {
        [] => "Separation of duties excludes no reviewer: no reviewer is the owner or a member of the owner group."
            .to_owned(),
        _ => format!("By separation of duties, these reviewers cannot approve its proposals: {}.", excluded.join(", ")),
    }
}

fn row(token: &Token, people: &[Account], seen: Option<Timestamp>, now: Timestamp) -> TokenRow {
    TokenRow {
        id: token.id.to_string(),
        name: SafeLine::new(token.name.as_str()),
        role: token.role.as_str(),
        owner: SafeLine::new(token.owner.as_str()),
        excludes: lines(excluded_by(&token.owner, people).iter().map(String::as_str)),
        // An owner without an account excludes no reviewer, so the page marks such a token.
        owner_exists: people.iter().any(|it| it.answers_for(&token.owner)),
        flow: token.flow.as_ref().map(|it| SafeLine::new(it.as_str())),
        nodes: lines(token.nodes.iter().map(|it| it.as_str())),
        revoked: !token.is_valid(now),
        used: seen.map(|it| moment(it, now)),
        created: moment(token.created_at, now),
    }
}
