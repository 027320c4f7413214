//! Endpoints: where events are sent, and what was sent there.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::web::{Data, Path, Query};
use actix_web::{HttpRequest, HttpResponse};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::body::{self, Bytes};
use super::endpoint_kinds::{TemplateBody, kind};
use super::endpoints_told::{Address, attempt_json, delivery_json, endpoint_json};
use super::problem::Problem;
use super::repeat::{Post, told};
use crate::domain::account::MachineRole;
use crate::domain::endpoint::EventPattern;
use crate::domain::endpoint::delivery::{Attempt, Delivery};
use crate::domain::id::{EndpointId, FlowId};
use crate::domain::secret::Secret;
use crate::domain::time::Timestamp;
use crate::service::error::{Error, Result as Answered};
use crate::service::sending::deliveries::{Again, Place, Which};
use crate::service::sending::endpoints::{EndpointEdit, EndpointTold, NewEndpoint, OVERLAP_MAX, Serving};
use crate::service::stops::Puller;
use crate::web::app::App;
use crate::web::auth::Machine;

/// `POST /v1/endpoints`
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddEndpoint {
    /// What people call it.
    pub name: String,
    /// What is sent: `webhook`, which is meant where nothing is said: events. `langgraph`: how reviews ended, to the runs
    /// of a LangGraph server that stopped for them. `resume`: the same, by a template. `slack` and `teams`: that something
    /// waits for people, to a chat.
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
    /// Of which flows; nothing: of all, with the events that belong to none.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub flows: BTreeSet<FlowId>,
    /// Whether a thread's events are sent one after another, each when the one before has ended.
    #[serde(default)]
    pub ordered: bool,
    /// The form of the body; there is one.
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
    #[schema(value_type = Option<Vec<String>>)]
    pub flows: Option<BTreeSet<FlowId>>,
    /// All headers of its own.
    pub headers: Option<BTreeMap<String, String>>,
    /// Whether it is served.
    pub enabled: Option<bool>,
    /// Where one that is enabled goes on: `where_it_stopped`, which is meant where nothing is said, or `now`.
    pub from: Option<String>,
}

/// `POST /v1/endpoints/{endpoint}/secret`
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RotateSecret {
    /// For how long the old secret signs beside the new one; nothing: a day.
    pub overlap_secs: Option<u64>,
}

/// `POST /v1/endpoints/{endpoint}/redeliveries`. One of the two.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RedeliverMany {
    /// What was given up since then.
    #[schema(value_type = Option<String>)]
    pub failed_since: Option<String>,
    /// What lies after this place in the log and has not arrived.
    pub after: Option<u64>,
}

/// A call that is told nothing but its address.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// Which deliveries.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliveriesQuery {
    state: Option<String>,
    page_size: Option<u32>,
    page_token: Option<String>,
}

/// Deliveries on a page, unless told otherwise, and at most.
const PAGE: (u32, u32) = (50, 200);

/// A deployment's working day, and its night.
const OVERLAP: Duration = Duration::from_secs(24 * 3600);

/// Adds an endpoint. The secret is in this answer, and nowhere else.
#[utoipa::path(post, path = "/v1/endpoints", request_body = AddEndpoint, responses((status = 201, description = "The endpoint, with `secret` if what is sent there is signed"), (status = 400, body = super::problem::ProblemBody)))]
pub async fn add(
    request: HttpRequest,
    app: Data<App>,
    machine: Machine,
    bytes: Bytes,
) -> Result<HttpResponse, Problem> {
    let done = async {
        let ask: AddEndpoint = body::read(&app, &bytes)?;
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
        let post = Post { request: &request, app: &app, token: &machine.0, body: &bytes };
        let work = app.service.add_endpoint(Puller::Token(&machine.0), &new);
        post.once(work, |_, (added, secret): &(EndpointTold, Option<Secret<String>>)| {
            let mut answer = endpoint_json(added, Address::Whole);
            if let Some(secret) = secret {
                answer["secret"] = json!(secret.expose());
            }
            Ok(told(StatusCode::CREATED, &answer))
        })
        .await
    };
    done.await.map_err(|error| Problem::of(&request, error))
}

