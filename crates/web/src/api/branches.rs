//! Forks of a thread and joins of its branches.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Path;
use countersign_domain::chain::hash::Digest;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::primitives::id::{BranchName, NodeId, StepKey, ThreadId};
use countersign_domain::threads::branch::Strategy;
use countersign_service::branches::Branches;
use countersign_service::branches::fork::{CreatedBranch, CreatedBranches, NewBranches};
use countersign_service::error::Result;
use countersign_service::platform::core::Core;
use countersign_service::proposals::Proposals;
use countersign_service::proposals::join_request::JoinProposal;
use countersign_service::proposals::request::{Proposal, ProposalKind};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::idempotency_key::{IdempotentPost, told};
use super::json_body;
use super::transitions::read_along;
use super::transitions::view::answer;
use crate::state::Capability;

/// The body of `POST /v1/threads/{thread}/forks`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkRequest {
    /// The node that acts. The token must name it.
    pub node: NodeId,
    /// The names of the branches.
    #[schema(min_items = 1, max_items = 8)]
    pub branches: Vec<BranchName>,
    /// The head to fork. Without it, the current one.
    pub parent: Option<Digest>,
}

/// The body of `POST /v1/threads/{thread}/joins`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinRequest {
    /// The node that acts. The token must name it.
    pub node: NodeId,
    /// The head of the join: the one that was forked.
    pub parent: Digest,
    /// The names of the branches. Their order matters if the strategy uses it.
    #[schema(min_items = 1, max_items = 32)]
    pub branches: Vec<BranchName>,
    /// The strategy for paths where branches have several values.
    pub strategy: Strategy,
    /// With `explicit`: the value for each of these paths.
    #[schema(value_type = Option<Vec<ConflictResolution>>)]
    pub resolve: Option<Value>,
    /// The number of the attempt, from 1.
    #[schema(minimum = 1)]
    pub attempt: Option<u32>,
    /// The usage of the request: `{tokens, cost}`, both optional.
    #[schema(value_type = Option<super::responses::UsageInput>)]
    pub usage: Option<Value>,
    /// The reason in the agent's words. Reviewers see it as untrusted text.
    #[schema(min_length = 1, max_length = 8000)]
    pub rationale: Option<String>,
    /// The agent's own id of this step. One step has one effect, on any head and however often it is sent.
    pub step: Option<StepKey>,
}

/// The value for a path where branches disagree.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConflictResolution {
    /// The JSON Pointer of the value.
    pub path: Pointer,
    /// The value. Leave it out to remove the path.
    #[schema(value_type = Option<Object>)]
    pub value: Option<Value>,
}

/// Create branches of a thread.
///
/// Returns 201 with the branches. They are threads that are never written, for agents that work in parallel.
/// Returns 409 `head_moved` if `parent` is not the head.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/forks", tag = "proposals", request_body = ForkRequest,
    params(
        ("thread" = ThreadId, Path, description = "The name of the thread"),
    ),
    responses((status = 201, description = "The created branches", body = super::responses::BranchesCreatedResponse))
)]
pub async fn fork(branches: Capability<Branches>, post: IdempotentPost, thread: Path<String>) -> Result<HttpResponse> {
    let thread: ThreadId = json_body::name("/thread", &thread)?;
    let ask: ForkRequest = post.read()?;
    let new = NewBranches { thread: thread.clone(), node: ask.node, parent: ask.parent, names: ask.branches };
    let tell = move |_: &Core, forked: &CreatedBranches| Ok(told(StatusCode::CREATED, &forked_json(&thread, forked)));
    post.once(branches.fork(&post.token, &new), tell).await
}

fn forked_json(thread: &ThreadId, forked: &CreatedBranches) -> Value {
    let branch = |it: &CreatedBranch| {
        json!({
            // A branch is a thread with its own chain, so its first version is 0.
            "name": it.name, "thread": it.thread, "version": 0, "transition": it.transition,
            "state_root": it.state_root, "entry": it.entry,
        })
    };
    let branches: Vec<Value> = forked.branches.iter().map(branch).collect();
    json!({"thread": thread, "version": forked.version, "transition": forked.transition, "branches": branches})
}

/// Propose the changes of branches as one change.
///
/// Returns 201 if the policy commits the join, 202 if it is held for approval, 422 if it is rejected. Returns 409
/// `conflict` if branches disagree. Then set `resolve` or use another strategy.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/joins", tag = "proposals", request_body = JoinRequest,
    params(
        ("thread" = ThreadId, Path, description = "The name of the thread"),
    ),
    responses((status = 201, description = "Committed", body = super::responses::CommittedResponse), (status = 202, description = "Held for approval", body = super::responses::HeldResponse))
)]
pub async fn join(
    proposals: Capability<Proposals>,
    post: IdempotentPost,
    thread: Path<String>,
) -> Result<HttpResponse> {
    let thread: ThreadId = json_body::name("/thread", &thread)?;
    let proposal = read_join(thread, post.read()?)?;
    // A join is a proposal, so it has the same checks and the same outcomes.
    post.once(proposals.propose(&post.token, &proposal), answer).await
}

fn read_join(thread: ThreadId, ask: JoinRequest) -> Result<Proposal> {
    let (_, usage) = read_along(None, ask.usage.as_ref())?;
    Ok(Proposal {
        thread,
        node: ask.node,
        parent: ask.parent,
        ask: ProposalKind::Join(Box::new(JoinProposal::read(ask.branches, ask.strategy, ask.resolve)?)),
        attempt: ask.attempt.unwrap_or(1),
        rationale: ask.rationale,
        // A join only combines changes of branches, and tool calls are not allowed on branches.
        tool: None,
        usage,
        step: ask.step,
    })
}
