//! The browser's own recomputation, on pages of a real gateway.

use serde_json::json;

use crate::chromium::Chromium;
use crate::gateway::{BrowserGateway, HeldReview, PAYMENTS, Payments, order, spawn_gateway};
use crate::person::BrowserTab;

/// A reviewer in front of a review.
async fn in_front_of(gateway: &BrowserGateway, held: &HeldReview) -> (Chromium, BrowserTab) {
    let browser = Chromium::open().await;
    let tab = browser.tab(gateway).await;
    tab.sign_in("ana").await;
    tab.goto(&format!("/reviews/{}", held.review)).await;
    (browser, tab)
}

async fn refund() -> (BrowserGateway, Payments, HeldReview) {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let held = gateway.held(&payments, "order-8812", &json!({"target_user_id": 42, "payment": {"amount": 95}})).await;
    (gateway, payments, held)
}

async fn is_refused(tab: &BrowserTab, gateway: &BrowserGateway, held: &HeldReview) {
    tab.press_only("Approve").await;
    let said = tab.verdict("match").await;
    assert!(said.contains("Recomputed in this browser: does not match"), "{said}");
    assert_eq!(tab.count("button[name=verdict]:disabled").await, 2, "nothing can be decided");
    assert_eq!(tab.path().await, format!("/reviews/{}", held.review), "nothing was sent");
    let facts = gateway.service.threads.overview(&held.thread.as_str().try_into().unwrap()).await.unwrap();
    assert_eq!(facts.review.map(|it| it.to_string()), Some(held.review.clone()), "it still waits");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_altered_value_is_a_mismatch_and_nothing_can_be_decided() {
    let (gateway, _, held) = refund().await;
    let (browser, tab) = in_front_of(&gateway, &held).await;
    for cell in [".diff .after .value", ".headline .chip.to", ".writer .value"] {
        tab.goto(&format!("/reviews/{}", held.review)).await;
        assert!(tab.verdict("").await.contains("Recomputed in this browser: matches"), "{cell}");
        let _: String = tab.js(&format!("document.querySelector({cell:?}).textContent = '43'")).await;
        is_refused(&tab, &gateway, &held).await;
    }
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_hidden_row_is_a_mismatch_and_nothing_can_be_decided() {
    let (gateway, _, held) = refund().await;
    let (browser, tab) = in_front_of(&gateway, &held).await;
    assert!(tab.verdict("").await.contains("Recomputed in this browser: matches"));
    let _: String = tab.js("document.querySelector('.diff tbody tr:last-child').style.display = 'none'").await;
    is_refused(&tab, &gateway, &held).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_review_matches_what_was_signed() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway
        .payments_under(&PAYMENTS.replace("[nodes.database_writer]", "rollback = true\n\n[nodes.database_writer]"))
        .await;
    let hidden = json!({"payment": {"card": {"number": "4929 0000 0000 0000"}}});
    let many = json!({"target_user_id": 42, "items": ["A-1", "B-2", {"sku": "C"}], "memo": "x\u{202e}y", "requested_action": null});
    for (thread, patch) in [("one", json!({"target_user_id": 42})), ("hidden", hidden), ("many", many)] {
        let held = gateway.held(&payments, thread, &patch).await;
        let (browser, tab) = in_front_of(&gateway, &held).await;
        let said = tab.verdict("").await;
        assert!(said.contains("Recomputed in this browser: matches"), "{thread}: {said}");
        browser.close().await;
    }
    let parent = gateway.thread(&payments, "again", &order()).await;
    let reaffirm = json!({"node": "planner", "parent": parent, "patch": {}, "reaffirm": true});
    let held = gateway.post(&payments.agent, "/v1/threads/again/transitions", &reaffirm).await;
    let held = HeldReview {
        thread: "again".to_owned(),
        review: held.body["review"]["id"].as_str().unwrap().to_owned(),
        digest: held.body["transition"].as_str().unwrap().to_owned(),
    };
    let (browser, tab) = in_front_of(&gateway, &held).await;
    let said = tab.verdict("").await;
    assert!(said.contains("Recomputed in this browser: matches"), "reaffirm: {said}");
    assert!(tab.text_of("h1").await.contains("requests approval of the current state"));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hidden_value_that_is_copied_is_on_no_page_and_the_digest_still_matches() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let card = "4111 1111 1111 1111";
    let patch =
        json!({"target_user_id": 42, "memo": format!("the card is {card}."), "items": [{"sku": 1, (card): "x"}]});
    let said = format!("I looked up {card} for them");
    let held = gateway.held_saying(&payments, "order-8812", &patch, Some(&said)).await;
    let (browser, tab) = in_front_of(&gateway, &held).await;
    let verdict = tab.verdict("").await;
    assert!(verdict.contains("Recomputed in this browser: matches"), "{verdict}");
    assert!(tab.text().await.contains("I looked up [hidden] for them"));
    assert!(tab.text().await.contains("memo"), "that it changes is shown");
    for path in [format!("/reviews/{}", held.review), "/".to_owned(), format!("/threads/{}", held.thread)] {
        tab.goto(&path).await;
        let html = tab.html().await;
        assert!(!html.contains(card), "{path}: {html}");
    }
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn value_set_to_itself_is_labelled_and_its_digest_matches() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments().await;
    // `note` and the card are outside of what the planner reads: setting them must not tell a right guess.
    let patch =
        json!({"target_user_id": 42, "note": "from the shop", "payment": {"card": {"number": "4111 1111 1111 1111"}}});
    let held = gateway.held(&payments, "order-8812", &patch).await;
    let (browser, tab) = in_front_of(&gateway, &held).await;
    let said = tab.verdict("").await;
    assert!(said.contains("Recomputed in this browser: matches"), "{said}");
    let table = tab.text_of(".diff").await;
    for words in
        ["note set, same value", "payment.card protected redacted, changed", "target_user_id protected changed"]
    {
        assert!(table.contains(words), "{words} in {table}");
    }
    let sentence = tab.text_of("h1").await;
    assert!(sentence.contains("target_user_id: 17 → 42") && sentence.contains("payment.card"), "{sentence}");
    browser.close().await;
}
