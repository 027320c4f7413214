//! Rejected requests, for tokens that read all flows.

use actix_web::HttpResponse;
use actix_web::web::Query;
use countersign_domain::policy::Instruction;
use countersign_domain::threads::transition::Rejection;
use countersign_service::error::{Error, Result};
use countersign_service::proposals::Proposals;
use countersign_service::proposals::rejection_list::OlderCursor;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::auth::extractors::Machine;
use crate::state::Capability;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RejectionPageQuery {
    page_size: Option<u32>,
    page_token: Option<String>,
}

/// The default page size and the largest one.
const PAGE: (u32, u32) = (50, 200);

/// List rejected requests.
///
/// Returns 200 with one page of rejected requests, newest first, without redacted values. Pass `next_page_token` as
/// `page_token` for the next page.
#[utoipa::path(
    get, path = "/v1/rejections", tag = "audit",
    params(
        ("page_size" = Option<u32>, Query, description = "The page size: 50 by default, at most 200"),
        ("page_token" = Option<String>, Query, description = "The `next_page_token` of the previous page"),
    ),
    responses((status = 200, description = "A page of rejected requests", body = super::responses::RejectionListResponse))
)]
pub async fn list(
    proposals: Capability<Proposals>,
    machine: Machine,
    query: Query<RejectionPageQuery>,
) -> Result<HttpResponse> {
    let after = match &query.page_token {
        Some(token) => {
            let detail = "the token must be the `next_page_token` of a page of this list";
            Some(OlderCursor::read(token).ok_or(Error::invalid("/page_token", detail))?)
        }
        None => None,
    };
    let size = query.page_size.unwrap_or(PAGE.0).clamp(1, PAGE.1);
    let (rejections, next) = proposals.rejections(&(&machine.0.record).into(), after.as_ref(), size).await?;
    let rejections: Vec<Value> = rejections.iter().map(told).collect();
    let next = next.map(|it| it.token());
    Ok(HttpResponse::Ok().json(json!({"rejections": rejections, "next_page_token": next})))
}

fn told(rejection: &Rejection) -> Value {
    // Values that a proposer sent are returned to that proposer only, so this list leaves them out.
    let Rejection { identity, thread, flow, node, principal, patch, excerpt, at, parent, tool, .. } = rejection;
    let instruction = rejection.instruction.map(Instruction::as_str);
    let mut told = json!({
        "proposal": identity, "thread": thread, "flow": flow, "node": node, "principal": principal,
        "patch_digest": patch, "excerpt": excerpt, "errors": rejection.errors_shown(), "at": at,
        "parent": parent, "instruction": instruction, "tool": tool,
    });
    if !rejection.unfillable.is_empty() {
        told["unfillable"] = json!(rejection.unfillable);
    }
    told
}
