//! Judging without effect.

use std::collections::BTreeMap;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Path;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::idempotency_key::{Post, told};
use super::json_body;
use crate::domain::json::patch::Format;
use crate::domain::policy::{Around, PolicySource, WhatIf};
use crate::domain::primitives::id::{FlowId, NodeId};
use crate::service::error::{Error, Result};
use crate::service::policy_changes::dry_run::DryRun;

/// `POST /v1/flows/{flow}/judgements`
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Suppose {
    /// The state before; need not be any thread's.
    #[schema(value_type = Object)]
    pub state: Value,
    /// As which node.
    pub node: NodeId,
    /// For what.
    pub patch: Value,
    /// In which form: `merge` (the default), `merge-patch` or `json-patch`.
    #[serde(default)]
    pub format: Option<Format>,
    /// Who would ask: `{id, owner}`. If left out, a rule that asks about it has no answer.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub principal: Option<Value>,
    /// The nodes of which something was committed in the thread before. If left out, as above.
    #[serde(default)]
    #[schema(value_type = Option<Vec<NodeId>>)]
    pub committed_nodes: Option<Value>,
    /// What each node has used in the thread before: `{node: {calls, tokens, cost}}`; nothing, if left out.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub totals: Option<Value>,
    /// The tool that would be called along with it: `{name, arguments}`.
    #[serde(default)]
    #[schema(value_type = Option<super::responses::ToolCall>)]
    pub tool: Option<Value>,
    /// What it would have taken: `{tokens, cost}`, both optional.
    #[serde(default)]
    #[schema(value_type = Option<super::responses::Used>)]
    pub usage: Option<Value>,
    /// A policy to judge by instead of the active one, in TOML.
    #[serde(default)]
    pub policy: Option<String>,
    /// The schemas that it names.
    #[serde(default)]
    pub schemas: BTreeMap<String, String>,
}

/// Says what would become of a proposal. Nothing comes of it.
#[utoipa::path(
    post, path = "/v1/flows/{flow}/judgements", tag = "policies", request_body = Suppose,
    params(
        ("flow" = FlowId, Path, description = "The flow"),
    ),
    responses((status = 200, description = "What would become of it, and why", body = WhatIf))
)]
pub async fn judge(post: Post, flow: Path<String>) -> Result<HttpResponse> {
    let flow: FlowId = json_body::name("/flow", &flow)?;
    let ask: Suppose = post.read()?;
    let candidate = ask.policy.map(|text| PolicySource { text, schemas: ask.schemas });
    let format = ask.format.unwrap_or_default();
    let around = [
        ("principal", ask.principal),
        ("committed_nodes", ask.committed_nodes),
        ("tool", ask.tool),
        ("usage", ask.usage),
        ("totals", ask.totals),
    ];
    let mut said = around.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    let around = Around::take(&mut said).map_err(|it| Error::invalid(it.pointer.as_str(), it.detail))?;
    let dry_run = DryRun { state: ask.state, node: ask.node, format, patch: ask.patch, around };
    let by = post.token.record.principal();
    let work = post.app.service.what_if(by.as_str(), &flow, candidate.as_ref(), dry_run);
    post.once(work, |_, judged: &WhatIf| Ok(told(StatusCode::OK, judged))).await
}
