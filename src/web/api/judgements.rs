//! Judging without effect.

use std::collections::BTreeMap;

use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::body::{self, Bytes};
use super::problem::Problem;
use super::transitions::read_along;
use crate::domain::id::{FlowId, NodeId};
use crate::domain::json::patch::Format;
use crate::domain::policy::{PolicySource, Supposed};
use crate::web::app::App;
use crate::web::auth::Machine;

/// `POST /v1/flows/{flow}/judgements`
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Suppose {
    /// The state before; need not be any thread's.
    #[schema(value_type = Object)]
    pub state: Value,
    /// As which node.
    #[schema(value_type = String)]
    pub node: NodeId,
    /// For what.
    #[schema(value_type = Object)]
    pub patch: Value,
    /// In which form: `merge` (the default), `merge-patch` or `json-patch`.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub format: Option<Format>,
    /// The tool that would be called along with it: `{name, arguments}`.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub tool: Option<Value>,
    /// What it would have taken: `{tokens, cost}`, both optional.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub usage: Option<Value>,
    /// A policy to judge by instead of the active one, in TOML.
    #[serde(default)]
    pub policy: Option<String>,
    /// The schemas that it names.
    #[serde(default)]
    pub schemas: BTreeMap<String, String>,
}

/// Says what would become of a proposal. Nothing comes of it.
#[utoipa::path(post, path = "/v1/flows/{flow}/judgements", request_body = Suppose, params(("flow" = String, Path)), responses((status = 200, description = "What would become of it, and why"), (status = 404, body = super::problem::ProblemBody), (status = 422, body = super::problem::ProblemBody)))]
pub async fn judge(
    request: HttpRequest,
    app: Data<App>,
    _machine: Machine,
    flow: Path<String>,
    bytes: Bytes,
) -> Result<HttpResponse, Problem> {
    let done = async {
        let flow: FlowId = body::name("/flow", &flow)?;
        let ask: Suppose = body::read(&app, &bytes)?;
        let candidate = ask.policy.map(|text| PolicySource { text, schemas: ask.schemas });
        let format = ask.format.unwrap_or_default();
        let (tool, usage) = read_along(ask.tool.as_ref(), ask.usage.as_ref())?;
        let supposed =
            Supposed { state: &ask.state, node: &ask.node, format, patch: &ask.patch, tool: tool.as_ref(), usage };
        Ok(HttpResponse::Ok().json(app.service.what_if(&flow, candidate.as_ref(), &supposed).await?))
    };
    done.await.map_err(|error| Problem::of(&request, error))
}
