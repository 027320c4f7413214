//! A run of agents as people read it: the plan, what happened with its holds and decisions, and what remains.

use serde_json::{Value, json};

use crate::forms::{Hand, form_of, with};
use crate::gateway::{Gateway, Held, Payments, order, spawn_gateway};
use crate::person::Chromium;

/// Begins a run and gives version 0's digest.
async fn begun(gateway: &Gateway, payments: &Payments, name: &str) -> String {
    let episode = json!({"goal": {"task": "Refund order 8812 <b>now</b>"}, "tags": {"team": "platform"}});
    let body = json!({"flow": "payments", "thread": name, "state": order(), "episode": episode});
    let made = gateway.post(&payments.host, "/v1/threads", &body).await;
    assert_eq!(made.status, 201, "{made:?}");
    made.body["transition"].as_str().unwrap().to_owned()
}

async fn says(gateway: &Gateway, payments: &Payments, name: &str, (phase, payload): (&str, Value)) {
    let event = json!({"node": "planner", "phase": phase, "payload": payload});
    let added = gateway.post(&payments.agent, &format!("/v1/threads/{name}/episode/events"), &event).await;
    assert_eq!(added.status, 201, "{added:?}");
}

/// A run that is planned and waits for people.
pub async fn planned(gateway: &Gateway, payments: &Payments, name: &str) -> Held {
    let parent = begun(gateway, payments, name).await;
    let plan = json!({"rationale": "People have to be asked; the card is 4111 1111 1111 1111.", "step_records": [
        {"id": "look", "kind": "detect", "description": "Look the order up", "status": "done"},
        {"id": "refund", "kind": "act", "description": "Refund \u{202e}it"},
        {"id": "write", "kind": "act", "description": "Write to the customer", "status": "skipped"}]});
    says(gateway, payments, name, ("plan", plan)).await;
    says(gateway, payments, name, ("observe", json!({"message": "<script>alert(1)</script>"}))).await;
    gateway.propose_held(payments, name, &parent, &json!({"target_user_id": 42}), None).await
}

/// The same, approved and ended.
pub async fn ended(gateway: &Gateway, payments: &Payments, held: &Held) {
    let ana = Hand::signed_in(gateway, "ana").await;
    let form = form_of(&ana, held).await;
    let voted = ana.post(&format!("/reviews/{}/decision", held.review), &with(&form, "", "")).await;
    assert_eq!(voted.status, 303, "{}", voted.text);
    let done = json!({"step_id": "refund", "step_status": "done", "tool": "ledger", "outcome": "ok",
        "result_artifacts": [{"type": "row", "uri": "refunds:77"}]});
    says(gateway, payments, &held.thread, ("act", done)).await;
    let over = json!({"status": "ok", "message": "Refunded 120 EUR."});
    says(gateway, payments, &held.thread, ("terminate", over)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_read_from_its_plan_to_what_remains_without_scripts() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let held = planned(&gateway, &payments, "order-8812").await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("ana").await;
    tab.without_scripts().await;
    tab.goto("/threads/order-8812").await;
    tab.follow("a[href='/threads/order-8812/episode']").await;
    let page = tab.text().await;
    for words in ["Refund order 8812 <b>now</b>", "Waits for a decision", "Look the order up", "to do", "left out"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(page.contains("A proposal was held for people") && page.contains("<script>alert(1)</script>"), "{page}");
    assert!(!page.contains("4111") && !page.contains('\u{202e}'), "{page}");
    assert_eq!(tab.count(&format!("a[href='/reviews/{}']", held.review)).await, 1);
    assert_eq!(tab.count("a[download]").await, 3, "what only a finished run has is not offered");
    ended(&gateway, &payments, &held).await;
    tab.goto("/threads/order-8812/episode").await;
    let page = tab.text().await;
    for words in ["Done", "Refunded 120 EUR.", "People approved", "steps_completed", "refunds:77", "manifest.json"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert_eq!(tab.count("a[download]").await, 6);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_downloaded_is_what_the_host_is_given() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let held = planned(&gateway, &payments, "order-8812").await;
    let ana = Hand::signed_in(&gateway, "ana").await;
    assert_eq!(ana.get("/threads/order-8812/episode/manifest.json").await.status, 404);
    ended(&gateway, &payments, &held).await;
    for file in ["state.json", "summary.json", "final.json", "manifest.json"] {
        let told = gateway.get(&payments.host, &format!("/v1/threads/order-8812/episode/{file}")).await;
        let downloaded = ana.get(&format!("/threads/order-8812/episode/{file}")).await;
        let read: Value = serde_json::from_str(&downloaded.text).unwrap();
        assert_eq!((downloaded.status, &read), (200, &told.body), "{file}");
    }
    gateway.thread(&payments, "order-9", &order()).await;
    for nowhere in ["order-9/episode", "order-9/episode/state.json", "none/episode", "order-8812/episode/state.jsonl"] {
        assert_eq!(ana.get(&format!("/threads/{nowhere}")).await.status, 404, "{nowhere}");
    }
    assert!(!ana.get("/threads/order-9").await.text.contains("/episode"));
}
