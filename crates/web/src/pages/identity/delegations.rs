//! `/delegations`: creates and ends delegations, by which another reviewer votes on a reviewer's behalf.

use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use askama::Template as _;
use countersign_domain::identity::account::PersonRole;
use countersign_domain::identity::delegation::Delegation;
use countersign_domain::primitives::id::DelegationId;
use countersign_domain::primitives::time::Timestamp;
use countersign_service::error::{Error, Result};
use countersign_service::identity::Identity;
use countersign_service::identity::delegations::{DelegationOwnerFilter, NewDelegation};
use countersign_service::identity::passkeys::{ChallengePurpose, PasskeyConfirmation};
use serde::Deserialize;

use super::delegations_view::{
    DelegatePage, DelegationLengthOption, DelegationOptionState, DelegationRow, DelegationStatusView, DelegationsPage,
    NewDelegationForm,
};
use super::passkeys::{ids, parsed};
use super::passkeys_view::{PasskeyChallengeView, PasskeyConfirmationView};
use crate::pages::shared::flash::FlashQuery;
use crate::pages::shared::form::{EmptyForm, SignedInForm};
use crate::pages::shared::format::{html, lines, moment, see_other};
use crate::pages::shared::layout::{FlashNotice, Tone};
use crate::pages::shared::responder::or_page_again;
use crate::pages::shared::safe_text::SafeLine;
use crate::pages::shared::visitor::Visitor;
use crate::state::Capability;

const URL: &str = "/delegations";

/// Notices after a submitted form, by the value of `?done=`.
const DONE: &[(&str, Tone, &str)] = &[
    (
        "named",
        Tone::Good,
        "Delegation created. The other reviewer can now vote on your behalf. You can end the delegation at any time.",
    ),
    ("ended", Tone::Good, "Delegation ended. The other reviewer can no longer vote on this person's behalf."),
];

/// Offered lengths in hours. Each of them is within the maximum of the service.
const LENGTHS: [(u64, &str); 6] =
    [(4, "4 hours"), (24, "1 day"), (72, "3 days"), (168, "1 week"), (336, "2 weeks"), (720, "30 days")];

/// The preselected length in hours.
const LENGTH_FIRST: u64 = 24;

/// Maximum number of delegations in each list of the reader.
const GIVEN_SHOWN: usize = 20;

/// Fields of the forms of this page. A field that a form leaves out is empty.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct DelegationForm {
    to: String,
    hours: String,
    confirmed: String,
    password: String,
    confirm_challenge: String,
    assertion: String,
}

/// `GET /delegations`.
pub async fn show(
    identity: Capability<Identity>,
    visitor: Visitor,
    done: web::Query<FlashQuery>,
) -> Result<DelegationsPage> {
    page(&identity, &visitor, done.notice(DONE), &DelegationForm::default()).await
}

/// Redirects a `GET` of an address that accepts only forms.
pub async fn back() -> HttpResponse {
    see_other(URL)
}

/// `POST /delegations`: shows the confirm page, and creates the delegation when the form has `confirmed=yes`.
pub async fn submit(identity: Capability<Identity>, sent: SignedInForm<DelegationForm>) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let confirmed = form.confirmed == "yes";
    let done = if confirmed {
        create(&identity, &visitor, &form).await
    } else {
        confirm_page(&identity, &visitor, &form, None).await
    };
    let shown = match &done {
        Err(Error::Forbidden(why)) if confirmed => Some(format!("Delegation not created: {why}.")),
        Err(Error::Passkey(why)) if confirmed => Some(format!("Passkey rejected: {why}.")),
        Err(Error::TooMany) => Some("Too many failed attempts. Wait a few minutes, then try again.".to_owned()),
        _ => None,
    };
    // These errors belong to the confirm page. All others go to the page with the form.
    if shown.is_some() {
        return confirm_page(&identity, &visitor, &form, shown).await;
    }
    or_page_again(done, async |notice| page(&identity, &visitor, Some(notice), &form).await).await
}

/// `POST /delegations/{delegation}/end`.
pub async fn end(
    identity: Capability<Identity>,
    sent: EmptyForm,
    delegation: web::Path<String>,
) -> Result<HttpResponse> {
    let (visitor, _) = sent.parts();
    // A malformed id names no delegation, so it gets 404 like an unknown one.
    let id = DelegationId::try_from(delegation.as_str()).map_err(|_| Error::NotFound("delegation"))?;
    identity.end_delegation(&visitor.account().id, &id).await?;
    Ok(see_other(&format!("{URL}?done=ended")))
}

fn new_delegation(form: &DelegationForm) -> Result<NewDelegation> {
    let hours: u64 = form.hours.parse().map_err(|_| Error::invalid("/length", "choose a length from the list"))?;
    let to = form.to.trim().to_owned();
    if to.is_empty() {
        return Err(Error::invalid("/to", "enter the name of the reviewer who votes for you"));
    }
    // A forged number of hours may overflow, and the service refuses any length above its maximum.
    Ok(NewDelegation { to, length: Duration::from_secs(hours.saturating_mul(3600)) })
}

