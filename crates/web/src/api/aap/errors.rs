//! Errors in the form of the protocol: `{"error": {type, code, message, request_id}}`.

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::middleware::Next;
use actix_web::{HttpResponse, ResponseError as _};
use countersign_domain::chain::denial::DenialCode;
use countersign_domain::threads::approval_request::ApprovalRequestError;
use countersign_service::error::Error;
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::problem::Problem;

/// The body of an error of the Agent Approval Protocol.
#[derive(Debug, Serialize, ToSchema)]
pub struct AapErrorResponse {
    /// The error.
    pub error: AapError,
}

/// An error of the Agent Approval Protocol.
#[derive(Debug, Serialize, ToSchema)]
pub struct AapError {
    /// The kind of error: `invalid_request`, `unauthenticated`, `forbidden`, `not_found`, `conflict`, `rate_limited` or
    /// `unavailable`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The error code, for programs.
    pub code: String,
    /// The cause and the next step.
    pub message: String,
    /// The id of the request, for an administrator.
    pub request_id: String,
}

/// Turns the problems of handlers and extractors into errors of the protocol.
pub async fn as_protocol(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    let response = next.call(request).await?.map_into_boxed_body();
    let Some(error) = response.response().error() else { return Ok(response) };
    let Some(problem) = error.as_error::<Problem>() else { return Ok(response) };
    let told = told(problem);
    Ok(response.into_response(told).map_into_boxed_body())
}

fn told(problem: &Problem) -> HttpResponse {
    let (status, code, message) = match &problem.error {
        Error::Denied(code) => denied(*code),
        _ => (problem.status(), problem.code().to_owned(), problem.message()),
    };
    // The headers of the problem stay, such as `Retry-After`.
    let kept = problem.error_response();
    let mut response = HttpResponse::build(status);
    for (name, value) in kept.headers().iter().filter(|it| it.0 != "content-type") {
        response.insert_header((name.clone(), value.clone()));
    }
    let request_id = problem.request_id().to_owned();
    response.json(AapErrorResponse { error: AapError { kind: kind_of(status), code, message, request_id } })
}

/// Returns the error for a denial of `verify`. A client takes 403 as a refusal of its credential.
fn denied(code: DenialCode) -> (StatusCode, String, String) {
    let refused = match code {
        DenialCode::Forbidden => return (StatusCode::FORBIDDEN, code.as_str().to_owned(), code.detail().to_owned()),
        DenialCode::Expired => ApprovalRequestError::Expired,
        DenialCode::AlreadyUsed | DenialCode::WriteInProgress => ApprovalRequestError::AlreadyConsumed,
        _ => ApprovalRequestError::NotApproved,
    };
    let message = match refused {
        // The cause is more than a missing approval, such as a revoked receipt or another policy.
        ApprovalRequestError::NotApproved => format!("{refused} ({}: {})", code.as_str(), code.detail()),
        other => other.to_string(),
    };
    (StatusCode::CONFLICT, refused.code().to_owned(), message)
}

fn kind_of(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "unauthenticated",
        403 => "forbidden",
        404 => "not_found",
        409 => "conflict",
        429 => "rate_limited",
        400..=499 => "invalid_request",
        _ => "unavailable",
    }
}
