//! Proposals and their decisions.

pub mod view;

use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use countersign_domain::chain::hash::Digest;
use countersign_domain::json::patch::PatchFormat;
use countersign_domain::primitives::id::{NodeId, StepKey, ThreadId};
use countersign_domain::threads::tool_call::Tool;
use countersign_domain::threads::usage::{InvalidUsage, Usage};
use countersign_service::error::{Error, Result};
use countersign_service::proposals::Proposals;
use countersign_service::proposals::request::{Proposal, ProposalKind};
use countersign_service::reviews::decision::DecisionResponse;
use countersign_service::threads::Threads;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::idempotency_key::{IdempotentPost, told};
use super::json_body;
use super::threads::ReasonRequest;
use super::{long_poll, of_own_flow};
use crate::api::long_poll::LongPoll;
use crate::api::transitions::view::TransitionCapabilities;
use crate::auth::extractors::Machine;
use crate::state::Capability;
use view::{answer, transition_json};

/// The body of `POST /v1/threads/{thread}/transitions`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProposeRequest {
    /// The node that acts. The token must name it.
    pub node: NodeId,
    /// The digest of the head that the proposal is based on.
    pub parent: Digest,
    /// The patch.
    pub patch: Value,
    /// The format of the patch: `merge` (the default), `merge-patch` or `json-patch`.
    pub format: Option<PatchFormat>,
    /// Requests a receipt for the current head. `patch` must be `{}`.
    #[serde(default)]
    pub reaffirm: bool,
    /// The number of the attempt, from 1.
    #[schema(minimum = 1)]
    pub attempt: Option<u32>,
    /// The tool that the agent calls with the proposal: `{name, arguments}`.
    #[schema(value_type = Option<super::responses::ToolCall>)]
    pub tool: Option<Value>,
    /// The usage of the request: `{tokens, cost}`, both optional.
    #[schema(value_type = Option<super::responses::UsageInput>)]
    pub usage: Option<Value>,
    /// The reason in the agent's words. Reviewers see it as untrusted text.
    #[schema(min_length = 1, max_length = 8000)]
    pub rationale: Option<String>,
    /// The agent's own id of this step. One step has one effect, on any head and however often it is sent.
    pub step: Option<StepKey>,
}

/// The body of `POST /v1/threads/{thread}/rollbacks`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RollbackRequest {
    /// The version whose state is requested.
    pub to_version: u64,
    /// The node that acts. The token must name it.
    pub node: NodeId,
    /// The digest of the head that the proposal is based on.
    pub parent: Digest,
    /// The number of the attempt, from 1.
    #[schema(minimum = 1)]
    pub attempt: Option<u32>,
    /// The agent's own id of this step. One step has one effect, on any head and however often it is sent.
    pub step: Option<StepKey>,
}

/// Propose a state change.
///
/// Returns 201 if the policy commits it, 202 if it is held for approval, 422 if it is rejected. Returns 409
/// `head_moved` if another version was committed first. Then read the view again and propose again.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/transitions", tag = "proposals", request_body = ProposeRequest,
    params(
        ("thread" = ThreadId, Path, description = "The name of the thread"),
    ),
    responses((status = 201, description = "Committed", body = super::responses::CommittedResponse), (status = 202, description = "Held for approval", body = super::responses::HeldResponse))
)]
pub async fn propose(
    proposals: Capability<Proposals>,
    post: IdempotentPost,
    thread: Path<String>,
) -> Result<HttpResponse> {
    let thread: ThreadId = json_body::name("/thread", &thread)?;
    let ask: ProposeRequest = post.read()?;
    let proposal = read_proposal(thread, ask)?;
    post.once(proposals.propose(&post.token, &proposal), answer).await
}

/// Converts a request body to a proposal.
pub fn read_proposal(thread: ThreadId, ask: ProposeRequest) -> Result<Proposal> {
    // A reaffirmation asks for approval of the current head only, so it neither calls a tool nor adds usage.
    if ask.reaffirm && (ask.tool.is_some() || ask.usage.is_some()) {
        return Err(Error::invalid("", "`reaffirm` allows no `tool` and no `usage`: remove them"));
    }
    let (tool, usage) = read_along(ask.tool.as_ref(), ask.usage.as_ref())?;
    let asked = match (ask.reaffirm, &ask.patch) {
        (true, Value::Object(patch)) if patch.is_empty() && ask.format.is_none() => ProposalKind::Reaffirm,
        (true, _) => return Err(Error::invalid("/patch", "`reaffirm` requires the empty patch `{}` and no `format`")),
        (false, _) => ProposalKind::Patch { format: ask.format.unwrap_or(PatchFormat::Merge), patch: ask.patch },
    };
    // The attempt distinguishes a deliberate new request from a repeated one, so a missing number means the first.
    let attempt = ask.attempt.unwrap_or(1);
    Ok(Proposal {
        thread,
        node: ask.node,
        parent: ask.parent,
        ask: asked,
        attempt,
        rationale: ask.rationale,
        tool,
        usage,
        step: ask.step,
    })
}

/// Reads the tool and the usage of a proposal.
pub(super) fn read_along(tool: Option<&Value>, usage: Option<&Value>) -> Result<(Option<Tool>, Usage)> {
    // The pointers begin at the member itself, and clients expect them from the root of the body.
    let below = |at: &str, wrong: InvalidUsage| Error::invalid(&format!("{at}{}", wrong.pointer), wrong.detail);
    let tool = tool.map(Tool::read).transpose().map_err(|it| below("/tool", it))?;
    let usage = usage.map(Usage::read).transpose().map_err(|it| below("/usage", it))?;
    Ok((tool, usage.unwrap_or_default()))
}

