//! `/endpoints/{endpoint}`: one endpoint, its deliveries, and the forms by which administrators change it.

use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use askama::Template as _;
use countersign_domain::delivery::delivery_record::DeliveryAttempt;
use countersign_domain::delivery::endpoint::{DisabledReason, Endpoint, EndpointState, FAILING_MAX};
use countersign_domain::delivery::endpoint_kind::{EndpointKind, PayloadVersion};
use countersign_domain::primitives::id::EndpointId;
use countersign_domain::primitives::secret::Secret;
use countersign_domain::primitives::time::Timestamp;
use countersign_service::delivery::Deliveries;
use countersign_service::delivery::deliveries::{DeliveryCursor, DeliveryFilter, RedeliveryRange};
use countersign_service::delivery::endpoints::{DeliveryActivation, EndpointDetails, EndpointEdit};
use countersign_service::error::{Error, Result};
use countersign_service::identity::actor::Actor;
use serde::Deserialize;

use super::delivery_rows::{attempt_row, delivery_row};
use super::endpoints::{EndpointFields, kinds, may_change, row, secret_page, template_lines};
use super::endpoints_view::{EndpointFacts, EndpointFormInput, EndpointPage, EndpointTab};
use crate::pages::log::browse::moment_of;
use crate::pages::shared::flash::FlashQuery;
use crate::pages::shared::form::{EmptyForm, SignedInForm};
use crate::pages::shared::format::{html, lines, moment, see_other};
use crate::pages::shared::layout::{FlashNotice, Tone};
use crate::pages::shared::responder::or_page_again;
use crate::pages::shared::safe_text::SafeLine;
use crate::pages::shared::visitor::Visitor;
use crate::state::Capability;

const ROWS_MAX: u32 = 25;

/// Notices after a submitted form, by the value of `?done=`.
const DONE: &[(&str, Tone, &str)] = &[
    ("added", Tone::Good, "Endpoint added. Requests to this kind of endpoint are not signed, so it has no secret."),
    ("changed", Tone::Good, "Endpoint changed. The change applies now and is in the audit log."),
    ("off", Tone::Care, "Endpoint disabled. The gateway sends nothing to it until you enable it."),
    ("on", Tone::Good, "Endpoint enabled. The gateway sends events to it again."),
    ("again", Tone::Good, "Deliveries queued. Reload this page in a moment to see the new attempts."),
    ("none", Tone::Plain, "There are no deliveries to send again."),
];

