//! Problem responses (RFC 9457), with one status per error. They contain fixed texts and no data of unauthenticated
//! clients.

mod extensions;
pub mod protocol_error;
pub mod responder;

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, ResponseError};
use countersign_adapters::archives::ArchiveFileError;
use countersign_domain::identity::oidc_identity::SignInRejected;
use countersign_domain::interrupts::InterruptRejected;
use countersign_domain::json::parse::JsonCode;
use countersign_domain::platform::idempotency::IdempotencyError;
use countersign_domain::reviews::VoteRejected;
use countersign_service::error::{Error, ErrorKind};
use countersign_service::operations::Operations;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use self::protocol_error::{ProtocolError, status_of};
use crate::request_log::RequestId;
use crate::state::{Capability, FromState as _};

/// The body of an error.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ProblemBody {
    /// The kind of problem as a URN. Its last part is the code.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind of problem, in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The cause and the next step, in a fixed sentence.
    pub detail: String,
    /// The path of the request.
    pub instance: String,
    /// The error code, for programs.
    #[schema(value_type = ProblemCode)]
    pub code: String,
    /// The id of the request, for an administrator.
    pub request_id: String,
    /// Each thing that is wrong.
    pub errors: Vec<FieldError>,
    /// Additional members for certain codes, such as the head or the review.
    #[serde(flatten)]
    #[schema(value_type = super::responses::ProblemExtensions)]
    pub facts: Map<String, Value>,
}

/// An error code. The schema in the OpenAPI document lists all codes.
#[derive(Debug, ToSchema)]
pub struct ProblemCode(pub String);

/// The code of one item of `errors`. The schema in the OpenAPI document lists all codes.
#[derive(Debug, ToSchema)]
pub struct FieldErrorCode(pub String);

/// One item of `errors`.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct FieldError {
    /// The JSON Pointer of the value.
    pub pointer: String,
    /// The error code.
    #[schema(value_type = FieldErrorCode)]
    pub code: String,
    /// The description, in words.
    pub detail: String,
    /// The byte offset in the body, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<usize>,
    /// The name of the policy rule, if the error comes from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The value that the request itself set there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

#[derive(Debug)]
pub struct Problem {
    body: ProblemBody,
    /// The error, for pages, which have their own texts.
    pub error: Error,
}

struct ProblemType {
    status: StatusCode,
    code: &'static str,
    title: &'static str,
}

const fn shape(status: StatusCode, code: &'static str, title: &'static str) -> ProblemType {
    ProblemType { status, code, title }
}

impl ProblemBody {
    /// Creates the response body, and logs an internal error once.
    pub fn of(error: &Error, path: &str, id: &RequestId) -> Self {
        let shape = shape_of(error);
        // Only internal errors are logged here. The request log has the status of the others.
        // The store logs an unavailable database itself, once a second and not once per request.
        let logged_by_store = matches!(error, Error::Unavailable(_) | Error::Busy);
        if shape.status.is_server_error() && !logged_by_store {
            tracing::error!(request_id = id.as_str(), error = %ErrorChain(error), "request failed");
        }
        let errors = extensions::faults_of(error);
        Self { detail: detail_of(error), errors, facts: extensions::facts_of(error), ..Self::bare(&shape, path, id) }
    }

    fn bare(shape: &ProblemType, path: &str, id: &RequestId) -> Self {
        Self {
            kind: format!("urn:countersign:problem:{}", shape.code),
            title: shape.title.to_owned(),
            status: shape.status.as_u16(),
            detail: String::new(),
            instance: path.to_owned(),
            code: shape.code.to_owned(),
            request_id: id.as_str().to_owned(),
            errors: Vec::new(),
            facts: Map::new(),
        }
    }
}

impl Problem {
    /// Creates a problem, and logs an internal error once.
    pub fn of(request: &HttpRequest, error: Error) -> Self {
        count(request, &error);
        Self::at(request.path(), &RequestId::of(request), error)
    }

    /// Creates the problem of a request that is handled in another task.
    pub fn at(path: &str, id: &RequestId, error: Error) -> Self {
        Self { body: ProblemBody::of(&error, path, id), error }
    }

    /// The status it is answered with.
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.body.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Returns the problem in the form of the Agent Approval Protocol.
    pub fn in_protocol(&self) -> ProtocolError {
        let same = || ProtocolError { status: self.status(), code: self.body.code.clone(), message: self.message() };
        ProtocolError::of(&self.error).unwrap_or_else(same)
    }