/// Propose a rollback to an earlier version.
///
/// Returns 202, because a rollback always requires approval. Returns 201 if the flow only observes. Returns 410
/// `state_erased` if the values of that version are erased.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/rollbacks", tag = "proposals", request_body = RollbackRequest,
    params(
        ("thread" = ThreadId, Path, description = "The name of the thread"),
    ),
    responses((status = 201, description = "Committed, in a flow that only observes", body = super::responses::CommittedResponse), (status = 202, description = "Held for approval", body = super::responses::HeldResponse))
)]
pub async fn roll_back(
    proposals: Capability<Proposals>,
    post: IdempotentPost,
    thread: Path<String>,
) -> Result<HttpResponse> {
    let thread: ThreadId = json_body::name("/thread", &thread)?;
    let ask: RollbackRequest = post.read()?;
    let proposal = Proposal {
        thread,
        node: ask.node,
        parent: ask.parent,
        ask: ProposalKind::Rollback { to_version: ask.to_version },
        attempt: ask.attempt.unwrap_or(1),
        rationale: None,
        tool: None,
        usage: Usage::default(),
        step: ask.step,
    };
    post.once(proposals.propose(&post.token, &proposal), answer).await
}

/// Read a transition.
///
/// Returns 200 with the statement and the part of its effect that the caller may see. `stopped` has the cause if
/// its approval is no longer usable.
#[utoipa::path(
    get, path = "/v1/transitions/{digest}", tag = "proposals",
    params(
        ("digest" = Digest, Path, description = "The digest of the transition"),
    ),
    responses((status = 200, description = "The transition, as far as the caller may see it", body = super::responses::TransitionResponse))
)]
pub async fn read(app: TransitionCapabilities, machine: Machine, digest: Path<String>) -> Result<HttpResponse> {
    let digest: Digest = json_body::name("/digest", &digest)?;
    Ok(HttpResponse::Ok().json(transition_json(&app, &machine, digest).await?))
}

/// Read the decision on a transition.
///
/// Returns 200 with the decision and the receipt. The body is the same each time, except for redaction of
/// `comment`. Returns 202 while the transition is held. `Prefer: wait=N` waits up to N seconds (long polling).
#[utoipa::path(
    get, path = "/v1/transitions/{digest}/decision", tag = "proposals",
    params(
        ("digest" = Digest, Path, description = "The digest of the transition"),
        ("Prefer" = Option<String>, Header, description = "`wait=N` waits up to N seconds for the decision", example = "wait=30"),
    ),
    responses((status = 200, description = "The decision. It is the same each time, except for redaction of `comment`", body = DecisionResponse), (status = 202, description = "Still held. Send the request again", body = super::responses::PendingDecisionResponse))
)]
pub async fn decision(
    request: HttpRequest,
    app: TransitionCapabilities,
    waiting: LongPoll,
    machine: Machine,
    digest: Path<String>,
) -> Result<HttpResponse> {
    let digest: Digest = json_body::name("/digest", &digest)?;
    match decided(&app, &waiting, &machine, digest, long_poll::requested_wait(&request)).await? {
        Some(decision) => Ok(HttpResponse::Ok().json(decision)),
        // After 202 the client waits again.
        None => Ok(HttpResponse::Accepted().json(still_held())),
    }
}

/// Returns the decision on a transition, or `None` if it is still held after the wait.
pub async fn decided(
    app: &TransitionCapabilities,
    waiting: &LongPoll,
    machine: &Machine,
    digest: Digest,
    wished: Duration,
) -> Result<Option<DecisionResponse>> {
    // The flow is checked first, so that a transition of another flow looks like a missing one.
    of_own_flow(machine, &app.threads.flow_of_transition(digest).await?, "transition")?;
    // The comment of a decision can quote redacted values, so it is masked for this reader.
    let reader = &app.identity.reader_with(&machine.0.record).await?;
    let look = || async move { Ok(app.reviews.decision(digest, reader).await?.1) };
    long_poll::poll_until(waiting, &machine.0, wished, look).await
}

/// Returns the response for a transition that is still held.
pub fn still_held() -> Value {
    json!({"status": "held"})
}

/// Cancel a held proposal.
///
/// Returns 200. Only the token that proposed it can cancel it. Returns 409 `wrong_state` if it is no longer held,
/// and 409 `expired` after its deadline.
#[utoipa::path(
    post, path = "/v1/transitions/{digest}/cancellation", tag = "proposals", request_body = ReasonRequest,
    params(
        ("digest" = Digest, Path, description = "The digest of the transition"),
    ),
    responses((status = 200, description = "Cancelled", body = super::responses::CancelResponse))
)]
pub async fn cancel(threads: Capability<Threads>, post: IdempotentPost, digest: Path<String>) -> Result<HttpResponse> {
    let digest: Digest = json_body::name("/digest", &digest)?;
    let ask: ReasonRequest = post.read()?;
    let work = threads.cancel(&post.token, digest, &ask.reason);
    let body = json!({"transition": digest, "status": "cancelled"});
    post.once(work, move |_, ()| Ok(told(StatusCode::OK, &body))).await
}
