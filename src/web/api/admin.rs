//! What administrators do: policies, halts, revocations.

use std::collections::{BTreeMap, BTreeSet};

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Path;
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use super::idempotency_key::{Post, told};
use super::json_body;
use super::policy_changes;
use super::threads::Reason;
use crate::domain::chain::hash::Digest;
use crate::domain::operations::halt::Halt;
use crate::domain::policy::PolicySource;
use crate::domain::primitives::id::{FlowId, Jti};
use crate::service::error::Result;
use crate::service::operations::halt::Scope;
use crate::service::operations::halt_request::{Puller, Wish};
use crate::service::policies::Activation;
use crate::service::writes::revoke_receipt::Revoker;

/// `POST /v1/flows/{flow}/policies`
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Activate {
    /// The policy's text, in TOML.
    pub policy: String,
    /// The schemas that it names.
    #[serde(default)]
    pub schemas: BTreeMap<String, String>,
    /// Older policies whose heads may still be written.
    #[serde(default)]
    pub accepts: BTreeSet<Digest>,
}

/// `PUT /v1/halts/{scope}`
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetHalt {
    /// Nothing may be proposed, and no vote counts.
    pub proposing: bool,
    /// No write may be verified.
    pub verifying: bool,
    /// Why.
    pub reason: String,
}

/// Activates a policy for its flow; or asks people first, if the active one says so in `[approval.policy]`.
#[utoipa::path(
    post, path = "/v1/flows/{flow}/policies", tag = "policies", request_body = Activate,
    params(
        ("flow" = FlowId, Path, description = "The flow"),
    ),
    responses((status = 200, description = "It judges its flow", body = super::responses::PolicyActive), (status = 202, description = "People are asked first", body = super::responses::AmendmentTold))
)]
pub async fn activate(post: Post, flow: Path<String>) -> Result<HttpResponse> {
    let flow: FlowId = json_body::name("/flow", &flow)?;
    let ask: Activate = post.read()?;
    let source = PolicySource { text: ask.policy, schemas: ask.schemas };
    let by = post.token.record.principal();
    let work = post.app.service.activate_policy(&by, Some(&flow), source, ask.accepts);
    post.once(work, |app, activation: &Activation| {
        Ok(match activation {
            Activation::Active(it) => {
                told(StatusCode::OK, &json!({"flow": it.flow, "policy": it.policy, "accepts": it.accepts}))
            }
            Activation::Waiting(it) => {
                told(StatusCode::ACCEPTED, &policy_changes::told(it, app.service.public_url(), app.service.now()))
            }
        })
    })
    .await
}

/// Sets the stops of a flow, or of all. Where two people must lift a halt, the first one's wish waits for another's.
#[utoipa::path(
    put, path = "/v1/halts/{scope}", tag = "administration", request_body = SetHalt,
    params(
        ("scope" = FlowId, Path, description = "A flow, or `all`"),
    ),
    responses((status = 200, description = "Set", body = super::responses::HaltStanding), (status = 202, description = "A second person must ask for the same; how it stands until then", body = super::responses::HaltStanding))
)]
pub async fn halt(post: Post, scope: Path<String>) -> Result<HttpResponse> {
    let ask: SetHalt = post.read()?;
    let at = if *scope == "all" { Scope::All } else { Scope::Flow(json_body::name("/scope", &scope)?) };
    let halt = Halt { proposing: ask.proposing, verifying: ask.verifying, reason: ask.reason };
    let standing = post.app.service.wish_halt(Puller::Token(&post.token), &at, &Wish::Set(halt)).await?;
    let lifting = standing.stops.as_ref().and_then(|it| it.lifting.as_ref());
    let mut answer = match lifting {
        Some(_) => HttpResponse::Accepted(),
        None => HttpResponse::Ok(),
    };
    let mut told = json!({"scope": *scope, "proposing": standing.halt.proposing, "verifying": standing.halt.verifying});
    if let Some(lifting) = lifting {
        told["lifting"] = json!(lifting);
    }
    Ok(answer.json(told))
}

/// Takes a receipt back.
#[utoipa::path(
    post, path = "/v1/receipts/{jti}/revocation", tag = "administration", request_body = Reason,
    params(
        ("jti" = Jti, Path, description = "The receipt's id"),
    ),
    responses((status = 200, description = "Taken back", body = super::responses::ReceiptRevoked))
)]
pub async fn revoke(post: Post, jti: Path<String>) -> Result<HttpResponse> {
    let jti: Jti = json_body::name("/jti", &jti)?;
    let ask: Reason = post.read()?;
    let by = Revoker::Admin(post.token.record.principal());
    let (work, body) = (post.app.service.revoke_receipt(&by, &jti, &ask.reason), json!({"jti": jti, "revoked": true}));
    post.once(work, move |_, ()| Ok(told(StatusCode::OK, &body))).await
}