/// The selected list of deliveries, and the cursor of its page.
#[derive(Deserialize, Default, Clone)]
#[serde(default)]
pub struct EndpointPageQuery {
    list: String,
    after: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct ActivationFields {
    serving: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct SecretFields {
    overlap: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct RedeliveryFields {
    what: String,
    since: String,
    after: String,
}

/// Parts of the page that do not come from the stored endpoint.
#[derive(Default)]
struct PageExtras {
    notice: Option<FlashNotice>,
    asked: EndpointPageQuery,
    typed: Option<EndpointFormInput>,
    test: Option<DeliveryAttempt>,
}

/// `GET /endpoints/{endpoint}`.
pub async fn show(
    delivery: Capability<Deliveries>,
    visitor: Visitor,
    endpoint: web::Path<String>,
    done: web::Query<FlashQuery>,
    asked: web::Query<EndpointPageQuery>,
) -> Result<EndpointPage> {
    let beside = PageExtras { notice: done.notice(DONE), asked: asked.into_inner(), ..PageExtras::default() };
    page(&delivery, &visitor, &id(&endpoint)?, beside).await
}

/// `POST /endpoints/{endpoint}/settings`.
pub async fn change(
    delivery: Capability<Deliveries>,
    sent: SignedInForm<EndpointFields>,
    endpoint: web::Path<String>,
) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let changed = async |id: &EndpointId| {
        let edit = EndpointEdit {
            name: Some(form.name.trim().to_owned()),
            url: Some(Secret::new(form.url.trim().to_owned())),
            events: Some(form.events()?),
            flows: Some(form.flows()?),
            // The form never shows stored headers, so an empty field removes them only if the box is ticked.
            headers: (form.replace_headers == "yes").then(|| form.headers()).transpose()?,
            // The state has its own form, so this one keeps it as it is.
            serving: None,
        };
        // The page shows a sanitized name, so an unchanged field must not overwrite the stored value.
        let before = typed(&delivery.endpoint(id).await?);
        let edit = EndpointEdit {
            name: edit.name.filter(|it| *it != before.name),
            url: edit.url.filter(|it| *it.expose() != before.url),
            ..edit
        };
        delivery.change_endpoint(Actor::Person(&visitor.0.signed_in.account), id, &edit).await?;
        Ok(see_other(&format!("/endpoints/{id}?done=changed")))
    };
    answered(&delivery, &visitor, &endpoint, Some(EndpointFields::clone(&form).typed()), changed).await
}

/// `POST /endpoints/{endpoint}/serving`.
pub async fn serve(
    delivery: Capability<Deliveries>,
    sent: SignedInForm<ActivationFields>,
    endpoint: web::Path<String>,
) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let served = async |id: &EndpointId| {
        let (serving, done) = match form.serving.as_str() {
            "off" => (DeliveryActivation::Off, "off"),
            "where_it_stopped" => (DeliveryActivation::WhereItStopped, "on"),
            "now" => (DeliveryActivation::Now, "on"),
            _ => return Err(Error::invalid("/serving", "choose off, where_it_stopped or now")),
        };
        let edit = EndpointEdit { serving: Some(serving), ..EndpointEdit::default() };
        delivery.change_endpoint(Actor::Person(&visitor.0.signed_in.account), id, &edit).await?;
        Ok(see_other(&format!("/endpoints/{id}?done={done}")))
    };
    answered(&delivery, &visitor, &endpoint, None, served).await
}

/// `POST /endpoints/{endpoint}/secret`: rotates the secret and shows the new one once.
pub async fn rotate(
    delivery: Capability<Deliveries>,
    sent: SignedInForm<SecretFields>,
    endpoint: web::Path<String>,
) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let rotated = async |id: &EndpointId| {
        let secs = form.overlap.parse().map_err(|_| Error::invalid("/overlap", "choose a time from the list"))?;
        let (by, overlap) = (Actor::Person(&visitor.0.signed_in.account), Duration::from_secs(secs));
        let (secret, until) = delivery.rotate_endpoint_secret(by, id, overlap).await?;
        let told = delivery.endpoint(id).await?;
        // Without an overlap the previous secret ends at once, so the page names no time.
        let until = (!overlap.is_zero()).then_some(until);
        let page = secret_page(&visitor, &told.endpoint.name, secret, until).await?;
        // The secret is shown only in this response, so a redirect would lose it.
        Ok(html(StatusCode::OK, page.render()))
    };
    answered(&delivery, &visitor, &endpoint, None, rotated).await
}

/// `POST /endpoints/{endpoint}/test`: sends a test event and shows its result.
pub async fn test(
    delivery: Capability<Deliveries>,
    sent: EmptyForm,
    endpoint: web::Path<String>,
) -> Result<HttpResponse> {
    let (visitor, _) = sent.parts();
    let tested = async |id: &EndpointId| {
        let test = Some(delivery.test_endpoint(id).await?);
        let page = page(&delivery, &visitor, id, PageExtras { test, ..PageExtras::default() }).await?;
        Ok(html(StatusCode::OK, page.render()))
    };
    answered(&delivery, &visitor, &endpoint, None, tested).await
}

/// `POST /endpoints/{endpoint}/redeliveries`.
pub async fn redeliver(
    delivery: Capability<Deliveries>,
    sent: SignedInForm<RedeliveryFields>,
    endpoint: web::Path<String>,
) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let sent = async |id: &EndpointId| {
        let again = match form.what.as_str() {
            // An empty field means all failed deliveries, so the range starts before the first event.
            "failed" if form.since.is_empty() => RedeliveryRange::FailedSince(Timestamp::from_millis(0)),
            "failed" => {
                let since = moment_of(&form.since);
                let why = "“Failed since” needs a date and time, such as 2026-11-03T14:32";
                RedeliveryRange::FailedSince(since.ok_or_else(|| Error::invalid("/since", why))?)
            }
            "log" => {
                let after = form.after.trim().parse();
                RedeliveryRange::LogAfter(
                    after.map_err(|_| Error::invalid("/after", "enter a log position: a whole number"))?,
                )
            }
            _ => return Err(Error::invalid("/what", "choose failed or log")),
        };
        let by = Actor::Person(&visitor.0.signed_in.account);
        // An empty range is no error, but the reader must not wait for new attempts.
        let done = if delivery.redeliver_many(by, id, again).await? == 0 { "none" } else { "again" };
        Ok(see_other(&format!("/endpoints/{id}?done={done}")))
    };
    answered(&delivery, &visitor, &endpoint, None, sent).await
}

