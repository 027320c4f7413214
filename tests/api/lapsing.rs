//! Tests leases that expire during other changes, also with clocks that disagree, and one request that is sent twice at
//! once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign_domain::reviews::{Ballot, CheckboxState, VoteVerdict};
use countersign_domain::threads::thread::UNRESOLVED_MAX;

use async_trait::async_trait;
use countersign_adapters::clock::ClockOffset;
use countersign_service::error::Error;
use countersign_service::writes::verify::VerifyInput;
use countersign_store::row::Table;
use countersign_store::sqlite::SqliteStore;
use serde_json::{Value, json};

use crate::gateway::{ApiResponse, POLICY, TestGateway, ballot, spawn_gateway, spawn_on};
use crate::meanwhile::InterleavedAction;
use crate::over::{StoreInterceptor, StoreOperation};
use crate::rules::ApiScenario;
use crate::sqlite::unsynced;

on_both! {
    expired_lease_is_logged_before_later_events_without_a_worker(super::POLICY),
    expired_lease_is_logged_once(super::POLICY),
    concurrent_identical_verify_calls_get_the_same_answer(super::POLICY),
}

const LEASE: Duration = Duration::from_secs(30);

/// The deadline of a review in the policy.
const DAY: Duration = Duration::from_secs(24 * 3600);

async fn let_through(g: &TestGateway, thread: &Value, write_id: &str) {
    g.verify(&thread["thread"], &thread["transition"], &Value::Null, write_id).await.expect(200);
}

async fn changed(g: &TestGateway, thread: &Value) -> ApiResponse {
    let patch = json!({"requested_action": "refund"});
    g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await
}

async fn closed(g: &TestGateway, thread: &Value) -> ApiResponse {
    let path = format!("/v1/threads/{}/closing", thread["thread"].as_str().unwrap());
    g.post(&path, &g.admin, json!({"reason": "an exercise"})).await
}

/// Resolves the thread's first write as an administrator.
async fn resolved(g: &TestGateway, thread: &Value) -> ApiResponse {
    let writer = g.service.identity.token_of(&g.writer).await.unwrap().record.principal();
    let named: Vec<Value> = events(g, thread).await.into_iter().filter(|it| it["type"] == "write.reserved").collect();
    let path = format!(
        "/v1/threads/{}/lapses/{}/resolution",
        thread["thread"].as_str().unwrap(),
        named[0]["data"]["write_id"].as_str().unwrap()
    );
    g.post(&path, &g.admin, json!({"principal": writer, "outcome": "not_written", "reason": "looked"})).await
}

/// The types of a thread's events, in their order.
async fn told(g: &TestGateway, thread: &Value) -> Vec<String> {
    events(g, thread).await.iter().map(|it| it["type"].as_str().unwrap().to_owned()).collect()
}

async fn events(g: &TestGateway, thread: &Value) -> Vec<Value> {
    while g.service.log.sequence().await.unwrap() > 0 {}
    let (placed, _) = g.service.log.events_after(0, None, 1000).await.unwrap();
    let events = placed.into_iter().map(|it| serde_json::to_value(it.event).unwrap());
    events.filter(|it| it["thread"] == thread["thread"]).collect()
}

async fn expired_lease_is_logged_before_later_events_without_a_worker(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let_through(g, &thread, "w1").await;
    g.pass(LEASE + Duration::from_secs(1));
    changed(g, &thread).await.expect(201);
    let expected = ["thread.created", "write.reserved", "write.lapsed", "transition.committed"];
    assert_eq!(told(g, &thread).await, expected);
    scene.passes_an_audit().await;
}

