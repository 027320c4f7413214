//! Endpoints in a history: one that was made and changed, and what could not be sent to it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use countersign_domain::delivery::endpoint::EventPattern;
use countersign_domain::primitives::secret::Secret;

use countersign_adapters::http_client::{HttpClient, HttpClientSettings};
use countersign_service::Service;
use countersign_service::delivery::endpoint_kind::NewKind;
use countersign_service::delivery::endpoints::{EndpointEdit, NewEndpoint};
use countersign_service::identity::actor::Actor;

use super::HistoryActors;

/// Returns an HTTP client without allowed addresses, because a history has no network.
pub fn outgoing() -> HttpClient {
    let settings = HttpClientSettings { allowed: Vec::new(), plain_http: false, timeout: Duration::from_secs(1) };
    HttpClient::new(settings).unwrap()
}

/// Returns an endpoint for all thread events, from the first event of the audit log.
pub fn new_endpoint() -> NewEndpoint {
    NewEndpoint {
        name: "ops".to_owned(),
        kind: NewKind::Webhook,
        url: Secret::new("https://receiver.example/hook".to_owned()),
        events: BTreeSet::from([EventPattern::try_from("thread.*".to_owned()).unwrap()]),
        flows: BTreeSet::new(),
        ordered: true,
        headers: BTreeMap::from([("authorization".to_owned(), Secret::new("Bearer x".to_owned()))]),
        after: Some(0),
    }
}

/// Adds an endpoint for earlier thread events, and records two of its deliveries as unsendable.
pub async fn tells_others(service: &Service, cast: &HistoryActors) {
    let gus = service.identity.account_row(&cast.gus).await.unwrap();
    let by = Actor::Person(&gus);
    let new = new_endpoint();
    let over = service.delivery.add_endpoint(by, &new).await.unwrap().0.endpoint.id;
    service.delivery.remove_endpoint(by, &over).await.unwrap();
    let id = service.delivery.add_endpoint(by, &new).await.unwrap().0.endpoint.id;
    let edit = EndpointEdit { name: Some("operators".to_owned()), ..EndpointEdit::default() };
    service.delivery.change_endpoint(by, &id, &edit).await.unwrap();
    service.delivery.rotate_endpoint_secret(by, &id, Duration::from_secs(60)).await.unwrap();
    while service.log.sequence().await.unwrap() > 0 {}
    let (endpoint, lane) = service.delivery.endpoint_positions().await.unwrap().pop().unwrap();
    let mut lane = service.delivery.open_cursor(endpoint, lane).await.unwrap();
    for _ in 0..2 {
        let job = service.delivery.next_delivery(&mut lane).await.unwrap().unwrap();
        let done = job.unsendable(service.core.now());
        service.delivery.record(&mut lane, vec![done]).await.unwrap();
    }
}
