//! Endpoints, which receive events, and their deliveries.

pub mod deliveries;
pub mod template_body;
pub(crate) mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Path, ServiceConfig, delete, get, patch, post};
use countersign_domain::delivery::chat::Chat;
use countersign_domain::delivery::delivery_record::DeliveryAttempt;
use countersign_domain::delivery::endpoint::EventPattern;
use countersign_domain::delivery::endpoint_kind::KindName;
use countersign_domain::identity::account::MachineRole;
use countersign_domain::primitives::id::{EndpointId, FlowId};
use countersign_domain::primitives::secret::Secret;
use countersign_domain::primitives::time::Timestamp;
use countersign_service::delivery::Deliveries;
use countersign_service::delivery::endpoint_kind::{NewKind, NewPreflight, NewTemplate, created_with_instance};
use countersign_service::delivery::endpoints::{
    DeliveryActivation, EndpointDetails, EndpointEdit, NewEndpoint, OVERLAP_MAX,
};
use countersign_service::error::{Error, Result};
use countersign_service::identity::actor::Actor;
use countersign_service::platform::core::Core;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::idempotency_key::{IdempotentPost, told};
use super::problem::responder::ProblemResponder;
use crate::auth::extractors::Machine;
use crate::state::Capability;
use template_body::TemplateBody;
use view::{AddressDisclosure, attempt_json, endpoint_json};

/// The body of `POST /v1/endpoints`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateEndpointRequest {
    /// The name of the endpoint, for people.
    #[schema(min_length = 1, max_length = 64)]
    pub name: String,
    /// The kind of endpoint. `webhook` (the default) receives events. `langgraph` resumes runs of a LangGraph server
    /// when their reviews end. `resume` does the same with a template. `slack` and `teams` notify a chat of pending
    /// reviews.
    #[schema(pattern = "^(webhook|langgraph|resume|slack|teams)$")]
    pub kind: Option<String>,
    /// For `langgraph`: the graph or assistant on that server.
    pub assistant: Option<String>,
    /// For `resume`: the template of the request.
    pub template: Option<TemplateBody>,
    /// The target address: https, or http where the configuration allows it.
    pub url: String,
    /// The events: names, families such as `review.*`, or `*`, which is the default.
    #[schema(value_type = Option<Vec<String>>)]
    pub events: Option<BTreeSet<EventPattern>>,
    /// The flows. Without it, all flows and the events that belong to none. The kinds `langgraph` and `resume` require
    /// it.
    #[serde(default)]
    pub flows: BTreeSet<FlowId>,
    /// Whether the events of one thread are sent strictly in order, each after the previous one has ended.
    #[serde(default)]
    pub ordered: bool,
    /// The version of the payload format. There is one.
    #[schema(minimum = 1, maximum = 1)]
    pub payload: Option<u32>,
    /// Additional request headers, for example for a receiver that needs a token.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The log position to start after. Without it, the endpoint gets new events only.
    pub after: Option<u64>,
}

/// The body of `PATCH /v1/endpoints/{endpoint}`. Members that are left out stay the same.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateEndpointRequest {
    /// The name of the endpoint, for people.
    pub name: Option<String>,
    /// The target address.
    pub url: Option<String>,
    /// The events that the endpoint receives.
    #[schema(value_type = Option<Vec<String>>)]
    pub events: Option<BTreeSet<EventPattern>>,
    /// The flows whose events the endpoint receives.
    pub flows: Option<BTreeSet<FlowId>>,
    /// All additional headers. They replace the previous ones.
    pub headers: Option<BTreeMap<String, String>>,
    /// Whether the endpoint is enabled.
    pub enabled: Option<bool>,
    /// The position of an endpoint that is enabled: `where_it_stopped` (the default) or `now`.
    #[schema(pattern = "^(where_it_stopped|now)$")]
    pub from: Option<String>,
}

/// The body of `POST /v1/endpoints/{endpoint}/secret`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RotateSecretRequest {
    /// The time for which the old secret also signs, in seconds. One day by default.
    #[schema(maximum = 604800)]
    pub overlap_secs: Option<u64>,
}

