//! Errors in the form of the protocol: `{"error": {type, code, message, request_id}}`.

use actix_web::http::StatusCode;
use countersign_domain::chain::denial::DenialCode;
use countersign_domain::platform::idempotency::IdempotencyError;
use countersign_domain::threads::approval_request::ApprovalRequestError;
use countersign_service::error::Error;
use serde::Serialize;
use utoipa::ToSchema;

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

/// The prefix of the paths of the protocol.
pub const PREFIX: &str = "/aap/";

/// A problem in the protocol's own terms.
pub struct ProtocolError {
    pub status: StatusCode,
    pub code: String,
    pub message: String,
}

impl ProtocolError {
    /// Returns the error for a denial of `verify`, or for a reused key. Other errors keep their status and code.
    pub fn of(error: &Error) -> Option<Self> {
        let (status, code, message) = match error {
            Error::Denied(code) => denied(*code),
            Error::NotRepeated(why @ IdempotencyError::Differs) => {
                (StatusCode::CONFLICT, ApprovalRequestError::KeyReused.code().to_owned(), why.to_string())
            }
            _ => return None,
        };
        Some(Self { status, code, message })
    }

    pub fn body(self, request_id: &str) -> AapErrorResponse {
        let Self { status, code, message } = self;
        AapErrorResponse { error: AapError { kind: kind_of(status), code, message, request_id: request_id.to_owned() } }
    }
}

/// Returns the error for a denial of `verify`. A client takes 403 as a refusal of its credential.
fn denied(code: DenialCode) -> (StatusCode, String, String) {
    let refused = match code {
        DenialCode::Forbidden => return (StatusCode::FORBIDDEN, code.as_str().to_owned(), code.detail().to_owned()),
        // The approval stays valid.
        DenialCode::Halted => return (StatusCode::CONFLICT, code.as_str().to_owned(), Error::Halted.to_string()),
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

pub const fn status_of(error: ApprovalRequestError) -> StatusCode {
    match error {
        ApprovalRequestError::ReceiverNotVerified => StatusCode::UNPROCESSABLE_ENTITY,
        _ => StatusCode::CONFLICT,
    }
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
