//! Envelopes: a node's view, as much of it as fits, sealed; and whether one may be given to a model.

use actix_web::HttpResponse;
use actix_web::web::{Data, Path, Query};
use serde::Deserialize;
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use super::idempotency_key::Post;
use super::json_body;
use super::of_own_flow;
use crate::domain::context::Envelope;
use crate::domain::identity::account::MachineRole;
use crate::domain::primitives::id::{FlowId, NodeId, ThreadId};
use crate::service::episodes::envelopes::{Asked, Bears};
use crate::service::error::{Error, Result};
use crate::web::auth::extractors::Machine;
use crate::web::state::App;

/// Whose view.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct EnvelopeQuery {
    node: String,
    hmac: Option<bool>,
}

/// `POST /v1/envelopes/verify`
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckEnvelope {
    /// As it was given.
    pub envelope: Envelope,
    /// Of which thread it should be.
    pub thread: Option<ThreadId>,
    /// Whose view it should be.
    pub node: Option<NodeId>,
    /// Whether it must bear an HMAC. One that it bears is looked at in any case.
    #[serde(default)]
    pub require_hmac: bool,
}

/// A node's view of the head, as much of it as fits, sealed.
#[utoipa::path(
    get, path = "/v1/threads/{thread}/envelope", tag = "threads",
    params(
        ("thread" = ThreadId, Path, description = "The thread's name"),
        ("node" = NodeId, Query, description = "Whose view"),
        ("hmac" = Option<bool>, Query, description = "Whether an HMAC by the node's secret stands beside the signature"),
    ),
    responses((status = 200, description = "The view, sealed", body = Envelope))
)]
pub async fn envelope(
    app: Data<App>,
    machine: Machine,
    thread: Path<String>,
    query: Query<EnvelopeQuery>,
) -> Result<HttpResponse> {
    let (thread, node): (ThreadId, NodeId) =
        (json_body::name("/thread", &thread)?, json_body::name("/node", &query.node)?);
    let flow = app.service.flow_of(&thread).await?;
    of_own_flow(&machine, &flow, "thread")?;
    if machine.0.record.role == MachineRole::Agent && !machine.0.record.acts_as(&flow, &node) {
        return Err(Error::Forbidden("this token may not act as this node of this thread's flow"));
    }
    let bears = if query.hmac == Some(true) { Bears::Hmac } else { Bears::Signature };
    Ok(HttpResponse::Ok().json(app.service.envelope(&machine.0.record.principal(), (&thread, &node), bears).await?))
}

/// The secrets that a node's envelopes bear HMACs by, for the agent that acts as it. The one before is good for a while.
#[utoipa::path(
    get, path = "/v1/flows/{flow}/nodes/{node}/envelope-secret", tag = "threads",
    params(
        ("flow" = FlowId, Path, description = "The flow"),
        ("node" = NodeId, Path, description = "The node that the token acts as"),
    ),
    responses((status = 200, description = "Those that are good now", body = super::responses::NodeSecretsShown))
)]
pub async fn secret(app: Data<App>, machine: Machine, path: Path<(String, String)>) -> Result<HttpResponse> {
    let (flow, node): (FlowId, NodeId) = (json_body::name("/flow", &path.0)?, json_body::name("/node", &path.1)?);
    of_own_flow(&machine, &flow, "flow")?;
    if !machine.0.record.acts_as(&flow, &node) {
        return Err(Error::Forbidden("this token may not act as this node of this flow"));
    }
    let shown = app.service.node_secrets(&machine.0, &flow, &node).await?;
    Ok(HttpResponse::Ok().json(shown))
}

/// Whether an envelope may be given to a model: signed by this gateway, whole, of the head as it stands, what its
/// node may receive, and not too much.
#[utoipa::path(
    post, path = "/v1/envelopes/verify", tag = "threads", request_body = CheckEnvelope,
    responses((status = 200, description = "It may", body = super::responses::EnvelopeChecked))
)]
pub async fn verify(post: Post) -> Result<HttpResponse> {
    let ask: CheckEnvelope = post.read()?;
    let (app, machine) = (&post.app, Machine(post.token.clone()));
    let bears = if ask.require_hmac { Bears::Hmac } else { Bears::Signature };
    let asked = Asked { thread: ask.thread, node: ask.node, bears };
    let by = machine.0.record.principal();
    let signed = app.service.signed_envelope(&by, ask.envelope, asked).await?;
    // How a thread stands is told to those only who may know that there is one.
    of_own_flow(&machine, &app.service.flow_of(&signed.claims.thread).await?, "thread")?;
    let claims = app.service.still_good(&by, signed).await?;
    Ok(HttpResponse::Ok().json(json!({
        "valid": true, "thread": claims.thread, "node": claims.node, "version": claims.version,
        "transition": claims.transition, "tokens": claims.tokens, "encoding": claims.encoding,
    })))
}
