//! Reviews of tool calls: a reviewer sees the tool and its arguments on every page on the way to the vote.

use serde_json::{Value, json};

use crate::chromium::Chromium;
use crate::gateway::{BrowserGateway, HeldReview, Payments, spawn_gateway};

pub const POLICY: &str = r#"flow = "payments"

[nodes.planner]
reads = ["$"]
tools = ["issue_refund", "crm.*"]

[tools]
allow = ["issue_refund", "crm.*"]
hide = ["card"]

[tools.issue_refund]
title = "Refund a payment"
description = "Sends money back to the customer's card. It cannot be undone."
risk = "high"
show = ["amount", "customer"]
label.customer = "Customer number"
unit.amount = "EUR"

[[rules]]
name = "refunds"
tools = ["issue_refund"]
when = "true"
then = "hold"
reason = "a refund requires approval"

[[approval.stages]]
groups = ["reviewers"]
"#;

pub fn refund(customer: &str) -> Value {
    json!({"name": "issue_refund", "arguments": {"amount": 4000, "booking": "B-77", "customer": customer, "note": "goodwill"}})
}

pub async fn held_call(gateway: &BrowserGateway, payments: &Payments, thread: &str, tool: &Value) -> HeldReview {
    let parent = gateway.thread(payments, thread, &json!({})).await;
    let body = json!({"node": "planner", "parent": parent, "patch": {}, "format": "merge-patch", "tool": tool});
    let held = gateway.post(&payments.agent, &format!("/v1/threads/{thread}/transitions"), &body).await;
    assert_eq!(held.status, 202, "{held:?}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    HeldReview {
        thread: thread.to_owned(),
        review: text(&held.body["review"]["id"]),
        digest: text(&held.body["transition"]),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn call_is_named_with_its_arguments_on_every_page_up_to_the_vote() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments_under(POLICY).await;
    let held = held_call(&gateway, &payments, "refund-1", &refund("c-17")).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.resize(390, 844).await;
    tab.sign_in("ana").await;

    let row = tab.text_of(".row-title").await;
    let sentence =
        "planner wants to call issue_refund (Refund a payment) with amount: 4000 EUR, customer: \"c-17\" and 2 more";
    assert_eq!(row, sentence);
    assert!(tab.text_of(".badges").await.contains("high risk"));

    tab.follow(".row-title a").await;
    assert_eq!(tab.text_of("h1").await, "planner wants to call issue_refund");
    let arguments: Vec<String> = tab
        .js("[...document.querySelectorAll('[data-argument]')].map((it) => it.innerText.replace(/\\s+/g, ' '))")
        .await;
    assert_eq!(
        arguments,
        ["amount 4000 EUR", "Customer number customer \"c-17\"", "booking \"B-77\"", "note \"goodwill\""]
    );
    for selector in ["h1", ".call-head", ".call-description", "[data-argument]:last-child", ".approve", ".deny"] {
        assert!(tab.in_first_screen(selector).await, "{selector}");
    }
    let page = tab.text().await;
    assert!(page.contains("If approved, planner may call issue_refund with exactly these arguments."), "{page}");
    assert!(!page.contains("does nothing else"), "{page}");
    assert!(tab.verdict("").await.contains("Recomputed in this browser: matches"));

    tab.press("Approve").await;
    let confirm = tab.text().await;
    for words in [
        "Approve this tool call?",
        "Refund a payment",
        "4000 EUR",
        "\"goodwill\"",
        "planner may call issue_refund with these arguments.",
    ] {
        assert!(confirm.contains(words), "{words} in {confirm}");
    }
    tab.press("Confirm").await;
    assert!(tab.text().await.contains("Approved by ana"));

    tab.goto(&format!("/threads/{}", held.thread)).await;
    assert!(tab.text_of(".chain-paths").await.contains("calls issue_refund (Refund a payment) with amount: 4000 EUR"));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redacted_argument_appears_on_no_page_of_the_call() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments_under(POLICY).await;
    let mut tool = refund("c-17");
    tool["arguments"]["card"] = json!("4929 1234 5678");
    let held = held_call(&gateway, &payments, "refund-1", &tool).await;
    held_call(&gateway, &payments, "refund-2", &tool).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("ana").await;
    assert!(!tab.html().await.contains("4929 1234 5678"));
    tab.js::<bool>("(document.querySelectorAll('[name=review]').forEach((it) => (it.checked = true)), true)").await;
    tab.press("Decide selected together").await;
    assert_eq!(tab.count(".call-arguments").await, 2);
    assert!(!tab.html().await.contains("4929 1234 5678"));
    tab.goto(&format!("/reviews/{}", held.review)).await;
    assert!(tab.text_of(".call-arguments").await.contains("card redacted"));
    assert!(!tab.html().await.contains("4929 1234 5678"));
    tab.press("Approve").await;
    assert!(tab.text_of(".call-arguments").await.contains("card redacted"));
    assert!(!tab.html().await.contains("4929 1234 5678"));
    browser.close().await;
}

/// A warning beside a name or a value is not part of it, and folded arguments are still checked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn call_with_flagged_and_folded_arguments_matches_its_digest() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments_under(POLICY).await;
    let mut tool = refund("שלום p\u{430}yment \u{202e}of 1");
    for index in 0..40 {
        tool["arguments"][format!("extra_{index:02}")] = json!(index);
    }
    tool["arguments"]["\u{430}mount"] = json!(4);
    let held = held_call(&gateway, &payments, "refund-1", &tool).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.resize(390, 844).await;
    tab.sign_in("ana").await;
    tab.goto(&format!("/reviews/{}", held.review)).await;
    assert!(tab.verdict("").await.contains("Recomputed in this browser: matches"));
    assert!(tab.count("[data-argument] .flag").await >= 2);
    assert_eq!(tab.text_of(".call-more summary").await, "25 more arguments");
    assert!(tab.in_first_screen(".reasons").await, "the reasons come before the arguments");
    let folded = "document.querySelector('[data-more-arguments] [data-value]')";
    tab.js::<bool>(&format!("({folded}.textContent = '999', true)")).await;
    tab.press_in_page("Approve").await;
    assert!(tab.verdict("match").await.contains("does not match"), "a folded argument is checked");
    browser.close().await;
}

/// Reviews of one tool are alike only if they name the same arguments.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_with_other_arguments_are_not_decided_together() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments_under(POLICY).await;
    let mut other = refund("c-18");
    other["arguments"]["override_limit"] = json!(true);
    held_call(&gateway, &payments, "refund-1", &refund("c-17")).await;
    held_call(&gateway, &payments, "refund-2", &other).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("ana").await;
    tab.js::<bool>("(document.querySelectorAll('[name=review]').forEach((it) => (it.checked = true)), true)").await;
    tab.press("Decide selected together").await;
    assert!(tab.text().await.contains("2 different kinds of change"));
    browser.close().await;
}
