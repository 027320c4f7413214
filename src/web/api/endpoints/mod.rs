//! Endpoints: where events are sent, and what was sent there.

pub mod deliveries;
pub mod template_body;
pub(crate) mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::idempotency_key::{Post, told};
use crate::domain::delivery::chat::Chat;
use crate::domain::delivery::delivery::Attempt;
use crate::domain::delivery::endpoint::EventPattern;
use crate::domain::delivery::endpoint_kind::KindName;
use crate::domain::identity::account::MachineRole;
use crate::domain::primitives::id::{EndpointId, FlowId};
use crate::domain::primitives::secret::Secret;
use crate::domain::primitives::time::Timestamp;
use crate::service::delivery::endpoint_kind::{NewKind, NewLook, NewTemplate};
use crate::service::delivery::endpoints::{EndpointEdit, EndpointTold, NewEndpoint, OVERLAP_MAX, Serving};
use crate::service::error::{Error, Result};
use crate::service::operations::halt_request::Puller;
use crate::web::auth::extractors::Machine;
use crate::web::state::App;
use template_body::TemplateBody;
use view::{Address, attempt_json, endpoint_json};

/// `POST /v1/endpoints`
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddEndpoint {
    /// What people call it.
    #[schema(min_length = 1, max_length = 64)]
    pub name: String,
    /// What is sent: `webhook`, which is meant where nothing is said: events. `langgraph`: how reviews ended, to the runs
    /// of a LangGraph server that stopped for them. `resume`: the same, by a template. `slack` and `teams`: that something
    /// waits for people, to a chat.
    #[schema(pattern = "^(webhook|langgraph|resume|slack|teams)$")]
    pub kind: Option<String>,
    /// Of `langgraph`: which graph or assistant runs there.
    pub assistant: Option<String>,
    /// Of `resume`: what is sent.
    pub template: Option<TemplateBody>,
    /// Where to: https, or plain http where the configuration allows it.
    pub url: String,
    /// Which events: names, families as `review.*`, or `*`, which is meant where nothing is said.
    #[schema(value_type = Option<Vec<String>>)]
    pub events: Option<BTreeSet<EventPattern>>,
    /// Of which flows; nothing: of all, with the events that belong to none. The kinds `langgraph` and `resume` name them.
    #[serde(default)]
    pub flows: BTreeSet<FlowId>,
    /// Whether a thread's events are sent one after another, each when the one before has ended.
    #[serde(default)]
    pub ordered: bool,
    /// The form of the body; there is one.
    #[schema(minimum = 1, maximum = 1)]
    pub payload: Option<u32>,
    /// Headers of its own, as for a receiver that asks for a token.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// After which place in the log it begins; nothing: with what happens next.
    pub after: Option<u64>,
}

/// `PATCH /v1/endpoints/{endpoint}`. What is not said stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeEndpoint {
    /// What people call it.
    pub name: Option<String>,
    /// Where to.
    pub url: Option<String>,
    /// Which events.
    #[schema(value_type = Option<Vec<String>>)]
    pub events: Option<BTreeSet<EventPattern>>,
    /// Of which flows.
    pub flows: Option<BTreeSet<FlowId>>,
    /// All headers of its own.
    pub headers: Option<BTreeMap<String, String>>,
    /// Whether it is served.
    pub enabled: Option<bool>,
    /// Where one that is enabled goes on: `where_it_stopped`, which is meant where nothing is said, or `now`.
    #[schema(pattern = "^(where_it_stopped|now)$")]
    pub from: Option<String>,
}

/// `POST /v1/endpoints/{endpoint}/secret`
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RotateSecret {
    /// For how long the old secret signs beside the new one; nothing: a day.
    #[schema(maximum = 604800)]
    pub overlap_secs: Option<u64>,
}

/// A call that is told nothing but its address.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// A deployment's working day, and its night.
const OVERLAP: Duration = Duration::from_secs(24 * 3600);

