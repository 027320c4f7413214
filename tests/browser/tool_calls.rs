//! Reviews of tool calls: a reviewer sees the tool and its arguments on every page on the way to the vote.

use std::time::Duration;

use countersign::worker::Workers;
use countersign_domain::identity::account::MachineRole;
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
        "The approval lets planner call issue_refund with exactly these arguments.",
    ] {
        assert!(confirm.contains(words), "{words} in {confirm}");
    }
    tab.press("Confirm").await;
    let approved = tab.text().await;
    for words in ["Approved by ana", "planner may run this call.", "planner requested the call"] {
        assert!(approved.contains(words), "{words} in {approved}");
    }
    assert!(speaks_of_no_change(&approved), "{approved}");

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

/// Words for changes of a state, which are wrong on the page of a tool call.
fn speaks_of_no_change(page: &str) -> bool {
    ["committed", "has written", "wrote nothing", "the change", "Changes"].iter().all(|it| !page.contains(it))
}

pub const REQUESTS: &str = r#"flow = "files"

[nodes.agent]
writer = true

[tools]
allow = ["*"]

[tools.write_file]
title = "Write a file"
description = "Replaces the whole content of the file."
risk = "medium"

[[rules]]
name = "writes"
tools = ["write_file"]
when = "true"
then = "hold"
reason = "a reviewer approves this call"

[[approval.stages]]
groups = ["reviewers"]

[approval]
receipt_ttl = "10m"
"#;

/// A waiting approval request.
pub struct RequestedCall<'g> {
    gateway: &'g BrowserGateway,
    token: String,
    path: String,
}

impl<'g> RequestedCall<'g> {
    pub async fn new(gateway: &'g BrowserGateway, token: &str, file: &str) -> Self {
        let arguments = json!({"path": file, "content": "one\ntwo", "append": false});
        let body = json!({"tool": "write_file", "arguments": arguments, "timeout": "10m"});
        let mut asked = Self { gateway, token: token.to_owned(), path: "/aap/v1/requests".to_owned() };
        let id = asked.post("", Some(file), Some(&body)).await["id"].as_str().unwrap().to_owned();
        asked.path = format!("/aap/v1/requests/{id}");
        asked
    }

    async fn post(&self, step: &str, key: Option<&str>, body: Option<&Value>) -> Value {
        let mut post = self.gateway.http.post(self.gateway.at(&format!("{}{step}", self.path)));
        post = post.bearer_auth(&self.token);
        if let Some(key) = key {
            post = post.header("idempotency-key", key);
        }
        if let Some(body) = body {
            post = post.json(body);
        }
        let done = post.send().await.unwrap();
        assert!(done.status().is_success(), "{step}: {}", done.text().await.unwrap());
        done.json().await.unwrap()
    }

    pub async fn consume(&self) {
        self.post("/consume", Some("consume"), None).await;
    }

    pub async fn report(&self, status: &str) {
        self.post("/outcome", None, Some(&json!({"status": status}))).await;
    }
}

