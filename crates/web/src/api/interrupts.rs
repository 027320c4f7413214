//! Interrupts from host applications that manage their own state.

use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use countersign_domain::identity::account::MachineRole;
use countersign_domain::interrupts::{HostAssertion, Interrupt, InterruptKind};
use countersign_domain::primitives::id::InterruptId;
use countersign_service::error::{Error, Result};
use countersign_service::identity::Identity;
use countersign_service::interrupts::Interrupts;
use countersign_service::platform::core::Core;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::idempotency_key::{IdempotentPost, told};
use super::{long_poll, of_own_flow};
use crate::api::long_poll::LongPoll;
use crate::auth::extractors::{Machine, PostCaller};
use crate::limits::rate_limit::RateLimiter;
use crate::state::Capability;

/// The body of `POST /v1/interrupts`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InterruptRequest {
    /// `state_transition_review`.
    pub kind: InterruptKind,
    /// The host's own digest of the step, 16 to 200 characters. It is returned unchanged.
    #[schema(min_length = 16, max_length = 200, pattern = "^[A-Za-z0-9:_+/=-]{16,200}$")]
    pub transition_digest: String,
    /// The keys that the step changes: at most 500 characters each, and 64 KiB in total.
    #[schema(max_items = 200)]
    pub changed_keys: Vec<String>,
    /// The changes of the step, for people to read: any JSON of at most 64 KiB and 500 values.
    pub redacted_diff: Value,
    /// The host framework's id of the interrupt. It is returned unchanged.
    #[schema(min_length = 1, max_length = 200, pattern = "^[A-Za-z0-9:_+/=-]{1,200}$")]
    pub interrupt_id: String,
    /// The host's own id of the thread.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 200)]
    pub thread_ref: Option<String>,
    /// The title, in one line.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 200)]
    pub title: Option<String>,
    /// The reason why the step needs a decision.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 2000)]
    pub reason: Option<String>,
    /// The time for the decision, in seconds. The policy's `ttl` is the default and the maximum.
    #[serde(default)]
    #[schema(minimum = 60)]
    pub expires_in: Option<u64>,
    /// The number of the attempt, from 1.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub attempt: Option<u32>,
}

impl From<InterruptRequest> for HostAssertion {
    fn from(it: InterruptRequest) -> Self {
        Self {
            kind: it.kind,
            transition_digest: it.transition_digest,
            changed_keys: it.changed_keys,
            redacted_diff: it.redacted_diff,
            interrupt_id: it.interrupt_id,
            // A missing number means the first attempt, as it does for proposals.
            attempt: it.attempt.unwrap_or(1),
            thread_ref: it.thread_ref,
            title: it.title,
            reason: it.reason,
            expires_in: it.expires_in,
        }
    }
}

/// The burst of equal signed posts. Senders wait longer before each retry, so they stay below it.
const POSTS_BURST: u32 = 30;

/// The time after which one more equal post is accepted.
const POSTS_INTERVAL: Duration = Duration::from_secs(10);

/// Limits how fast one signed post is repeated.
pub fn throttle() -> RateLimiter {
    RateLimiter::new(POSTS_BURST, POSTS_INTERVAL)
}

/// Request a decision for a step of a host application.
///
/// Returns 202 with the review's address. Repeating the same post returns the same response. Returns 409
/// `interrupt_differs` if the digest was posted with other members. Send the host's token, or sign the post with
/// Standard Webhooks and set `?source=` to the token's id.
#[utoipa::path(
    post, path = "/v1/interrupts", tag = "interrupts", request_body = InterruptRequest,
    params(
        ("source" = Option<countersign_domain::primitives::id::TokenId>, Query, description = "For a signed post: the id of the token that signed it"),
        ("webhook-id" = Option<String>, Header, description = "For a signed post (Standard Webhooks): its id"),
        ("webhook-timestamp" = Option<String>, Header, description = "For a signed post: its time in seconds"),
        ("webhook-signature" = Option<String>, Header, description = "For a signed post: `v1,` and an HMAC-SHA-256"),
    ),
    responses((status = 202, description = "The interrupt is under review, or was", body = super::responses::InterruptResponse))
)]
pub async fn post(
    request: HttpRequest,
    interrupts: Capability<Interrupts>,
    sender: PostCaller,
) -> Result<HttpResponse> {
    let PostCaller { token, body, post: named } = sender;
    let post = IdempotentPost::new(request, token, body);
    let asserted = HostAssertion::from(post.read::<InterruptRequest>()?);
    let work = interrupts.receive_interrupt(&post.token, &asserted, named.as_ref());
    let tell = |core: &Core, it: &Interrupt| Ok(told(StatusCode::ACCEPTED, &reference(it, core.public_url())));
    // The ID of a signed post is covered by the signature, and an `Idempotency-Key` header is not.
    if named.is_some() { post.signed(work, tell).await } else { post.once(work, tell).await }
}

/// Returns the members that never change, so that a repeated request gets the same response.
fn reference(interrupt: &Interrupt, url: &str) -> Value {
    let Interrupt { id, asserted, digest, asking, expires_at, .. } = interrupt;
    let needed = asking.stages.iter().map(|it| json!({"groups": it.groups, "need": it.need}));
    json!({
        "id": id, "interrupt_id": asserted.interrupt_id, "transition_digest": asserted.transition_digest,
        "attempt": asserted.attempt, "digest": digest, "url": format!("{url}/interrupts/{id}"),
        "expires_at": expires_at, "needed": needed.collect::<Vec<_>>(),
    })
}

/// Read the decision of an interrupt.
///
/// Returns 200 with the decision and its signed answer, always the same bytes. Returns 202 while the review is
/// open. `Prefer: wait=N` waits up to N seconds (long polling).
#[utoipa::path(
    get, path = "/v1/interrupts/{interrupt}", tag = "interrupts",
    params(
        ("interrupt" = InterruptId, Path, description = "The gateway's id of the interrupt"),
        ("Prefer" = Option<String>, Header, description = "`wait=N` waits up to N seconds for the decision", example = "wait=30"),
    ),
    responses((status = 200, description = "The decision, always the same bytes. Auditors also get `evidence`, the passkey signatures of the votes", body = countersign_domain::interrupts::InterruptDecisionResponse), (status = 202, description = "Still open. Send the request again", body = super::responses::PendingInterruptResponse))
)]
pub async fn read(
    request: HttpRequest,
    identity: Capability<Identity>,
    interrupts: Capability<Interrupts>,
    waiting: LongPoll,
    machine: Machine,
    interrupt: Path<String>,
) -> Result<HttpResponse> {
    // An invalid ID cannot belong to an interrupt, so it is the same error as an unknown one.
    let id = InterruptId::try_from(interrupt.as_str()).map_err(|_| Error::NotFound("interrupt"))?;
    let known = interrupts.interrupt(&id).await?;
    // An interrupt of another flow must look like a missing one.
    of_own_flow(&machine, &known.flow, "interrupt")?;
    let look = || interrupts.interrupt_answer(&id, &machine.0.record);
    let wished = long_poll::requested_wait(&request);
    let Some(answered) = long_poll::poll_until(&waiting, &machine.0, wished, look).await? else {
        return Ok(HttpResponse::Accepted().json(json!({"status": "open"})));
    };
    // Evidence identifies the passkeys of reviewers, so it is for auditors only.
    if machine.0.record.role == MachineRole::Auditor {
        let mut told = json!(answered);
        told["evidence"] = json!(identity.vote_evidence(&interrupts.interrupt(&id).await?)?);
        return Ok(HttpResponse::Ok().json(told));
    }
    Ok(HttpResponse::Ok().json(answered))
}
