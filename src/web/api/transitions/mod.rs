//! Proposals, and what became of them.

pub mod view;

use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::idempotency_key::{Post, told};
use super::json_body;
use super::threads::Reason;
use super::{long_poll, of_own_flow};
use crate::domain::chain::hash::Digest;
use crate::domain::identity::party::Party;
use crate::domain::json::patch::Format;
use crate::domain::primitives::id::{NodeId, StepKey, ThreadId};
use crate::domain::threads::tool_call::Tool;
use crate::domain::threads::usage::{Malformed, Usage};
use crate::service::error::{Error, Result};
use crate::service::proposals::request::{Asked, Proposal};
use crate::service::reviews::decision::Decision;
use crate::web::auth::extractors::Machine;
use crate::web::state::App;
use view::{answer, told_to};

/// `POST /v1/threads/{thread}/transitions`
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Propose {
    /// As which node.
    pub node: NodeId,
    /// On which head.
    pub parent: Digest,
    /// For what.
    pub patch: Value,
    /// In which form: `merge` (the default), `merge-patch` or `json-patch`.
    pub format: Option<Format>,
    /// Ask for a receipt for the head as it stands; `patch` must be `{}`.
    #[serde(default)]
    pub reaffirm: bool,
    /// Which try, from 1.
    #[schema(minimum = 1)]
    pub attempt: Option<u32>,
    /// The tool that is called along with it: `{name, arguments}`.
    #[schema(value_type = Option<super::responses::ToolCall>)]
    pub tool: Option<Value>,
    /// What it took: `{tokens, cost}`, both optional.
    #[schema(value_type = Option<super::responses::Used>)]
    pub usage: Option<Value>,
    /// Why, in the agent's words; shown to people as untrusted.
    #[schema(min_length = 1, max_length = 8000)]
    pub rationale: Option<String>,
    /// The agent's own name for what it does here: of one name, one effect, on whatever head it is asked for again.
    pub step: Option<StepKey>,
}

/// `POST /v1/threads/{thread}/rollbacks`
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RollBack {
    /// Which version's state.
    pub to_version: u64,
    /// As which node.
    pub node: NodeId,
    /// On which head.
    pub parent: Digest,
    /// Which try, from 1.
    #[schema(minimum = 1)]
    pub attempt: Option<u32>,
    /// The agent's own name for what it does here: of one name, one effect, on whatever head it is asked for again.
    pub step: Option<StepKey>,
}

/// Takes a proposal.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/transitions", tag = "proposals", request_body = Propose,
    params(
        ("thread" = ThreadId, Path, description = "The thread's name"),
    ),
    responses((status = 201, description = "It is in the chain", body = super::responses::Committed), (status = 202, description = "People are asked", body = super::responses::Held))
)]
pub async fn propose(post: Post, thread: Path<String>) -> Result<HttpResponse> {
    let thread: ThreadId = json_body::name("/thread", &thread)?;
    let ask: Propose = post.read()?;
    let proposal = read_proposal(thread, ask)?;
    post.once(post.app.service.propose(&post.token, &proposal), answer).await
}

