//! A flow's recorded proposals, judged by another policy.

use std::collections::BTreeMap;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Path;
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use super::idempotency_key::{Post, told};
use super::json_body;
use crate::domain::policy::PolicySource;
use crate::domain::primitives::id::FlowId;
use crate::service::error::{Error, Result};
use crate::service::policy_changes::replay::{Replay, ReplayFrom};

/// `POST /v1/flows/{flow}/replays`
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AskReplay {
    /// The policy to try, in TOML.
    pub policy: String,
    /// The schemas that it names.
    #[serde(default)]
    pub schemas: BTreeMap<String, String>,
    /// Where to go on: the `next` of an answer.
    #[serde(default)]
    pub after: Option<String>,
    /// How many proposals at most, up to 200; 50 unless told otherwise.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// Proposals in one answer, unless told otherwise, and at most.
const ROWS: (u32, u32) = (50, 200);

/// Judges a flow's recorded proposals by a candidate, and says what would have become of each. Nothing comes of it.
#[utoipa::path(
    post, path = "/v1/flows/{flow}/replays", tag = "policies", request_body = AskReplay,
    params(
        ("flow" = FlowId, Path, description = "The flow"),
    ),
    responses((status = 200, description = "What became of each, and what would have", body = super::responses::ReplayPage))
)]
pub async fn replay(post: Post, flow: Path<String>) -> Result<HttpResponse> {
    let flow: FlowId = json_body::name("/flow", &flow)?;
    let ask: AskReplay = post.read()?;
    let wrong = || Error::invalid("/after", "after is the `next` of an answer of this list");
    let after = ask.after.map(|it| ReplayFrom::read(&it).ok_or_else(wrong)).transpose()?;
    let source = PolicySource { text: ask.policy, schemas: ask.schemas };
    let limit = ask.limit.unwrap_or(ROWS.0).clamp(1, ROWS.1);
    let by = post.token.record.principal();
    let work = post.app.service.replay(by.as_str(), &flow, &source, after.as_ref(), limit);
    post.once(work, |_, replay: &Replay| {
        let next = replay.next.as_ref().map(ReplayFrom::token);
        Ok(told(StatusCode::OK, &json!({"policy": replay.policy, "proposals": replay.rows, "next": next})))
    })
    .await
}
