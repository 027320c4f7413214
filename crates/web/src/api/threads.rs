//! `/v1/threads`: creates, reads, closes and reopens threads.

use std::collections::BTreeMap;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Path, Query};
use countersign_domain::episode::goal::EpisodeTerms;
use countersign_domain::identity::account::MachineRole;
use countersign_domain::primitives::id::{FlowId, NodeId, ThreadId};
use countersign_domain::threads::thread::{Context, ThreadStatusCode};
use countersign_service::archive::VersionArchive;
use countersign_service::error::{Error, Result};
use countersign_service::platform::core::Core;
use countersign_service::reviews::Reviews;
use countersign_service::threads::Threads;
use countersign_service::threads::create::CreatedThread;
use countersign_service::threads::create::NewThread;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::idempotency_key::{IdempotentPost, told};
use super::json_body;
use super::of_own_flow;
use crate::auth::extractors::Machine;
use crate::state::Capability;

/// The body of `POST /v1/threads`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateThreadRequest {
    /// The flow of the thread.
    pub flow: FlowId,
    /// The name of the thread. Without it, the gateway chooses one.
    pub thread: Option<ThreadId>,
    /// The initial state.
    #[schema(value_type = Object)]
    pub state: Value,
    /// The host's description of the thread.
    #[serde(default)]
    pub context: Context,
    /// Makes the thread an episode: an agent run with run artifacts.
    pub episode: Option<EpisodeTerms>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewQuery {
    node: String,
    version: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainQuery {
    page_size: Option<u32>,
    page_token: Option<u64>,
}

/// A body with a reason.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReasonRequest {
    /// The reason, for the audit log.
    pub reason: String,
}

/// A body with an optional reason.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OptionalReasonRequest {
    /// The reason, for the audit log.
    #[serde(default = "no_reason")]
    pub reason: String,
}

fn no_reason() -> String {
    "no reason was given".to_owned()
}

/// The default page size and the largest one.
const PAGE: (u32, u32) = (50, 200);

/// Create a thread.
///
/// Returns 201 with the thread and its signed version 0. The same request with the same `thread` returns the same
/// response. Returns 409 `exists` if the name is taken, and 422 `rejected` if the policy does not allow the state.
#[utoipa::path(
    post, path = "/v1/threads", tag = "threads", request_body = CreateThreadRequest,
    responses((status = 201, description = "The thread and its signed version 0", body = super::responses::ThreadCreatedResponse))
)]
pub async fn create(threads: Capability<Threads>, post: IdempotentPost) -> Result<HttpResponse> {
    let ask: CreateThreadRequest = post.read()?;
    let CreateThreadRequest { flow, thread, state, context, episode } = ask;
    let new = NewThread { flow, thread, state, context, episode };
    post.once(threads.create_thread(&post.token, &new), |_, made: &CreatedThread| {
        let body = json!({
            "thread": made.thread, "flow": made.flow, "version": 0, "transition": made.transition,
            "state_root": made.state_root, "entry": made.entry,
        });
        Ok(told(StatusCode::CREATED, &body))
    })
    .await
}

/// Read the status of a thread.
///
/// Returns 200 with status, head and usage. Returns 404 if the thread does not exist or belongs to another flow.
#[utoipa::path(
    get, path = "/v1/threads/{thread}", tag = "threads",
    params(
        ("thread" = ThreadId, Path, description = "The name of the thread"),
    ),
    responses((status = 200, description = "The thread", body = super::responses::ThreadResponse))
)]
pub async fn read(
    core: Capability<Core>,
    threads: Capability<Threads>,
    machine: Machine,
    thread: Path<String>,
) -> Result<HttpResponse> {
    let thread: ThreadId = json_body::name("/thread", &thread)?;
    // The flow is checked first, so that a thread of another flow looks like a missing one.
    of_own_flow(&machine, &threads.flow_of(&thread).await?, "thread")?;
    let overview = threads.overview(&thread).await?;
    let head = &overview.thread.head;
    let mut answer = json!({
        "thread": overview.thread.id, "flow": overview.thread.flow, "status": overview.status,
        "version": head.version, "transition": head.transition, "owes": head.owes,
    });
    // Agents must not learn what other nodes do, so they do not get the usage of the thread.
    if machine.0.record.role != MachineRole::Agent {
        let spent = overview.thread.spent.of_thread();
        let cost = spent.cost_millionths.json();
        answer["spent"] = json!({"calls": spent.calls, "tokens": spent.tokens, "cost": cost});
        if spent.context_tokens > 0 {
            answer["spent"]["context_tokens"] = json!(spent.context_tokens);
        }
    }
    if let Some(origin) = &overview.thread.branch {
        answer["branch_of"] = json!(origin);
    }
    if let Some(review) = &overview.review {
        answer["review"] = super::transitions::view::review_link(&core, review);
    }
    Ok(HttpResponse::Ok().json(answer))
}

/// Read a node's view of the state.
///
/// Returns 200 with the paths that the node may read, of the head or of an earlier version. Give a model only this
/// view. Returns 410 `state_erased` if the values are erased.
#[utoipa::path(
    get, path = "/v1/threads/{thread}/state", tag = "threads",
    params(
        ("thread" = ThreadId, Path, description = "The name of the thread"),
        ("node" = NodeId, Query, description = "The node"),
        ("version" = Option<u64>, Query, description = "The version. Without it, the head"),
    ),
    responses((status = 200, description = "The view", body = super::responses::StateResponse))
)]
pub async fn state(
    threads: Capability<Threads>,
    machine: Machine,
    thread: Path<String>,
    query: Query<ViewQuery>,
) -> Result<HttpResponse> {
    let (thread, node): (ThreadId, NodeId) =
        (json_body::name("/thread", &thread)?, json_body::name("/node", &query.node)?);
    Ok(HttpResponse::Ok().json(state_for_node(&threads, &machine, &thread, &node, query.version).await?))
}

