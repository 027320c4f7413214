//! What anybody may read: keys, health, the description of this surface.

use actix_web::http::header;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use serde_json::json;
use utoipa::OpenApi as _;

use super::Description;
use super::problem::Problem;
use crate::web::app::App;

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
