//! The metrics endpoint for monitoring systems.

use actix_web::http::header;
use actix_web::{FromRequest as _, HttpRequest, HttpResponse};
use countersign_service::error::Error;
use countersign_service::operations::Operations;

use super::problem::Problem;
use crate::auth::extractors::Machine;
use crate::metrics_access::MetricsAccess;
use crate::state::{Capability, EdgeConfig};

/// The content type of the Prometheus text format.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Read the metrics.
///
/// Returns 200 with the metrics in Prometheus text format. Returns 404 if `metrics.access` is `off`.
#[utoipa::path(
    get, path = "/metrics", tag = "open",
    responses((status = 200, description = "Prometheus' text; docs/reference/metrics.md lists every metric", body = String, content_type = "text/plain"))
)]
pub async fn metrics(
    request: HttpRequest,
    edge: Capability<EdgeConfig>,
    operations: Capability<Operations>,
) -> Result<HttpResponse, Problem> {
    match edge.metrics {
        // A disabled route looks like a missing one.
        MetricsAccess::Off => return Err(Problem::of(&request, Error::NotFound("route"))),
        MetricsAccess::Token => drop(Machine::extract(&request).await?),
        MetricsAccess::Open => {}
    }
    let text = operations.metrics_text().await;
    Ok(HttpResponse::Ok().insert_header((header::CONTENT_TYPE, TEXT)).body(text))
}
