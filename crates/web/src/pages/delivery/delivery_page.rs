//! `/endpoints/{endpoint}/deliveries/{delivery}`: the delivery of one event to one endpoint, with its attempts.

use actix_web::{HttpResponse, web};
use countersign_service::delivery::Deliveries;
use countersign_service::error::{Error, Result};
use countersign_service::identity::actor::Actor;

use super::delivery_rows::{attempt_row, delivery_row};
use super::endpoint::id;
use super::endpoints::may_change;
use super::endpoints_view::DeliveryPage;
use crate::pages::shared::flash::FlashQuery;
use crate::pages::shared::form::EmptyForm;
use crate::pages::shared::format::{lines, see_other};
use crate::pages::shared::layout::{FlashNotice, Tone};
use crate::pages::shared::responder::or_page_again;
use crate::pages::shared::safe_text::SafeLine;
use crate::pages::shared::visitor::Visitor;
use crate::state::Capability;

/// Notices after a submitted form, by the value of `?done=`.
const DONE: &[(&str, Tone, &str)] =
    &[("again", Tone::Good, "Delivery queued. Reload this page in a moment to see the new attempt.")];

/// `GET /endpoints/{endpoint}/deliveries/{delivery}`.
pub async fn show(
    delivery: Capability<Deliveries>,
    visitor: Visitor,
    path: web::Path<(String, String)>,
    done: web::Query<FlashQuery>,
) -> Result<DeliveryPage> {
    page(&delivery, &visitor, &path, done.notice(DONE)).await
}

/// `POST /endpoints/{endpoint}/deliveries/{delivery}/redelivery`.
pub async fn redeliver(
    delivery: Capability<Deliveries>,
    sent: EmptyForm,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse> {
    let (visitor, _) = sent.parts();
    let done = async {
        let by = Actor::Person(&visitor.0.signed_in.account);
        delivery.redeliver(by, &id(&path.0)?, index(&path.1)?).await?;
        // The redirect keeps a reload from queueing the delivery twice.
        Ok(see_other(&format!("/endpoints/{}/deliveries/{}?done=again", path.0, path.1)))
    };
    or_page_again(done.await, async |notice| page(&delivery, &visitor, &path, Some(notice)).await).await
}

fn index(text: &str) -> Result<u64> {
    // A malformed index names no delivery, so it gets 404 like an unknown one.
    text.parse().map_err(|_| Error::NotFound("delivery"))
}

async fn page(
    delivery: &Deliveries,
    visitor: &Visitor,
    path: &(String, String),
    notice: Option<FlashNotice>,
) -> Result<DeliveryPage> {
    let now = visitor.now();
    // The endpoint is read first, so that an unknown endpoint gets its own error.
    let (endpoint, index) = (delivery.endpoint(&id(&path.0)?).await?.endpoint, index(&path.1)?);
    let told = delivery.delivery(&endpoint.id, index).await?;
    Ok(DeliveryPage {
        shell: visitor.shell(notice).await?,
        csrf: visitor.0.csrf.shown(),
        endpoint_url: format!("/endpoints/{}", endpoint.id),
        endpoint: SafeLine::new(endpoint.name.as_str()),
        row: delivery_row(&told.delivery, now),
        event: told.delivery.event.to_string(),
        signed: endpoint.kind.is_signed(),
        // Only the names are shown, because header values contain secrets.
        headers: lines(endpoint.headers.keys().map(String::as_str)),
        body: lines(told.body.lines()),
        attempts: told.delivery.attempts.iter().rev().map(|it| attempt_row(it, now)).collect(),
        may_change: may_change(visitor),
    })
}
