//! Calls without authentication: keys, health and the OpenAPI document.

use std::sync::LazyLock;

use actix_web::HttpResponse;
use actix_web::http::header;
use countersign_service::error::Result;
use countersign_service::operations::Operations;
use countersign_service::platform::core::Core;
use serde_json::json;

use super::openapi::description;
use crate::state::Capability;

/// The OpenAPI document as text, built once.
pub static DESCRIPTION: LazyLock<String> =
    LazyLock::new(|| serde_json::to_string_pretty(&description()).expect("a description is made of texts and lists"));

/// List the gateway's public keys.
///
/// Returns 200 with every key that ever signed and its state, as a JSON Web Key Set. Pin the keys to verify
/// receipts offline.
#[utoipa::path(get, path = "/.well-known/jwks.json", tag = "open",
    responses((status = 200, description = "Every key that ever signed, with its state", body = super::responses::KeySetResponse)))]
pub async fn jwks(core: Capability<Core>) -> Result<HttpResponse> {
    let keys = core.keys()?;
    // A revoked key must reach verifiers soon, so the set may be cached for one minute only.
    Ok(HttpResponse::Ok().insert_header((header::CACHE_CONTROL, "max-age=60")).json(keys.trusted().jwks()))
}

/// Check liveness.
///
/// Returns 200 while the process runs. It does not check the database.
#[utoipa::path(get, path = "/livez", tag = "open", responses((status = 200, description = "Alive", body = super::responses::HealthResponse)))]
pub async fn livez() -> HttpResponse {
    // The database is not asked, because a restart would not help while it is unavailable.
    HttpResponse::Ok().json(json!({"status": "alive"}))
}

/// Check readiness.
///
/// Returns 200 if the keys are loaded and the database responds. Otherwise it returns 500 or 503, and a load
/// balancer should send no traffic.
#[utoipa::path(get, path = "/readyz", tag = "open", responses((status = 200, description = "Ready", body = super::responses::HealthResponse)))]
pub async fn readyz(operations: Capability<Operations>) -> Result<HttpResponse> {
    operations.ready_to_work().await?;
    Ok(HttpResponse::Ok().json(json!({"status": "ready"})))
}

/// Returns the OpenAPI document.
pub async fn openapi() -> HttpResponse {
    HttpResponse::Ok().insert_header((header::CONTENT_TYPE, "application/json")).body(DESCRIPTION.as_str())
}
