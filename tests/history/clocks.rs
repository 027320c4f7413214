//! An audit of an unaltered history finds nothing, even if the clock stopped or went back.

use std::sync::Arc;
use std::time::Instant;

use countersign_domain::primitives::time::Timestamp;

use countersign_adapters::clock::{Clock, SystemClock};
use countersign_service::audit::{audit, audit_with};
use countersign_service::delivery::endpoints::EndpointEdit;
use countersign_service::identity::actor::Actor;

use crate::lived::{self, HistoryGateway, TestClock, live_through};

/// Returns the same time for up to 100 milliseconds.
struct FrozenClock;

impl Clock for FrozenClock {
    fn now(&self) -> Timestamp {
        let now = SystemClock.now().millis();
        Timestamp::from_millis(now - now % 100)
    }

    fn instant(&self) -> Instant {
        SystemClock.instant()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_audit_goes_by_no_clock_that_stood() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = HistoryGateway::open_by(folder.path(), TestClock::default(), Arc::new(FrozenClock)).await;
    live_through(&gateway.service).await;
    let keys = gateway.service.core.keys().unwrap();
    let archives = lived::archives::in_folder(folder.path());
    let report = audit_with(&*gateway.store, Some(&archives), &keys, SystemClock.now()).await.unwrap();
    assert_eq!(report.findings, [], "{report:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_audit_knows_an_endpoints_last_event_though_the_clock_went_back() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = HistoryGateway::open(folder.path()).await;
    let service = &gateway.service;
    let cast = lived::cast(service).await;
    let gus = service.identity.account_row(&cast.gus).await.unwrap();
    let by = Actor::Person(&gus);
    gateway.clock.0.set_millis(60_000);
    let id = service.delivery.add_endpoint(by, &lived::sending::new_endpoint()).await.unwrap().0.endpoint.id;
    for (earlier, name) in [(40_000, "first"), (20_000, "second")] {
        gateway.clock.0.set_millis(earlier);
        let edit = EndpointEdit { name: Some(name.to_owned()), ..EndpointEdit::default() };
        service.delivery.change_endpoint(by, &id, &edit).await.unwrap();
    }
    let report = audit(&*gateway.store, &service.core.keys().unwrap(), service.core.now()).await.unwrap();
    assert_eq!(report.findings, []);
}