/// The kind that is asked for. What belongs to another one is refused.
fn kind(ask: &AddEndpoint) -> Result<NewKind> {
    let name = ask.kind.as_deref().map_or(Ok(KindName::default()), KindName::try_from);
    let name = name.map_err(|error| Error::invalid("/kind", error.to_string()))?;
    let webhook = name == KindName::Webhook;
    if ask.payload.is_some_and(|it| it != 1 || !webhook) {
        return Err(Error::invalid("/payload", "there is one form so far, of webhooks: 1"));
    }
    if ask.assistant.is_some() && name != KindName::LangGraph {
        return Err(Error::invalid("/assistant", "only endpoints of the kind `langgraph` have one"));
    }
    if ask.template.is_some() && name != KindName::Resume {
        return Err(Error::invalid("/template", "only endpoints of the kind `resume` have one"));
    }
    match name {
        KindName::Webhook => Ok(NewKind::Webhook),
        KindName::Slack => Ok(NewKind::Chat(Chat::Slack)),
        KindName::Teams => Ok(NewKind::Chat(Chat::Teams)),
        KindName::LangGraph => Ok(NewKind::LangGraph { assistant: ask.assistant.clone().unwrap_or_default() }),
        KindName::Resume => {
            let template = ask.template.clone();
            let template = template.ok_or_else(|| Error::invalid("/template", "say what is sent: `body`"))?;
            let look =
                template.look.map(|it| NewLook { url: Secret::new(it.url), pointer: it.pointer, waiting: it.waiting });
            Ok(NewKind::Resume(NewTemplate { body: template.body, look }))
        }
    }
}

/// Adds an endpoint. The secret is in this answer, and nowhere else.
#[utoipa::path(
    post, path = "/v1/endpoints", tag = "endpoints", request_body = AddEndpoint,
    responses((status = 201, description = "The endpoint, with `secret` if what is sent there is signed", body = super::responses::endpoints::Endpoint))
)]
pub async fn add(post: Post) -> Result<HttpResponse> {
    let ask: AddEndpoint = post.read()?;
    let kind = kind(&ask)?;
    let new = NewEndpoint {
        name: ask.name,
        kind,
        url: Secret::new(ask.url),
        events: ask.events.unwrap_or_else(|| BTreeSet::from([EventPattern::all()])),
        flows: ask.flows,
        ordered: ask.ordered,
        headers: hidden(ask.headers),
        after: ask.after,
    };
    let work = post.app.service.add_endpoint(Puller::Token(&post.token), &new);
    post.once(work, |_, (added, secret): &(EndpointTold, Option<Secret<String>>)| {
        let mut answer = endpoint_json(added, Address::Whole);
        if let Some(secret) = secret {
            answer["secret"] = json!(secret.expose());
        }
        Ok(told(StatusCode::CREATED, &answer))
    })
    .await
}

fn shown_to(machine: &Machine) -> Address {
    match machine.0.record.role {
        MachineRole::Admin => Address::Whole,
        _ => Address::Origin,
    }
}

/// Every endpoint. Who does not manage them sees of addresses the origin only.
#[utoipa::path(
    get, path = "/v1/endpoints", tag = "endpoints",
    responses((status = 200, description = "Each as it stands", body = super::responses::endpoints::EndpointList))
)]
pub async fn list(app: Data<App>, machine: Machine) -> Result<HttpResponse> {
    let address = shown_to(&machine);
    let all: Vec<Value> = app.service.endpoints().await?.iter().map(|it| endpoint_json(it, address)).collect();
    Ok(HttpResponse::Ok().json(json!({"endpoints": all})))
}

/// An endpoint as it stands.
#[utoipa::path(
    get, path = "/v1/endpoints/{endpoint}", tag = "endpoints",
    params(
        ("endpoint" = EndpointId, Path, description = "The endpoint's name"),
    ),
    responses((status = 200, description = "As it stands", body = super::responses::endpoints::Endpoint))
)]
pub async fn read(app: Data<App>, machine: Machine, endpoint: Path<String>) -> Result<HttpResponse> {
    let endpoint = app.service.endpoint(&id(&endpoint)?).await?;
    Ok(HttpResponse::Ok().json(endpoint_json(&endpoint, shown_to(&machine))))
}

