//! Verification of writes and their outcomes.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Path;
use countersign_domain::chain::denial::DenialCode;
use countersign_domain::chain::hash::Digest;
use countersign_domain::primitives::id::{PrincipalId, ThreadId, WriteId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::thread::WriteKey;
use countersign_domain::writes::write::{Write, WriteResolution, WriteState};
use countersign_service::error::{Error, Result};
use countersign_service::writes::Writes;
use countersign_service::writes::verify::{VerifyInput, read_expectations};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::idempotency_key::{IdempotentPost, told};
use super::json_body;
use super::threads::ReasonRequest;
use crate::auth::extractors::CachedTokenMachine;
use crate::state::{Capability, EdgeConfig};

/// The body of `POST /v1/verify`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifyRequest {
    /// The thread. Take it from your own job, never from an agent.
    pub thread: ThreadId,
    /// The transition to write.
    pub transition: Digest,
    /// The receipt, if the writer has one.
    #[serde(default)]
    pub receipt: Option<String>,
    /// The writer's id of the write. The same id gets the same answer while the lease is active.
    pub write_id: WriteId,
    /// The expected values, by JSON Pointer.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub expect: Map<String, Value>,
}

/// The answer to a writer that may write.
#[derive(Debug, Serialize, ToSchema)]
pub struct VerifyResponse {
    /// Always true.
    pub allow: bool,
    /// The writer's id of the write.
    pub write_id: WriteId,
    /// The fencing token. It is larger than that of every earlier write of the thread. A database that stores the
    /// largest one refuses late writers.
    pub fence: u64,
    /// The time until which the writer may write.
    pub lease_expires_at: Timestamp,
    /// The state as far as the writer may read it. Take the values to write only from here.
    #[schema(value_type = Object)]
    pub view: Value,
    /// The whole answer, signed.
    pub verification: String,
    /// Whether the policy is enforced.
    pub enforced: bool,
    /// Whether this is the stored answer of an earlier call.
    pub replayed: bool,
}

/// The body of `POST /v1/writes/{write_id}/confirm`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfirmWriteRequest {
    /// A patch within the `writes` of the writer's node: the written values, or a reference to them.
    #[schema(value_type = Object)]
    pub result: Value,
}

/// The body of `POST /v1/threads/{thread}/lapses/{write_id}/resolution`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolveWriteRequest {
    /// The id of the writer's token.
    pub principal: PrincipalId,
    /// The result.
    pub outcome: WriteResolution,
    /// The evidence for the outcome.
    pub reason: String,
}

/// Verify a write before you carry it out.
///
/// Returns 200 with `allow: true`, a fencing token (`fence`) and a lease. Any other response, and no response,
/// means: do not write. Denials are 403 with a code. Repeat the request with the same `write_id` after a time-out.
#[utoipa::path(
    post, path = "/v1/verify", tag = "writes", request_body = VerifyRequest,
    responses((status = 200, description = "The write is allowed once", body = VerifyResponse))
)]
pub async fn verify(
    edge: Capability<EdgeConfig>,
    writes: Capability<Writes>,
    sender: CachedTokenMachine,
) -> Result<HttpResponse> {
    // A writer treats every denial of `verify` the same way, so an unreadable request is a denial too.
    let ask: VerifyRequest = json_body::read(&edge, &sender.body).map_err(malformed)?;
    let ask = VerifyInput {
        thread: ask.thread,
        transition: ask.transition,
        receipt: ask.receipt,
        write_id: ask.write_id,
        expect: read_expectations(ask.expect)?,
    };
    let allowed = writes.verify(&sender.token, &ask).await?;
    Ok(HttpResponse::Ok().json(VerifyResponse {
        allow: true,
        write_id: allowed.write.key.write_id,
        fence: allowed.write.fence,
        lease_expires_at: allowed.write.lease_expires_at,
        view: allowed.view,
        verification: allowed.write.verification,
        enforced: allowed.write.enforced,
        replayed: allowed.replayed,
    }))
}

/// Turns an unreadable request into a denial, so that a client that checks only the status writes nothing (fail
/// closed).
fn malformed(error: Error) -> Error {
    match error {
        Error::Json(_) | Error::Invalid { .. } => Error::Denied(DenialCode::Malformed),
        other => other,
    }
}

