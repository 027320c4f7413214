//! Withdrawing a vote and commenting without a vote, on a review's page.

use serde_json::json;

use crate::chromium::Chromium;
use crate::forms::{ManualForm, field, form_of, with};
use crate::gateway::{BrowserGateway, HeldReview, PAYMENTS, spawn_gateway};

/// Starts a pending review that needs two reviewers.
async fn held(gateway: &BrowserGateway) -> HeldReview {
    for name in ["ana", "sam"] {
        gateway.reviewer(name, &["reviewers"]).await;
    }
    let payments = gateway.payments_under(&PAYMENTS.replace("need = 1", "need = 2")).await;
    gateway.held(&payments, "order-8812", &json!({"target_user_id": 42})).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vote_is_withdrawn_and_cast_again_without_scripts() {
    let gateway = spawn_gateway().await;
    let held = held(&gateway).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.without_scripts().await;
    tab.sign_in("ana").await;
    tab.goto(&format!("/reviews/{}", held.review)).await;
    for _ in 0..2 {
        tab.press("Approve").await;
        tab.press("Confirm").await;
        assert!(tab.text().await.contains("1 of 2 from reviewers"), "{}", tab.text().await);
        tab.press("Withdraw vote").await;
        let text = tab.text().await;
        for words in ["0 of 2 from reviewers", "no longer counted", "ana withdrew their approval"] {
            assert!(text.contains(words), "{words} in {text}");
        }
    }
    assert_eq!(tab.count("[data-decide]").await, 1, "she may vote again");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn withdrawal_form_is_valid_for_its_own_vote_only() {
    let gateway = spawn_gateway().await;
    let held = held(&gateway).await;
    let (ana, sam) = (ManualForm::signed_in(&gateway, "ana").await, ManualForm::signed_in(&gateway, "sam").await);
    let (page, back) = (format!("/reviews/{}", held.review), format!("/reviews/{}/withdrawal", held.review));
    let vote = form_of(&ana, &held).await;
    assert_eq!(ana.post(&format!("{page}/decision"), &with(&vote, "expects", "waits")).await.status, 303);
    let html = ana.get(&page).await.text;
    let form: Vec<(&'static str, String)> =
        ["csrf", "digest", "nonce", "vote"].map(|name| (name, field(&html, name))).to_vec();
    let used = vote.iter().find(|it| it.0 == "nonce").unwrap().1.clone();
    for (name, value) in [("nonce", used.as_str()), ("nonce", ""), ("vote", "1"), ("digest", "sha256:00")] {
        let refused = ana.post(&back, &with(&form, name, value)).await;
        assert_eq!(refused.status, 409, "{name}={value}");
        assert!(refused.text.contains("No vote was withdrawn."), "{name}={value}");
    }
    assert_eq!(sam.post(&back, &with(&form, "", "")).await.status, 403, "another's form");
    assert_eq!(ana.post(&back, &with(&form, "csrf", "x")).await.status, 403);
    assert_eq!(ana.post_from("https://evil.example", &back, &with(&form, "", "")).await.status, 403);
    assert_eq!(ana.post(&back, &with(&form, "", "")).await.status, 303);
    assert_eq!(ana.post(&back, &with(&form, "", "")).await.status, 409, "it counts once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn comment_is_sanitized_redacted_and_returned_when_refused() {
    let gateway = spawn_gateway().await;
    let held = held(&gateway).await;
    let ana = ManualForm::signed_in(&gateway, "ana").await;
    let (page, comments) = (format!("/reviews/{}", held.review), format!("/reviews/{}/comments", held.review));
    let html = ana.get(&page).await.text;
    let form = &html[html.find(&comments).unwrap()..];
    let mut fields: Vec<(&'static str, String)> =
        ["csrf", "digest", "nonce"].map(|name| (name, field(form, name))).to_vec();
    fields.push(("comment", "see <b>4111 1111 1111 1111</b> and \u{202e}that".to_owned()));
    let refused = ana.post(&comments, &with(&fields, "nonce", "x")).await;
    assert_eq!(refused.status, 409);
    assert!(
        refused.text.contains("Nothing was added.") && refused.text.contains("see &#60;b&#62;"),
        "{}",
        refused.text
    );
    assert_eq!(ana.post(&comments, &with(&fields, "", "")).await.status, 303);
    let shown = ana.get(&page).await.text;
    assert!(shown.contains("</strong> commented ") && shown.contains("U+202E") && !shown.contains("<b>"), "{shown}");
    assert!(shown.contains("4111 1111 1111 1111"), "whoever guesses is not told whether the guess was right: {shown}");
    let others = ManualForm::signed_in(&gateway, "sam").await.get(&page).await.text;
    assert!(others.contains("[hidden]") && !others.contains("4111 1111 1111 1111"), "{others}");
    assert!(ana.post(&comments, &with(&fields, "", "")).await.text.contains("The form was already sent"));
    gateway.person("eve", countersign_domain::identity::account::PersonRole::Auditor, &[]).await;
    let eve = ManualForm::signed_in(&gateway, "eve").await;
    assert!(!eve.get(&page).await.text.contains(&comments), "an auditor changes nothing");
    assert_eq!(eve.post(&comments, &with(&fields, "", "")).await.status, 403);
}
