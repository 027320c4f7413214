//! `/delegations`: naming somebody who votes in one's place for a time, and ending that.

use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template as _;
use serde::Deserialize;

use super::delegations_view::{Chosen, DelegatePage, DelegationRow, DelegationsPage, Length, NamingForm, Standing};
use super::passkeys::{ids, parsed};
use super::passkeys_view::{Asking, Confirm};
use crate::domain::identity::account::PersonRole;
use crate::domain::identity::delegation::Delegation;
use crate::domain::primitives::id::DelegationId;
use crate::domain::primitives::time::Timestamp;
use crate::service::error::{Error, Result};
use crate::service::identity::delegations::{Naming, Whose};
use crate::service::identity::passkeys::{Confirmation, Purpose};
use crate::web::pages::shared::error_page::Failure;
use crate::web::pages::shared::flash::{Done, refusal};
use crate::web::pages::shared::form::{Bare, Form};
use crate::web::pages::shared::format::{html, lines, moment, see_other};
use crate::web::pages::shared::layout::{Notice, Tone};
use crate::web::pages::shared::safe_text::Line;
use crate::web::pages::shared::visitor::Visitor;
use crate::web::state::App;

/// Where the page is.
const URL: &str = "/delegations";

/// What the page says after a form was taken.
const DONE: &[(&str, Tone, &str)] = &[
    ("named", Tone::Good, "Done. They can vote for you from now on. You can end it at any time."),
    ("ended", Tone::Good, "Ended. They vote for nobody by it any more."),
];

/// What can be chosen, within what is allowed.
const LENGTHS: [(u64, &str); 6] =
    [(4, "4 hours"), (24, "1 day"), (72, "3 days"), (168, "1 week"), (336, "2 weeks"), (720, "30 days")];

/// What is chosen before anybody chooses.
const LENGTH_FIRST: u64 = 24;

/// What a list of one's own past ones has room for.
const GIVEN_SHOWN: usize = 20;

/// What the forms send. Fields that a form may leave out are empty then.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Fields {
    to: String,
    hours: String,
    confirmed: String,
    password: String,
    confirm_challenge: String,
    assertion: String,
}

/// `GET /delegations`.
pub async fn show(app: web::Data<App>, visitor: Visitor, done: web::Query<Done>) -> Result<DelegationsPage> {
    page(&app, &visitor, (done.notice(DONE), &Fields::default())).await
}

/// `GET` where only forms go.
pub async fn back() -> HttpResponse {
    see_other(URL)
}

/// `POST /delegations`: first the second look, then the naming.
pub async fn submit(
    app: web::Data<App>,
    request: HttpRequest,
    sent: Form<Fields>,
) -> std::result::Result<HttpResponse, Failure> {
    let (visitor, form) = sent.parts();
    let failed = |error| Failure::of(&request, error);
    let confirmed = form.confirmed == "yes";
    let done = if confirmed { name(&app, &visitor, &form).await } else { look(&app, &visitor, &form, None).await };
    let error = match done {
        Ok(response) => return Ok(response),
        Err(error) => error,
    };
    let shown = match &error {
        Error::Forbidden(why) if confirmed => Some(format!("Not done: {why}.")),
        Error::Passkey(why) if confirmed => Some(format!("That passkey does not count: {why}.")),
        Error::TooMany => Some("Too many tries in a row. Wait a few minutes; then it works again.".to_owned()),
        _ => None,
    };
    if shown.is_some() {
        return look(&app, &visitor, &form, shown).await.map_err(failed);
    }
    let notice = refusal(error).map_err(failed)?;
    let page = page(&app, &visitor, (Some(notice), &form)).await.map_err(failed)?;
    Ok(html(StatusCode::CONFLICT, page.render()))
}

/// `POST /delegations/{delegation}/end`.
pub async fn end(
    app: web::Data<App>,
    request: HttpRequest,
    sent: Bare,
    delegation: web::Path<String>,
) -> std::result::Result<HttpResponse, Failure> {
    let (visitor, _) = sent.parts();
    let done = async {
        let id = DelegationId::try_from(delegation.as_str()).map_err(|_| Error::NotFound("delegation"))?;
        app.service.end_delegation(&visitor.account().id, &id).await
    };
    done.await.map_err(|error| Failure::of(&request, error))?;
    Ok(see_other(&format!("{URL}?done=ended")))
}