/// An empty body.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EmptyRequest {}

/// One day: the old secret stays valid until every receiver is redeployed.
const OVERLAP: Duration = Duration::from_secs(24 * 3600);

/// Returns the kind of a new endpoint. Members of another kind are refused.
fn kind(ask: &CreateEndpointRequest) -> Result<NewKind> {
    let name = ask.kind.as_deref().map_or(Ok(KindName::default()), KindName::try_from);
    let name = name.map_err(|error| Error::invalid("/kind", error.to_string()))?;
    // Only webhooks have a versioned payload. The other formats are defined by their receivers.
    let webhook = name == KindName::Webhook;
    if ask.payload.is_some_and(|it| it != 1 || !webhook) {
        return Err(Error::invalid("/payload", "the only version of the payload format is 1, for webhooks"));
    }
    if ask.assistant.is_some() && name != KindName::LangGraph {
        return Err(Error::invalid(
            "/assistant",
            "only endpoints of the kind `langgraph` have an assistant: remove it",
        ));
    }
    if ask.template.is_some() && name != KindName::Resume {
        return Err(Error::invalid("/template", "only endpoints of the kind `resume` have a template: remove it"));
    }
    match name {
        KindName::Webhook => Ok(NewKind::Webhook),
        KindName::Slack => Ok(NewKind::Chat(Chat::Slack)),
        KindName::Teams => Ok(NewKind::Chat(Chat::Teams)),
        KindName::Instance => Err(created_with_instance()),
        KindName::LangGraph => Ok(NewKind::LangGraph { assistant: ask.assistant.clone().unwrap_or_default() }),
        KindName::Resume => {
            let template = ask.template.clone();
            let template = template
                .ok_or_else(|| Error::invalid("/template", "the kind `resume` needs a template: set `body`"))?;
            let look = template.look.map(|it| NewPreflight {
                url: Secret::new(it.url),
                pointer: it.pointer,
                waiting: it.waiting,
            });
            Ok(NewKind::Resume(NewTemplate { body: template.body, look }))
        }
    }
}

/// Registers the routes of endpoints and deliveries.
pub fn routes(config: &mut ServiceConfig) {
    config
        .route("/v1/endpoints", post().to(ProblemResponder(add)))
        .route("/v1/endpoints", get().to(ProblemResponder(list)))
        .route("/v1/endpoints/{endpoint}", get().to(ProblemResponder(read)))
        .route("/v1/endpoints/{endpoint}", patch().to(ProblemResponder(change)))
        .route("/v1/endpoints/{endpoint}", delete().to(ProblemResponder(remove)))
        .route("/v1/endpoints/{endpoint}/secret", post().to(ProblemResponder(secret)))
        .route("/v1/endpoints/{endpoint}/test", post().to(ProblemResponder(test)))
        .route("/v1/endpoints/{endpoint}/redeliveries", post().to(ProblemResponder(deliveries::redeliver_many)))
        .route("/v1/endpoints/{endpoint}/deliveries", get().to(ProblemResponder(deliveries::deliveries)))
        .route("/v1/endpoints/{endpoint}/deliveries/{delivery}", get().to(ProblemResponder(deliveries::delivery)))
        .route(
            "/v1/endpoints/{endpoint}/deliveries/{delivery}/redelivery",
            post().to(ProblemResponder(deliveries::redeliver)),
        );
}

