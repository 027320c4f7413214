//! `POST /reviews/{review}/extension`: extends the deadline of a review.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use askama::Template as _;
use countersign_domain::chain::hash::Digest;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{ExtensionRequest, VoteRejected};
use countersign_service::error::{Error, Result};
use countersign_service::reviews::Reviews;
use countersign_service::reviews::details::ReviewFacts;
use serde::Deserialize;

use super::decide::vote_words;
use super::review;
use super::review::{ReviewFormState, forms};
use crate::pages::shared::form::SignedInForm;
use crate::pages::shared::format::{html, see_other};
use crate::pages::shared::safe_text::SafeText;
use crate::pages::shared::visitor::Visitor;
use crate::state::Capability;

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct ExtensionFields {
    digest: String,
    deadline: String,
    until: String,
    reason: String,
}

pub async fn submit(
    reviews: Capability<Reviews>,
    sent: SignedInForm<ExtensionFields>,
    review: web::Path<String>,
) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let facts = review::facts(&reviews, &visitor, &review).await?;
    let why = match extend(&reviews, &visitor, &facts, &form).await {
        Ok(()) => return Ok(see_other(&format!("/reviews/{}#timeline", facts.hold.id))),
        Err(Error::Vote(refused)) => vote_words(&refused),
        Err(Error::Invalid { detail, .. }) => format!("Please {detail}."),
        Err(Error::WrongState(why)) => format!("The deadline cannot be extended: {why}."),
        Err(error) => return Err(error),
    };
    // The review is read again, because another reviewer may have extended it.
    let facts = review::facts(&reviews, &visitor, &review).await?;
    let problem = format!("{why} The deadline was not extended.");
    let open = facts.hold.is_open(facts.now) && forms::extension(&visitor, &facts).is_some();
    // Without a form, the problem appears at the top of the page instead.
    let again = ReviewFormState { problem: (!open).then(|| problem.clone()), ..ReviewFormState::default() };
    let mut page = review::page(&reviews, &visitor, &facts, &again).await?;
    if let Some(again) = &mut page.extending {
        again.problem = Some(problem);
        again.typed = SafeText::new(form.reason.as_str());
    }
    Ok(html(StatusCode::CONFLICT, page.render()))
}

async fn extend(reviews: &Reviews, visitor: &Visitor, facts: &ReviewFacts, form: &ExtensionFields) -> Result<()> {
    let moment = |text: &str| Timestamp::parse(text).ok_or_else(|| Error::invalid("/until", "choose a new deadline"));
    let ask = ExtensionRequest {
        transition: Digest::try_from(form.digest.as_str()).map_err(|_| VoteRejected::Digest)?,
        // The form names the deadline that its reviewer saw, so that a form that is sent twice extends it once.
        deadline: moment(&form.deadline)?,
        until: moment(&form.until)?,
        reason: form.reason.clone(),
    };
    reviews.extend(&visitor.account().id, &facts.hold.id, &ask).await
}