async fn expired_lease_is_logged_once(scene: ApiScenario) {
    let g = &scene.gateway;
    for first in ["a hold", "the worker", "a vote", "its end"] {
        let thread = g.thread().await;
        let held = if first == "a vote" { Some(g.held(&thread).await) } else { None };
        let_through(g, &thread, &format!("w {first}").replace(' ', "-")).await;
        g.pass(LEASE + Duration::from_secs(1));
        match first {
            "a hold" => drop(g.held(&thread).await),
            "the worker" => g
                .service
                .threads
                .log_expired_lease(&thread["thread"].as_str().unwrap().try_into().unwrap())
                .await
                .unwrap(),
            "a vote" => drop(g.vote(&g.alice, &held.unwrap(), VoteVerdict::Deny).await.unwrap()),
            _ => drop(closed(g, &thread).await.expect(200)),
        }
        let count = async || told(g, &thread).await.iter().filter(|it| *it == "write.lapsed").count();
        assert_eq!(count().await, 1, "{first}");
        g.service.threads.log_expired_lease(&thread["thread"].as_str().unwrap().try_into().unwrap()).await.unwrap();
        assert_eq!(count().await, 1, "{first}");
    }
    scene.passes_an_audit().await;
}

/// A gateway, and the clock of its database.
async fn with_two_clocks() -> (TestGateway, ClockOffset) {
    let folder = tempfile::tempdir().unwrap();
    let (gateways, stores) = (ClockOffset::default(), ClockOffset::default());
    let options = unsynced(&stores);
    let store = Arc::new(SqliteStore::open(folder.path().join("countersign.db"), options).unwrap());
    let gateway = spawn_on(folder, gateways, store, POLICY).await;
    (gateway, stores)
}

#[tokio::test]
async fn a_lease_has_passed_only_by_the_databases_clock() {
    let (g, stores) = with_two_clocks().await;
    let lease = i64::try_from(LEASE.as_millis()).unwrap();
    for (turn, what) in ["a change", "a vote", "its end", "a resolution"].into_iter().enumerate() {
        let begin = i64::try_from(turn).unwrap() * 2 * lease;
        g.clock.set_millis(begin);
        stores.set_millis(begin);
        let thread = g.thread().await;
        let held = if what == "a vote" { Some(g.held(&thread).await) } else { None };
        let_through(&g, &thread, &format!("w{turn}")).await;
        // The gateway's clock is as far ahead of the database as allowed. By this clock alone the lease has expired.
        g.clock.set_millis(begin + lease + 50);
        stores.set_millis(begin + lease - 1_850);
        goes_on(&g, (what, &thread), held.as_ref()).await.unwrap_err();
        g.service.threads.log_expired_lease(&thread["thread"].as_str().unwrap().try_into().unwrap()).await.unwrap();
        assert!(!told(&g, &thread).await.contains(&"write.lapsed".to_owned()), "{what}");
        stores.set_millis(begin + lease + 50);
        goes_on(&g, (what, &thread), held.as_ref()).await.unwrap();
        let ended = if what == "a resolution" { "write.resolved" } else { "write.lapsed" };
        assert!(told(&g, &thread).await.contains(&ended.to_owned()), "{what}");
    }
}