    /// The cause and the next step. For an invalid request, with the path of each invalid value.
    pub fn message(&self) -> String {
        let at = |it: &FieldError| format!("{}: {}", it.pointer, it.detail);
        let errors: Vec<String> = self.body.errors.iter().filter(|it| !it.pointer.is_empty()).map(at).collect();
        if errors.is_empty() { self.body.detail.clone() } else { errors.join("; ") }
    }

    /// The id of the request, for an administrator.
    pub fn request_id(&self) -> &str {
        &self.body.request_id
    }
}

/// Answers a request whose path has other methods.
pub fn wrong_method(request: &HttpRequest, methods: &[&str]) -> HttpResponse {
    let shape = shape(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "Method not allowed");
    let detail = "the path does not support this method: use a method of the `Allow` header".to_owned();
    let body = ProblemBody { detail, ..ProblemBody::bare(&shape, request.path(), &RequestId::of(request)) };
    let mut answer = HttpResponse::build(shape.status);
    answer.insert_header((header::CONTENT_TYPE, "application/problem+json"));
    answer.insert_header((header::ALLOW, methods.join(", ")));
    answer.json(&body)
}

/// Counts errors for the metrics.
fn count(request: &HttpRequest, error: &Error) {
    // Tests build requests without the application state.
    let Some(operations) = Capability::<Operations>::registered(request) else { return };
    if let Error::Denied(code) = error
        // Other routes can fail with the same error, and the metric counts denied verifications only.
        && request.match_pattern().as_deref() == Some("/v1/verify")
    {
        operations.metrics().denied(*code);
    }
    count_broken(&operations, error);
}

/// Counts stored data that does not match its signature.
pub fn count_broken(operations: &Operations, error: &Error) {
    if error.is_chain_failure() {
        operations.metrics().chain_failed();
    }
}

