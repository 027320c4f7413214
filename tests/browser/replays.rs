//! Replay page: the backtest of a policy on recorded proposals, and the roles that may run it.

use countersign_domain::identity::account::PersonRole;
use serde_json::json;

use crate::chromium::Chromium;
use crate::forms::{ManualForm, field};
use crate::gateway::{BrowserGateway, PAYMENTS, Payments, order, spawn_gateway};

/// Records a rejection with a card, a rejection that is too long to store, a commit and a pending review. Ana can
/// decide it.
pub async fn history(gateway: &BrowserGateway, payments: &Payments) {
    gateway.reviewer("ana", &["reviewers"]).await;
    let head = gateway.thread(payments, "order-9003", &order()).await;
    let sends = async |parent: &str, patch: serde_json::Value| {
        let ask = json!({"node": "planner", "parent": parent, "patch": patch, "format": "merge-patch"});
        gateway.post(&payments.agent, "/v1/threads/order-9003/transitions", &ask).await
    };
    let injected = json!({"is_admin": true, "payment": {"card": {"4929-key": "4929 0000 0000 0000"}}});
    assert_eq!(sends(&head, injected).await.status, 422);
    assert_eq!(sends(&head, json!({"x": "longer than is kept ".repeat(2_000)})).await.status, 422);
    let committed = sends(&head, json!({"memo": "as agreed"})).await;
    let next = committed.body["transition"].as_str().unwrap();
    assert_eq!(sends(next, json!({"target_user_id": 42})).await.status, 202);
}

/// The policy with another place for the memo, and the user free to change.
pub fn candidate() -> String {
    PAYMENTS
        .replace(", \"memo\"]", "]")
        .replace("\"target_user_id\", \"payment.amount\", \"payment.card\"]", "\"payment\"]")
}

#[tokio::test]
async fn only_admins_and_auditors_replay_policies() {
    let gateway = spawn_gateway().await;
    let payments = gateway.payments().await;
    history(&gateway, &payments).await;
    gateway.person("eve", PersonRole::Auditor, &[]).await;
    let ana = ManualForm::signed_in(&gateway, "ana").await;
    let eve = ManualForm::signed_in(&gateway, "eve").await;
    assert!(!ana.get("/what-if").await.text.contains("/replays"));
    assert_eq!(ana.get("/replays").await.status, 403);
    assert!(eve.get("/what-if").await.text.contains("href=\"/replays\""));
    let page = eve.get("/replays?flow=payments").await;
    assert!(page.status == 200 && page.text.contains("protected = [&#34;target_user_id&#34;"), "{}", page.text);
    let csrf = field(&page.text, "csrf");
    let policy = candidate().replace('\n', "\r\n");
    let fields = [("csrf", csrf.as_str()), ("flow", "payments"), ("policy", policy.as_str())];
    assert_eq!(ana.post("/replays", &fields).await.status, 403);
    assert_eq!(eve.post("/replays", &fields[1..]).await.status, 403, "a form of ours has our token");
    assert_eq!(eve.post_from("https://elsewhere.example", "/replays", &fields).await.status, 403);
    let told = eve.post("/replays", &fields).await;
    assert_eq!(told.status, 200, "{}", told.text);
    assert!(told.text.contains("4 proposals: 2 would end differently. 2 cannot be evaluated."), "{}", told.text);
    for words in [
        "Would be rejected",
        "write_not_allowed",
        "<code class=\"path\">memo</code>",
        "Unknown",
        "Would be committed",
        "order-9003",
    ] {
        assert!(told.text.contains(words), "{words}: {}", told.text);
    }
    for hidden in ["4929-key", "4929 0000", "4111 1111"] {
        assert!(!told.text.contains(hidden), "{}", told.text);
    }
}

#[tokio::test]
async fn replay_that_is_not_possible_shows_the_reason() {
    let gateway = spawn_gateway().await;
    gateway.payments().await;
    gateway.person("eve", PersonRole::Admin, &[]).await;
    let eve = ManualForm::signed_in(&gateway, "eve").await;
    let csrf = field(&eve.get("/replays").await.text, "csrf");
    let other = PAYMENTS.replace("\"payments\"", "\"refunds\"");
    for (policy, says) in [
        ("flow = 1", "The policy is not valid. Line 1:"),
        (other.as_str(), "The policy is for another flow than the selected one."),
    ] {
        let told = eve.post("/replays", &[("csrf", &csrf), ("flow", "payments"), ("policy", policy)]).await;
        assert!(told.status == 422 && told.text.contains(says), "{}", told.text);
    }
    let none = eve.post("/replays", &[("csrf", &csrf), ("flow", "payments"), ("policy", PAYMENTS)]).await;
    assert!(none.text.contains("This flow has no more recorded proposals."), "{}", none.text);
    assert_eq!(eve.post("/replays", &[("csrf", &csrf), ("flow", "nowhere"), ("policy", PAYMENTS)]).await.status, 404);
    let astray = [("csrf", csrf.as_str()), ("flow", "payments"), ("policy", PAYMENTS), ("after", "x")];
    assert_eq!(eve.post("/replays", &astray).await.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policy_is_replayed_without_scripts() {
    let gateway = spawn_gateway().await;
    let payments = gateway.payments().await;
    history(&gateway, &payments).await;
    gateway.person("eve", PersonRole::Auditor, &[]).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.without_scripts().await;
    tab.sign_in("eve").await;
    tab.goto("/what-if").await;
    tab.follow("main a[href='/replays']").await;
    tab.follow("a[href='/replays?flow=payments']").await;
    tab.press("Run replay").await;
    assert!(
        tab.text().await.contains("4 proposals: none would end differently. 2 cannot be evaluated."),
        "{}",
        tab.text().await
    );
    browser.close().await;
}
