//! Editing a pending proposal on its own page.

use serde_json::json;

use crate::chromium::Chromium;
use crate::forms::{ManualForm, field};
use crate::gateway::{BrowserGateway, HeldReview, Payments, spawn_gateway};

async fn held(gateway: &BrowserGateway) -> (HeldReview, Payments) {
    for name in ["ana", "sam"] {
        gateway.reviewer(name, &["reviewers"]).await;
    }
    let payments = gateway.payments().await;
    let patch = json!({"target_user_id": 42, "payment": {"amount": 950, "card": {"number": "4929 0000 0000 0000"}}});
    (gateway.held(&payments, "order-8812", &patch).await, payments)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edited_amount_is_approved_by_another_reviewer_without_scripts() {
    let gateway = spawn_gateway().await;
    let (held, payments) = held(&gateway).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.without_scripts().await;
    tab.sign_in("ana").await;
    tab.goto(&format!("/reviews/{}", held.review)).await;
    tab.press("Propose an edit").await;
    let html = tab.html().await;
    assert!(!html.contains("4929 0000") && html.contains("Redacted values stay as proposed"), "{html}");
    tab.fill("payment.amount", "9").await;
    tab.fill("Reason", "He ordered one").await;
    tab.press("Propose edit").await;
    let text = tab.text().await;
    for words in ["ana edited the agent’s proposal", "Reason of ana for the edit", "He ordered one"] {
        assert!(text.contains(words), "{words} in {text}");
    }
    assert_eq!(tab.count("[data-decide]").await, 0, "her own vote does not count on it");
    let next = tab.path().await;
    tab.goto(&format!("/reviews/{}", held.review)).await;
    assert!(tab.text().await.contains("Superseded"), "{}", tab.text().await);
    tab.press_in("header", "Sign out").await;
    tab.sign_in("sam").await;
    tab.goto(&next).await;
    tab.press("Approve").await;
    tab.press("Confirm").await;
    assert!(tab.text().await.contains("It was committed as version 1."), "{}", tab.text().await);
    assert_ne!(gateway.decision(&payments, &held).await["superseded_by"], serde_json::Value::Null);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_edit_shows_the_error_and_the_typed_text() {
    let gateway = spawn_gateway().await;
    let (held, _) = held(&gateway).await;
    let ana = ManualForm::signed_in(&gateway, "ana").await;
    let path = format!("/reviews/{}/edit", held.review);
    let html = ana.get(&path).await.text;
    let (csrf, digest) = (field(&html, "csrf"), field(&html, "digest"));
    let send = async |extra: &[(&str, &str)]| {
        let mut fields = vec![("csrf", csrf.as_str()), ("digest", digest.as_str()), ("why", "so it is")];
        fields.extend_from_slice(extra);
        ana.post(&path, &fields).await
    };
    for (extra, words) in [
        (("value:/target_user_id", "no json"), "is not JSON"),
        (("value:/payment/card/number", "\"4929 0000 0000 0000\""), "a redacted value"),
        (("value:/payment/card/number", "\"1\""), "a redacted value"),
        (("more", "{\"result_ref\": 1}"), "write_not_allowed"),
        (("more", "["), "is not JSON"),
        (("value:/target_user_id", "42"), "the edit changes nothing; change a value or approve the proposal"),
    ] {
        let refused = send(&[extra]).await;
        assert_eq!(refused.status, 409, "{extra:?}");
        assert!(refused.text.contains(words) && refused.text.contains("so it is"), "{extra:?}: {}", refused.text);
        assert!(!refused.text.contains("4929 0000") || extra.1.contains("4929 0000"), "{extra:?}");
    }
    let forged = [("csrf", "x"), ("digest", digest.as_str()), ("why", "x"), ("value:/target_user_id", "1")];
    assert_eq!(ana.post(&path, &forged).await.status, 403);
    gateway.person("eve", countersign_domain::identity::account::PersonRole::Auditor, &[]).await;
    assert_eq!(ManualForm::signed_in(&gateway, "eve").await.get(&path).await.status, 403);
}
