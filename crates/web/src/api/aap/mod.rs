//! The Agent Approval Protocol, version 1: approvals of tool calls without threads.

pub mod instances;
mod wire;

use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::web::{Path, Query};
use actix_web::{HttpResponse, HttpResponseBuilder};
use countersign_domain::primitives::id::ToolName;
use countersign_domain::threads::approval_request::{CallStatus, Submission, read_timeout};
use countersign_service::approval_requests::ApprovalRequests;
use countersign_service::approval_requests::ask::CallableTools;
use countersign_service::approval_requests::view::ApprovalRequestView;
use countersign_service::error::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::Map;
use utoipa::ToSchema;

pub use wire::ApprovalRequestResponse;

use super::idempotency_key::{IdempotentPost, REPLAYED};
use super::long_poll::{LongPoll, poll_until};
use crate::auth::extractors::Machine;
use crate::state::Capability;

/// The header with the receipt of an approval. The objects of the protocol allow no other members.
const RECEIPT: HeaderName = HeaderName::from_static("countersign-receipt");

/// The header with the page of a pending review.
const REVIEW: HeaderName = HeaderName::from_static("countersign-review");

/// The header with the signed reservation of a consumed approval.
const VERIFICATION: HeaderName = HeaderName::from_static("countersign-verification");

/// The header of a used approval whose lease has ended without an outcome.
const OUTCOME: HeaderName = HeaderName::from_static("countersign-outcome");

/// The header of a request for a tool whose definition its server has changed.
const TOOL: HeaderName = HeaderName::from_static("countersign-tool");

/// The body of `POST /aap/v1/requests`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateApprovalRequest {
    /// The name of the tool.
    #[schema(min_length = 1, max_length = 128)]
    pub tool: String,
    /// The server of the tool. The policy then knows the tool as `server:tool`.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, min_length = 1, max_length = 128)]
    pub server: Option<String>,
    /// The arguments, exactly as the call will use them.
    #[schema(value_type = Object)]
    pub arguments: Map<String, serde_json::Value>,
    /// The time to wait for a decision, such as `10m`. The policy's `ttl` is the maximum.
    #[schema(pattern = "^([0-9]+[smhd])+$", example = "10m")]
    pub timeout: String,
    /// The agent's reason for the call. Reviewers read it.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, min_length = 1, max_length = 8000)]
    pub agent_reasoning: Option<String>,
    /// Data of the agent. It is returned unchanged.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, value_type = Option<Object>)]
    pub context: Option<Map<String, serde_json::Value>>,
    /// Whether the server has changed the definition of the tool since the agent saw it first. The policy then refuses the
    /// call, or reviewers decide.
    #[serde(default)]
    pub tool_has_changed: bool,
}

/// The body of `POST /aap/v1/requests/{id}/outcome`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportOutcomeRequest {
    /// `succeeded` or `failed`. A failed call may have had a part of its effect, so its approval is used up too.
    #[schema(value_type = String, pattern = "^(succeeded|failed)$")]
    pub status: CallStatus,
    /// A note for people.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, min_length = 1, max_length = 2000)]
    pub note: Option<String>,
}

/// The body of `POST /v1/callable-tools`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CallableToolsRequest {
    /// The names of tools. A tool of a server is named `server:tool`.
    #[schema(max_items = 2000)]
    pub tools: Vec<ToolName>,
}

/// The tools that the policy lets an instance ask for.
#[derive(Debug, Serialize, ToSchema)]
pub struct CallableToolsResponse {
    /// The tools of the request that the instance may ask for. Rules can still hold or deny a call by its arguments.
    pub callable: Vec<ToolName>,
    /// The tools of the same servers that the policy names and the request does not. Such a name can be misspelt.
    pub missing: Vec<ToolName>,
    /// The effect of a call of a tool whose definition has changed: `refuse` or `hold`.
    pub changed: &'static str,
}

/// The limit on the names in one request.
const TOOLS_MAX: usize = 2_000;

/// `?share=`: whether equal calls share a request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShareQuery {
    #[serde(default)]
    share: bool,
}

/// `?wait=`: how long to wait for a decision.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitQuery {
    wait: Option<String>,
}

