//! Enrolments and evidence with which auditors verify approvals by passkey.

use actix_web::HttpResponse;
use actix_web::web::Path;
use countersign_domain::chain::verify_receipt_offline::PinnedPasskey;
use countersign_domain::primitives::id::Jti;
use countersign_service::error::Result;
use countersign_service::identity::Identity;
use countersign_service::reviews::Reviews;
use serde_json::json;

use super::json_body;
use crate::auth::extractors::Machine;
use crate::state::Capability;

/// List passkey enrolments.
///
/// Returns 200 with every passkey that was ever enrolled and its public key. Store the list to verify approvals
/// offline.
#[utoipa::path(
    get, path = "/v1/passkeys", tag = "audit",
    responses((status = 200, description = "The passkeys with their public keys", body = super::responses::PasskeyListResponse))
)]
pub async fn list(identity: Capability<Identity>, _machine: Machine) -> Result<HttpResponse> {
    let all: Vec<PinnedPasskey> = identity.passkeys().await?.into_iter().map(PinnedPasskey::from).collect();
    Ok(HttpResponse::Ok().json(json!({"passkeys": all})))
}

/// Read the passkey signatures of a receipt.
///
/// Returns 200 with the signed statements and assertions of the approvals that the receipt names by digest. Returns
/// 404 if there is no such receipt.
#[utoipa::path(
    get, path = "/v1/receipts/{jti}/evidence", tag = "audit",
    params(
        ("jti" = Jti, Path, description = "The id of the receipt (`jti`)"),
    ),
    responses((status = 200, description = "The signed statements and assertions", body = super::responses::EvidenceListResponse))
)]
pub async fn evidence(reviews: Capability<Reviews>, _machine: Machine, jti: Path<String>) -> Result<HttpResponse> {
    let jti: Jti = json_body::name("/jti", &jti)?;
    let evidence = reviews.evidence_of_receipt(&jti).await?;
    Ok(HttpResponse::Ok().json(json!({"evidence": evidence})))
}
