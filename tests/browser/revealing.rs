//! Revealing a redacted value on a review's page.

use countersign_domain::identity::account::Account;

use countersign_web::pages::reviews::reveal::{BURST, INTERVAL};
use reqwest::header;
use serde_json::json;

use crate::chromium::Chromium;
use crate::forms::{ManualForm, field, with};
use crate::gateway::{BrowserGateway, HeldReview, PAYMENTS, spawn_gateway};

const CARD: &str = "4929 0000 0000 0000";
const OLD_CARD: &str = "4111 1111 1111 1111";

pub fn revealing() -> String {
    PAYMENTS.replace("hide = [\"payment.card\"]", "hide = [\"payment.card.*\", \"memo\"]\nreveal_to = [\"security\"]")
}

/// Starts a pending review of a redacted card, with reviewers who may reveal it and reviewers who may not.
async fn held(gateway: &BrowserGateway) -> (HeldReview, Account) {
    gateway.reviewer("grace", &["security", "reviewers"]).await;
    let ana = gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments_under(&revealing()).await;
    let patch = json!({"target_user_id": 42, "payment": {"card": {"number": CARD}}, "memo": "a\u{202e}b\u{200b}<b>c"});
    (gateway.held(&payments, "order-8812", &patch).await, ana)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revealed_value_is_shown_once_and_the_reveal_is_listed_for_everyone() {
    let gateway = spawn_gateway().await;
    let (held, _) = held(&gateway).await;
    let path = format!("/reviews/{}", held.review);
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("grace").await;
    tab.goto(&path).await;
    let before = tab.text().await;
    assert!(before.contains("redacted: a text of 9 to 32 characters"), "{before}");
    assert!(!before.contains(CARD) && !before.contains(OLD_CARD), "{before}");
    let _: bool = tab.js("(document.querySelector('.reveal').open = true)").await;
    let _: String = tab.js("(document.querySelector('[name=pointer]').value = '/payment/card/number')").await;
    tab.fill("Reason to reveal it", "The bank asks which card").await;
    tab.press("Reveal value").await;
    assert!(tab.verdict("").await.contains("Recomputed in this browser: matches"), "the value is what was signed");
    let shown = tab.text().await;
    assert!(shown.contains(CARD) && shown.contains(OLD_CARD) && shown.contains("revealed to you"), "{shown}");
    let outside: String = tab.js("document.title + location.href + document.querySelector('h1').innerText").await;
    assert!(!outside.contains(CARD) && !outside.contains(OLD_CARD), "{outside}");
    tab.goto(&path).await;
    assert!(!tab.html().await.contains(CARD), "it was shown once");
    tab.press_in("header", "Sign out").await;
    tab.sign_in("ana").await;
    tab.goto(&path).await;
    let after = tab.text().await;
    for words in ["grace revealed the redacted value of payment.card.number, as security", "The bank asks which card"] {
        assert!(after.contains(words), "{words} in {after}");
    }
    assert!(!after.contains(CARD) && !after.contains(OLD_CARD), "{after}");
    assert_eq!(tab.count("form[action$=reveal]").await, 0, "no button for who may not look");
    browser.close().await;
}

/// The fields of the form as the page of its reader gives them.
async fn fields(hand: &ManualForm<'_>, held: &HeldReview) -> Vec<(&'static str, String)> {
    let html = hand.get(&format!("/reviews/{}", held.review)).await.text;
    let (csrf, digest) = (field(&html, "csrf"), held.digest.clone());
    let reason = "The bank asks".to_owned();
    vec![("csrf", csrf), ("digest", digest), ("pointer", "/payment/card/number".to_owned()), ("reason", reason)]
}

async fn looks_recorded(gateway: &BrowserGateway, held: &HeldReview, viewer: &Account) -> usize {
    let review = held.review.as_str().try_into().unwrap();
    gateway.service.reviews.review(&review, viewer).await.unwrap().hold.reveals.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_reveal_request_is_refused() {
    let gateway = spawn_gateway().await;
    let (held, viewer) = held(&gateway).await;
    let path = format!("/reviews/{}/reveal", held.review);
    let (grace, ana) = (ManualForm::signed_in(&gateway, "grace").await, ManualForm::signed_in(&gateway, "ana").await);
    let (hers, anas) = (fields(&grace, &held).await, fields(&ana, &held).await);
    let refused = ana.post(&path, &with(&anas, "", "")).await;
    assert_eq!(refused.status, 403, "{}", refused.text);
    assert!(
        refused.text.contains("The policy does not allow any of your groups to reveal redacted values"),
        "{}",
        refused.text
    );
    for (name, value, status, words) in [
        ("csrf", "x", 403, ""),
        ("digest", "x", 400, ""),
        (
            "digest",
            &*format!("sha256:{}", "0".repeat(64)),
            409,
            "the digest is not the one under review; reload the page",
        ),
        ("pointer", "/target_user_id", 404, "There is no such redacted value"),
        ("pointer", "x", 404, "There is no such redacted value"),
        ("reason", " ", 422, "give a reason of at most 500 characters"),
    ] {
        let refused = grace.post(&path, &with(&hers, name, value)).await;
        assert_eq!(refused.status, status, "{name}={value}: {}", refused.text);
        assert!(refused.text.contains(words) && !refused.text.contains(CARD), "{name}={value}: {}", refused.text);
    }
    assert_eq!(grace.post_from("https://evil.example", &path, &with(&hers, "", "")).await.status, 403);
    assert_eq!(looks_recorded(&gateway, &held, &viewer).await, 0);
    let shown = grace.post(&path, &with(&hers, "", "")).await;
    assert_eq!(
        (shown.status, &shown.headers[header::CACHE_CONTROL]),
        (200, &header::HeaderValue::from_static("no-store"))
    );
    assert!(shown.text.contains(CARD), "{}", shown.text);
    let memo = grace.post(&path, &with(&hers, "pointer", "/memo")).await.text;
    assert!(!memo.contains('\u{202e}') && !memo.contains('\u{200b}') && !memo.contains("<b>c"), "{memo}");
    assert!(
        memo.contains("\\u202e</span>") && memo.contains("&lt;b&gt;c"),
        "what cannot be seen is made visible: {memo}"
    );
    assert_eq!(looks_recorded(&gateway, &held, &viewer).await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reveals_have_a_rate_limit_for_each_person() {
    let gateway = spawn_gateway().await;
    let (held, viewer) = held(&gateway).await;
    let path = format!("/reviews/{}/reveal", held.review);
    let grace = ManualForm::signed_in(&gateway, "grace").await;
    let hers = fields(&grace, &held).await;
    for _ in 0..BURST {
        assert_eq!(grace.post(&path, &with(&hers, "", "")).await.status, 200);
    }
    let refused = grace.post(&path, &with(&hers, "", "")).await;
    assert_eq!(refused.status, 429);
    assert!(refused.text.contains("No value was shown") && !refused.text.contains(CARD), "{}", refused.text);
    assert_eq!(looks_recorded(&gateway, &held, &viewer).await, BURST as usize);
    gateway.clock.advance(INTERVAL);
    assert_eq!(grace.post(&path, &with(&hers, "", "")).await.status, 200);
}