fn shown_to(machine: &Machine) -> Address {
    match machine.0.record.role {
        MachineRole::Admin => Address::Whole,
        _ => Address::Origin,
    }
}

/// Every endpoint. Who does not manage them sees of addresses the origin only.
#[utoipa::path(get, path = "/v1/endpoints", responses((status = 200, description = "Each as it stands")))]
pub async fn list(request: HttpRequest, app: Data<App>, machine: Machine) -> Result<HttpResponse, Problem> {
    let done = async {
        let address = shown_to(&machine);
        let all: Vec<Value> = app.service.endpoints().await?.iter().map(|it| endpoint_json(it, address)).collect();
        Ok(HttpResponse::Ok().json(json!({"endpoints": all})))
    };
    done.await.map_err(|error: Error| Problem::of(&request, error))
}

/// An endpoint as it stands.
#[utoipa::path(get, path = "/v1/endpoints/{endpoint}", params(("endpoint" = String, Path)), responses((status = 200, description = "The endpoint"), (status = 404, body = super::problem::ProblemBody)))]
pub async fn read(
    request: HttpRequest,
    app: Data<App>,
    machine: Machine,
    endpoint: Path<String>,
) -> Result<HttpResponse, Problem> {
    let done = async {
        let endpoint = app.service.endpoint(&id(&endpoint)?).await?;
        Ok(HttpResponse::Ok().json(endpoint_json(&endpoint, shown_to(&machine))))
    };
    done.await.map_err(|error: Error| Problem::of(&request, error))
}

/// Changes what is said, and nothing else.
#[utoipa::path(patch, path = "/v1/endpoints/{endpoint}", request_body = ChangeEndpoint, params(("endpoint" = String, Path)), responses((status = 200, description = "The endpoint"), (status = 400, body = super::problem::ProblemBody)))]
pub async fn change(
    request: HttpRequest,
    app: Data<App>,
    machine: Machine,
    endpoint: Path<String>,
    bytes: Bytes,
) -> Result<HttpResponse, Problem> {
    let done = async {
        let ask: ChangeEndpoint = body::read(&app, &bytes)?;
        let serving = serving(ask.enabled, ask.from.as_deref())?;
        let edit = EndpointEdit {
            name: ask.name,
            url: ask.url.map(Secret::new),
            events: ask.events,
            flows: ask.flows,
            headers: ask.headers.map(hidden),
            serving,
        };
        let changed = app.service.change_endpoint(Puller::Token(&machine.0), &id(&endpoint)?, &edit).await?;
        Ok(HttpResponse::Ok().json(endpoint_json(&changed, Address::Whole)))
    };
    done.await.map_err(|error| Problem::of(&request, error))
}

fn serving(enabled: Option<bool>, from: Option<&str>) -> Answered<Option<Serving>> {
    match (enabled, from) {
        (None, None) => Ok(None),
        (Some(false), None) => Ok(Some(Serving::Off)),
        (Some(true), None | Some("where_it_stopped")) => Ok(Some(Serving::WhereItStopped)),
        (Some(true), Some("now")) => Ok(Some(Serving::Now)),
        _ => Err(Error::invalid("/from", "`where_it_stopped` or `now`, with `enabled: true`")),
    }
}

/// Removes an endpoint: nothing is sent there any more.
#[utoipa::path(delete, path = "/v1/endpoints/{endpoint}", params(("endpoint" = String, Path)), responses((status = 204, description = "Removed"), (status = 404, body = super::problem::ProblemBody)))]
pub async fn remove(
    request: HttpRequest,
    app: Data<App>,
    machine: Machine,
    endpoint: Path<String>,
) -> Result<HttpResponse, Problem> {
    let done = async {
        app.service.remove_endpoint(Puller::Token(&machine.0), &id(&endpoint)?).await?;
        Ok(HttpResponse::NoContent().finish())
    };
    done.await.map_err(|error: Error| Problem::of(&request, error))
}