/// Create an endpoint.
///
/// Returns 201 with the endpoint. `secret` is in this response only, so store it. Returns 400 if a member or the
/// address is not allowed, and 409 `wrong_state` if 200 endpoints exist.
#[utoipa::path(
    post, path = "/v1/endpoints", tag = "endpoints", request_body = CreateEndpointRequest,
    responses((status = 201, description = "The endpoint, with `secret` if its deliveries are signed", body = super::responses::endpoints::EndpointResponse))
)]
pub async fn add(delivery: Capability<Deliveries>, post: IdempotentPost) -> Result<HttpResponse> {
    let ask: CreateEndpointRequest = post.read()?;
    let kind = kind(&ask)?;
    let new = NewEndpoint {
        name: ask.name,
        kind,
        // The address of a chat is a credential, so it is never printed in logs.
        url: Secret::new(ask.url),
        events: ask.events.unwrap_or_else(|| BTreeSet::from([EventPattern::all()])),
        flows: ask.flows,
        ordered: ask.ordered,
        headers: hidden(ask.headers),
        after: ask.after,
    };
    let work = delivery.add_endpoint(Actor::Token(&post.token), &new);
    post.once(work, |_, (added, secret): &(EndpointDetails, Option<Secret<String>>)| {
        // The same administrator has sent the address, so the response may contain it.
        let mut answer = endpoint_json(added, AddressDisclosure::Whole);
        // Only this response contains the secret, because later reads do not return it.
        if let Some(secret) = secret {
            answer["secret"] = json!(secret.expose());
        }
        Ok(told(StatusCode::CREATED, &answer))
    })
    .await
}

fn shown_to(machine: &Machine) -> AddressDisclosure {
    match machine.0.record.role {
        // A URL can be a secret, and auditors need no secrets.
        MachineRole::Admin => AddressDisclosure::Whole,
        _ => AddressDisclosure::Origin,
    }
}

/// List endpoints.
///
/// Returns 200 with every endpoint. Auditors see only the origin of each address.
#[utoipa::path(
    get, path = "/v1/endpoints", tag = "endpoints",
    responses((status = 200, description = "The endpoints", body = super::responses::endpoints::EndpointListResponse))
)]
pub async fn list(delivery: Capability<Deliveries>, machine: Machine) -> Result<HttpResponse> {
    let address = shown_to(&machine);
    let all: Vec<Value> = delivery.endpoints().await?.iter().map(|it| endpoint_json(it, address)).collect();
    Ok(HttpResponse::Ok().json(json!({"endpoints": all})))
}

/// Read an endpoint.
///
/// Returns 200 with its settings, its state and its position in the log. Auditors see only the origin of the
/// address.
#[utoipa::path(
    get, path = "/v1/endpoints/{endpoint}", tag = "endpoints",
    params(
        ("endpoint" = EndpointId, Path, description = "The id of the endpoint"),
    ),
    responses((status = 200, description = "The endpoint", body = super::responses::endpoints::EndpointResponse))
)]
pub async fn read(delivery: Capability<Deliveries>, machine: Machine, endpoint: Path<String>) -> Result<HttpResponse> {
    let endpoint = delivery.endpoint(&id(&endpoint)?).await?;
    Ok(HttpResponse::Ok().json(endpoint_json(&endpoint, shown_to(&machine))))
}

/// Change an endpoint.
///
/// Returns 200 with the changed endpoint. Members that you leave out stay the same. A new origin needs `headers` in
/// the same request, if the endpoint has any. Otherwise the response is 400.
#[utoipa::path(
    patch, path = "/v1/endpoints/{endpoint}", tag = "endpoints", request_body = UpdateEndpointRequest,
    params(
        ("endpoint" = EndpointId, Path, description = "The id of the endpoint"),
    ),
    responses((status = 200, description = "The changed endpoint", body = super::responses::endpoints::EndpointResponse))
)]
pub async fn change(
    delivery: Capability<Deliveries>,
    post: IdempotentPost,
    endpoint: Path<String>,
) -> Result<HttpResponse> {
    let ask: UpdateEndpointRequest = post.read()?;
    let serving = serving(ask.enabled, ask.from.as_deref())?;
    let edit = EndpointEdit {
        name: ask.name,
        url: ask.url.map(Secret::new),
        events: ask.events,
        flows: ask.flows,
        headers: ask.headers.map(hidden),
        serving,
    };
    // A PATCH has the same effect when it is repeated, so no response is stored for it.
    let changed = delivery.change_endpoint(Actor::Token(&post.token), &id(&endpoint)?, &edit).await?;
    Ok(HttpResponse::Ok().json(endpoint_json(&changed, AddressDisclosure::Whole)))
}