/// `POST /endpoints/{endpoint}/removal`.
pub async fn remove(
    delivery: Capability<Deliveries>,
    sent: EmptyForm,
    endpoint: web::Path<String>,
) -> Result<HttpResponse> {
    let (visitor, _) = sent.parts();
    let removed = async |id: &EndpointId| {
        delivery.remove_endpoint(Actor::Person(&visitor.0.signed_in.account), id).await?;
        Ok(see_other("/endpoints?done=removed"))
    };
    answered(&delivery, &visitor, &endpoint, None, removed).await
}

async fn answered(
    delivery: &Deliveries,
    visitor: &Visitor,
    endpoint: &str,
    typed: Option<EndpointFormInput>,
    run: impl AsyncFnOnce(&EndpointId) -> Result<HttpResponse>,
) -> Result<HttpResponse> {
    let id = id(endpoint)?;
    let page = async |notice| {
        let beside = PageExtras { notice: Some(notice), typed, ..PageExtras::default() };
        page(delivery, visitor, &id, beside).await
    };
    or_page_again(run(&id).await, page).await
}

pub(in crate::pages) fn id(text: &str) -> Result<EndpointId> {
    EndpointId::try_from(text).map_err(|_| Error::NotFound("endpoint"))
}

async fn page(delivery: &Deliveries, visitor: &Visitor, id: &EndpointId, beside: PageExtras) -> Result<EndpointPage> {
    let now = visitor.now();
    let told = delivery.endpoint(id).await?;
    let which = LISTS.iter().find(|it| it.0 == beside.asked.list).map_or(DeliveryFilter::All, |it| it.1);
    let after = cursor_of(&beside.asked.after);
    let (deliveries, next) = delivery.deliveries(id, which, after, ROWS_MAX).await?;
    let next = next.map(|it| format!("/endpoints/{id}?list={}&after={}.{}", value_of(which), it.moment, it.index));
    Ok(EndpointPage {
        shell: visitor.shell(beside.notice).await?,
        csrf: visitor.0.csrf.shown(),
        row: row(&told, now),
        standing: state_sentences(&told, now),
        served: told.endpoint.is_served(),
        facts: facts(&told, now),
        may_change: may_change(visitor),
        typed: beside.typed.unwrap_or_else(|| typed(&told)),
        kinds: kinds(),
        tabs: LISTS.iter().map(|it| tab(id, it, which)).collect(),
        deliveries: deliveries.iter().map(|it| delivery_row(it, now)).collect(),
        next_url: next,
        test: beside.test.as_ref().map(|it| attempt_row(it, now)),
    })
}

/// Lists of deliveries: the value of `?list=`, the filter and the label.
const LISTS: [(&str, DeliveryFilter, &str); 3] = [
    ("", DeliveryFilter::All, "All"),
    ("waiting", DeliveryFilter::Waiting, "Retrying"),
    ("failed", DeliveryFilter::Failed, "Failed"),
];

fn value_of(which: DeliveryFilter) -> &'static str {
    LISTS.iter().find(|it| it.1 == which).map_or("", |it| it.0)
}

