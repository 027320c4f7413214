//! Policy change requests (`amendment`): policies that need approval before they become active.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Path;
use countersign_domain::policy_changes::change_request::{PolicyChangeRequest, PolicyChangeState};
use countersign_domain::primitives::id::{AmendmentId, FlowId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::Vote;
use countersign_service::error::{Error, Result};
use countersign_service::identity::Identity;
use countersign_service::platform::core::Core;
use countersign_service::policy_changes::PolicyChanges;
use serde_json::{Value, json};

use super::idempotency_key::{IdempotentPost, told as telling};
use super::json_body;
use super::threads::ReasonRequest;
use crate::auth::extractors::Machine;
use crate::state::Capability;

/// Read a policy change request.
///
/// Returns 200 with the request (`amendment`), its votes and its state. Returns 404 if it does not exist.
#[utoipa::path(
    get, path = "/v1/amendments/{amendment}", tag = "policies",
    params(
        ("amendment" = AmendmentId, Path, description = "The id of the policy change request"),
    ),
    responses((status = 200, description = "The policy change request", body = super::responses::PolicyChangeResponse))
)]
pub async fn read(
    core: Capability<Core>,
    identity: Capability<Identity>,
    policy_changes: Capability<PolicyChanges>,
    _machine: Machine,
    amendment: Path<String>,
) -> Result<HttpResponse> {
    let amendment = policy_changes.amendment(&id(&amendment)?).await?;
    let mut body = told(&amendment, core.public_url(), core.now());
    let evidence = identity.vote_evidence(&amendment)?;
    if !evidence.is_empty() {
        body["evidence"] = json!(evidence);
    }
    Ok(HttpResponse::Ok().json(body))
}

/// List policy change requests of a flow.
///
/// Returns 200 with the requests (`amendments`), newest first.
#[utoipa::path(
    get, path = "/v1/flows/{flow}/amendments", tag = "policies",
    params(
        ("flow" = FlowId, Path, description = "The name of the flow"),
    ),
    responses((status = 200, description = "The policy change requests", body = super::responses::PolicyChangeListResponse))
)]
pub async fn list(
    core: Capability<Core>,
    policy_changes: Capability<PolicyChanges>,
    _machine: Machine,
    flow: Path<String>,
) -> Result<HttpResponse> {
    let flow: FlowId = json_body::name("/flow", &flow)?;
    let (url, now) = (core.public_url(), core.now());
    let all: Vec<Value> = policy_changes.policy_changes_of(&flow).await?.iter().map(|it| told(it, url, now)).collect();
    Ok(HttpResponse::Ok().json(json!({"amendments": all})))
}

/// Cancel a policy change request.
///
/// Returns 200 with the cancelled request. Returns 409 `wrong_state` if it has already ended.
#[utoipa::path(
    post, path = "/v1/amendments/{amendment}/cancellation", tag = "policies", request_body = ReasonRequest,
    params(
        ("amendment" = AmendmentId, Path, description = "The id of the policy change request"),
    ),
    responses((status = 200, description = "The cancelled request", body = super::responses::PolicyChangeResponse))
)]
pub async fn cancel(
    policy_changes: Capability<PolicyChanges>,
    post: IdempotentPost,
    amendment: Path<String>,
) -> Result<HttpResponse> {
    let (id, ask) = (id(&amendment)?, post.read::<ReasonRequest>()?);
    let by = post.token.record.principal();
    post.once(policy_changes.cancel_policy_change(&by, &id, &ask.reason), |core, ended: &PolicyChangeRequest| {
        Ok(telling(StatusCode::OK, &told(ended, core.public_url(), core.now())))
    })
    .await
}

fn id(text: &str) -> Result<AmendmentId> {
    // An invalid ID cannot belong to a request, so it is the same error as an unknown one.
    AmendmentId::try_from(text).map_err(|_| Error::NotFound("policy change request"))
}

/// Returns a policy change request as JSON.
pub fn told(amendment: &PolicyChangeRequest, url: &str, now: Timestamp) -> Value {
    let PolicyChangeRequest { id, change, proposer, digest, stages, opened_at, expires_at, votes, state, .. } =
        amendment;
    // A worker stores the expiry later, so the deadline decides what readers see until then.
    let expired = matches!(state, PolicyChangeState::Open {}) && !amendment.is_open(now);
    let vote = |it: &Vote| json!({"reviewer": it.reviewer, "name": it.name, "verdict": it.verdict, "comment": it.comment, "at": it.at});
    json!({
        "amendment": id, "state": if expired { "expired" } else { state.word() }, "digest": digest,
        "flow": change.flow, "policy": change.policy, "accepts": change.accepts, "over": change.over.policy,
        "proposer": proposer, "proposed_at": opened_at, "expires_at": expires_at, "url": format!("{url}/amendments/{id}"),
        "needed": stages.iter().map(|it| json!({"groups": it.groups, "need": it.need})).collect::<Vec<_>>(),
        "votes": votes.iter().map(vote).collect::<Vec<_>>(),
    })
}
