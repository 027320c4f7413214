//! Administration: policies, halts and revocations.

use std::collections::{BTreeMap, BTreeSet};

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Path;
use countersign_domain::chain::hash::Digest;
use countersign_domain::operations::halt::Halt;
use countersign_domain::policy::{PolicySource, PolicyStage};
use countersign_domain::primitives::id::{FlowId, Jti};
use countersign_service::error::Result;
use countersign_service::identity::actor::Actor;
use countersign_service::operations::Operations;
use countersign_service::operations::halt::HaltScope;
use countersign_service::operations::halt_request::HaltRequest;
use countersign_service::policy_changes::PolicyChanges;
use countersign_service::policy_changes::activate::ActivationOutcome;
use countersign_service::writes::Writes;
use countersign_service::writes::revoke_receipt::Revoker;
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use super::idempotency_key::{IdempotentPost, told};
use super::json_body;
use super::policy_changes;
use super::threads::ReasonRequest;
use crate::state::Capability;

/// The body of `POST /v1/flows/{flow}/policies`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ActivatePolicyRequest {
    /// The text of the policy, in TOML.
    pub policy: String,
    /// The schemas that the policy names, by file name.
    #[serde(default)]
    pub schemas: BTreeMap<String, String>,
    /// The digests of older policies whose heads may still be written.
    #[serde(default)]
    pub accepts: BTreeSet<Digest>,
}

/// The body of `PUT /v1/halts/{scope}`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetHaltRequest {
    /// Whether proposing and voting are halted.
    pub proposing: bool,
    /// Whether verifying is halted.
    pub verifying: bool,
    /// The reason.
    pub reason: String,
}

/// Activate a policy.
///
/// Returns 200 if the policy is active. Returns 202 with a policy change request if the active policy requires
/// approval (`[approval.policy]`). Returns 422 `policy_refused` with line and column if it does not compile, or if a path or
/// tool that should restrict something can never match.
#[utoipa::path(
    post, path = "/v1/flows/{flow}/policies", tag = "policies", request_body = ActivatePolicyRequest,
    params(
        ("flow" = FlowId, Path, description = "The name of the flow"),
    ),
    responses((status = 200, description = "The policy is active", body = super::responses::PolicyActivatedResponse), (status = 202, description = "The policy change requires approval", body = super::responses::PolicyChangeResponse))
)]
pub async fn activate(
    policy_changes: Capability<PolicyChanges>,
    post: IdempotentPost,
    flow: Path<String>,
) -> Result<HttpResponse> {
    let flow: FlowId = json_body::name("/flow", &flow)?;
    let ask: ActivatePolicyRequest = post.read()?;
    let source = PolicySource { text: ask.policy, schemas: ask.schemas };
    let by = post.token.record.principal();
    // The flow of the path is passed on, so that a policy of another flow is refused.
    let work = policy_changes.activate_policy(&by, Some(&flow), source, ask.accepts);
    post.once(work, |core, activation: &ActivationOutcome| {
        Ok(match activation {
            ActivationOutcome::Active(it) => {
                let stage = |it: &PolicyStage| json!({"groups": it.groups(), "need": it.need()});
                let stages: Vec<_> = it.stages.iter().map(stage).collect();
                let body = json!({
                    "flow": it.flow, "policy": it.policy, "accepts": it.accepts, "nodes": it.nodes, "stages": stages,
                    "warnings": it.warnings, "findings": it.findings,
                });
                told(StatusCode::OK, &body)
            }
            // A policy can require approval of its own changes, so the new one is not active yet.
            ActivationOutcome::Waiting(it) => {
                told(StatusCode::ACCEPTED, &policy_changes::told(it, core.public_url(), core.now()))
            }
        })
    })
    .await
}

/// Halt or resume a flow.
///
/// Sets the kill switch of one flow or of all. Returns 200 with the halts. Returns 202 with `lifting` if two people
/// must lift a halt and this is the first one. Returns 409 `wrong_state` if the token cannot confirm.
#[utoipa::path(
    put, path = "/v1/halts/{scope}", tag = "administration", request_body = SetHaltRequest,
    params(
        ("scope" = FlowId, Path, description = "The name of a flow, or `all`"),
    ),
    responses((status = 200, description = "The halts are set", body = super::responses::HaltResponse), (status = 202, description = "A second person must request the same. Until then the halts stay as returned", body = super::responses::HaltResponse))
)]
pub async fn halt(
    operations: Capability<Operations>,
    post: IdempotentPost,
    scope: Path<String>,
) -> Result<HttpResponse> {
    let ask: SetHaltRequest = post.read()?;
    let at = if *scope == "all" { HaltScope::All } else { HaltScope::Flow(json_body::name("/scope", &scope)?) };
    let halt = Halt { proposing: ask.proposing, verifying: ask.verifying, reason: ask.reason };
    // A PUT has the same effect when it is repeated, so no response is stored for it.
    let standing = operations.request_halt(Actor::Token(&post.token), &at, &HaltRequest::Set(halt)).await?;
    let lifting = standing.stops.as_ref().and_then(|it| it.lifting.as_ref());
    let mut answer = match lifting {
        // The halt still applies, because a second person must confirm the lifting.
        Some(_) => HttpResponse::Accepted(),
        None => HttpResponse::Ok(),
    };
    let mut told = json!({"scope": *scope, "proposing": standing.halt.proposing, "verifying": standing.halt.verifying});
    if let Some(lifting) = lifting {
        told["lifting"] = json!(lifting);
    }
    Ok(answer.json(told))
}

/// Revoke a receipt.
///
/// Returns 200. From then on `verify` denies the receipt with `revoked`. Repeating the request has no further
/// effect.
#[utoipa::path(
    post, path = "/v1/receipts/{jti}/revocation", tag = "administration", request_body = ReasonRequest,
    params(
        ("jti" = Jti, Path, description = "The id of the receipt (`jti`)"),
    ),
    responses((status = 200, description = "Revoked", body = super::responses::RevokeReceiptResponse))
)]
pub async fn revoke(writes: Capability<Writes>, post: IdempotentPost, jti: Path<String>) -> Result<HttpResponse> {
    let jti: Jti = json_body::name("/jti", &jti)?;
    let ask: ReasonRequest = post.read()?;
    let by = Revoker::Admin(post.token.record.principal());
    let (work, body) = (writes.revoke_receipt(&by, &jti, &ask.reason), json!({"jti": jti, "revoked": true}));
    post.once(work, move |_, ()| Ok(told(StatusCode::OK, &body))).await
}