/// Returns a node's view of a version, if the token may act as the node.
pub async fn state_for_node(
    threads: &Threads,
    machine: &Machine,
    thread: &ThreadId,
    node: &NodeId,
    version: Option<u64>,
) -> Result<Value> {
    let flow = threads.flow_of(thread).await?;
    of_own_flow(machine, &flow, "thread")?;
    // An auditor may read the view of every node, and an agent only those of its own nodes.
    if machine.0.record.role == MachineRole::Agent && !machine.0.record.acts_as(&flow, node) {
        return Err(Error::Forbidden("this token is not allowed to act as this node of the thread's flow"));
    }
    // The view contains only the paths that the node may read, even for an auditor.
    let view = threads.state_view(thread, node, version).await?;
    Ok(json!({"thread": thread, "version": view.version, "transition": view.transition, "state": view.state}))
}

/// List the versions of a thread.
///
/// Returns 200 with one page of signed entries and their statements. Auditors also get openings. Pass
/// `next_page_token` as `page_token` for the next page.
#[utoipa::path(
    get, path = "/v1/threads/{thread}/chain", tag = "threads",
    params(
        ("thread" = ThreadId, Path, description = "The name of the thread"),
        ("page_size" = Option<u32>, Query, description = "The page size: 50 by default, at most 200"),
        ("page_token" = Option<u64>, Query, description = "The `next_page_token` of the previous page"),
    ),
    responses((status = 200, description = "A page of signed entries with their statements", body = super::responses::ChainResponse))
)]
pub async fn chain(
    threads: Capability<Threads>,
    archive: Capability<VersionArchive>,
    reviews: Capability<Reviews>,
    machine: Machine,
    thread: Path<String>,
    query: Query<ChainQuery>,
) -> Result<HttpResponse> {
    let thread: ThreadId = json_body::name("/thread", &thread)?;
    // The flow is checked first, so that a thread of another flow looks like a missing one.
    of_own_flow(&machine, &threads.flow_of(&thread).await?, "thread")?;
    let overview = threads.overview(&thread).await?;
    let size = query.page_size.unwrap_or(PAGE.0).clamp(1, PAGE.1);
    let from = query.page_token.unwrap_or(0);
    let mut rows = reviews.chain(&thread, from, size).await?;
    let (mut openings, mut full) = (BTreeMap::new(), None);
    // Openings contain values, so only auditors get them.
    if let (Some((first, last)), MachineRole::Auditor) = (rows.first().zip(rows.last()), machine.0.record.role) {
        let opened = archive.openings(&thread, first.0.version..=last.0.version).await?;
        (openings, full) = (opened.of, opened.next);
    }
    // The page ends early if the response would become too large.
    rows.retain(|(row, _)| full.is_none_or(|it| row.version < it));
    let mut entries = Vec::with_capacity(rows.len());
    for (row, transition) in &rows {
        let mut entry = json!({
            "version": row.version, "transition": row.transition,
            "statement": transition.statement, "entry": row.entry,
        });
        // Without openings the links can still be verified.
        if let Some(opening) = openings.remove(&row.version) {
            entry["opening"] = json!(opening);
        }
        entries.push(entry);
    }
    // The page may have ended early, so the last row and not the size decides where the next page begins.
    let next = rows.last().map(|(row, _)| row.version + 1).filter(|it| *it <= overview.thread.head.version);
    Ok(HttpResponse::Ok().json(json!({"entries": entries, "next_page_token": next})))
}

/// Close a thread.
///
/// Returns 200. A closed thread accepts no proposals and no writes. Returns 409 `write_in_progress` while a writer
/// holds a lease.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/closing", tag = "administration", request_body = OptionalReasonRequest,
    params(
        ("thread" = ThreadId, Path, description = "The name of the thread"),
    ),
    responses((status = 200, description = "Closed", body = super::responses::ThreadStatusResponse))
)]
pub async fn close(threads: Capability<Threads>, post: IdempotentPost, thread: Path<String>) -> Result<HttpResponse> {
    let thread: ThreadId = json_body::name("/thread", &thread)?;
    let ask: OptionalReasonRequest = post.read()?;
    let (by, body) = (post.token.record.principal(), json!({"thread": thread, "status": "closed"}));
    let work = threads.close_thread(&by, &thread, &ask.reason);
    post.once(work, move |_, ()| Ok(told(StatusCode::OK, &body))).await
}

/// Reopen a closed thread.
///
/// Returns 200 with the thread's status.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/reopening", tag = "administration", request_body = OptionalReasonRequest,
    params(
        ("thread" = ThreadId, Path, description = "The name of the thread"),
    ),
    responses((status = 200, description = "Reopened", body = super::responses::ThreadStatusResponse))
)]
pub async fn reopen(threads: Capability<Threads>, post: IdempotentPost, thread: Path<String>) -> Result<HttpResponse> {
    let thread: ThreadId = json_body::name("/thread", &thread)?;
    let ask: OptionalReasonRequest = post.read()?;
    let (by, name) = (post.token.record.principal(), thread.clone());
    let work = threads.reopen_thread(&by, &thread, &ask.reason);
    let tell =
        move |_: &Core, status: &ThreadStatusCode| Ok(told(StatusCode::OK, &json!({"thread": name, "status": status})));
    post.once(work, tell).await
}
