//! `/endpoints`: lists and adds endpoints, and parses their forms.

use std::collections::{BTreeMap, BTreeSet};

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use askama::Template as _;
use countersign_domain::delivery::chat::Chat;
use countersign_domain::delivery::endpoint::{EndpointState, EventPattern};
use countersign_domain::delivery::endpoint_kind::KindName;
use countersign_domain::delivery::template::Template;
use countersign_domain::identity::account::PersonRole;
use countersign_domain::json::parse::{ParseLimits, parse};
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::FlowId;
use countersign_domain::primitives::secret::Secret;
use countersign_domain::primitives::time::Timestamp;
use countersign_service::delivery::Deliveries;
use countersign_service::delivery::endpoint_kind::{NewKind, NewPreflight, NewTemplate, created_with_instance};
use countersign_service::delivery::endpoints::{EndpointDetails, NewEndpoint};
use countersign_service::error::{Error, Result};
use countersign_service::identity::actor::Actor;
use serde::Deserialize;

use super::endpoints_view::{EndpointFormInput, EndpointRow, EndpointsPage, HealthBadge};
use crate::pages::identity::people_view::SecretPage;
use crate::pages::shared::flash::FlashQuery;
use crate::pages::shared::form::SignedInForm;
use crate::pages::shared::format::{html, lines, moment, see_other};
use crate::pages::shared::layout::{FlashNotice, Tone};
use crate::pages::shared::responder::or_page_again;
use crate::pages::shared::safe_text::SafeLine;
use crate::pages::shared::visitor::Visitor;
use crate::state::Capability;

/// Notices after a submitted form, by the value of `?done=`.
const DONE: &[(&str, Tone, &str)] =
    &[("removed", Tone::Good, "Endpoint removed. The gateway sends nothing more to it.")];

/// Maximum number of events or flows in one form.
const NAMES_MAX: usize = 200;

/// Maximum number of header lines that are parsed. The service allows fewer, and reports the error.
const HEADER_LINES_MAX: usize = 64;

#[derive(Clone, Deserialize, Default)]
#[serde(default)]
pub struct EndpointFields {
    pub(in crate::pages) name: String,
    pub(in crate::pages) url: String,
    pub(in crate::pages) events: String,
    pub(in crate::pages) flows: String,
    pub(in crate::pages) headers: String,
    pub(in crate::pages) replace_headers: String,
    kind: String,
    assistant: String,
    body: String,
    look_url: String,
    look_pointer: String,
    look_waiting: String,
    ordered: String,
    begin: String,
}

impl EndpointFields {
    pub(in crate::pages) fn events(&self) -> Result<BTreeSet<EventPattern>> {
        let named = names(&self.events).map(|it| EventPattern::try_from(it.to_owned()));
        let events: std::result::Result<BTreeSet<_>, _> = named.collect();
        events.map_err(|error| Error::invalid("/events", error.to_string()))
    }

    pub(in crate::pages) fn flows(&self) -> Result<BTreeSet<FlowId>> {
        let flows: std::result::Result<BTreeSet<_>, _> = names(&self.flows).map(FlowId::try_from).collect();
        flows.map_err(|error| Error::invalid("/flows", error.to_string()))
    }

    pub(in crate::pages) fn headers(&self) -> Result<BTreeMap<String, Secret<String>>> {
        // Blank lines separate nothing, so they are skipped before the lines are counted.
        let lines = self.headers.lines().map(str::trim).filter(|it| !it.is_empty()).take(HEADER_LINES_MAX);
        let pairs = lines.map(|it| it.split_once(':'));
        let pairs =
            pairs.map(|it| it.map(|(name, value)| (name.trim().to_owned(), Secret::new(value.trim().to_owned()))));
        let headers: Option<BTreeMap<_, _>> = pairs.collect();
        headers.ok_or_else(|| {
            Error::invalid("/headers", "write each header on its own line as a name, a colon and a value")
        })
    }