fn naming(form: &Fields) -> Result<Naming> {
    let hours: u64 = form.hours.parse().map_err(|_| Error::invalid("/length", "say for how long"))?;
    let to = form.to.trim().to_owned();
    if to.is_empty() {
        return Err(Error::invalid("/to", "say who votes for you"));
    }
    Ok(Naming { to, length: Duration::from_secs(hours.saturating_mul(3600)) })
}

async fn name(app: &App, visitor: &Visitor, form: &Fields) -> Result<HttpResponse> {
    let confirmation = if form.assertion.is_empty() {
        Confirmation::Password(form.password.clone())
    } else {
        Confirmation::Passkey { challenge: form.confirm_challenge.clone(), assertion: parsed(&form.assertion)? }
    };
    app.service.delegate_to(&visitor.0.signed_in, &naming(form)?, confirmation).await?;
    Ok(see_other(&format!("{URL}?done=named")))
}

/// The second look: what is handed on, to whom, until when.
async fn look(app: &App, visitor: &Visitor, form: &Fields, problem: Option<String>) -> Result<HttpResponse> {
    let (service, account, naming) = (&app.service, visitor.account(), naming(form)?);
    let offer = service.offer(account, &naming).await?;
    let own = service.passkeys_of(&account.id).await?;
    let session = visitor.0.signed_in.session.record.id.as_str();
    let confirm = match (own.is_empty(), account.password_hash()) {
        (true, Some(_)) => Confirm::Password,
        (true, None) => Confirm::FreshSession,
        (false, _) => Confirm::Passkey(Asking {
            rp_id: service.relying_party().map(|it| it.id().to_owned()).unwrap_or_default(),
            challenge: service.passkey_challenge(&Purpose::AllowDelegating { session, terms: &offer.terms })?,
            allow: ids(&own),
        }),
    };
    let now = service.now();
    let status = if problem.is_some() { StatusCode::CONFLICT } else { StatusCode::OK };
    let page = DelegatePage {
        shell: visitor.shell(service, None).await?,
        csrf: visitor.0.csrf.shown(),
        to: Line::new(offer.to.name.as_str()),
        hours: naming.length.as_secs() / 3600,
        until: moment(now.plus(naming.length), now),
        groups: lines(account.groups.iter().map(|it| it.as_str())),
        confirm,
        problem,
    };
    Ok(html(status, page.render()))
}

async fn page(app: &App, visitor: &Visitor, (notice, form): (Option<Notice>, &Fields)) -> Result<DelegationsPage> {
    let (service, account, now) = (&app.service, visitor.account(), app.service.now());
    let votes = account.role == PersonRole::Reviewer;
    let whose = if votes { Whose::Own } else { Whose::Everybodys };
    let found = service.delegations(&account.id, whose).await?;
    let rows = |of: &[Delegation]| of.iter().take(GIVEN_SHOWN).map(|it| row(visitor, it, now)).collect::<Vec<_>>();
    Ok(DelegationsPage {
        shell: visitor.shell(service, notice).await?,
        csrf: visitor.0.csrf.shown(),
        naming: (votes && !account.groups.is_empty()).then(|| naming_form(form)),
        given: rows(&found.given),
        received: rows(&found.received),
        all: (!votes).then(|| found.all.iter().map(|it| row(visitor, it, now)).collect()),
    })
}

fn naming_form(form: &Fields) -> NamingForm {
    let hours = form.hours.parse().unwrap_or(LENGTH_FIRST);
    let length = |(it, words): &(u64, &'static str)| Length {
        hours: *it,
        words,
        chosen: if *it == hours { Chosen::Yes } else { Chosen::No },
    };
    NamingForm { to: Line::new(form.to.as_str()), lengths: LENGTHS.iter().map(length).collect() }
}

fn row(visitor: &Visitor, delegation: &Delegation, now: Timestamp) -> DelegationRow {
    let standing = match &delegation.ended {
        Some(ended) => Standing::Ended { by: Line::new(ended.name.as_str()), at: moment(ended.at, now) },
        None if !delegation.lasts_at(now) => Standing::Over,
        None if delegation.may_be_ended_by(visitor.account()) => Standing::Now,
        None => Standing::NowForOthers,
    };
    DelegationRow {
        id: delegation.id.to_string(),
        from: Line::new(delegation.from_name.as_str()),
        to: Line::new(delegation.to_name.as_str()),
        since: moment(delegation.begins_at, now),
        until: moment(delegation.ends_at, now),
        standing,
    }
}
