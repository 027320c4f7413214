//! `POST /reviews/{review}/comments`: adds a comment to a review without a vote.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use askama::Template as _;
use countersign_domain::chain::hash::Digest;
use countersign_domain::reviews::VoteRejected;
use countersign_service::error::{Error, Result};
use countersign_service::reviews::Reviews;
use countersign_service::reviews::comment::NewComment;
use countersign_service::reviews::details::ReviewFacts;
use serde::Deserialize;

use super::decide::vote_words;
use super::review;
use super::review::{ReviewFormState, forms};
use crate::pages::shared::form::SignedInForm;
use crate::pages::shared::format::{html, see_other};
use crate::pages::shared::safe_text::SafeText;
use crate::pages::shared::visitor::Visitor;
use crate::pages::shared::vote_form::as_typed;
use crate::state::Capability;

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct CommentFields {
    digest: String,
    nonce: String,
    comment: String,
}

pub async fn submit(
    reviews: Capability<Reviews>,
    sent: SignedInForm<CommentFields>,
    review: web::Path<String>,
) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let facts = review::facts(&reviews, &visitor, &review).await?;
    let words = as_typed(&form.comment);
    let why = match say(&reviews, &visitor, &facts, &form, &words).await {
        Ok(()) => return Ok(see_other(&format!("/reviews/{}#timeline", facts.hold.id))),
        Err(Error::Vote(refused)) => vote_words(&refused),
        Err(Error::Invalid { pointer, detail }) if pointer == "/comment" => format!("Please {detail}."),
        Err(Error::WrongState(why)) => format!("The comment cannot be added: {why}."),
        Err(error) => return Err(error),
    };
    // The review is read again, because it may have ended since the form was opened.
    let facts = review::facts(&reviews, &visitor, &review).await?;
    let mut page = review::page(&reviews, &visitor, &facts, &ReviewFormState::default()).await?;
    if let Some(again) = &mut page.commenting {
        again.problem = Some(format!("{why} Nothing was added."));
        again.typed = SafeText::new(words);
    }
    Ok(html(StatusCode::CONFLICT, page.render()))
}

async fn say(
    reviews: &Reviews,
    visitor: &Visitor,
    facts: &ReviewFacts,
    form: &CommentFields,
    words: &str,
) -> Result<()> {
    let transition = Digest::try_from(form.digest.as_str()).map_err(|_| VoteRejected::Digest)?;
    let page = forms::comment_page(facts);
    // The nonce belongs to this session and page, so a form that is sent twice adds one comment.
    let nonce = visitor.read_nonce(&page, transition, forms::NO_STAGE, &form.nonce)?;
    let saying = NewComment { transition, words: words.to_owned(), nonce };
    reviews.comment(&visitor.account().id, &facts.hold.id, &saying).await
}
