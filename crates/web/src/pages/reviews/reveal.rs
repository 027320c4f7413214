//! `POST /reviews/{review}/reveal`: reveals one redacted value. Only this response contains it.

use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use askama::Template as _;
use countersign_domain::chain::hash::Digest;
use countersign_service::error::{Error, Result};
use countersign_service::reviews::Reviews;
use countersign_service::reviews::details::ReviewFacts;
use countersign_service::reviews::reveal::RevealRequest;
use serde::Deserialize;

use super::review;
use super::review::ReviewFormState;
use crate::limits::rate_limit::RateLimiter;
use crate::pages::shared::form::SignedInForm;
use crate::pages::shared::format::{html, place_sent};
use crate::pages::shared::safe_text::SafeText;
use crate::pages::shared::visitor::Visitor;
use crate::state::{Capability, EdgeConfig};

/// Reveals that one person may make in a row: enough to understand one change.
pub const BURST: u32 = 10;

/// The interval after the burst. An insider who reads the secrets of a flow one by one is slow and visible in the log.
pub const INTERVAL: Duration = Duration::from_secs(60);

#[derive(Clone, Deserialize, Default)]
#[serde(default)]
pub struct RevealFields {
    digest: String,
    pointer: String,
    reason: String,
}

/// Returns the rate limiter for reveals of one person at this gateway.
pub fn throttle() -> RateLimiter {
    RateLimiter::new(BURST, INTERVAL)
}

pub async fn submit(
    edge: Capability<EdgeConfig>,
    reviews: Capability<Reviews>,
    sent: SignedInForm<RevealFields>,
    review: web::Path<String>,
) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let facts = review::facts(&reviews, &visitor, &review).await?;
    match look(&edge, &reviews, &visitor, &facts, &form).await {
        Ok(facts) => {
            // The page is the direct response and not a redirect, because only this response contains the value.
            let page = review::page(&reviews, &visitor, &facts, &ReviewFormState::default()).await?;
            Ok(html(StatusCode::OK, page.render()))
        }
        Err(error) => match words(&error) {
            Some((status, problem)) => {
                let mut page = review::page(&reviews, &visitor, &facts, &ReviewFormState::default()).await?;
                if let Some(again) = &mut page.revealing {
                    again.problem = Some(problem);
                    again.typed = SafeText::new(form.reason.as_str());
                }
                Ok(html(status, page.render()))
            }
            None => Err(error),
        },
    }
}

async fn look(
    edge: &EdgeConfig,
    reviews: &Capability<Reviews>,
    visitor: &Visitor,
    facts: &ReviewFacts,
    form: &RevealFields,
) -> Result<ReviewFacts> {
    let look = RevealRequest {
        transition: Digest::try_from(form.digest.as_str()).map_err(|_| Error::invalid("/digest", "not a digest"))?,
        pointer: place_sent(&form.pointer).ok_or(Error::NotFound("redacted value"))?,
        reason: form.reason.clone(),
    };
    let person = &visitor.account().id;
    // The rate is limited, so that one session cannot collect many redacted values quickly.
    edge.reveals.take(person, visitor.now()).map_err(|_| Error::TooMany)?;
    reviews.reveal(person, &facts.hold.id, &look).await
}

/// Returns status and message for the review page, or `None` if the error has its own page.
fn words(error: &Error) -> Option<(StatusCode, String)> {
    match error {
        Error::Invalid { pointer, detail } if pointer == "/reason" => {
            Some((StatusCode::UNPROCESSABLE_ENTITY, format!("No value was shown: {detail}.")))
        }
        Error::WrongState(why) => Some((StatusCode::CONFLICT, format!("No value was shown: {why}."))),
        Error::TooMany => {
            let told = "You have revealed too many values. No value was shown. Wait a minute and try again.";
            Some((StatusCode::TOO_MANY_REQUESTS, told.to_owned()))
        }
        _ => None,
    }
}