fn tab(
    id: &EndpointId,
    (value, which, label): &(&str, DeliveryFilter, &'static str),
    here: DeliveryFilter,
) -> EndpointTab {
    let url = if value.is_empty() { format!("/endpoints/{id}") } else { format!("/endpoints/{id}?list={value}") };
    EndpointTab { url, label, here: *which == here }
}

/// Parses the cursor of the next page. An invalid cursor gives the first page.
fn cursor_of(text: &str) -> Option<DeliveryCursor> {
    let (moment, index) = text.split_once('.')?;
    Some(DeliveryCursor { moment: moment.parse().ok()?, index: index.parse().ok()? })
}

fn typed(told: &EndpointDetails) -> EndpointFormInput {
    let Endpoint { name, events, flows, ordered, .. } = &told.endpoint;
    let events: Vec<&str> = events.iter().map(|it| it.as_str()).collect();
    let flows: Vec<&str> = flows.iter().map(|it| it.as_str()).collect();
    EndpointFormInput {
        // A form field cannot mark dangerous characters, so it contains the sanitized name.
        name: SafeLine::new(name.as_str()).plain(),
        url: told.url.expose().clone(),
        events: events.join(", "),
        flows: flows.join(", "),
        ordered: *ordered,
        ..EndpointFormInput::default()
    }
}

fn facts(told: &EndpointDetails, now: Timestamp) -> EndpointFacts {
    let Endpoint { flows, ordered, kind, headers, secrets, created_at, .. } = &told.endpoint;
    // A previous secret stops signing when its time is over, so it is not shown after that.
    let before = secrets.before.as_ref().map(|it| it.until).filter(|it| *it > now);
    EndpointFacts {
        flows: lines(flows.iter().map(|it| it.as_str())),
        ordered: *ordered,
        payload: match kind {
            EndpointKind::Webhook { payload: PayloadVersion::V1 } => {
                SafeLine::new("version 1: type, timestamp and data")
            }
            EndpointKind::Chat { .. } => SafeLine::new("a message about each pending review, with a link to its page"),
            EndpointKind::LangGraph { assistant } => {
                SafeLine::new(format!("a run of {assistant} that resumes the interrupted graph with the decision"))
            }
            EndpointKind::Resume { .. } => SafeLine::new("JSON from the template of the endpoint"),
            EndpointKind::Instance { .. } => {
                SafeLine::new("a message that a request of the instance is decided, without the decision")
            }
        },
        signed: kind.is_signed(),
        resumes: kind.resumes(),
        template: match kind {
            EndpointKind::Resume { template } => template_lines(template),
            // The kinds are listed, so that a new kind with a template cannot be missed.
            EndpointKind::Webhook { .. }
            | EndpointKind::LangGraph { .. }
            | EndpointKind::Chat { .. }
            | EndpointKind::Instance { .. } => Vec::new(),
        },
        // Only the names are shown, because header values contain secrets.
        headers: lines(headers.keys().map(String::as_str)),
        public_keys: told.public_keys.clone(),
        secret_made: moment(secrets.now.made_at, now),
        secret_before: before.map(|it| moment(it, now)),
        reached: told.lane.reached,
        created: moment(*created_at, now),
    }
}

/// Describes the state of the endpoint in sentences.
fn state_sentences(told: &EndpointDetails, now: Timestamp) -> Vec<String> {
    let mut said = Vec::new();
    match told.endpoint.state {
        EndpointState::Enabled {} => match told.lane.failing_since {
            Some(since) => said.push(format!(
                "All deliveries have failed since {}. The gateway retries them automatically. If none succeeds \
                 until {}, \
                 the gateway disables the endpoint.",
                moment(since, now).words,
                moment(since.plus(FAILING_MAX), now).words
            )),
            None if told.lane.arrived_at.is_some() => said.push("Deliveries succeed.".to_owned()),
            None => said.push("No deliveries yet. They start with the next matching event.".to_owned()),
        },
        EndpointState::Disabled { at, why } => {
            said.push(match why {
                DisabledReason::Gone => "The gateway disabled the endpoint because it answered 410 (gone).".to_owned(),
                DisabledReason::Failing => {
                    "The gateway disabled the endpoint: no delivery succeeded for five days.".to_owned()
                }
                DisabledReason::ByHand => "An administrator disabled the endpoint.".to_owned(),
            });
            let or_else = match why {
                DisabledReason::Gone | DisabledReason::Failing => {
                    ". A successful test event or repeated delivery also enables it"
                }
                DisabledReason::ByHand => "",
            };
            let since = moment(at, now).words;
            said.push(format!("Nothing has been sent since {since}. Enable the endpoint below{or_else}."));
        }
        EndpointState::Removed { .. } => (),
    }
    said.push(match told.beyond {
        0 => "The endpoint is up to date with the audit log.".to_owned(),
        1 => "1 event of the audit log is not processed yet.".to_owned(),
        more => format!("{more} events of the audit log are not processed yet."),
    });
    said
}
