//! `POST /reviews/{review}/withdrawal`: taking one's own vote back while the review is open.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template as _;
use serde::Deserialize;

use super::decision::vote_words;
use super::failure::Failure;
use super::form::Form;
use super::nonce::{Binding, Nonce};
use super::parts::{html, see_other};
use super::review::{self, Again};
use super::view::discussion::WithdrawalForm;
use super::view::text::Line;
use super::visitor::Visitor;
use crate::domain::chain::hash::Digest;
use crate::domain::review::{VoteRefused, Withdrawing};
use crate::service::error::{Error, Result};
use crate::service::review_page::ReviewFacts;
use crate::web::app::App;

/// What the form sends.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct WithdrawalFields {
    digest: String,
    nonce: String,
    vote: String,
}

/// `POST /reviews/{review}/withdrawal`.
pub async fn submit(
    app: web::Data<App>,
    request: HttpRequest,
    sent: Form<WithdrawalFields>,
    review: web::Path<String>,
) -> std::result::Result<HttpResponse, Failure> {
    let (visitor, form) = sent.parts();
    let failed = |error| Failure::of(&request, error);
    let facts = review::facts(&app, &visitor, &review).await.map_err(failed)?;
    match withdraw(&app, &visitor, &facts, &form).await {
        Ok(()) => Ok(see_other(&format!("/reviews/{}", facts.hold.id))),
        Err(Error::Vote(refused)) => {
            let facts = review::facts(&app, &visitor, &review).await.map_err(failed)?;
            let problem = format!("{} Nothing was taken back.", vote_words(&refused));
            let again = Again { problem: Some(problem), ..Again::default() };
            let page = review::page(&app, &visitor, &facts, &again).await.map_err(failed)?;
            Ok(html(StatusCode::CONFLICT, page.render()))
        }
        Err(error) => Err(failed(error)),
    }
}

async fn withdraw(app: &App, visitor: &Visitor, facts: &ReviewFacts, form: &WithdrawalFields) -> Result<()> {
    let transition = Digest::try_from(form.digest.as_str()).map_err(|_| VoteRefused::Digest)?;
    let vote: usize = form.vote.parse().map_err(|_| VoteRefused::NothingToWithdraw)?;
    let page = page_name(facts, vote);
    let binding = binding(visitor, &page, transition);
    let nonce = Nonce::read(app.service.keys()?.row(), &binding, &form.nonce).ok_or(VoteRefused::NonceUsed)?;
    let ask = Withdrawing { transition, vote, nonce: nonce.as_str().to_owned() };
    app.service.withdraw_vote(&visitor.account().id, &facts.hold.id, &ask).await
}

/// A nonce for taking one vote back is for nothing else: a review's own id has no slash in it.
fn page_name(facts: &ReviewFacts, vote: usize) -> String {
    format!("{}/withdrawal/{vote}", facts.hold.id)
}

fn binding<'a>(visitor: &'a Visitor, page: &'a str, digest: Digest) -> Binding<'a> {
    Binding { session: &visitor.0.signed_in.session.record.id, page, digest, stage: 0 }
}

/// The form, for whoever has a vote that counts on a review that is open.
pub fn form(app: &App, visitor: &Visitor, facts: &ReviewFacts) -> Result<Option<WithdrawalForm>> {
    let mine = |vote: &crate::domain::review::Vote| vote.stands() && vote.takes_up(&visitor.account().id);
    let Some(vote) = facts.hold.votes.iter().position(mine).filter(|_| facts.hold.is_open(facts.now)) else {
        return Ok(None);
    };
    let page = page_name(facts, vote);
    let nonce = Nonce::new(app.service.keys()?.row(), &binding(visitor, &page, facts.hold.transition));
    Ok(Some(WithdrawalForm {
        action: format!("/reviews/{}/withdrawal", facts.hold.id),
        csrf: visitor.0.csrf.clone(),
        nonce: nonce.as_str().to_owned(),
        vote: vote.to_string(),
        cast_by: Some(&facts.hold.votes[vote])
            .filter(|it| it.reviewer != visitor.account().id)
            .map(|it| Line::new(it.name.as_str())),
    }))
}
