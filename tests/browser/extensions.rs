//! Deadline extensions and the escalation of a review without a decision, in the browser.

use std::time::Duration;

use serde_json::json;

use crate::chromium::Chromium;
use crate::forms::{ManualForm, field};
use crate::gateway::{BrowserGateway, HeldReview, PAYMENTS, spawn_gateway};

/// Starts a gateway with a pending review that has a reminder after 1 minute and an escalation after 2.
async fn waiting() -> (BrowserGateway, HeldReview) {
    let gateway = spawn_gateway().await;
    for (name, group) in [("ana", "reviewers"), ("sid", "security")] {
        gateway.reviewer(name, &[group]).await;
    }
    let notices = "[approval]\nremind_after = \"1m\"\nescalate_after = \"2m\"\nescalate_to = [\"security\"]\n";
    let payments = gateway.payments_under(&PAYMENTS.replacen("[approval]\n", notices, 1)).await;
    let held = gateway.held(&payments, "order-8812", &json!({"target_user_id": 42})).await;
    (gateway, held)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deadline_is_extended_without_scripts_and_the_review_still_escalates() {
    let (gateway, held) = waiting().await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.without_scripts().await;
    tab.sign_in("ana").await;
    tab.goto(&format!("/reviews/{}", held.review)).await;
    let opened: bool = tab.js("(document.querySelector('#until').closest('details').open = true)").await;
    assert!(opened);
    tab.fill("Reason for the extension", "The bank opens at nine.").await;
    tab.press("Extend deadline").await;
    let text = tab.text().await;
    for words in ["ana extended the deadline to", "The bank opens at nine.", "ana extended it, see the timeline"] {
        assert!(text.contains(words), "{words} in {text}");
    }
    tab.press_in("header", "Sign out").await;
    tab.sign_in("sid").await;
    tab.goto(&format!("/reviews/{}", held.review)).await;
    assert!(tab.text().await.contains("You are not in a group that can decide this."));
    gateway.clock.advance(Duration::from_secs(120));
    tab.goto("/").await;
    assert!(tab.text().await.contains("Escalated to security"), "{}", tab.text().await);
    tab.goto(&format!("/reviews/{}", held.review)).await;
    let text = tab.text().await;
    for words in
        ["The gateway reminded the reviewers", "The review was escalated: security can also vote in every stage"]
    {
        assert!(text.contains(words), "{words} in {text}");
    }
    tab.press("Approve").await;
    tab.press("Confirm").await;
    assert!(tab.text().await.contains("Approved by sid"), "{}", tab.text().await);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extension_form_is_valid_for_its_own_deadline_only() {
    let (gateway, held) = waiting().await;
    let (ana, sid) = (ManualForm::signed_in(&gateway, "ana").await, ManualForm::signed_in(&gateway, "sid").await);
    let (page, path) = (format!("/reviews/{}", held.review), format!("/reviews/{}/extension", held.review));
    let html = ana.get(&page).await.text;
    let until = html.split("<select id=\"until\"").nth(1).unwrap().split("value=\"").nth(1).unwrap();
    let until = until.split('"').next().unwrap().to_owned();
    let [csrf, digest, deadline] = ["csrf", "digest", "deadline"].map(|name| field(&html, name));
    let form = |csrf: &str, deadline: &str| -> Vec<(&'static str, String)> {
        let fields =
            [("csrf", csrf), ("digest", &digest), ("deadline", deadline), ("until", &until), ("reason", "later")];
        fields.map(|(name, value)| (name, value.to_owned())).to_vec()
    };
    let post = async |who: &ManualForm<'_>, form: Vec<(&'static str, String)>| {
        let fields: Vec<(&str, &str)> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
        who.post(&path, &fields).await
    };
    assert_eq!(post(&ana, form("x", &deadline)).await.status, 403);
    assert_eq!(post(&sid, form(&csrf, &deadline)).await.status, 403, "another's form");
    let refused = post(&ana, form(&csrf, &until)).await;
    assert!(refused.status == 409 && refused.text.contains("The deadline was not extended."));
    assert_eq!(post(&ana, form(&csrf, &deadline)).await.status, 303);
    assert_eq!(post(&ana, form(&csrf, &deadline)).await.status, 409, "it is moved once");
    assert!(!sid.get(&page).await.text.contains("Extend deadline"), "who is not asked has no form");
}