impl WaitQuery {
    pub fn wished(&self) -> Result<Duration> {
        let Some(text) = &self.wait else { return Ok(Duration::ZERO) };
        let wrong = || Error::invalid("/wait", "`wait` must be a whole number with a unit, such as \"30s\"");
        read_timeout(text).ok_or_else(wrong)
    }
}

/// Reads a member that may be missing and may not be null.
fn present<'de, D, T>(from: D) -> std::result::Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(from).map(Some)
}

/// Ask for the approval of a tool call.
///
/// Returns 201 with the request, which the policy may have approved or denied already, and 200 for a repeated one.
/// `Idempotency-Key` is required. Use one key for each call. Returns 409 `idempotency_conflict` if the key was used for
/// another call. With `?share=true`, equal calls of the instance share a request: while reviewers decide, with their
/// approval until it is used, and with their denial until the deadline. The answer to such a call is 200 too. The header
/// `Countersign-Review` has the page of a pending review.
#[utoipa::path(
    post, path = "/aap/v1/requests", tag = "approval requests", request_body = CreateApprovalRequest,
    params(("share" = Option<bool>, Query, description = "Whether equal calls share the request", example = true)),
    responses(
        (status = 201, description = "The request is created", body = ApprovalRequestResponse),
        (status = 200, description = "The request exists already", body = ApprovalRequestResponse),
    )
)]
pub async fn create(
    requests: Capability<ApprovalRequests>,
    post: IdempotentPost,
    query: Query<ShareQuery>,
) -> Result<HttpResponse> {
    let key = post.required_key()?;
    let ask: CreateApprovalRequest = post.read()?;
    let submission = Submission {
        tool: ask.tool,
        server: ask.server,
        arguments: ask.arguments,
        timeout: ask.timeout,
        agent_reasoning: ask.agent_reasoning,
        context: ask.context,
        tool_has_changed: ask.tool_has_changed,
    };
    let asked = match query.share {
        true => requests.ask_shared(&post.token, &key, &submission).await?,
        false => requests.ask(&post.token, &key, &submission).await?,
    };
    let status = if asked.is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(answer(&requests, HttpResponse::build(status), &asked.view))
}

/// Read an approval request.
///
/// Returns 200. `?wait=30s` waits up to that time for a decision. Only the instance that created a request can read it.
/// The header `Countersign-Receipt` has the receipt of an approval by reviewers. The header `Countersign-Outcome` is
/// `unknown` if the lease of the call has ended without a report. The header `Countersign-Tool` is `changed` if the
/// request has `tool_has_changed`.
#[utoipa::path(
    get, path = "/aap/v1/requests/{id}", tag = "approval requests",
    params(
        ("id" = String, Path, description = "The id of the request", example = "0d4f7c7e-58c1-8f0a-9b52-9a3c6d1f2e47"),
        ("wait" = Option<String>, Query, description = "The time to wait for a decision", example = "30s"),
    ),
    responses((status = 200, description = "The request", body = ApprovalRequestResponse))
)]
pub async fn read(
    requests: Capability<ApprovalRequests>,
    waiting: LongPoll,
    machine: Machine,
    id: Path<String>,
    query: Query<WaitQuery>,
) -> Result<HttpResponse> {
    let wished = query.wished()?;
    let (token, id) = (&machine.0, id.as_str());
    let requests: &ApprovalRequests = &requests;
    let look = || async move { Ok(Some(requests.view(token, id).await?).filter(|it| it.decision.is_some())) };
    let decided = if wished.is_zero() { None } else { poll_until(&waiting, token, wished, look).await? };
    let view = match decided {
        Some(view) => view,
        None => requests.view(token, id).await?,
    };
    Ok(answer(requests, HttpResponse::Ok(), &view))
}

/// Cancel an approval request.
///
/// Returns 200. Returns 409 `already_terminal` if it is decided.
#[utoipa::path(
    delete, path = "/aap/v1/requests/{id}", tag = "approval requests",
    params(("id" = String, Path, description = "The id of the request", example = "0d4f7c7e-58c1-8f0a-9b52-9a3c6d1f2e47")),
    responses((status = 200, description = "The request is cancelled", body = ApprovalRequestResponse))
)]
pub async fn cancel(
    requests: Capability<ApprovalRequests>,
    machine: Machine,
    id: Path<String>,
) -> Result<HttpResponse> {
    let view = requests.cancel(&machine.0, &id).await?;
    Ok(answer(&requests, HttpResponse::Ok(), &view))
}

