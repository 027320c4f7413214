//! What anybody may read: keys, health, the description of this surface; and the log for those who may.

use actix_web::http::header;
use actix_web::web::{Data, Query};
use actix_web::{HttpRequest, HttpResponse};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::OpenApi as _;

use super::Description;
use super::problem::Problem;
use crate::domain::account::MachineRole;
use crate::service::events::Placed;
use crate::web::app::App;
use crate::web::auth::Machine;

/// Where in the log.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventsQuery {
    after: Option<u64>,
    limit: Option<u32>,
}

/// Events on a page, unless told otherwise, and at most.
const PAGE: (u32, u32) = (100, 500);

/// The published keys, with their states.
#[utoipa::path(get, path = "/.well-known/jwks.json", responses((status = 200, description = "Every key that ever signed, with its status")))]
pub async fn jwks(request: HttpRequest, app: Data<App>) -> Result<HttpResponse, Problem> {
    let keys = app.service.keys().map_err(|error| Problem::of(&request, error))?;
    Ok(HttpResponse::Ok().insert_header((header::CACHE_CONTROL, "max-age=60")).json(keys.trusted().jwks()))
}

/// The process runs.
#[utoipa::path(get, path = "/livez", responses((status = 200, description = "Alive")))]
pub async fn livez() -> HttpResponse {
    HttpResponse::Ok().json(json!({"status": "alive"}))
}

/// It can do its work: keys are there and the store answers.
#[utoipa::path(get, path = "/readyz", responses((status = 200, description = "Ready"), (status = 500, description = "Not ready")))]
pub async fn readyz(request: HttpRequest, app: Data<App>) -> Result<HttpResponse, Problem> {
    app.service.ready_to_work().await.map_err(|error| Problem::of(&request, error))?;
    Ok(HttpResponse::Ok().json(json!({"status": "ready"})))
}

/// This surface, described from its own types.
pub async fn openapi() -> HttpResponse {
    HttpResponse::Ok().json(Description::openapi())
}

/// A page of the log after a place in it.
#[utoipa::path(get, path = "/v1/events", params(("after" = Option<u64>, Query), ("limit" = Option<u32>, Query)), responses((status = 200, description = "Events in the log's order")))]
pub async fn events(
    request: HttpRequest,
    app: Data<App>,
    machine: Machine,
    query: Query<EventsQuery>,
) -> Result<HttpResponse, Problem> {
    let done = async {
        let token = &machine.0.record;
        let flow = if token.role == MachineRole::Auditor { None } else { token.flow.as_ref() };
        let limit = query.limit.unwrap_or(PAGE.0).clamp(1, PAGE.1);
        let after = query.after.unwrap_or(0);
        let (events, next) = app.service.events_after(after, flow, limit).await?;
        let events: Vec<Value> = events.iter().map(event_json).collect();
        Ok(HttpResponse::Ok().json(json!({"events": events, "next": next})))
    };
    done.await.map_err(|error| Problem::of(&request, error))
}

/// An event as machines are told it.
pub fn event_json(placed: &Placed) -> Value {
    let event = &placed.event;
    json!({
        "index": placed.index, "id": event.id, "type": event.kind, "timestamp": event.at,
        "flow": event.flow, "thread": event.thread, "seq": event.seq, "data": event.data,
    })
}
