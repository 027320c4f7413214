//! `POST /reviews/{review}/revocation`: revokes an unused receipt.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use askama::Template as _;
use countersign_service::error::{Error, Result};
use countersign_service::reviews::Reviews;
use countersign_service::reviews::details::ReviewFacts;
use countersign_service::writes::Writes;
use countersign_service::writes::revoke_receipt::Revoker;
use serde::Deserialize;

use super::review;
use super::review::ReviewFormState;
use crate::pages::shared::form::SignedInForm;
use crate::pages::shared::format::{html, see_other};
use crate::pages::shared::visitor::Visitor;
use crate::state::Capability;

const REASON_CHARS_MAX: usize = 500;

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct RevocationFields {
    reason: String,
}

pub async fn submit(
    writes: Capability<Writes>,
    reviews: Capability<Reviews>,
    sent: SignedInForm<RevocationFields>,
    review: web::Path<String>,
) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let facts = review::facts(&reviews, &visitor, &review).await?;
    match revoke(&writes, &visitor, &facts, form.reason.trim()).await {
        Ok(()) => Ok(see_other(&format!("/reviews/{}", facts.hold.id))),
        Err(Error::WrongState(why)) => {
            let again = ReviewFormState {
                problem: Some(why.to_owned()),
                typed: form.reason.clone(),
                ..ReviewFormState::default()
            };
            let page = review::page(&reviews, &visitor, &facts, &again).await?;
            Ok(html(StatusCode::CONFLICT, page.render()))
        }
        Err(error) => Err(error),
    }
}

async fn revoke(writes: &Writes, visitor: &Visitor, facts: &ReviewFacts, reason: &str) -> Result<()> {
    let Some(receipt) = &facts.receipt else { return Err(Error::WrongState("There is no receipt to revoke.")) };
    // The page checks this first for a clear message, and the service checks it again in its transaction.
    if facts.write.is_some() {
        return Err(Error::WrongState("A writer has used the receipt. It can no longer be revoked."));
    }
    if reason.is_empty() || reason.chars().count() > REASON_CHARS_MAX {
        return Err(Error::WrongState("Enter a reason of at most 500 characters. The receipt was not revoked."));
    }
    let me = Revoker::Reviewer(visitor.account().id.clone());
    writes.revoke_receipt(&me, &receipt.jti, reason).await
}