    fn kind(&self) -> Result<NewKind> {
        let name = if self.kind.is_empty() { Ok(KindName::default()) } else { KindName::try_from(self.kind.as_str()) };
        Ok(match name.map_err(|error| Error::invalid("/kind", error.to_string()))? {
            KindName::Webhook => NewKind::Webhook,
            KindName::LangGraph => NewKind::LangGraph { assistant: self.assistant.trim().to_owned() },
            KindName::Resume => NewKind::Resume(NewTemplate { body: json("/body", &self.body)?, look: self.look()? }),
            KindName::Slack => NewKind::Chat(Chat::Slack),
            KindName::Teams => NewKind::Chat(Chat::Teams),
            KindName::Instance => return Err(created_with_instance()),
        })
    }

    fn look(&self) -> Result<Option<NewPreflight>> {
        // The preflight is optional, and a form without one sends its fields empty.
        if self.look_url.trim().is_empty() {
            return Ok(None);
        }
        Ok(Some(NewPreflight {
            url: Secret::new(self.look_url.trim().to_owned()),
            pointer: self.look_pointer.trim().to_owned(),
            waiting: json("/look_waiting", &self.look_waiting)?,
        }))
    }

    /// Returns the input for a rejected form. Headers are left out because they contain secrets.
    pub(in crate::pages) fn typed(self) -> EndpointFormInput {
        let (ordered, from_the_beginning) = (self.ordered == "yes", self.begin == "log");
        EndpointFormInput {
            name: self.name,
            kind: self.kind,
            assistant: self.assistant,
            body: self.body,
            look_url: self.look_url,
            look_pointer: self.look_pointer,
            look_waiting: self.look_waiting,
            url: self.url,
            events: self.events,
            flows: self.flows,
            ordered,
            from_the_beginning,
        }
    }
}

fn json(pointer: &str, text: &str) -> Result<serde_json::Value> {
    let value = parse(text.trim().as_bytes(), &ParseLimits::default());
    value.map_err(|error| Error::invalid(pointer, format!("this is not a JSON value: {error}")))
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ' ']).map(str::trim).filter(|it| !it.is_empty()).take(NAMES_MAX)
}

/// `GET /endpoints`.
pub async fn show(
    delivery: Capability<Deliveries>,
    visitor: Visitor,
    done: web::Query<FlashQuery>,
) -> Result<EndpointsPage> {
    let (kind, events) = (KindName::default().as_str().to_owned(), EventPattern::all().as_str().to_owned());
    let typed = EndpointFormInput { kind, events, ..EndpointFormInput::default() };
    page(&delivery, &visitor, done.notice(DONE), typed).await
}

/// `POST /endpoints`: adds an endpoint and shows its secret once.
pub async fn add(delivery: Capability<Deliveries>, sent: SignedInForm<EndpointFields>) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let added = added(&delivery, &visitor, &form).await;
    or_page_again(added, async |notice| page(&delivery, &visitor, Some(notice), form.typed()).await).await
}

async fn added(delivery: &Deliveries, visitor: &Visitor, form: &EndpointFields) -> Result<HttpResponse> {
    let new = NewEndpoint {
        name: form.name.trim().to_owned(),
        kind: form.kind()?,
        url: Secret::new(form.url.trim().to_owned()),
        events: form.events()?,
        flows: form.flows()?,
        ordered: form.ordered == "yes",
        headers: form.headers()?,
        // Position zero is before the first event, so the endpoint gets the whole log.
        after: (form.begin == "log").then_some(0),
    };
    let by = Actor::Person(&visitor.0.signed_in.account);
    let (told, secret) = delivery.add_endpoint(by, &new).await?;
    Ok(match secret {
        // The secret is shown only in this response, so a redirect would lose it.
        Some(secret) => html(StatusCode::OK, secret_page(visitor, &told.endpoint.name, secret, None).await?.render()),
        // The redirect keeps a reload from adding a second endpoint.
        None => see_other(&format!("/endpoints/{}?done=added", told.endpoint.id)),
    })
}