/// Use an approval, once, before you run the call.
///
/// Returns 200 with `consumption` if the call may run now. Any other response means: do not run it. Run the call with
/// exactly the `arguments` of the response. `Idempotency-Key` is required; the same key gets the same response while
/// the lease of the write is valid. The header `Countersign-Verification` has the signed reservation.
#[utoipa::path(
    post, path = "/aap/v1/requests/{id}/consume", tag = "approval requests",
    params(("id" = String, Path, description = "The id of the request", example = "0d4f7c7e-58c1-8f0a-9b52-9a3c6d1f2e47")),
    responses((status = 200, description = "The call may run now, once", body = ApprovalRequestResponse))
)]
pub async fn consume(
    requests: Capability<ApprovalRequests>,
    post: IdempotentPost,
    id: Path<String>,
) -> Result<HttpResponse> {
    let key = post.required_key()?;
    let consumed = requests.consume(&post.token, &id, &key).await?;
    let mut response = HttpResponse::Ok();
    put_header(&mut response, VERIFICATION, &consumed.verification);
    if consumed.is_again {
        response.insert_header((REPLAYED, "true"));
    }
    Ok(answer(&requests, response, &consumed.view))
}

/// Report the outcome of a call.
///
/// Returns 200. The first report counts; another one gets 409 `outcome_conflict`. Without a report, the outcome becomes
/// unknown when the lease of the write ends.
#[utoipa::path(
    post, path = "/aap/v1/requests/{id}/outcome", tag = "approval requests", request_body = ReportOutcomeRequest,
    params(("id" = String, Path, description = "The id of the request", example = "0d4f7c7e-58c1-8f0a-9b52-9a3c6d1f2e47")),
    responses((status = 200, description = "The outcome is recorded", body = ApprovalRequestResponse))
)]
pub async fn report(
    requests: Capability<ApprovalRequests>,
    post: IdempotentPost,
    id: Path<String>,
) -> Result<HttpResponse> {
    let ask: ReportOutcomeRequest = post.read()?;
    let view = requests.report(&post.token, &id, ask.status, ask.note).await?;
    Ok(answer(&requests, HttpResponse::Ok(), &view))
}

/// List the tools that the policy allows.
///
/// Returns 200 with those of the named tools that the instance may ask for. A guard shows only these to a model.
#[utoipa::path(
    post, path = "/v1/callable-tools", tag = "approval requests", request_body = CallableToolsRequest,
    responses((status = 200, description = "The tools that the instance may ask for", body = CallableToolsResponse))
)]
pub async fn callable(requests: Capability<ApprovalRequests>, post: IdempotentPost) -> Result<HttpResponse> {
    let ask: CallableToolsRequest = post.read()?;
    if ask.tools.len() > TOOLS_MAX {
        return Err(Error::invalid("/tools", format!("name at most {TOOLS_MAX} tools in one request")));
    }
    let CallableTools { callable, missing, changed } = requests.callable(&post.token, ask.tools).await?;
    Ok(HttpResponse::Ok().json(CallableToolsResponse { callable, missing, changed: changed.as_str() }))
}

fn answer(requests: &ApprovalRequests, mut response: HttpResponseBuilder, view: &ApprovalRequestView) -> HttpResponse {
    if let Some(page) = requests.page(view) {
        put_header(&mut response, REVIEW, &page);
    }
    if let Some(receipt) = view.decision.as_ref().and_then(|it| it.receipt.as_ref()) {
        put_header(&mut response, RECEIPT, receipt);
    }
    if view.outcome_is_unknown {
        put_header(&mut response, OUTCOME, "unknown");
    }
    if view.request.tool_has_changed {
        put_header(&mut response, TOOL, "changed");
    }
    response.json(ApprovalRequestResponse::of(view))
}

fn put_header(response: &mut HttpResponseBuilder, name: HeaderName, token: &str) {
    // A signed token is base64url with dots, and a URL is visible ASCII, so this cannot fail.
    if let Ok(value) = HeaderValue::from_str(token) {
        response.insert_header((name, value));
    }
}
