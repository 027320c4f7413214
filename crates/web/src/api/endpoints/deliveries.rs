//! Deliveries to endpoints, and redelivery.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Path, Query};
use countersign_domain::delivery::delivery_record::Delivery;
use countersign_domain::primitives::id::EndpointId;
use countersign_domain::primitives::time::Timestamp;
use countersign_service::delivery::Deliveries;
use countersign_service::delivery::deliveries::{DeliveryCursor, DeliveryFilter, RedeliveryRange};
use countersign_service::error::{Error, Result};
use countersign_service::identity::actor::Actor;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::view::delivery_json;
use super::{EmptyRequest, id};
use crate::api::idempotency_key::{IdempotentPost, told};
use crate::auth::extractors::Machine;
use crate::state::Capability;

/// The body of `POST /v1/endpoints/{endpoint}/redeliveries`. Set one of the two members.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RedeliverRequest {
    /// The time since which failed deliveries are sent again.
    #[schema(value_type = Option<String>)]
    pub failed_since: Option<String>,
    /// The log position after which every event that has not arrived is sent again.
    pub after: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliveriesQuery {
    state: Option<String>,
    page_size: Option<u32>,
    page_token: Option<String>,
}

/// The default page size and the largest one.
const PAGE: (u32, u32) = (50, 200);

/// List deliveries of an endpoint.
///
/// Returns 200 with one page of deliveries, newest event first, each with its attempts. Pass `next_page_token` as
/// `page_token` for the next page.
#[utoipa::path(
    get, path = "/v1/endpoints/{endpoint}/deliveries", tag = "endpoints",
    params(
        ("endpoint" = EndpointId, Path, description = "The id of the endpoint"),
        ("state" = Option<String>, Query, description = "`waiting` or `failed`. Without it, all deliveries are listed", pattern = "^(waiting|failed)$"),
        ("page_size" = Option<u32>, Query, description = "The page size: 50 by default, at most 200"),
        ("page_token" = Option<String>, Query, description = "The `next_page_token` of the previous page"),
    ),
    responses((status = 200, description = "A page of deliveries", body = crate::api::responses::endpoints::DeliveryListResponse))
)]
pub async fn deliveries(
    delivery: Capability<Deliveries>,
    _machine: Machine,
    endpoint: Path<String>,
    query: Query<DeliveriesQuery>,
) -> Result<HttpResponse> {
    let which = match query.state.as_deref() {
        None => DeliveryFilter::All,
        Some("waiting") => DeliveryFilter::Waiting,
        Some("failed") => DeliveryFilter::Failed,
        Some(_) => return Err(Error::invalid("/state", "set `waiting` or `failed`, or leave it out for all")),
    };
    // A size out of range is adjusted and not refused, because `next_page_token` continues any page.
    let size = query.page_size.unwrap_or(PAGE.0).clamp(1, PAGE.1);
    let after = query.page_token.as_deref().map(place).transpose()?;
    let (deliveries, next) = delivery.deliveries(&id(&endpoint)?, which, after, size).await?;
    let deliveries: Vec<Value> = deliveries.iter().map(delivery_json).collect();
    // Several deliveries can share one moment, so the index makes the position exact.
    let next = next.map(|it| format!("{}.{}", it.moment, it.index));
    Ok(HttpResponse::Ok().json(json!({"deliveries": deliveries, "next_page_token": next})))
}

fn place(token: &str) -> Result<DeliveryCursor> {
    let read = || {
        let (moment, index) = token.split_once('.')?;
        Some(DeliveryCursor { moment: moment.parse().ok()?, index: index.parse().ok()? })
    };
    read().ok_or_else(|| Error::invalid("/page_token", "the token must be the `next_page_token` of the previous page"))
}

/// Read a delivery.
///
/// Returns 200 with the delivery and the `body` that is sent. Returns 404 if it does not exist or was purged.
#[utoipa::path(
    get, path = "/v1/endpoints/{endpoint}/deliveries/{delivery}", tag = "endpoints",
    params(
        ("endpoint" = EndpointId, Path, description = "The id of the endpoint"),
        ("delivery" = u64, Path, description = "The log position of the event"),
    ),
    responses((status = 200, description = "The delivery, with the `body` that is sent", body = crate::api::responses::endpoints::DeliveryResponse))
)]
pub async fn delivery(
    delivery: Capability<Deliveries>,
    _machine: Machine,
    path: Path<(String, String)>,
) -> Result<HttpResponse> {
    let found = delivery.delivery(&id(&path.0)?, index(&path.1)?).await?;
    let mut answer = delivery_json(&found.delivery);
    answer["body"] = json!(found.body);
    Ok(HttpResponse::Ok().json(answer))
}

/// Redeliver an event.
///
/// Returns 202 with the delivery, which is sent again as soon as possible, whatever its state. Receivers recognize
/// a repeated event by `webhook-id`.
#[utoipa::path(
    post, path = "/v1/endpoints/{endpoint}/deliveries/{delivery}/redelivery", tag = "endpoints", request_body = EmptyRequest,
    params(
        ("endpoint" = EndpointId, Path, description = "The id of the endpoint"),
        ("delivery" = u64, Path, description = "The log position of the event"),
    ),
    responses((status = 202, description = "The delivery is sent as soon as possible", body = crate::api::responses::endpoints::DeliveryResponse))
)]
pub async fn redeliver(
    delivery: Capability<Deliveries>,
    post: IdempotentPost,
    path: Path<(String, String)>,
) -> Result<HttpResponse> {
    let (id, index, EmptyRequest {}) = (id(&path.0)?, index(&path.1)?, post.read()?);
    let work = delivery.redeliver(Actor::Token(&post.token), &id, index);
    // The status is 202, because a worker sends the delivery later.
    post.once(work, |_, delivery: &Delivery| Ok(told(StatusCode::ACCEPTED, &delivery_json(delivery)))).await
}

/// Redeliver many events.
///
/// Returns 202 with the number of deliveries that are sent again. Set either `failed_since` for deliveries that
/// were given up, or `after` for events after a log position.
#[utoipa::path(
    post, path = "/v1/endpoints/{endpoint}/redeliveries", tag = "endpoints", request_body = RedeliverRequest,
    params(
        ("endpoint" = EndpointId, Path, description = "The id of the endpoint"),
    ),
    responses((status = 202, description = "The number of deliveries", body = crate::api::responses::endpoints::CountResponse))
)]
pub async fn redeliver_many(
    delivery: Capability<Deliveries>,
    post: IdempotentPost,
    endpoint: Path<String>,
) -> Result<HttpResponse> {
    let ask: RedeliverRequest = post.read()?;
    let since = |text: &str| {
        Timestamp::parse(text)
            .ok_or_else(|| Error::invalid("/failed_since", "the time must be UTC, like 2026-11-21T10:00:00.000Z"))
    };
    let again = match (ask.failed_since.as_deref(), ask.after) {
        (Some(text), None) => RedeliveryRange::FailedSince(since(text)?),
        (None, Some(after)) => RedeliveryRange::LogAfter(after),
        // Without a range, the call would send everything again, so there is no default.
        _ => return Err(Error::invalid("", "set either `failed_since` or `after`")),
    };
    let id = id(&endpoint)?;
    let work = delivery.redeliver_many(Actor::Token(&post.token), &id, again);
    post.once(work, |_, count: &u64| Ok(told(StatusCode::ACCEPTED, &json!({"count": count})))).await
}

fn index(text: &str) -> Result<u64> {
    // A text that is no number cannot name a delivery, so it is the same error as an unknown one.
    text.parse().map_err(|_| Error::NotFound("delivery"))
}