const STANDING: &str = "document.querySelector('[data-part=standing]').innerText";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn review_of_a_request_shows_whether_its_call_has_run() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    gateway.activate(REQUESTS).await;
    let workers = Workers::start(&gateway.service, Duration::from_secs(1));
    let token = gateway.token(MachineRole::Instance, "bots", "files", &["agent"]).await;
    let first = RequestedCall::new(&gateway, &token, "/notes/today.txt").await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.resize(390, 844).await;
    tab.sign_in("ana").await;
    tab.follow(".row-title a").await;
    tab.verdict("").await;
    assert!(speaks_of_no_change(&tab.text_of(".review-head").await));
    assert!(!tab.text().await.contains("Propose an edit"), "the agent waits for exactly this call");
    assert_eq!(tab.count("#changes").await, 0, "a call changes nothing");
    tab.press("Approve").await;
    assert!(tab.in_first_screen(".confirm button[type=submit]").await, "the button is on a phone's first screen");
    tab.press("Confirm").await;
    let page = tab.text().await;
    for words in ["Not run yet. agent can run this call once, before ", "it must call again", "Revoke approval"] {
        assert!(page.contains(words), "{words} in {page}");
    }
    assert!(speaks_of_no_change(&page), "{page}");
    first.consume().await;
    tab.until(&format!("{STANDING}.includes('The call was started at')")).await;
    assert!(tab.text_of("[data-part=standing]").await.contains("Its outcome is not reported yet."));
    assert_eq!(tab.count("[data-revoke]").await, 0, "a used approval cannot be revoked");
    first.report("succeeded").await;
    tab.until(&format!("{STANDING}.includes('agent reported that it succeeded.')")).await;
    let page = tab.text().await;
    assert!(page.contains("agent reported that the call succeeded") && speaks_of_no_change(&page), "{page}");
    let thread: String = tab.js("document.querySelector('.crumbs a:last-child').getAttribute('href')").await;
    tab.goto(&thread).await;
    assert!(tab.text().await.contains("the call succeeded, recorded as version"), "{}", tab.text().await);
    tab.goto(&format!("{thread}/versions/1")).await;
    let page = tab.text().await;
    assert!(page.contains("agent: the call succeeded") && page.contains("This version records a tool call."), "{page}");

    let second = RequestedCall::new(&gateway, &token, "/notes/tomorrow.txt").await;
    tab.goto("/").await;
    tab.follow("[data-waiting] .row-title a").await;
    tab.press("Deny").await;
    assert!(tab.text().await.contains("The review ends. agent may not run this call."));
    tab.press("Confirm").await;
    let page = tab.text().await;
    assert!(page.contains("agent may not run this call.") && speaks_of_no_change(&page), "{page}");
    drop(second);
    browser.close().await;
    workers.stop().await;
}

/// The form to revoke has the focus, so a live update disables it and keeps the typed text.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn form_to_revoke_a_used_approval_is_disabled_while_it_is_filled_in() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    gateway.activate(REQUESTS).await;
    let workers = Workers::start(&gateway.service, Duration::from_secs(1));
    let token = gateway.token(MachineRole::Instance, "bots", "files", &["agent"]).await;
    let asked = RequestedCall::new(&gateway, &token, "/notes/today.txt").await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("ana").await;
    tab.follow(".row-title a").await;
    tab.press("Approve").await;
    tab.press("Confirm").await;
    tab.js::<bool>(
        "(document.getElementById('reason').focus(), document.getElementById('reason').value = 'wrong file', true)",
    )
    .await;
    asked.consume().await;
    tab.until("document.querySelector('[data-revoke] button').disabled").await;
    assert_eq!(tab.js::<String>("document.getElementById('reason').value").await, "wrong file");
    assert!(
        tab.js::<String>("document.querySelector('[data-news]').innerText")
            .await
            .contains("This can no longer be revoked.")
    );
    browser.close().await;
    workers.stop().await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_argument_is_shown_in_part_with_a_download_up_to_the_vote() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments_under(POLICY).await;
    let mut tool = refund("c-17");
    // By its name, the argument would come before the short ones.
    tool["arguments"]["about"] =
        json!(format!("BEGIN {} MIDDLE {} END", "word ".repeat(50_000), "word ".repeat(50_000)));
    let held = held_call(&gateway, &payments, "refund-1", &tool).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("ana").await;
    for width in [1280, 390] {
        tab.resize(width, 844).await;
        tab.goto(&format!("/reviews/{}", held.review)).await;
        let text = tab.text_of(".call").await;
        assert!(text.contains("BEGIN") && text.contains(" END\"") && !text.contains("MIDDLE"));
        assert_eq!(tab.count("[data-argument]:last-child [data-excerpt]").await, 1, "{text}");
        assert!(text.contains("Shown in part") && text.contains("characters are not shown here"));
        let verdict = tab.verdict("").await;
        assert!(verdict.contains("Recomputed in this browser: matches in part"), "{verdict}");
        assert!(verdict.contains("Only the tool\u{2019}s name was checked"), "{verdict}");
        assert!(text.contains("Read them before you decide. Download all arguments (JSON)"));
        assert!(!tab.text().await.contains("of which some are redacted"));
        let fits = "document.documentElement.scrollWidth <= document.documentElement.clientWidth";
        assert!(tab.js::<bool>(fits).await, "{width}");
    }
    assert!(!tab.text().await.contains("does not match"));
    tab.press("Approve").await;
    assert!(tab.text_of(".call").await.contains("This page does not show all arguments."));
    assert_eq!(tab.count("[data-partial] a[download]").await, 1);
    browser.close().await;
}
