//! Tests clocks that disagree, deadlines that pass, and the order of ended reviews.

use std::sync::Arc;
use std::time::Duration;

use countersign_domain::reviews::VoteVerdict;

use countersign_adapters::clock::ClockOffset;
use countersign_store::sqlite::SqliteStore;
use serde_json::{Value, json};

use crate::gateway::{ApiResponse, POLICY, TestGateway, spawn_gateway, spawn_on};
use crate::sqlite::unsynced;

const DAY: Duration = Duration::from_secs(24 * 3600);

#[tokio::test]
async fn wrong_clock_is_reported_and_nothing_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let (gateways, stores) = (ClockOffset::default(), ClockOffset::default());
    let options = unsynced(&stores);
    let store = Arc::new(SqliteStore::open(folder.path().join("countersign.db"), options).unwrap());
    let g = spawn_on(folder, gateways, store, POLICY).await;
    let case = crate::attacks::approve(&g).await;
    let state = json!({"requested_action": "none", "target_user_id": 17});
    for offset in [-60_000, 60_000] {
        stores.set_millis(offset);
        let refused = [
            g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": state})).await,
            g.post("/v1/verify", &g.writer, case.ask("w")).await,
        ];
        for answer in refused {
            assert_eq!((answer.status, answer.code()), (503, "clock_skew"), "{offset}: {}", answer.body);
            assert!(answer.body["detail"].as_str().unwrap().contains("set the clocks right"), "{}", answer.body);
        }
    }
    let request = g.http.post(format!("{}/v1/verify", g.url)).bearer_auth(&g.writer).json(&case.ask("w"));
    assert!(request.send().await.unwrap().headers().contains_key("retry-after"));
    stores.set_millis(0);
    g.post("/v1/verify", &g.writer, case.ask("w")).await.expect(200);
    // A repeated request is checked against the database's clock as well.
    for offset in [-60_000, 60_000] {
        stores.set_millis(offset);
        let again = g.post("/v1/verify", &g.writer, case.ask("w")).await;
        assert_eq!((again.status, again.code()), (503, "clock_skew"), "{offset}: {}", again.body);
    }
    stores.set_millis(0);
    assert_eq!(g.post("/v1/verify", &g.writer, case.ask("w")).await.expect(200)["replayed"], true);
}

async fn cancel(g: &TestGateway, held: &Value) -> ApiResponse {
    let path = format!("/v1/transitions/{}/cancellation", held["transition"].as_str().unwrap());
    g.post(&path, &g.planner, json!({"reason": "changed my mind"})).await
}

#[tokio::test]
async fn proposal_is_not_cancelled_after_its_deadline() {
    let g = spawn_gateway().await;
    let (early, late) = (g.held(&g.thread().await).await, g.held(&g.thread().await).await);
    cancel(&g, &early).await.expect(200);
    g.pass(DAY);
    for _ in 0..2 {
        let answer = cancel(&g, &late).await;
        assert_eq!((answer.status, answer.code()), (409, "expired"), "{}", answer.body);
    }
    assert_eq!(g.decision(&late).await.expect(200)["decision"], "expired");
    assert_eq!(cancel(&g, &early).await.expect(200)["status"], "cancelled", "what was in time stays so");
}

#[tokio::test]
async fn review_of_a_thread_closed_after_its_deadline_is_expired() {
    let g = spawn_gateway().await;
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    g.pass(DAY);
    let path = format!("/v1/threads/{}/closing", thread["thread"].as_str().unwrap());
    g.post(&path, &g.admin, json!({"reason": "done"})).await.expect(200);
    assert_eq!(g.decision(&held).await.expect(200)["decision"], "expired");
}

#[tokio::test]
async fn inbox_lists_ended_reviews_latest_first() {
    let g = spawn_gateway().await;
    let mut ended = Vec::new();
    // The reviews are opened in one order and end in another. The deadline does not give the end.
    let (first, second) = (g.held(&g.thread().await).await, g.held(&g.thread().await).await);
    let third = g.held(&g.thread().await).await;
    for held in [&second, &third, &first] {
        g.pass(Duration::from_secs(60));
        g.vote(&g.alice, held, VoteVerdict::Deny).await.unwrap();
        ended.push(held["review"]["id"].as_str().unwrap().to_owned());
    }
    ended.reverse();
    for limit in 1..=3 {
        let listed = g.service.inbox.recently_ended(&g.alice, limit).await.unwrap();
        let listed: Vec<String> = listed.iter().map(|it| it.hold.id.to_string()).collect();
        assert_eq!(listed, ended[..limit]);
    }
}
