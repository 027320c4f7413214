//! Policy evaluation without effect (dry run).

use std::collections::BTreeMap;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Path;
use countersign_domain::json::patch::PatchFormat;
use countersign_domain::policy::{HypotheticalContext, PolicySource, WhatIf};
use countersign_domain::primitives::id::{FlowId, NodeId};
use countersign_service::error::{Error, Result};
use countersign_service::policy_changes::PolicyChanges;
use countersign_service::policy_changes::dry_run::DryRun;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::idempotency_key::{IdempotentPost, told};
use super::json_body;
use crate::state::Capability;

/// The body of `POST /v1/flows/{flow}/judgements`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WhatIfRequest {
    /// The state before. It can be any state.
    #[schema(value_type = Object)]
    pub state: Value,
    /// The node that acts. The token must name it.
    pub node: NodeId,
    /// The patch.
    pub patch: Value,
    /// The format of the patch: `merge` (the default), `merge-patch` or `json-patch`.
    #[serde(default)]
    pub format: Option<PatchFormat>,
    /// The caller: `{id, owner}`. If left out, a rule that uses it cannot be evaluated.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub principal: Option<Value>,
    /// The nodes that have committed in the thread before. If left out, a rule that uses them cannot be evaluated.
    #[serde(default)]
    #[schema(value_type = Option<Vec<NodeId>>)]
    pub committed_nodes: Option<Value>,
    /// The earlier usage of each node in the thread: `{node: {calls, tokens, cost}}`. Nothing, if left out.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub totals: Option<Value>,
    /// The tool that would be called: `{name, arguments}`.
    #[serde(default)]
    #[schema(value_type = Option<super::responses::ToolCall>)]
    pub tool: Option<Value>,
    /// The usage of the request: `{tokens, cost}`, both optional.
    #[serde(default)]
    #[schema(value_type = Option<super::responses::UsageInput>)]
    pub usage: Option<Value>,
    /// The text of a policy to use instead of the active one, in TOML.
    #[serde(default)]
    pub policy: Option<String>,
    /// The schemas that the policy names, by file name.
    #[serde(default)]
    pub schemas: BTreeMap<String, String>,
}

/// Dry run a proposal.
///
/// Returns 200 with the result that a policy would give, its reasons, errors and diff. Nothing is stored. Returns
/// 422 `policy_refused` if the given policy does not compile.
#[utoipa::path(
    post, path = "/v1/flows/{flow}/judgements", tag = "policies", request_body = WhatIfRequest,
    params(
        ("flow" = FlowId, Path, description = "The name of the flow"),
    ),
    responses((status = 200, description = "The result and its reasons", body = WhatIf))
)]
pub async fn judge(
    policy_changes: Capability<PolicyChanges>,
    post: IdempotentPost,
    flow: Path<String>,
) -> Result<HttpResponse> {
    let flow: FlowId = json_body::name("/flow", &flow)?;
    let ask: WhatIfRequest = post.read()?;
    let candidate = ask.policy.map(|text| PolicySource { text, schemas: ask.schemas });
    let format = ask.format.unwrap_or_default();
    let around = [
        ("principal", ask.principal),
        ("committed_nodes", ask.committed_nodes),
        ("tool", ask.tool),
        ("usage", ask.usage),
        ("totals", ask.totals),
    ];
    // A missing member means unknown and not empty, so that a rule that uses it cannot be evaluated.
    let mut said = around.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    let around = HypotheticalContext::take(&mut said).map_err(|it| Error::invalid(it.pointer.as_str(), it.detail))?;
    let dry_run = DryRun { state: ask.state, node: ask.node, format, patch: ask.patch, around };
    let by = post.token.record.principal();
    let work = policy_changes.what_if(by.as_str(), &flow, candidate.as_ref(), dry_run);
    post.once(work, |_, judged: &WhatIf| Ok(told(StatusCode::OK, judged))).await
}
