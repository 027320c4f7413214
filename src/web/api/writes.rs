//! Verify, and how writes end.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::idempotency_key::{Post, told};
use super::json_body;
use super::threads::Reason;
use crate::domain::chain::denial::DenialCode;
use crate::domain::chain::hash::Digest;
use crate::domain::primitives::id::{PrincipalId, ThreadId, WriteId};
use crate::domain::primitives::time::Timestamp;
use crate::domain::threads::thread::WriteKey;
use crate::domain::writes::write::{Resolution, Write, WriteState};
use crate::service::error::{Error, Result};
use crate::service::writes::verify::{VerifyAsk, read_expectations};
use crate::web::auth::extractors::Presumed;
use crate::web::state::App;

/// `POST /v1/verify`
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Verify {
    /// In which thread; bound to the writer's own job, never to what an agent routed to it.
    pub thread: ThreadId,
    /// Which transition it means to write.
    pub transition: Digest,
    /// The receipt, if it has one.
    #[serde(default)]
    pub receipt: Option<String>,
    /// What it calls the write; the same name again gives the same answer while the lease lives.
    pub write_id: WriteId,
    /// What it expects to read: pointers to values.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub expect: Map<String, Value>,
}

/// What a writer that is let through is answered.
#[derive(Debug, Serialize, ToSchema)]
pub struct Verified {
    /// Always true.
    pub allow: bool,
    /// What the writer called the write.
    pub write_id: WriteId,
    /// Larger than that of any write of this thread before: a database that keeps the largest refuses latecomers.
    pub fence: u64,
    /// Until when the writer may write.
    pub lease_expires_at: Timestamp,
    /// The state as the writer may read it: from here, and from nowhere else, come the values to write.
    #[schema(value_type = Object)]
    pub view: Value,
    /// All of it, signed.
    pub verification: String,
    /// Whether the policy is enforced.
    pub enforced: bool,
    /// Whether the same call was answered before.
    pub replayed: bool,
}

/// `POST /v1/writes/{write_id}/confirm`
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Confirm {
    /// The patch of the writer's own node: what it wrote, or a reference to it.
    #[schema(value_type = Object)]
    pub result: Value,
}

/// `POST /v1/threads/{thread}/lapses/{write_id}/resolution`
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Resolve {
    /// Whose write.
    pub principal: PrincipalId,
    /// What became of it.
    pub outcome: Resolution,
    /// How that is known.
    pub reason: String,
}

/// The writer's question before any write. Whatever is not a 200 with `allow: true` is a no.
#[utoipa::path(
    post, path = "/v1/verify", tag = "writes", request_body = Verify,
    responses((status = 200, description = "Let through, once", body = Verified))
)]
pub async fn verify(app: Data<App>, sender: Presumed) -> Result<HttpResponse> {
    let ask: Verify = json_body::read(&app, &sender.body).map_err(malformed)?;
    let ask = VerifyAsk {
        thread: ask.thread,
        transition: ask.transition,
        receipt: ask.receipt,
        write_id: ask.write_id,
        expect: read_expectations(ask.expect)?,
    };
    let allowed = app.service.verify(&sender.token, &ask).await?;
    Ok(HttpResponse::Ok().json(Verified {
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

/// A client that only looks at the status must stay closed: what verify cannot read it denies.
fn malformed(error: Error) -> Error {
    match error {
        Error::Json(_) | Error::Invalid { .. } => Error::Denied(DenialCode::Malformed),
        other => other,
    }
}

/// The writer says that it wrote.
#[utoipa::path(
    post, path = "/v1/writes/{write_id}/confirm", tag = "writes", request_body = Confirm,
    params(
        ("write_id" = WriteId, Path, description = "What the writer called the write"),
    ),
    responses((status = 200, description = "How the write ended", body = super::responses::WriteEnded))
)]
pub async fn confirm(post: Post, write_id: Path<String>) -> Result<HttpResponse> {
    let write_id: WriteId = json_body::name("/write_id", &write_id)?;
    let ask: Confirm = post.read()?;
    ended(&post.app.service.confirm(&post.token, &write_id, &ask.result).await?)
}

/// The writer says that it wrote nothing.
#[utoipa::path(
    post, path = "/v1/writes/{write_id}/abort", tag = "writes", request_body = Reason,
    params(
        ("write_id" = WriteId, Path, description = "What the writer called the write"),
    ),
    responses((status = 200, description = "How the write ended", body = super::responses::WriteEnded))
)]
pub async fn abort(post: Post, write_id: Path<String>) -> Result<HttpResponse> {
    let write_id: WriteId = json_body::name("/write_id", &write_id)?;
    let ask: Reason = post.read()?;
    ended(&post.app.service.abort(&post.token, &write_id, &ask.reason).await?)
}

/// How a write ended, in the wire's words.
fn ended(write: &Write) -> Result<HttpResponse> {
    let mut answer = json!({
        "write_id": write.key.write_id, "outcome": "late", "version": write.version, "transition": write.transition,
    });
    match &write.state {
        WriteState::Confirmed { version, transition, refused, .. } => {
            answer["outcome"] = json!("confirmed");
            answer["version"] = json!(version);
            answer["transition"] = json!(transition);
            if !refused.is_empty() {
                answer["result_refused"] = json!(true);
                answer["errors"] = json!(refused);
            }
        }
        WriteState::Aborted { .. } => answer["outcome"] = json!("aborted"),
        WriteState::Late { .. } | WriteState::Resolved { .. } => {}
        WriteState::Reserved {} => return Err(Error::Broken("a write that was to end")),
    }
    Ok(HttpResponse::Ok().json(answer))
}

/// An administrator says what became of a lapsed write.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/lapses/{write_id}/resolution", tag = "administration", request_body = Resolve,
    params(
        ("thread" = ThreadId, Path, description = "The thread's name"),
        ("write_id" = WriteId, Path, description = "What the writer called the write"),
    ),
    responses((status = 200, description = "Written down", body = super::responses::WriteResolved))
)]
pub async fn resolve(post: Post, path: Path<(String, String)>) -> Result<HttpResponse> {
    let (thread, write_id): (ThreadId, WriteId) =
        (json_body::name("/thread", &path.0)?, json_body::name("/write_id", &path.1)?);
    let ask: Resolve = post.read()?;
    let key = WriteKey { principal: ask.principal, write_id };
    let (by, outcome) = (post.token.record.principal(), ask.outcome);
    let work = post.app.service.resolve_write(&by, &thread, &key, (outcome, &ask.reason));
    post.once(work, move |_, write: &Write| {
        Ok(told(StatusCode::OK, &json!({"write_id": write.key.write_id, "outcome": outcome})))
    })
    .await
}