/// Report a completed write.
///
/// Returns 200 with the outcome: `confirmed`, or `late` if the head has changed. Repeat the request until you get a
/// response. If the policy does not allow the `result`, the write is recorded without it (`result_refused`).
#[utoipa::path(
    post, path = "/v1/writes/{write_id}/confirm", tag = "writes", request_body = ConfirmWriteRequest,
    params(
        ("write_id" = WriteId, Path, description = "The writer's name of the write"),
    ),
    responses((status = 200, description = "The outcome of the write", body = super::responses::WriteOutcomeResponse))
)]
pub async fn confirm(writes: Capability<Writes>, post: IdempotentPost, write_id: Path<String>) -> Result<HttpResponse> {
    let write_id: WriteId = json_body::name("/write_id", &write_id)?;
    let ask: ConfirmWriteRequest = post.read()?;
    // The write ID already makes repetitions safe, so an idempotency key is ignored.
    ended(&writes.confirm(&post.token, &write_id, &ask.result).await?)
}

/// Report that nothing was written.
///
/// Returns 200 with the outcome. Repeat the request until you get a response. Later repetitions return the first
/// response.
#[utoipa::path(
    post, path = "/v1/writes/{write_id}/abort", tag = "writes", request_body = ReasonRequest,
    params(
        ("write_id" = WriteId, Path, description = "The writer's name of the write"),
    ),
    responses((status = 200, description = "The outcome of the write", body = super::responses::WriteOutcomeResponse))
)]
pub async fn abort(writes: Capability<Writes>, post: IdempotentPost, write_id: Path<String>) -> Result<HttpResponse> {
    let write_id: WriteId = json_body::name("/write_id", &write_id)?;
    let ask: ReasonRequest = post.read()?;
    ended(&writes.abort(&post.token, &write_id, &ask.reason).await?)
}

/// Returns the outcome of a write as a response.
fn ended(write: &Write) -> Result<HttpResponse> {
    let mut answer = json!({
        "write_id": write.key.write_id, "outcome": "late", "version": write.version, "transition": write.transition,
    });
    match &write.state {
        WriteState::Confirmed { version, transition, refused, .. } => {
            answer["outcome"] = json!("confirmed");
            answer["version"] = json!(version);
            answer["transition"] = json!(transition);
            // The write has already happened, so an invalid result is reported and does not undo the confirmation.
            if !refused.is_empty() {
                answer["result_refused"] = json!(true);
                answer["errors"] = json!(refused);
            }
        }
        WriteState::Aborted { .. } => answer["outcome"] = json!("aborted"),
        WriteState::Failed { .. } => answer["outcome"] = json!("failed"),
        WriteState::Late { .. } | WriteState::Resolved { .. } => {}
        // Confirming and aborting always end the reservation, so an open one here is a fault of the stored data.
        WriteState::Reserved {} => return Err(Error::Broken("a write that was to end")),
    }
    Ok(HttpResponse::Ok().json(answer))
}

/// Record the outcome of an unknown write.
///
/// Returns 200. Use it if a lease has expired (`lapsed`) and the writer does not report the outcome. Returns 409
/// `wrong_state` if the outcome is already known.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/lapses/{write_id}/resolution", tag = "administration", request_body = ResolveWriteRequest,
    params(
        ("thread" = ThreadId, Path, description = "The name of the thread"),
        ("write_id" = WriteId, Path, description = "The writer's name of the write"),
    ),
    responses((status = 200, description = "The outcome is recorded", body = super::responses::WriteResolutionResponse))
)]
pub async fn resolve(
    writes: Capability<Writes>,
    post: IdempotentPost,
    path: Path<(String, String)>,
) -> Result<HttpResponse> {
    let (thread, write_id): (ThreadId, WriteId) =
        (json_body::name("/thread", &path.0)?, json_body::name("/write_id", &path.1)?);
    let ask: ResolveWriteRequest = post.read()?;
    // Write IDs are unique only among those of one token.
    let key = WriteKey { principal: ask.principal, write_id };
    let (by, outcome) = (post.token.record.principal(), ask.outcome);
    let work = writes.resolve_write(&by, &thread, &key, outcome, &ask.reason);
    post.once(work, move |_, write: &Write| {
        Ok(told(StatusCode::OK, &json!({"write_id": write.key.write_id, "outcome": outcome})))
    })
    .await
}