/// Continues over an expired lease. Returns an error if the write is still in progress.
async fn goes_on(g: &TestGateway, (what, thread): (&str, &Value), held: Option<&Value>) -> Result<(), ()> {
    let Some(held) = held else {
        let answer = match what {
            "its end" => closed(g, thread).await,
            "a resolution" => resolved(g, thread).await,
            _ => changed(g, thread).await,
        };
        assert!(answer.status < 300 || answer.code() == "write_in_progress", "{}", answer.body);
        return if answer.status < 300 { Ok(()) } else { Err(()) };
    };
    let review = held["review"]["id"].as_str().unwrap().try_into().unwrap();
    let ticked = Ballot { outcome_unknown_accepted: CheckboxState::Yes, ..ballot(held, VoteVerdict::Approve) };
    match g.service.reviews.vote(&g.alice.id, &review, &ticked, None).await {
        Ok(_) => Ok(()),
        Err(Error::WriteInProgress) => Err(()),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn expired_lease_stays_expired_if_the_clock_goes_back() {
    let (g, stores) = with_two_clocks().await;
    let thread = g.thread().await;
    let again = async || g.verify(&thread["thread"], &thread["transition"], &Value::Null, "w1").await;
    let_through(&g, &thread, "w1").await;
    assert_eq!(again().await.expect(200)["replayed"], true);
    let later = i64::try_from(LEASE.as_millis()).unwrap() + 1_000;
    g.clock.set_millis(later);
    stores.set_millis(later);
    g.service.threads.log_expired_lease(&thread["thread"].as_str().unwrap().try_into().unwrap()).await.unwrap();
    g.clock.set_millis(0);
    stores.set_millis(0);
    assert_eq!(again().await.code(), "already_used");
}

#[tokio::test]
async fn a_deadline_has_passed_only_by_the_databases_clock() {
    let (g, stores) = with_two_clocks().await;
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    let review = held["review"]["id"].as_str().unwrap().try_into().unwrap();
    let deadline = i64::try_from(DAY.as_millis()).unwrap();
    // The gateway's clock is as far ahead of the database as allowed. By this clock alone the deadline has passed.
    g.clock.set_millis(deadline + 50);
    stores.set_millis(deadline - 1_850);
    g.service.threads.expire_hold(&review).await.unwrap();
    g.clock.set_millis(deadline - 1_850);
    assert_eq!(g.decision(&held).await.status, 202, "people may decide until then");
    assert_eq!(changed(&g, &thread).await.code(), "thread_held");
    g.clock.set_millis(deadline + 50);
    stores.set_millis(deadline + 50);
    g.service.threads.expire_hold(&review).await.unwrap();
    assert_eq!(g.decision(&held).await.expect(200)["decision"], "expired");
}

/// Runs an action before the writes are read.
struct BeforeWritesHook(Mutex<Option<InterleavedAction>>);

#[async_trait]
impl StoreInterceptor for BeforeWritesHook {
    async fn asked(&self, what: StoreOperation<'_>) {
        let happening = if what == StoreOperation::Rows(Table::Writes) { self.0.lock().unwrap().take() } else { None };
        if let Some(happening) = happening {
            happening().await;
        }
    }
}

async fn concurrent_identical_verify_calls_get_the_same_answer(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let ask = VerifyInput {
        thread: thread["thread"].as_str().unwrap().try_into().unwrap(),
        transition: thread["transition"].as_str().unwrap().try_into().unwrap(),
        receipt: None,
        write_id: "w1".try_into().unwrap(),
        expect: Vec::new(),
    };
    let (twin, service) = (ask.clone(), Arc::clone(&g.service));
    let token = g.service.identity.token_of(&g.writer).await.unwrap();
    let first: InterleavedAction =
        Box::new(move || Box::pin(async move { drop(service.writes.verify(&token, &twin).await.unwrap()) }));
    let second = scene.another_watched(BeforeWritesHook(Mutex::new(Some(first)))).await;
    let token = second.identity.token_of(&g.writer).await.unwrap();
    let again = second.writes.verify(&token, &ask).await.unwrap();
    assert!(again.replayed, "the other one was first");
    scene.passes_an_audit().await;
}

#[tokio::test]
async fn writes_with_an_unknown_outcome_are_limited() {
    let g = spawn_gateway().await;
    let thread = g.thread().await;
    let mut head = thread["transition"].clone();
    for number in 0..UNRESOLVED_MAX {
        g.verify(&thread["thread"], &head, &Value::Null, &format!("w{number}")).await.expect(200);
        g.pass(LEASE + Duration::from_secs(1));
        let text = json!({"raw_text": number.to_string()});
        let next = g.propose(&thread["thread"], &head, (&g.parser, "input_parser"), text).await;
        head = next.expect(201)["transition"].clone();
    }
    let refused = g.verify(&thread["thread"], &head, &Value::Null, "over").await;
    assert_eq!((refused.status, refused.code()), (403, "write_in_progress"));
    resolved(&g, &thread).await.expect(200);
    g.verify(&thread["thread"], &head, &Value::Null, "over").await.expect(200);
}
