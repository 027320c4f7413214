//! Replays the recorded proposals of a flow against another policy.

use std::collections::BTreeMap;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Path;
use countersign_domain::policy::PolicySource;
use countersign_domain::primitives::id::FlowId;
use countersign_service::error::{Error, Result};
use countersign_service::policy_changes::PolicyChanges;
use countersign_service::policy_changes::replay::{ReplayCursor, ReplayResult};
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use super::idempotency_key::{IdempotentPost, told};
use super::json_body;
use crate::state::Capability;

/// The body of `POST /v1/flows/{flow}/replays`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayRequest {
    /// The text of the policy to test, in TOML.
    pub policy: String,
    /// The schemas that the policy names, by file name.
    #[serde(default)]
    pub schemas: BTreeMap<String, String>,
    /// The position to continue from: the `next` of the previous response.
    #[serde(default)]
    pub after: Option<String>,
    /// The number of proposals: 50 by default, at most 200.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// The default number of proposals in a response, and the largest one.
const ROWS: (u32, u32) = (50, 200);

/// Replay recorded proposals against a policy.
///
/// A backtest. Returns 200 with one page of recorded proposals and the result that the candidate policy would give.
/// Nothing is stored. Pass `next` as `after` until it is null. Returns 422 `policy_refused` if the policy does not
/// compile.
#[utoipa::path(
    post, path = "/v1/flows/{flow}/replays", tag = "policies", request_body = ReplayRequest,
    params(
        ("flow" = FlowId, Path, description = "The name of the flow"),
    ),
    responses((status = 200, description = "A page of proposals with both results", body = super::responses::ReplayResponse))
)]
pub async fn replay(
    policy_changes: Capability<PolicyChanges>,
    post: IdempotentPost,
    flow: Path<String>,
) -> Result<HttpResponse> {
    let flow: FlowId = json_body::name("/flow", &flow)?;
    let ask: ReplayRequest = post.read()?;
    let wrong = || Error::invalid("/after", "the position must be the `next` of an earlier response");
    let after = ask.after.map(|it| ReplayCursor::read(&it).ok_or_else(wrong)).transpose()?;
    let source = PolicySource { text: ask.policy, schemas: ask.schemas };
    // Each row evaluates a policy, so a page has few rows and the client asks for the next page.
    let limit = ask.limit.unwrap_or(ROWS.0).clamp(1, ROWS.1);
    let by = post.token.record.principal();
    let work = policy_changes.replay(by.as_str(), &flow, &source, after.as_ref(), limit);
    post.once(work, |_, replay: &ReplayResult| {
        let next = replay.next.as_ref().map(ReplayCursor::token);
        Ok(told(StatusCode::OK, &json!({"policy": replay.policy, "proposals": replay.rows, "next": next})))
    })
    .await
}