pub(in crate::pages) async fn secret_page(
    visitor: &Visitor,
    name: &str,
    secret: Secret<String>,
    before_until: Option<Timestamp>,
) -> Result<SecretPage> {
    let lead = match before_until {
        None => {
            "Store it only where the receiver verifies signatures. It is shown only now. You can rotate the secret at \
             any time."
        }
        Some(_) => {
            "Store it only where the receiver verifies signatures. It is shown only now. The previous secret also \
             signs until the time below."
        }
    };
    let now = visitor.now();
    Ok(SecretPage {
        shell: visitor.shell(None).await?,
        // The name is typed by people, so it is sanitised before it becomes a title.
        title: format!("Secret of {}", SafeLine::new(name).plain()),
        lead,
        label: "Secret",
        // This page is the only one that shows the secret, so its wrapper ends here.
        secret: secret.expose().clone(),
        until: before_until.map(|it| moment(it, now)),
        note: None,
        findings: Vec::new(),
        back: "/endpoints",
        back_words: "Back to Webhooks",
    })
}

async fn page(
    delivery: &Deliveries,
    visitor: &Visitor,
    notice: Option<FlashNotice>,
    typed: EndpointFormInput,
) -> Result<EndpointsPage> {
    let now = visitor.now();
    let endpoints = delivery.endpoints().await?;
    Ok(EndpointsPage {
        shell: visitor.shell(notice).await?,
        csrf: visitor.0.csrf.shown(),
        endpoints: endpoints.iter().map(|it| row(it, now)).collect(),
        may_change: may_change(visitor),
        typed,
        kinds: kinds(),
    })
}

pub(in crate::pages) fn kinds() -> Vec<&'static str> {
    EventType::ALL.iter().map(|it| it.name()).collect()
}

pub(in crate::pages) fn may_change(visitor: &Visitor) -> bool {
    visitor.account().role == PersonRole::Admin
}

/// Converts an endpoint into a row of the list.
pub(in crate::pages) fn row(told: &EndpointDetails, now: Timestamp) -> EndpointRow {
    let EndpointDetails { endpoint, lane, beyond, .. } = told;
    let events: Vec<&str> = endpoint.events.iter().map(|it| it.as_str()).collect();
    let (tone, word) = match endpoint.state {
        // A failing endpoint stays enabled while its deliveries are retried, so it gets its own word.
        EndpointState::Enabled {} if lane.failing_since.is_some() => (Tone::Care, "Failing"),
        EndpointState::Enabled {} => (Tone::Good, "Enabled"),
        EndpointState::Disabled { .. } => (Tone::Bad, "Disabled"),
        EndpointState::Removed { .. } => (Tone::Plain, "Removed"),
    };
    EndpointRow {
        url: format!("/endpoints/{}", endpoint.id),
        name: SafeLine::new(endpoint.name.as_str()),
        kind: kind_words(endpoint.kind.name()),
        origin: SafeLine::new(endpoint.origin.as_str()),
        events: SafeLine::new(match events.as_slice() {
            // One pattern for all events is easier to read as a word.
            ["*"] => "all".to_owned(),
            some => some.join(", "),
        }),
        health: HealthBadge { tone, word },
        ahead: *beyond,
        arrived: lane.arrived_at.map(|it| moment(it, now)),
        failed: lane.failed_at.map(|it| moment(it, now)),
    }
}

const fn kind_words(kind: KindName) -> &'static str {
    match kind {
        KindName::Webhook => "Webhook",
        KindName::LangGraph => "LangGraph server",
        KindName::Resume => "Resume by template",
        KindName::Slack => "Slack",
        KindName::Teams => "Microsoft Teams",
        KindName::Instance => "Agent instance",
    }
}

/// Formats a template for the page. Addresses are left out because they may contain secrets.
pub(in crate::pages) fn template_lines(template: &Template) -> Vec<SafeLine> {
    let body = serde_json::to_string_pretty(&template.body).unwrap_or_default();
    let look = template.look.as_ref();
    let look =
        look.map(|it| format!("sent only while {} in the preflight answer is {}", it.pointer.as_str(), it.waiting));
    lines(body.lines().chain(look.as_deref()))
}