/// An error with all its causes.
struct ErrorChain<'a>(&'a dyn std::error::Error);

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        // The outer error often says only that something failed, so the log needs the whole chain of causes.
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.body.code)
    }
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        self.status()
    }

    fn error_response(&self) -> HttpResponse {
        let protocol = self.body.instance.starts_with(protocol_error::PREFIX).then(|| self.in_protocol());
        let mut answer = HttpResponse::build(protocol.as_ref().map_or(self.status(), |it| it.status));
        if protocol.is_none() {
            answer.insert_header((header::CONTENT_TYPE, "application/problem+json"));
        }
        // Some proxies cache 404 and 410 responses by default.
        answer.insert_header((header::CACHE_CONTROL, "no-store"));
        match &self.error {
            // RFC 9110 requires this header for 401.
            Error::Unauthenticated | Error::Token(_) => {
                answer.insert_header((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")));
            }
            // These pass by themselves, so one second is a reasonable wait for the client.
            Error::TooMany | Error::Busy | Error::Unavailable(_) => {
                answer.insert_header((header::RETRY_AFTER, HeaderValue::from_static("1")));
            }
            // An administrator or a time daemon has to correct these, which takes longer.
            Error::ClockSkew | Error::Archive(_) | Error::NoArchives => {
                answer.insert_header((header::RETRY_AFTER, HeaderValue::from_static("30")));
            }
            _ => {}
        }
        match protocol {
            Some(error) => answer.json(error.body(&self.body.request_id)),
            None => answer.json(&self.body),
        }
    }
}

/// Returns status, code and title of an error. The match is exhaustive, so that each new error gets its own.
fn shape_of(error: &Error) -> ProblemType {
    match error {
        Error::NotFound(_) => shape(StatusCode::NOT_FOUND, "not_found", "Not found"),
        Error::Forbidden(_) | Error::NotOfRole { .. } => shape(StatusCode::FORBIDDEN, "forbidden", "Forbidden"),
        Error::Unauthenticated | Error::Token(_) => {
            shape(StatusCode::UNAUTHORIZED, "unauthenticated", "Not authenticated")
        }
        Error::Json(error) => shape(json_status(error.code), error.code.as_str(), "Invalid JSON"),
        Error::Invalid { .. } => shape(StatusCode::BAD_REQUEST, "malformed", "Invalid request"),
        Error::Rejected(_) => shape(StatusCode::UNPROCESSABLE_ENTITY, "rejected", "The policy rejects the request"),
        Error::Policy(_) => shape(StatusCode::UNPROCESSABLE_ENTITY, "policy_refused", "The policy is invalid"),
        Error::HeadMoved { .. } => shape(StatusCode::CONFLICT, "head_moved", "The head has moved"),
        Error::StepReused { .. } => shape(StatusCode::CONFLICT, "step_reused", "The step was used for another request"),
        Error::Conflict { .. } => shape(StatusCode::CONFLICT, "conflict", "The branches conflict"),
        Error::NotSealed(why) => {
            shape(StatusCode::UNPROCESSABLE_ENTITY, why.why.code().as_str(), "The envelope cannot be created")
        }
        Error::Envelope(why) => shape(StatusCode::UNPROCESSABLE_ENTITY, why.code.as_str(), "The envelope is invalid"),
        Error::ThreadHeld(_) => shape(StatusCode::CONFLICT, "thread_held", "The thread has a pending review"),
        Error::WriteInProgress => shape(StatusCode::CONFLICT, "write_in_progress", "A write is in progress"),
        Error::Halted => shape(StatusCode::CONFLICT, "halted", "Halted"),
        Error::Closed => shape(StatusCode::CONFLICT, "closed", "The thread is closed"),
        Error::Imported => shape(StatusCode::CONFLICT, "imported", "The thread is an imported run"),
        Error::Exists(_) => shape(StatusCode::CONFLICT, "exists", "The name is taken"),
        Error::WrongState(_) => shape(StatusCode::CONFLICT, "wrong_state", "Wrong state for this request"),
        Error::Denied(code) => shape(StatusCode::FORBIDDEN, code.as_str(), "The write is denied"),
        Error::ApprovalRequest(why) => shape(status_of(*why), why.code(), "Wrong state for this request"),
        Error::NotTaken(why) => shape(not_taken_status(*why), why.code(), "The interrupt is refused"),
        Error::NotRepeated(why) => shape(not_repeated_status(*why), why.code(), "The request cannot be repeated"),
        Error::Vote(refused) => shape(StatusCode::CONFLICT, vote_code(refused), "The vote is not counted"),
        Error::Passkey(_) => shape(StatusCode::CONFLICT, "passkey_refused", "The passkey is refused"),
        Error::Misdirected => shape(StatusCode::MISDIRECTED_REQUEST, "misdirected", "Not through the reverse proxy"),
        Error::NotLetIn(reason) => shape(not_let_in_status(*reason), reason.as_str(), "Sign-in refused"),
        Error::TooMany => shape(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", "Too many requests"),
        Error::Busy => shape(StatusCode::SERVICE_UNAVAILABLE, "busy", "Busy"),
        Error::Expired => shape(StatusCode::CONFLICT, "expired", "The deadline has passed"),
        Error::ClockSkew => shape(StatusCode::SERVICE_UNAVAILABLE, "clock_skew", "The clocks differ"),
        // The status is 410 and not 404, because the version exists and its values do not come back.
        Error::Erased => shape(StatusCode::GONE, "state_erased", "The values are erased"),
        Error::Archive(ArchiveFileError::Missing(..)) | Error::NoArchives => {
            shape(StatusCode::SERVICE_UNAVAILABLE, "archive_missing", "An archive is missing")
        }
        Error::Archive(ArchiveFileError::Damaged(..)) => {
            shape(StatusCode::SERVICE_UNAVAILABLE, "archive_damaged", "An archive is damaged")
        }
        Error::Broken(_) => {
            shape(StatusCode::INTERNAL_SERVER_ERROR, "chain_broken", "The stored data differs from the signed data")
        }
        Error::Unavailable(_) => {
            shape(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", "The database cannot be used")
        }
        Error::Store(_) | Error::Copy(_) | Error::Mail(_) | Error::Unwritten(_) => {
            shape(StatusCode::INTERNAL_SERVER_ERROR, "internal", "The gateway failed")
        }
        Error::Keyring(_) => shape(StatusCode::INTERNAL_SERVER_ERROR, "keyring", "The gateway's keys cannot be used"),
    }
}

fn json_status(code: JsonCode) -> StatusCode {
    if code == JsonCode::TooLarge { StatusCode::PAYLOAD_TOO_LARGE } else { StatusCode::BAD_REQUEST }
}

const fn not_taken_status(why: InterruptRejected) -> StatusCode {
    match why {
        InterruptRejected::Differs | InterruptRejected::EarlierAttempt => StatusCode::CONFLICT,
        // A signed post with an old timestamp can be a replay, so it does not authenticate its sender.
        InterruptRejected::Stale => StatusCode::UNAUTHORIZED,
        InterruptRejected::PostDiffers
        | InterruptRejected::AttemptsExhausted
        | InterruptRejected::NobodyAsked
        | InterruptRejected::NobodyCanApprove => StatusCode::UNPROCESSABLE_ENTITY,
    }
}

const fn not_repeated_status(why: IdempotencyError) -> StatusCode {
    match why {
        IdempotencyError::Missing => StatusCode::BAD_REQUEST,
        IdempotencyError::Differs => StatusCode::UNPROCESSABLE_ENTITY,
        IdempotencyError::Running | IdempotencyError::TooLong => StatusCode::CONFLICT,
    }
}

fn not_let_in_status(reason: SignInRejected) -> StatusCode {
    match reason {
        SignInRejected::ProviderDown => StatusCode::SERVICE_UNAVAILABLE,
        SignInRejected::UnknownState => StatusCode::BAD_REQUEST,
        _ => StatusCode::FORBIDDEN,
    }
}

/// Returns the code of a refused vote.
pub fn vote_code(refused: &VoteRejected) -> &'static str {
    match refused {
        VoteRejected::Ended => "review_ended",
        VoteRejected::Expired => "expired",
        VoteRejected::Digest => "digest_mismatch",
        VoteRejected::Ineligible(_) => "not_eligible",
        VoteRejected::Stage => "wrong_stage",
        VoteRejected::Delegation => "not_delegated",
        VoteRejected::CommentRequired => "comment_required",
        VoteRejected::CommentTooLong => "comment_too_long",
        VoteRejected::NonceUsed => "nonce_used",
        VoteRejected::Mismatch => "browser_mismatch",
        VoteRejected::OutcomeUnknown => "write_outcome_unknown",
        VoteRejected::NotTyped => "confirmation_not_typed",
        VoteRejected::MovedOn => "vote_moved_on",
        VoteRejected::Alone(_) => "decided_alone",
        VoteRejected::PolicyChanged => "policy_changed",
        VoteRejected::NothingToWithdraw => "nothing_to_withdraw",
        VoteRejected::WithdrawnTooOften => "withdrawn_too_often",
        VoteRejected::PasskeyRequired => "passkey_required",
        VoteRejected::PasskeyStale => "passkey_stale",
        VoteRejected::SignatureExpired => "signature_expired",
        VoteRejected::Passkey(_) => "passkey_refused",
    }
}

/// The next step after a request whose outcome is unknown.
const OUTCOME_UNKNOWN: &str = "This request may or may not have been carried out. Wait a few seconds, or for the \
    time in `Retry-After`. Then send the same request again, with the same `write_id` or `Idempotency-Key` if it has \
    one. Nothing is done twice.";

/// Returns the detail, a fixed text that contains no data of unauthenticated clients.
fn detail_of(error: &Error) -> String {
    match error {
        Error::Denied(code) => code.detail().to_owned(),
        Error::Envelope(why) => why.code.detail().to_owned(),
        Error::Archive(_) | Error::NoArchives => {
            "The values of this version are in an archive that cannot be used. Give the request id to an \
             administrator. The server log names the file, which must be restored from a backup."
                .to_owned()
        }
        Error::Unavailable(_) => format!("The gateway's database is unavailable. {OUTCOME_UNKNOWN}"),
        // The change may be committed although its confirmation was lost, so the text must not say that it failed.
        _ if error.outcome_is_unknown() => format!(
            "The gateway's database failed. {OUTCOME_UNKNOWN} If it fails again, give the request id to an \
             administrator. The server log has details."
        ),
        _ if error.kind() == ErrorKind::Failed => {
            "Nothing was changed. Give the request id to an administrator. The server log has details.".to_owned()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use countersign_store::StoreError;

    use super::*;

    #[test]
    fn failed_database_does_not_promise_that_nothing_was_changed() {
        let detail = |failure| detail_of(&Error::from(failure));
        let failed = detail(StoreError::Database("x".to_owned()));
        assert!(failed.contains("may or may not") && failed.contains("`write_id`"), "{failed}");
        assert!(detail(StoreError::Unsealed("rows")).contains("Nothing was changed"));
    }
}
