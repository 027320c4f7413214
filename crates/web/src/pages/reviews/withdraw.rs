//! `POST /reviews/{review}/withdrawal`: withdraws a vote while the review is open.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use askama::Template as _;
use countersign_domain::chain::hash::Digest;
use countersign_domain::reviews::{VoteRejected, WithdrawalRequest};
use countersign_service::error::{Error, Result};
use countersign_service::reviews::Reviews;
use countersign_service::reviews::details::ReviewFacts;
use serde::Deserialize;

use super::decide::vote_words;
use super::review;
use super::review::{ReviewFormState, forms};
use crate::pages::shared::form::SignedInForm;
use crate::pages::shared::format::{html, see_other};
use crate::pages::shared::visitor::Visitor;
use crate::state::Capability;

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct WithdrawalFields {
    digest: String,
    nonce: String,
    vote: String,
}

pub async fn submit(
    reviews: Capability<Reviews>,
    sent: SignedInForm<WithdrawalFields>,
    review: web::Path<String>,
) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let facts = review::facts(&reviews, &visitor, &review).await?;
    match withdraw(&reviews, &visitor, &facts, &form).await {
        Ok(()) => Ok(see_other(&format!("/reviews/{}", facts.hold.id))),
        Err(Error::Vote(refused)) => {
            // The review is read again, because it may have ended since the form was opened.
            let facts = review::facts(&reviews, &visitor, &review).await?;
            let problem = format!("{} No vote was withdrawn.", vote_words(&refused));
            let again = ReviewFormState { problem: Some(problem), ..ReviewFormState::default() };
            let page = review::page(&reviews, &visitor, &facts, &again).await?;
            Ok(html(StatusCode::CONFLICT, page.render()))
        }
        Err(error) => Err(error),
    }
}

async fn withdraw(reviews: &Reviews, visitor: &Visitor, facts: &ReviewFacts, form: &WithdrawalFields) -> Result<()> {
    let transition = Digest::try_from(form.digest.as_str()).map_err(|_| VoteRejected::Digest)?;
    let vote: usize = form.vote.parse().map_err(|_| VoteRejected::NothingToWithdraw)?;
    // The nonce names one vote, so that an old form cannot withdraw a later vote.
    let page = forms::withdrawal_page(facts, vote);
    let nonce = visitor.read_nonce(&page, transition, forms::NO_STAGE, &form.nonce)?;
    let ask = WithdrawalRequest { transition, vote, nonce };
    reviews.withdraw_vote(&visitor.account().id, &facts.hold.id, &ask).await
}