/// A proposal as it was asked for.
pub fn read_proposal(thread: ThreadId, ask: Propose) -> Result<Proposal> {
    if ask.reaffirm && (ask.tool.is_some() || ask.usage.is_some()) {
        return Err(Error::invalid("", "reaffirm takes no tool and no usage"));
    }
    let (tool, usage) = read_along(ask.tool.as_ref(), ask.usage.as_ref())?;
    let asked = match (ask.reaffirm, &ask.patch) {
        (true, Value::Object(patch)) if patch.is_empty() && ask.format.is_none() => Asked::Reaffirm,
        (true, _) => return Err(Error::invalid("/patch", "reaffirm takes an empty patch and no format")),
        (false, _) => Asked::Patch { format: ask.format.unwrap_or(Format::Merge), patch: ask.patch },
    };
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

/// What comes along with a proposal: a tool and what it took.
pub(super) fn read_along(tool: Option<&Value>, usage: Option<&Value>) -> Result<(Option<Tool>, Usage)> {
    let below = |at: &str, wrong: Malformed| Error::invalid(&format!("{at}{}", wrong.pointer), wrong.detail);
    let tool = tool.map(Tool::read).transpose().map_err(|it| below("/tool", it))?;
    let usage = usage.map(Usage::read).transpose().map_err(|it| below("/usage", it))?;
    Ok((tool, usage.unwrap_or_default()))
}

/// Asks for an ancestor's state again.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/rollbacks", tag = "proposals", request_body = RollBack,
    params(
        ("thread" = ThreadId, Path, description = "The thread's name"),
    ),
    responses((status = 201, description = "It is in the chain, in a flow that only observes", body = super::responses::Committed), (status = 202, description = "People are asked", body = super::responses::Held))
)]
pub async fn roll_back(post: Post, thread: Path<String>) -> Result<HttpResponse> {
    let thread: ThreadId = json_body::name("/thread", &thread)?;
    let ask: RollBack = post.read()?;
    let proposal = Proposal {
        thread,
        node: ask.node,
        parent: ask.parent,
        ask: Asked::Rollback { to_version: ask.to_version },
        attempt: ask.attempt.unwrap_or(1),
        rationale: None,
        tool: None,
        usage: Usage::default(),
        step: ask.step,
    };
    post.once(post.app.service.propose(&post.token, &proposal), answer).await
}

/// A transition with its statement and what the caller may see of its effect.
#[utoipa::path(
    get, path = "/v1/transitions/{digest}", tag = "proposals",
    params(
        ("digest" = Digest, Path, description = "The transition's digest"),
    ),
    responses((status = 200, description = "As far as the asker may see it", body = super::responses::TransitionTold))
)]
pub async fn read(app: Data<App>, machine: Machine, digest: Path<String>) -> Result<HttpResponse> {
    let digest: Digest = json_body::name("/digest", &digest)?;
    Ok(HttpResponse::Ok().json(told_to(&app, &machine, digest).await?))
}

/// What became of a transition; waits for it if asked to by `Prefer: wait=N`.
#[utoipa::path(
    get, path = "/v1/transitions/{digest}/decision", tag = "proposals",
    params(
        ("digest" = Digest, Path, description = "The transition's digest"),
        ("Prefer" = Option<String>, Header, description = "`wait=N` waits up to so many seconds for the end", example = "wait=30"),
    ),
    responses((status = 200, description = "What became of it: the same each time, but for what is hidden of `comment` by then", body = Decision), (status = 202, description = "Still held: ask again", body = super::responses::StillHeld))
)]
pub async fn decision(
    request: HttpRequest,
    app: Data<App>,
    machine: Machine,
    digest: Path<String>,
) -> Result<HttpResponse> {
    let digest: Digest = json_body::name("/digest", &digest)?;
    match decided(&app, &machine, digest, long_poll::wished(&request)).await? {
        Some(decision) => Ok(HttpResponse::Ok().json(decision)),
        None => Ok(HttpResponse::Accepted().json(still_held())),
    }
}

/// What became of a transition, for a machine that wishes to wait for it; `None` while it is held.
pub async fn decided(app: &App, machine: &Machine, digest: Digest, wished: Duration) -> Result<Option<Decision>> {
    of_own_flow(machine, &app.service.flow_of_transition(digest).await?, "transition")?;
    let reader = &Party::from(&machine.0.record);
    let look = || async move { Ok(app.service.decision(digest, reader).await?.1) };
    long_poll::until_there(app, (&machine.0, wished), look).await
}

/// What is told of a transition that people are still asked about.
pub fn still_held() -> Value {
    json!({"status": "held"})
}

/// Takes a held proposal back.
#[utoipa::path(
    post, path = "/v1/transitions/{digest}/cancellation", tag = "proposals", request_body = Reason,
    params(
        ("digest" = Digest, Path, description = "The transition's digest"),
    ),
    responses((status = 200, description = "Taken back", body = super::responses::Cancelled))
)]
pub async fn cancel(post: Post, digest: Path<String>) -> Result<HttpResponse> {
    let digest: Digest = json_body::name("/digest", &digest)?;
    let ask: Reason = post.read()?;
    let work = post.app.service.cancel(&post.token, digest, &ask.reason);
    let body = json!({"transition": digest, "status": "cancelled"});
    post.once(work, move |_, ()| Ok(told(StatusCode::OK, &body))).await
}