/// A new secret. It is in this answer, and nowhere else; the old one signs beside it for a while.
#[utoipa::path(post, path = "/v1/endpoints/{endpoint}/secret", request_body = RotateSecret, params(("endpoint" = String, Path)), responses((status = 200, description = "`secret`, and until when the old one signs, too"), (status = 400, body = super::problem::ProblemBody)))]
pub async fn secret(
    request: HttpRequest,
    app: Data<App>,
    machine: Machine,
    endpoint: Path<String>,
    bytes: Bytes,
) -> Result<HttpResponse, Problem> {
    let done = async {
        let ask: RotateSecret = body::read(&app, &bytes)?;
        let overlap = ask.overlap_secs.map_or(OVERLAP, Duration::from_secs).min(OVERLAP_MAX + Duration::from_secs(1));
        let by = Puller::Token(&machine.0);
        let post = Post { request: &request, app: &app, token: &machine.0, body: &bytes };
        let id = id(&endpoint)?;
        let work = app.service.rotate_endpoint_secret(by, &id, overlap);
        post.once(work, |_, (secret, until): &(Secret<String>, Timestamp)| {
            Ok(told(StatusCode::OK, &json!({"secret": secret.expose(), "before_until": until})))
        })
        .await
    };
    done.await.map_err(|error| Problem::of(&request, error))
}

/// Sends an endpoint something that is no event, and says how it went.
#[utoipa::path(post, path = "/v1/endpoints/{endpoint}/test", request_body = Nothing, params(("endpoint" = String, Path)), responses((status = 200, description = "How the attempt ended"), (status = 404, body = super::problem::ProblemBody)))]
pub async fn test(
    request: HttpRequest,
    app: Data<App>,
    machine: Machine,
    endpoint: Path<String>,
    bytes: Bytes,
) -> Result<HttpResponse, Problem> {
    let done = async {
        let (id, Nothing {}) = (id(&endpoint)?, body::read(&app, &bytes)?);
        let post = Post { request: &request, app: &app, token: &machine.0, body: &bytes };
        let tell = |_: &App, attempt: &Attempt| Ok(told(StatusCode::OK, &attempt_json(attempt)));
        post.once(app.service.test_endpoint(&id), tell).await
    };
    done.await.map_err(|error: Error| Problem::of(&request, error))
}

/// A page of what was sent to an endpoint, or is about to be.
#[utoipa::path(get, path = "/v1/endpoints/{endpoint}/deliveries", params(("endpoint" = String, Path), ("state" = Option<String>, Query, description = "`waiting` or `failed`; nothing: all, the last event's first"), ("page_size" = Option<u32>, Query), ("page_token" = Option<String>, Query)), responses((status = 200, description = "`{deliveries, next_page_token}`"), (status = 400, body = super::problem::ProblemBody)))]
pub async fn deliveries(
    request: HttpRequest,
    app: Data<App>,
    _machine: Machine,
    endpoint: Path<String>,
    query: Query<DeliveriesQuery>,
) -> Result<HttpResponse, Problem> {
    let done = async {
        let which = match query.state.as_deref() {
            None => Which::All,
            Some("waiting") => Which::Waiting,
            Some("failed") => Which::Failed,
            Some(_) => return Err(Error::invalid("/state", "`waiting`, `failed`, or nothing for all")),
        };
        let size = query.page_size.unwrap_or(PAGE.0).clamp(1, PAGE.1);
        let after = query.page_token.as_deref().map(place).transpose()?;
        let (deliveries, next) = app.service.deliveries(&id(&endpoint)?, which, after, size).await?;
        let deliveries: Vec<Value> = deliveries.iter().map(delivery_json).collect();
        let next = next.map(|it| format!("{}.{}", it.moment, it.index));
        Ok(HttpResponse::Ok().json(json!({"deliveries": deliveries, "next_page_token": next})))
    };
    done.await.map_err(|error| Problem::of(&request, error))
}

fn place(token: &str) -> Answered<Place> {
    let read = || {
        let (moment, index) = token.split_once('.')?;
        Some(Place { moment: moment.parse().ok()?, index: index.parse().ok()? })
    };
    read().ok_or_else(|| Error::invalid("/page_token", "give `next_page_token` of the page before"))
}

