//! Delegations in the browser: with a password and without scripts, and with a passkey.

use countersign_domain::identity::account::PersonRole;
use serde_json::json;

use crate::chromium::Chromium;
use crate::forms::ManualForm;
use crate::gateway::{BrowserGateway, HeldReview, PASSWORD, PAYMENTS, spawn_gateway};
use crate::passkeys::{plug_in, register};
use crate::person::BrowserTab;

/// Starts a gateway with a pending review that needs two reviewers of one group. Dana is in another group.
pub async fn away() -> (BrowserGateway, HeldReview) {
    let gateway = spawn_gateway().await;
    for (name, group) in [("ana", "reviewers"), ("sam", "reviewers"), ("dana", "support")] {
        gateway.reviewer(name, &[group]).await;
    }
    gateway.person("gus", PersonRole::Admin, &[]).await;
    let payments = gateway.payments_under(&PAYMENTS.replace("need = 1", "need = 2")).await;
    let held = gateway.held(&payments, "order-8812", &json!({"target_user_id": 42})).await;
    (gateway, held)
}

async fn leave(tab: &BrowserTab) {
    tab.press_in("header", "Sign out").await;
}

async fn says(tab: &BrowserTab, words: &[&str]) {
    let text = tab.text().await;
    for words in words {
        assert!(text.contains(words), "{words} in {text}");
    }
}

/// Opens the confirmation page for a delegation from the signed-in reviewer to Dana.
pub async fn names_dana(tab: &BrowserTab) {
    tab.goto("/delegations").await;
    tab.fill("Reviewer", "dana").await;
    tab.press("Review delegation").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delegated_vote_names_both_reviewers_without_scripts() {
    let (gateway, held) = away().await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.without_scripts().await;
    tab.sign_in("ana").await;
    tab.goto("/delegations").await;
    tab.fill("Reviewer", "gus").await;
    tab.press("Review delegation").await;
    says(&tab, &["This account cannot vote for you: name an enabled reviewer. Nothing was changed."]).await;
    names_dana(&tab).await;
    says(&tab, &["Delegate your vote to dana?", "reviews in which you can vote as reviewers"]).await;
    tab.fill("Your password", "not the password").await;
    tab.press("Confirm delegation").await;
    says(&tab, &["Delegation not created: the password is wrong."]).await;
    tab.fill("Your password", PASSWORD).await;
    tab.press("Confirm delegation").await;
    says(&tab, &["The other reviewer can now vote on your behalf", "dana for ana"]).await;
    leave(&tab).await;

    tab.sign_in("dana").await;
    assert!(tab.html().await.contains(&held.review), "what Ana is asked is in Dana's inbox");
    tab.goto(&format!("/reviews/{}", held.review)).await;
    says(&tab, &["You vote for ana, who delegated to you until", "Both names are recorded"]).await;
    tab.press("Approve").await;
    says(&tab, &["ana, who delegated to you until"]).await;
    tab.press("Confirm").await;
    says(&tab, &["Your approval for ana is counted", "dana approved for ana, who is away, as reviewers"]).await;
    says(&tab, &["1 of 2 from reviewers", "Approved by dana, for ana"]).await;
    leave(&tab).await;

    tab.sign_in("ana").await;
    tab.goto(&format!("/reviews/{}", held.review)).await;
    says(&tab, &["dana has voted for you. You can withdraw that vote below"]).await;
    tab.press("Withdraw vote").await;
    says(&tab, &["0 of 2 from reviewers", "ana withdrew the approval that dana gave for them"]).await;
    tab.goto("/delegations").await;
    tab.press("End delegation").await;
    says(&tab, &["The other reviewer can no longer vote on this person's behalf", "Ended by ana"]).await;
    leave(&tab).await;

    tab.sign_in("dana").await;
    tab.goto(&format!("/reviews/{}", held.review)).await;
    says(&tab, &["You cannot decide this."]).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reviewer_with_a_passkey_signs_the_delegation() {
    let (gateway, _) = away().await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    plug_in(&tab).await;
    tab.sign_in("ana").await;
    register(&tab, "laptop").await;
    names_dana(&tab).await;
    says(&tab, &["One of your passkeys has to sign this delegation"]).await;
    assert_eq!(tab.count("input[name=password]").await, 0, "there is no way around it");
    tab.press("Confirm with a passkey").await;
    says(&tab, &["The other reviewer can now vote on your behalf", "dana for ana"]).await;
    leave(&tab).await;
    tab.sign_in("gus").await;
    tab.goto("/delegations").await;
    says(&tab, &["Active delegations", "dana for ana"]).await;
    tab.press("End delegation").await;
    says(&tab, &["No delegation is active."]).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delegation_forms_are_valid_for_their_own_page_and_session_only() {
    let (gateway, _) = away().await;
    let (ana, sam) = (ManualForm::signed_in(&gateway, "ana").await, ManualForm::signed_in(&gateway, "sam").await);
    let csrf = crate::forms::field(&ana.get("/delegations").await.text, "csrf");
    let form = |csrf: &'static str| {
        [("csrf", csrf), ("to", "dana"), ("hours", "24"), ("confirmed", "yes"), ("password", PASSWORD)]
    };
    let own = [("csrf", csrf.as_str()), ("to", "dana"), ("hours", "24"), ("confirmed", "yes"), ("password", PASSWORD)];
    assert_eq!(ana.post("/delegations", &form("x")).await.status, 403);
    assert_eq!(ana.post_from("https://evil.example", "/delegations", &own).await.status, 403);
    assert_eq!(sam.post("/delegations", &own).await.status, 403, "another's form");
    assert_eq!(ana.post("/delegations", &own).await.status, 303);
    assert_eq!(ana.post("/delegations", &own).await.status, 409, "it is given once");
    let page = ana.get("/delegations").await.text;
    let end = page.split("action=\"").find(|it| it.starts_with("/delegations/")).unwrap().split('"').next().unwrap();
    assert_eq!(ana.post(end, &[("csrf", "x")]).await.status, 403);
    let of_sam = crate::forms::field(&sam.get("/delegations").await.text, "csrf");
    assert_eq!(sam.post(end, &[("csrf", of_sam.as_str())]).await.status, 404, "it is not theirs");
    assert_eq!(ana.post(end, &[("csrf", csrf.as_str())]).await.status, 303);
}