async fn create(identity: &Identity, visitor: &Visitor, form: &DelegationForm) -> Result<HttpResponse> {
    let confirmation = if form.assertion.is_empty() {
        PasskeyConfirmation::Password(form.password.clone())
    } else {
        PasskeyConfirmation::Passkey { challenge: form.confirm_challenge.clone(), assertion: parsed(&form.assertion)? }
    };
    identity.delegate_to(&visitor.0.signed_in, &new_delegation(form)?, confirmation).await?;
    // The redirect keeps a reload from creating a second delegation.
    Ok(see_other(&format!("{URL}?done=named")))
}

/// Renders the confirm page: the delegated groups, the other reviewer and the end.
async fn confirm_page(
    identity: &Identity,
    visitor: &Visitor,
    form: &DelegationForm,
    problem: Option<String>,
) -> Result<HttpResponse> {
    let (account, naming) = (visitor.account(), new_delegation(form)?);
    let offer = identity.offer(account, &naming).await?;
    let own = identity.passkeys_of(&account.id).await?;
    let session = visitor.0.signed_in.session.record.id.as_str();
    let confirm = match (own.is_empty(), account.password_hash()) {
        (true, Some(_)) => PasskeyConfirmationView::Password,
        // An account without a password signs in at the provider, so only a recent sign-in can confirm.
        (true, None) => PasskeyConfirmationView::FreshSession,
        // A passkey is stronger than a password, so an account that has one must use it.
        (false, _) => PasskeyConfirmationView::Passkey(PasskeyChallengeView {
            rp_id: identity.relying_party().map(|it| it.id().to_owned()).unwrap_or_default(),
            // The challenge covers the terms, so a signature for one delegation cannot confirm another.
            challenge: identity
                .passkey_challenge(&ChallengePurpose::AllowDelegating { session, terms: &offer.terms })?,
            allow: ids(&own),
        }),
    };
    let now = visitor.now();
    let status = if problem.is_some() { StatusCode::CONFLICT } else { StatusCode::OK };
    let page = DelegatePage {
        shell: visitor.shell(None).await?,
        csrf: visitor.0.csrf.shown(),
        to: SafeLine::new(offer.to.name.as_str()),
        hours: naming.length.as_secs() / 3600,
        until: moment(now.plus(naming.length), now),
        groups: lines(account.groups.iter().map(|it| it.as_str())),
        confirm,
        problem,
    };
    Ok(html(status, page.render()))
}

async fn page(
    identity: &Identity,
    visitor: &Visitor,
    notice: Option<FlashNotice>,
    form: &DelegationForm,
) -> Result<DelegationsPage> {
    let (account, now) = (visitor.account(), visitor.now());
    let votes = account.role == PersonRole::Reviewer;
    // Only reviewers vote and delegate, so other roles see the delegations of all people.
    let whose = if votes { DelegationOwnerFilter::Own } else { DelegationOwnerFilter::Everybodys };
    let found = identity.delegations(&account.id, whose).await?;
    let rows = |of: &[Delegation]| of.iter().take(GIVEN_SHOWN).map(|it| row(visitor, it, now)).collect::<Vec<_>>();
    Ok(DelegationsPage {
        shell: visitor.shell(notice).await?,
        csrf: visitor.0.csrf.shown(),
        // A reviewer without a group has no vote to delegate, so the form is left out.
        naming: (votes && !account.groups.is_empty()).then(|| naming_form(form)),
        given: rows(&found.given),
        received: rows(&found.received),
        all: (!votes).then(|| found.all.iter().map(|it| row(visitor, it, now)).collect()),
    })
}

fn naming_form(form: &DelegationForm) -> NewDelegationForm {
    // A first visit has no chosen length, so the default is selected.
    let hours = form.hours.parse().unwrap_or(LENGTH_FIRST);
    let length = |(it, words): &(u64, &'static str)| DelegationLengthOption {
        hours: *it,
        words,
        chosen: if *it == hours { DelegationOptionState::Yes } else { DelegationOptionState::No },
    };
    NewDelegationForm { to: SafeLine::new(form.to.as_str()), lengths: LENGTHS.iter().map(length).collect() }
}

fn row(visitor: &Visitor, delegation: &Delegation, now: Timestamp) -> DelegationRow {
    let standing = match &delegation.ended {
        Some(ended) => {
            DelegationStatusView::Ended { by: SafeLine::new(ended.name.as_str()), at: moment(ended.at, now) }
        }
        None if !delegation.lasts_at(now) => DelegationStatusView::Over,
        None if delegation.may_be_ended_by(visitor.account()) => DelegationStatusView::Now,
        None => DelegationStatusView::NowForOthers,
    };
    DelegationRow {
        id: delegation.id.to_string(),
        from: SafeLine::new(delegation.from_name.as_str()),
        to: SafeLine::new(delegation.to_name.as_str()),
        since: moment(delegation.begins_at, now),
        until: moment(delegation.ends_at, now),
        standing,
    }
}