/// One delivery, with the body that is sent.
#[utoipa::path(get, path = "/v1/endpoints/{endpoint}/deliveries/{delivery}", params(("endpoint" = String, Path), ("delivery" = u64, Path)), responses((status = 200, description = "The delivery, its attempts, and `body`"), (status = 404, body = super::problem::ProblemBody)))]
pub async fn delivery(
    request: HttpRequest,
    app: Data<App>,
    _machine: Machine,
    path: Path<(String, String)>,
) -> Result<HttpResponse, Problem> {
    let done = async {
        let found = app.service.delivery(&id(&path.0)?, index(&path.1)?).await?;
        let mut answer = delivery_json(&found.delivery);
        answer["body"] = json!(found.body);
        Ok(HttpResponse::Ok().json(answer))
    };
    done.await.map_err(|error: Error| Problem::of(&request, error))
}

/// Sends one again, whatever became of it before.
#[utoipa::path(post, path = "/v1/endpoints/{endpoint}/deliveries/{delivery}/redelivery", request_body = Nothing, params(("endpoint" = String, Path), ("delivery" = u64, Path)), responses((status = 202, description = "It is sent as soon as may be"), (status = 404, body = super::problem::ProblemBody)))]
pub async fn redeliver(
    request: HttpRequest,
    app: Data<App>,
    machine: Machine,
    path: Path<(String, String)>,
    bytes: Bytes,
) -> Result<HttpResponse, Problem> {
    let done = async {
        let (id, index, Nothing {}) = (id(&path.0)?, index(&path.1)?, body::read(&app, &bytes)?);
        let post = Post { request: &request, app: &app, token: &machine.0, body: &bytes };
        let work = app.service.redeliver(Puller::Token(&machine.0), &id, index);
        post.once(work, |_, delivery: &Delivery| Ok(told(StatusCode::ACCEPTED, &delivery_json(delivery)))).await
    };
    done.await.map_err(|error: Error| Problem::of(&request, error))
}

/// Sends many again.
#[utoipa::path(post, path = "/v1/endpoints/{endpoint}/redeliveries", request_body = RedeliverMany, params(("endpoint" = String, Path)), responses((status = 202, description = "How many are sent again, or how many places of the log are looked through"), (status = 400, body = super::problem::ProblemBody)))]
pub async fn redeliver_many(
    request: HttpRequest,
    app: Data<App>,
    machine: Machine,
    endpoint: Path<String>,
    bytes: Bytes,
) -> Result<HttpResponse, Problem> {
    let done = async {
        let ask: RedeliverMany = body::read(&app, &bytes)?;
        let since = |text: &str| {
            Timestamp::parse(text)
                .ok_or_else(|| Error::invalid("/failed_since", "a moment like 2026-11-21T10:00:00.000Z"))
        };
        let again = match (ask.failed_since.as_deref(), ask.after) {
            (Some(text), None) => Again::FailedSince(since(text)?),
            (None, Some(after)) => Again::LogAfter(after),
            _ => return Err(Error::invalid("", "either `failed_since` or `after`")),
        };
        let post = Post { request: &request, app: &app, token: &machine.0, body: &bytes };
        let id = id(&endpoint)?;
        let work = app.service.redeliver_many(Puller::Token(&machine.0), &id, again);
        post.once(work, |_, count: &u64| Ok(told(StatusCode::ACCEPTED, &json!({"count": count})))).await
    };
    done.await.map_err(|error| Problem::of(&request, error))
}

fn id(text: &str) -> Answered<EndpointId> {
    EndpointId::try_from(text).map_err(|_| Error::NotFound("endpoint"))
}

fn index(text: &str) -> Answered<u64> {
    text.parse().map_err(|_| Error::NotFound("delivery"))
}

fn hidden(headers: BTreeMap<String, String>) -> BTreeMap<String, Secret<String>> {
    headers.into_iter().map(|(name, value)| (name, Secret::new(value))).collect()
}
