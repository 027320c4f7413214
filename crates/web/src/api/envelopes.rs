//! Signed context envelopes: a node's view within its token budget, and their verification.

use actix_web::HttpResponse;
use actix_web::web::{Path, Query};
use countersign_domain::context::Envelope;
use countersign_domain::identity::account::MachineRole;
use countersign_domain::primitives::id::{FlowId, NodeId, ThreadId};
use countersign_service::episodes::Episodes;
use countersign_service::episodes::envelopes::{EnvelopeExpectation, EnvelopeProof};
use countersign_service::error::{Error, Result};
use countersign_service::threads::Threads;
use serde::Deserialize;
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use super::idempotency_key::IdempotentPost;
use super::json_body;
use super::of_own_flow;
use crate::auth::extractors::Machine;
use crate::state::Capability;

/// Query parameters of an envelope.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct EnvelopeQuery {
    node: String,
    hmac: Option<bool>,
}

/// The body of `POST /v1/envelopes/verify`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifyEnvelopeRequest {
    /// The envelope, unchanged.
    pub envelope: Envelope,
    /// The thread that the envelope must be for.
    pub thread: Option<ThreadId>,
    /// The node that the envelope must be for.
    pub node: Option<NodeId>,
    /// Whether an HMAC is required. An HMAC that is present is always checked.
    #[serde(default)]
    pub require_hmac: bool,
}

/// Get a signed context envelope.
///
/// Returns 200 with the node's view of the head, shortened to fit its token budget and signed. Returns 422 if a
/// required path is missing, too large or invalid. `errors` lists the paths.
#[utoipa::path(
    get, path = "/v1/threads/{thread}/envelope", tag = "threads",
    params(
        ("thread" = ThreadId, Path, description = "The name of the thread"),
        ("node" = NodeId, Query, description = "The node"),
        ("hmac" = Option<bool>, Query, description = "Whether to add an HMAC with the node's secret"),
    ),
    responses((status = 200, description = "The signed envelope", body = Envelope))
)]
pub async fn envelope(
    threads: Capability<Threads>,
    episodes: Capability<Episodes>,
    machine: Machine,
    thread: Path<String>,
    query: Query<EnvelopeQuery>,
) -> Result<HttpResponse> {
    let (thread, node): (ThreadId, NodeId) =
        (json_body::name("/thread", &thread)?, json_body::name("/node", &query.node)?);
    let flow = threads.flow_of(&thread).await?;
    // The flow is checked before the node, so that a thread of another flow looks like a missing one.
    of_own_flow(&machine, &flow, "thread")?;
    // An auditor may read the envelope of every node, and an agent only those of its own nodes.
    if machine.0.record.role == MachineRole::Agent && !machine.0.record.acts_as(&flow, &node) {
        return Err(Error::Forbidden("this token is not allowed to act as this node of the thread's flow"));
    }
    let bears = if query.hmac == Some(true) { EnvelopeProof::Hmac } else { EnvelopeProof::Signature };
    Ok(HttpResponse::Ok().json(episodes.envelope(&machine.0.record.principal(), &thread, &node, bears).await?))
}

/// Get the HMAC secrets of a node's envelopes.
///
/// Returns 200 with the secrets that are valid now, to the agent that acts as the node. Each request is logged.
/// Returns 403 for another node.
#[utoipa::path(
    get, path = "/v1/flows/{flow}/nodes/{node}/envelope-secret", tag = "threads",
    params(
        ("flow" = FlowId, Path, description = "The name of the flow"),
        ("node" = NodeId, Path, description = "The node of the token"),
    ),
    responses((status = 200, description = "The secrets that are valid now", body = super::responses::NodeSecretsResponse))
)]
pub async fn secret(
    episodes: Capability<Episodes>,
    machine: Machine,
    path: Path<(String, String)>,
) -> Result<HttpResponse> {
    let (flow, node): (FlowId, NodeId) = (json_body::name("/flow", &path.0)?, json_body::name("/node", &path.1)?);
    of_own_flow(&machine, &flow, "flow")?;
    // A node's secret can create envelopes of that node, so only a token of the node receives it.
    if !machine.0.record.acts_as(&flow, &node) {
        return Err(Error::Forbidden("this token is not allowed to act as this node of the flow"));
    }
    let shown = episodes.node_secrets(&machine.0, &flow, &node).await?;
    Ok(HttpResponse::Ok().json(shown))
}

/// Verify a signed context envelope.
///
/// Returns 200 if the envelope may be given to a model. It must be signed by this gateway, complete, made of the
/// current head, and within the node's schema and token budget. Otherwise returns 422 with the cause. Do not give
/// such an envelope to a model.
#[utoipa::path(
    post, path = "/v1/envelopes/verify", tag = "threads", request_body = VerifyEnvelopeRequest,
    responses((status = 200, description = "The envelope may be given to a model", body = super::responses::EnvelopeVerifiedResponse))
)]
pub async fn verify(
    episodes: Capability<Episodes>,
    threads: Capability<Threads>,
    post: IdempotentPost,
) -> Result<HttpResponse> {
    let ask: VerifyEnvelopeRequest = post.read()?;
    // A verification changes nothing, so no response is stored for it.
    let machine = Machine(post.token.clone());
    let bears = if ask.require_hmac { EnvelopeProof::Hmac } else { EnvelopeProof::Signature };
    let asked = EnvelopeExpectation { thread: ask.thread, node: ask.node, bears };
    let by = machine.0.record.principal();
    let signed = episodes.signed_envelope(&by, ask.envelope, asked).await?;
    // The check comes first, because the result shows the state of the thread, and other flows must not learn that it
    // exists.
    of_own_flow(&machine, &threads.flow_of(&signed.claims.thread).await?, "thread")?;
    let claims = episodes.still_good(&by, signed).await?;
    Ok(HttpResponse::Ok().json(json!({
        "valid": true, "thread": claims.thread, "node": claims.node, "version": claims.version,
        "transition": claims.transition, "tokens": claims.tokens, "encoding": claims.encoding,
    })))
}