/// Changes what is said, and nothing else.
#[utoipa::path(
    patch, path = "/v1/endpoints/{endpoint}", tag = "endpoints", request_body = ChangeEndpoint,
    params(
        ("endpoint" = EndpointId, Path, description = "The endpoint's name"),
    ),
    responses((status = 200, description = "As it stands now", body = super::responses::endpoints::Endpoint))
)]
pub async fn change(post: Post, endpoint: Path<String>) -> Result<HttpResponse> {
    let ask: ChangeEndpoint = post.read()?;
    let app = &post.app;
    let serving = serving(ask.enabled, ask.from.as_deref())?;
    let edit = EndpointEdit {
        name: ask.name,
        url: ask.url.map(Secret::new),
        events: ask.events,
        flows: ask.flows,
        headers: ask.headers.map(hidden),
        serving,
    };
    let changed = app.service.change_endpoint(Puller::Token(&post.token), &id(&endpoint)?, &edit).await?;
    Ok(HttpResponse::Ok().json(endpoint_json(&changed, Address::Whole)))
}

fn serving(enabled: Option<bool>, from: Option<&str>) -> Result<Option<Serving>> {
    match (enabled, from) {
        (None, None) => Ok(None),
        (Some(false), None) => Ok(Some(Serving::Off)),
        (Some(true), None | Some("where_it_stopped")) => Ok(Some(Serving::WhereItStopped)),
        (Some(true), Some("now")) => Ok(Some(Serving::Now)),
        _ => Err(Error::invalid("/from", "`where_it_stopped` or `now`, with `enabled: true`")),
    }
}

/// Removes an endpoint: nothing is sent there any more.
#[utoipa::path(
    delete, path = "/v1/endpoints/{endpoint}", tag = "endpoints",
    params(
        ("endpoint" = EndpointId, Path, description = "The endpoint's name"),
    ),
    responses((status = 204, description = "Removed"))
)]
pub async fn remove(app: Data<App>, machine: Machine, endpoint: Path<String>) -> Result<HttpResponse> {
    app.service.remove_endpoint(Puller::Token(&machine.0), &id(&endpoint)?).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// A new secret. It is in this answer, and nowhere else; the old one signs beside it for a while.
#[utoipa::path(
    post, path = "/v1/endpoints/{endpoint}/secret", tag = "endpoints", request_body = RotateSecret,
    params(
        ("endpoint" = EndpointId, Path, description = "The endpoint's name"),
    ),
    responses((status = 200, description = "The new secret", body = super::responses::endpoints::SecretShown))
)]
pub async fn secret(post: Post, endpoint: Path<String>) -> Result<HttpResponse> {
    let ask: RotateSecret = post.read()?;
    let overlap = ask.overlap_secs.map_or(OVERLAP, Duration::from_secs).min(OVERLAP_MAX + Duration::from_secs(1));
    let by = Puller::Token(&post.token);
    let id = id(&endpoint)?;
    let work = post.app.service.rotate_endpoint_secret(by, &id, overlap);
    post.once(work, |_, (secret, until): &(Secret<String>, Timestamp)| {
        Ok(told(StatusCode::OK, &json!({"secret": secret.expose(), "before_until": until})))
    })
    .await
}

/// Sends an endpoint something that is no event, and says how it went.
#[utoipa::path(
    post, path = "/v1/endpoints/{endpoint}/test", tag = "endpoints", request_body = Nothing,
    params(
        ("endpoint" = EndpointId, Path, description = "The endpoint's name"),
    ),
    responses((status = 200, description = "How the attempt ended", body = super::responses::endpoints::AttemptTold))
)]
pub async fn test(post: Post, endpoint: Path<String>) -> Result<HttpResponse> {
    let (id, Nothing {}) = (id(&endpoint)?, post.read()?);
    let tell = |_: &App, attempt: &Attempt| Ok(told(StatusCode::OK, &attempt_json(attempt)));
    post.once(post.app.service.test_endpoint(&id), tell).await
}

/// An endpoint that is named in the address.
pub(super) fn id(text: &str) -> Result<EndpointId> {
    EndpointId::try_from(text).map_err(|_| Error::NotFound("endpoint"))
}

fn hidden(headers: BTreeMap<String, String>) -> BTreeMap<String, Secret<String>> {
    headers.into_iter().map(|(name, value)| (name, Secret::new(value))).collect()
}