fn serving(enabled: Option<bool>, from: Option<&str>) -> Result<Option<DeliveryActivation>> {
    match (enabled, from) {
        (None, None) => Ok(None),
        (Some(false), None) => Ok(Some(DeliveryActivation::Off)),
        // An endpoint continues where it stopped by default, so that its receiver misses no event.
        (Some(true), None | Some("where_it_stopped")) => Ok(Some(DeliveryActivation::WhereItStopped)),
        (Some(true), Some("now")) => Ok(Some(DeliveryActivation::Now)),
        _ => Err(Error::invalid("/from", "set `from` to `where_it_stopped` or `now`, together with `enabled: true`")),
    }
}

/// Delete an endpoint.
///
/// Returns 204. The gateway sends nothing to it from then on.
#[utoipa::path(
    delete, path = "/v1/endpoints/{endpoint}", tag = "endpoints",
    params(
        ("endpoint" = EndpointId, Path, description = "The id of the endpoint"),
    ),
    responses((status = 204, description = "Deleted"))
)]
pub async fn remove(
    delivery: Capability<Deliveries>,
    machine: Machine,
    endpoint: Path<String>,
) -> Result<HttpResponse> {
    delivery.remove_endpoint(Actor::Token(&machine.0), &id(&endpoint)?).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Rotate the secret of an endpoint.
///
/// Returns 200 with the new secret, in this response only. The old secret also signs during the overlap, one day by
/// default. Returns 409 if the endpoint does not sign.
#[utoipa::path(
    post, path = "/v1/endpoints/{endpoint}/secret", tag = "endpoints", request_body = RotateSecretRequest,
    params(
        ("endpoint" = EndpointId, Path, description = "The id of the endpoint"),
    ),
    responses((status = 200, description = "The new secret", body = super::responses::endpoints::SecretResponse))
)]
pub async fn secret(
    delivery: Capability<Deliveries>,
    post: IdempotentPost,
    endpoint: Path<String>,
) -> Result<HttpResponse> {
    let ask: RotateSecretRequest = post.read()?;
    // The maximum plus one second lets the service refuse a longer overlap with its own error.
    let overlap = ask.overlap_secs.map_or(OVERLAP, Duration::from_secs).min(OVERLAP_MAX + Duration::from_secs(1));
    let by = Actor::Token(&post.token);
    let id = id(&endpoint)?;
    let work = delivery.rotate_endpoint_secret(by, &id, overlap);
    post.once(work, |_, (secret, until): &(Secret<String>, Timestamp)| {
        Ok(told(StatusCode::OK, &json!({"secret": secret.expose(), "before_until": until})))
    })
    .await
}

/// Send a test to an endpoint.
///
/// Returns 200 with the result of the attempt. The test is not an event. A successful test enables a disabled
/// endpoint again.
#[utoipa::path(
    post, path = "/v1/endpoints/{endpoint}/test", tag = "endpoints", request_body = EmptyRequest,
    params(
        ("endpoint" = EndpointId, Path, description = "The id of the endpoint"),
    ),
    responses((status = 200, description = "The result of the attempt", body = super::responses::endpoints::DeliveryAttemptResponse))
)]
pub async fn test(
    delivery: Capability<Deliveries>,
    post: IdempotentPost,
    endpoint: Path<String>,
) -> Result<HttpResponse> {
    let (id, EmptyRequest {}) = (id(&endpoint)?, post.read()?);
    let tell = |_: &Core, attempt: &DeliveryAttempt| Ok(told(StatusCode::OK, &attempt_json(attempt)));
    post.once(delivery.test_endpoint(&id), tell).await
}

/// Reads the endpoint's ID in the path.
pub(super) fn id(text: &str) -> Result<EndpointId> {
    // An invalid ID cannot belong to an endpoint, so it is the same error as an unknown one.
    EndpointId::try_from(text).map_err(|_| Error::NotFound("endpoint"))
}

fn hidden(headers: BTreeMap<String, String>) -> BTreeMap<String, Secret<String>> {
    // The values are often credentials, so they are never printed in logs.
    headers.into_iter().map(|(name, value)| (name, Secret::new(value))).collect()
}
