//! `/endpoints/{endpoint}/deliveries/{delivery}`: one event to one endpoint, and how each attempt went.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template as _;

use super::done::{Done, refusal};
use super::endpoint::id;
use super::endpoints::may_change;
use super::failure::Failure;
use super::form::Bare;
use super::inbox::WAITING_MAX;
use super::log::words;
use super::parts::{html, lines, moment, see_other};
use super::view::endpoints::{AttemptRow, DeliveryPage, DeliveryRow, Health};
use super::view::shell::{Notice, Tone};
use super::view::text::Line;
use super::visitor::Visitor;
use crate::domain::endpoint::delivery::{Attempt, Delivery, DeliveryState, Ended, OVER};
use crate::domain::time::Timestamp;
use crate::service::error::{Error, Result};
use crate::service::stops::Puller;
use crate::web::app::App;

/// What the page says after the form was taken.
const DONE: &[(&str, Tone, &str)] =
    &[("again", Tone::Good, "It is sent again, as soon as may be. Look again in a moment.")];

/// `GET /endpoints/{endpoint}/deliveries/{delivery}`.
pub async fn show(
    app: web::Data<App>,
    request: HttpRequest,
    visitor: Visitor,
    path: web::Path<(String, String)>,
    done: web::Query<Done>,
) -> std::result::Result<HttpResponse, Failure> {
    let page = page(&app, &visitor, &path, done.notice(DONE)).await;
    Ok(html(StatusCode::OK, page.map_err(|error| Failure::of(&request, error))?.render()))
}

/// `POST /endpoints/{endpoint}/deliveries/{delivery}/redelivery`.
pub async fn redeliver(
    app: web::Data<App>,
    request: HttpRequest,
    sent: Bare,
    path: web::Path<(String, String)>,
) -> std::result::Result<HttpResponse, Failure> {
    let (visitor, _) = sent.parts();
    let failed = |error| Failure::of(&request, error);
    let sent = async {
        let by = Puller::Person(&visitor.0.signed_in.account);
        app.service.redeliver(by, &id(&path.0)?, index(&path.1)?).await
    };
    match sent.await {
        Ok(_) => Ok(see_other(&format!("/endpoints/{}/deliveries/{}?done=again", path.0, path.1))),
        Err(error) => {
            let notice = refusal(error).map_err(failed)?;
            let page = page(&app, &visitor, &path, Some(notice)).await.map_err(failed)?;
            Ok(html(StatusCode::CONFLICT, page.render()))
        }
    }
}

fn index(text: &str) -> Result<u64> {
    text.parse().map_err(|_| Error::NotFound("delivery"))
}

async fn page(app: &App, visitor: &Visitor, path: &(String, String), notice: Option<Notice>) -> Result<DeliveryPage> {
    let (service, now) = (&app.service, app.service.now());
    let (endpoint, index) = (service.endpoint(&id(&path.0)?).await?.endpoint, index(&path.1)?);
    let told = service.delivery(&endpoint.id, index).await?;
    let waiting = service.waiting_for(visitor.account(), WAITING_MAX).await?;
    Ok(DeliveryPage {
        shell: visitor.shell(waiting, notice),
        csrf: visitor.0.csrf.clone(),
        endpoint_url: format!("/endpoints/{}", endpoint.id),
        endpoint: Line::new(endpoint.name.as_str()),
        row: delivery_row(&told.delivery, now),
        event: told.delivery.event.to_string(),
        signed: endpoint.kind.is_signed(),
        headers: lines(endpoint.headers.keys().map(String::as_str)),
        body: lines(told.body.lines()),
        attempts: told.delivery.attempts.iter().rev().map(|it| attempt_row(it, now)).collect(),
        may_change: may_change(visitor),
    })
}

/// A delivery as lists have it.
pub(super) fn delivery_row(delivery: &Delivery, now: Timestamp) -> DeliveryRow {
    let (tone, word, due) = match delivery.state {
        DeliveryState::Delivered { .. } => (Tone::Good, "Arrived", None),
        DeliveryState::Failed { .. } => (Tone::Bad, "Given up", None),
        DeliveryState::Behind {} => (Tone::Plain, "Behind another of its thread", None),
        DeliveryState::Waiting { due, .. } if delivery.tries > 0 => (Tone::Care, "To be tried again", Some(due)),
        DeliveryState::Waiting { due, .. } => (Tone::Plain, "To be sent", Some(due)),
    };
    let thread = delivery.thread.as_ref();
    DeliveryRow {
        url: format!("/endpoints/{}/deliveries/{}", delivery.endpoint, delivery.index),
        words: words::of(delivery.kind.name()),
        name: delivery.kind.name(),
        index: delivery.index,
        thread: thread.map(|it| (Line::new(it.as_str()), format!("/threads/{it}"))),
        health: Health { tone, word },
        due: due.map(|it| moment(it, now)),
        last: delivery.attempts.last().map(|it| attempt_row(it, now)),
    }
}

/// An attempt as pages have it.
pub(super) fn attempt_row(attempt: &Attempt, now: Timestamp) -> AttemptRow {
    let (words, why, answer, cut) = match &attempt.ended {
        Ended::Answered { status, body, cut } => (format!("Answered {status}"), None, lines(body.lines()), *cut),
        Ended::Looked { status, saw } => {
            let words = if saw.settles() { "Nothing left to do".to_owned() } else { format!("Looked first: {status}") };
            (words, Some(saw.sentence()), Vec::new(), false)
        }
        Ended::Over {} => ("Nothing left to do".to_owned(), Some(OVER), Vec::new(), false),
        Ended::Failed { why } => ("No answer".to_owned(), Some(why.sentence()), Vec::new(), false),
    };
    AttemptRow {
        at: moment(attempt.at, now),
        seconds: attempt.at.millis().div_euclid(1000),
        took_ms: attempt.took_ms,
        tone: if attempt.ended.arrived() { Tone::Good } else { Tone::Bad },
        words,
        why,
        answer,
        cut,
    }
}
