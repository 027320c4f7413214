//! `POST /threads/{thread}/versions/{version}/rollback`: a person requests a rollback to a version.

use actix_web::{HttpResponse, web};
use countersign_domain::chain::hash::Digest;
use countersign_domain::primitives::id::{NodeId, ThreadId};
use countersign_service::error::{Error, Result};
use countersign_service::proposals::Proposals;
use countersign_service::proposals::rollback::RollbackInput;
use serde::Deserialize;

use crate::pages::shared::form::SignedInForm;
use crate::pages::shared::format::see_other;
use crate::pages::shared::vote_form::as_typed;
use crate::state::Capability;

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct RollbackFields {
    node: String,
    head: String,
    attempt: u32,
    reason: String,
}

/// Redirects a `GET` of the form's address to the version, for example after a reload.
pub async fn back(place: web::Path<(String, u64)>) -> HttpResponse {
    let thread = ThreadId::try_from(place.0.as_str());
    see_other(&thread.map_or_else(|_| "/threads".to_owned(), |it| format!("/threads/{it}/versions/{}", place.1)))
}

/// `POST /threads/{thread}/versions/{version}/rollback`.
pub async fn submit(
    proposals: Capability<Proposals>,
    sent: SignedInForm<RollbackFields>,
    place: web::Path<(String, u64)>,
) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let asked = asked(&place, &form)?;
    let review = proposals.ask_for_rollback(&visitor.account().id, &asked).await?;
    // A rollback always needs approval, so the review is the next page.
    Ok(see_other(&format!("/reviews/{review}")))
}

fn asked((thread, to_version): &(String, u64), form: &RollbackFields) -> Result<RollbackInput> {
    let reason = as_typed(form.reason.trim());
    Ok(RollbackInput {
        thread: ThreadId::try_from(thread.as_str()).map_err(|_| Error::NotFound("thread"))?,
        node: NodeId::try_from(form.node.as_str()).map_err(|_| Error::invalid("", "choose a node for the rollback"))?,
        // The form names the head that the person saw, so that a rollback on a newer head is refused.
        parent: Digest::try_from(form.head.as_str())
            .map_err(|_| Error::invalid("", "the form has no head; open the version page again"))?,
        to_version: *to_version,
        attempt: form.attempt,
        reason: (!reason.is_empty()).then_some(reason),
    })
}
