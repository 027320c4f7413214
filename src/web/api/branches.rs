//! Branches of a thread, and what comes of joining them.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Path;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::idempotency_key::{Post, told};
use super::json_body;
use super::transitions::read_along;
use super::transitions::view::answer;
use crate::domain::chain::hash::Digest;
use crate::domain::json::pointer::Pointer;
use crate::domain::primitives::id::{BranchName, NodeId, StepKey, ThreadId};
use crate::domain::threads::branch::Strategy;
use crate::service::branches::fork::{Forked, Made, NewBranches};
use crate::service::error::Result;
use crate::service::proposals::join_request::Join as Joining;
use crate::service::proposals::request::{Asked, Proposal};
use crate::web::state::App;

/// `POST /v1/threads/{thread}/forks`
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Fork {
    /// As which node.
    pub node: NodeId,
    /// What the branches are to be called.
    #[schema(min_items = 1, max_items = 8)]
    pub branches: Vec<BranchName>,
    /// Of which head; of the one that there is, unless said.
    pub parent: Option<Digest>,
}

/// `POST /v1/threads/{thread}/joins`
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// As which node.
    pub node: NodeId,
    /// On which head: the one that the branches were made of.
    pub parent: Digest,
    /// Which branches, by name; in an order that counts where the strategy says so.
    #[schema(min_items = 1, max_items = 32)]
    pub branches: Vec<BranchName>,
    /// What becomes of places where several of them have several values.
    pub strategy: Strategy,
    /// With `explicit`, what is to stand at each of these places.
    #[schema(value_type = Option<Vec<Resolution>>)]
    pub resolve: Option<Value>,
    /// Which try, from 1.
    #[schema(minimum = 1)]
    pub attempt: Option<u32>,
    /// What it took: `{tokens, cost}`, both optional.
    #[schema(value_type = Option<super::responses::Used>)]
    pub usage: Option<Value>,
    /// Why, in the agent's words; shown to people as untrusted.
    #[schema(min_length = 1, max_length = 8000)]
    pub rationale: Option<String>,
    /// The agent's own name for what it does here: of one name, one effect, on whatever head it is asked for again.
    pub step: Option<StepKey>,
}

/// What is to stand at a place where branches do not agree.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Resolution {
    /// Where.
    pub path: Pointer,
    /// What; nothing, if it is left out.
    #[schema(value_type = Option<Object>)]
    pub value: Option<Value>,
}

/// Makes branches of a thread's head: threads of their own that are never written, for agents that work side by side.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/forks", tag = "proposals", request_body = Fork,
    params(
        ("thread" = ThreadId, Path, description = "The thread's name"),
    ),
    responses((status = 201, description = "The branches", body = super::responses::BranchesMade))
)]
pub async fn fork(post: Post, thread: Path<String>) -> Result<HttpResponse> {
    let thread: ThreadId = json_body::name("/thread", &thread)?;
    let ask: Fork = post.read()?;
    let new = NewBranches { thread: thread.clone(), node: ask.node, parent: ask.parent, names: ask.branches };
    let tell = move |_: &App, forked: &Forked| Ok(told(StatusCode::CREATED, &forked_json(&thread, forked)));
    post.once(post.app.service.fork(&post.token, &new), tell).await
}

fn forked_json(thread: &ThreadId, forked: &Forked) -> Value {
    let branch = |it: &Made| {
        json!({
            "name": it.name, "thread": it.thread, "version": 0, "transition": it.transition,
            "state_root": it.state_root, "entry": it.entry,
        })
    };
    let branches: Vec<Value> = forked.branches.iter().map(branch).collect();
    json!({"thread": thread, "version": forked.version, "transition": forked.transition, "branches": branches})
}

/// Proposes what branches changed, as one.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/joins", tag = "proposals", request_body = Join,
    params(
        ("thread" = ThreadId, Path, description = "The thread's name"),
    ),
    responses((status = 201, description = "It is in the chain", body = super::responses::Committed), (status = 202, description = "People are asked", body = super::responses::Held))
)]
pub async fn join(post: Post, thread: Path<String>) -> Result<HttpResponse> {
    let thread: ThreadId = json_body::name("/thread", &thread)?;
    let proposal = read_join(thread, post.read()?)?;
    post.once(post.app.service.propose(&post.token, &proposal), answer).await
}

fn read_join(thread: ThreadId, ask: Join) -> Result<Proposal> {
    let (_, usage) = read_along(None, ask.usage.as_ref())?;
    Ok(Proposal {
        thread,
        node: ask.node,
        parent: ask.parent,
        ask: Asked::Join(Box::new(Joining::read(ask.branches, ask.strategy, ask.resolve)?)),
        attempt: ask.attempt.unwrap_or(1),
        rationale: ask.rationale,
        tool: None,
        usage,
        step: ask.step,
    })
}
