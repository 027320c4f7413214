//! Tests of the background workers, one run at a time.

use countersign_domain::identity::party::Party;
use countersign_service::audit::{audit, audit_with};

use countersign::worker::{Workers, expire, expire_leases, sequence};
use serde_json::json;
use std::time::Duration;

use crate::lived::{self, HistoryGateway, ask, held, live_through, make, propose, thread};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_past_its_deadline_expires_and_others_stay() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = HistoryGateway::open(folder.path()).await;
    let service = &gateway.service;
    let cast = lived::cast(service).await;
    make(service, &cast.host, "long").await;
    make(service, &cast.two_host, "short").await;
    let (long, _) = held(&propose(service, &cast.agent, "long", "planner", json!({"target_user_id": 42})).await);
    let (short, _) = held(&propose(service, &cast.two_agent, "short", "planner", json!({"target_user_id": 42})).await);
    assert_eq!(expire::run_once(service).await.unwrap(), 0);
    gateway.clock.0.set_millis(5 * 60_000);
    assert_eq!(expire::run_once(service).await.unwrap(), 1);
    assert_eq!(service.reviews.decision(short, &Party::Receiver).await.unwrap().1.unwrap().decision, "expired");
    assert!(service.reviews.decision(long, &Party::Receiver).await.unwrap().1.is_none());
    assert_eq!(expire::run_once(service).await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lapse_is_logged_once() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = HistoryGateway::open(folder.path()).await;
    let service = &gateway.service;
    let cast = lived::cast(service).await;
    let head = make(service, &cast.host, "t").await;
    service.writes.verify(&cast.writer, &ask("t", head, None, "w")).await.unwrap();
    assert_eq!(expire_leases::run_once(service).await.unwrap(), 0);
    gateway.clock.0.set_millis(60_000);
    assert_eq!(expire_leases::run_once(service).await.unwrap(), 1);
    assert_eq!(expire_leases::run_once(service).await.unwrap(), 0);
    assert_eq!(service.threads.overview(&thread("t")).await.unwrap().thread.unresolved.len(), 1);
    let keys = service.core.keys().unwrap();
    let report = audit(&*gateway.store, &keys, service.core.now()).await.unwrap();
    assert_eq!(report.findings, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_goes_on_where_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = HistoryGateway::open(folder.path()).await;
    let service = &gateway.service;
    let cast = lived::cast(service).await;
    let first = sequence::run_once(service).await.unwrap();
    make(service, &cast.host, "t").await;
    assert_eq!(sequence::run_once(service).await.unwrap(), 1);
    assert_eq!(sequence::run_once(service).await.unwrap(), 0);
    assert_eq!(service.log.log_length().await.unwrap(), first as u64 + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_supervisor_works_until_it_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = HistoryGateway::open(folder.path()).await;
    lived::cast(&gateway.service).await;
    let workers = Workers::start(&gateway.service, Duration::from_millis(10));
    while gateway.service.log.log_length().await.unwrap() == 0 {
        gateway.service.core.changed(Duration::from_millis(50)).await;
    }
    workers.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_audit_of_a_whole_history_with_open_work_finds_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = HistoryGateway::open(folder.path()).await;
    let (cast, ready) = live_through(&gateway.service).await;
    let keys = gateway.service.core.keys().unwrap();
    let archives = lived::archives::in_folder(folder.path());
    let report = audit_with(&*gateway.store, Some(&archives), &keys, gateway.service.core.now()).await.unwrap();
    assert_eq!(report.findings, [], "{report:#?}");
    assert!(report.versions >= 10 && report.threads > 10, "{report:?}");
    let ask = ask(ready.thread, ready.transition, Some(ready.receipt), "w-9");
    gateway.service.writes.verify(&cast.writer, &ask).await.unwrap();
}
