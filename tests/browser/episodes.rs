//! A run of agents as people read it: the plan, what happened with its holds and decisions, and what remains.

use std::path::Path;

use countersign_domain::episode::verify::{FileContent, Folder};
use countersign_domain::identity::party::Party;
use countersign_domain::primitives::id::{PrincipalId, ThreadId};

use countersign_service::episodes::import::ImportOutcome;
use serde_json::{Value, json};

use crate::chromium::Chromium;
use crate::forms::{ManualForm, form_of, with};
use crate::gateway::{BrowserGateway, HeldReview, PAYMENTS, Payments, order, spawn_gateway};

/// Begins a run and gives version 0's digest.
async fn begun(gateway: &BrowserGateway, payments: &Payments, name: &str) -> String {
    let episode = json!({"goal": {"task": "Refund order 8812 <b>now</b>"}, "tags": {"team": "platform"}});
    let body = json!({"flow": "payments", "thread": name, "state": order(), "episode": episode});
    let made = gateway.post(&payments.host, "/v1/threads", &body).await;
    assert_eq!(made.status, 201, "{made:?}");
    made.body["transition"].as_str().unwrap().to_owned()
}

async fn says(gateway: &BrowserGateway, payments: &Payments, name: &str, (phase, payload): (&str, Value)) {
    let event = json!({"node": "planner", "phase": phase, "payload": payload});
    let added = gateway.post(&payments.agent, &format!("/v1/threads/{name}/episode/events"), &event).await;
    assert_eq!(added.status, 201, "{added:?}");
}

/// A run that is planned and waits for people.
pub async fn planned(gateway: &BrowserGateway, payments: &Payments, name: &str) -> HeldReview {
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
pub async fn ended(gateway: &BrowserGateway, payments: &Payments, held: &HeldReview) {
    let ana = ManualForm::signed_in(gateway, "ana").await;
    let form = form_of(&ana, held).await;
    let voted = ana.post(&format!("/reviews/{}/decision", held.review), &with(&form, "", "")).await;
    assert_eq!(voted.status, 303, "{}", voted.text);
    let done = json!({"step_id": "refund", "step_status": "done", "tool": "ledger", "outcome": "ok",
        "result_artifacts": [{"type": "row", "uri": "refunds:77"}]});
    says(gateway, payments, &held.thread, ("act", done)).await;
    let over = json!({"status": "ok", "message": "Refunded 120 EUR."});
    says(gateway, payments, &held.thread, ("terminate", over)).await;
}

/// The published golden run.
pub fn golden() -> Folder {
    let at = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/episode/golden");
    countersign::episode_folder::read(&at).unwrap()
}

/// Returns the gateway's own run artifacts of a thread.
pub async fn own_folder(gateway: &BrowserGateway, thread: &str) -> Folder {
    let files = gateway
        .service
        .episodes
        .files_of_run("tests", &Party::Receiver, &ThreadId::try_from(thread).unwrap())
        .await
        .unwrap();
    Folder { entries: files.into_iter().map(|(name, bytes)| (name, FileContent::Bytes(bytes))).collect() }
}

/// Imports it; gives its thread.
pub async fn imported(gateway: &BrowserGateway, folder: &Folder) -> String {
    let by = PrincipalId::try_from("command-line").unwrap();
    match gateway.service.episodes.import_episode(&by, folder, None).await.unwrap() {
        ImportOutcome::Kept(import, _) => import.id.to_string(),
        other => panic!("{other:?}"),
    }
}

/// A policy whose planner may fork.
pub fn forking() -> String {
    let policy = PAYMENTS.replacen("[nodes.planner]\n", "[nodes.planner]\nfork = true\n", 1);
    assert_ne!(policy, PAYMENTS);
    policy
}

/// A thread of which two branches were joined, one was left behind, and one is open; gives that one's thread.
pub async fn forked(gateway: &BrowserGateway, payments: &Payments, name: &str) -> String {
    let head = gateway.thread(payments, name, &order()).await;
    let asks = async |rest: &str, body: Value| {
        let answer = gateway.post(&payments.agent, &format!("/v1/threads/{name}/{rest}"), &body).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.body
    };
    let made = asks("forks", json!({"node": "planner", "branches": ["law", "press", "web"]})).await;
    for (at, patch) in [(0, json!({"requested_action": "refund"})), (1, json!({"items": ["A-1"]}))] {
        let (branch, parent) = (made["branches"][at]["thread"].as_str().unwrap(), &made["branches"][at]["transition"]);
        let ask = json!({"node": "planner", "parent": parent, "patch": patch});
        let done = gateway.post(&payments.agent, &format!("/v1/threads/{branch}/transitions"), &ask).await;
        assert_eq!(done.status, 201, "{done:?}");
    }
    asks("joins", json!({"node": "planner", "parent": head, "branches": ["law", "press"], "strategy": "union"})).await;
    let next = asks("forks", json!({"node": "planner", "branches": ["second-look"]})).await;
    next["branches"][0]["thread"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn imported_run_is_labelled_as_imported_without_scripts() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let held = planned(&gateway, &payments, "order-8812").await;
    ended(&gateway, &payments, &held).await;
    let own = imported(&gateway, &own_folder(&gateway, "order-8812").await).await;
    let foreign = imported(&gateway, &golden()).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("ana").await;
    tab.without_scripts().await;
    tab.goto("/imports").await;
    let page = tab.text().await;
    for words in ["deterministic golden", "not signed", "Refund order 8812 <b>now</b>", "signed by this gateway"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    tab.goto(&format!("/threads/{own}")).await;
    assert_eq!(tab.path().await, format!("/threads/{own}/episode"), "it has no versions");
    let page = tab.text().await;
    for words in
        ["Signed by this gateway", "Imported", "by command-line", "Look the order up", "transition.held", "order-8812"]
    {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("Proposal held for approval"), "its files are not this gateway's word: {page}");
    assert_eq!(tab.count("a[href^='/reviews/']").await, 0, "and lead to no review");
    assert_eq!(tab.count("a[download]").await, 6);
    assert!(!page.contains('\u{202e}'), "{page}");
    tab.goto(&format!("/threads/{foreign}/episode")).await;
    let page = tab.text().await;
    for words in [
        "Not signed",
        "Completed 3 minimal steps.",
        "Collect relevant context",
        "Unverified parts",
        "adapter:core.minimal",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(tab.html().await.contains("the events are not linked by hashes"));
    assert_eq!(tab.count("a[download]").await, 4);
    let ana = ManualForm::signed_in(&gateway, "ana").await;
    let state = ana.get(&format!("/threads/{foreign}/episode/state.json")).await;
    let came = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/episode/golden/state.json"));
    assert_eq!((state.status, state.text), (200, came.unwrap()));
    assert_eq!(ana.get(&format!("/threads/{foreign}/episode/learn.jsonl")).await.status, 404);
    for nowhere in ["versions/0", "compare?from=0&to=1"] {
        assert_eq!(ana.get(&format!("/threads/{foreign}/{nowhere}")).await.status, 409, "{nowhere}");
    }
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thread_lists_its_branches_and_each_branch_names_its_origin() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments_under(&forking()).await;
    let open = forked(&gateway, &payments, "order-8700").await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("ana").await;
    tab.without_scripts().await;
    tab.goto("/threads/order-8700").await;
    let section = tab.text_of("section[aria-labelledby='branches']").await;
    assert_eq!(section.matches("Joined in version 1").count(), 2, "{section}");
    assert_eq!(section.matches("Outdated").count(), 1, "{section}");
    assert_eq!(section.matches("Not joined").count(), 1, "{section}");
    let order: Vec<_> = ["second-look", "law", "press", "web"].iter().map(|it| section.find(it).unwrap()).collect();
    assert!(order.is_sorted(), "{section}");
    tab.follow(&format!("a[href='/threads/{open}']")).await;
    let page = tab.text().await;
    assert!(page.contains("Branch second-look of order-8700, forked from version 1."), "{page}");
    assert_eq!(tab.count("section[aria-labelledby='branches']").await, 0);
    tab.follow("a[href='/threads/order-8700/versions/1']").await;
    assert_eq!(tab.path().await, "/threads/order-8700/versions/1");
    tab.goto(&format!("/threads/{open}")).await;
    tab.follow("a[href='/threads/order-8700']").await;
    assert_eq!(tab.path().await, "/threads/order-8700");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_page_shows_everything_from_plan_to_artifacts_without_scripts() {
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
    for words in ["Refund order 8812 <b>now</b>", "Waiting for a decision", "Look the order up", "planned", "skipped"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(page.contains("Proposal held for approval") && page.contains("<script>alert(1)</script>"), "{page}");
    assert!(!page.contains("4111 1111") && !page.contains('\u{202e}'), "{page}");
    assert_eq!(tab.count(&format!("a[href='/reviews/{}']", held.review)).await, 1);
    assert_eq!(tab.count("a[download]").await, 3, "what only a finished run has is not offered");
    ended(&gateway, &payments, &held).await;
    tab.goto("/threads/order-8812/episode").await;
    let page = tab.text().await;
    for words in ["Done", "Refunded 120 EUR.", "Proposal approved", "steps_completed", "refunds:77", "manifest.json"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert_eq!(tab.count("a[download]").await, 6);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn downloaded_run_artifacts_equal_those_of_the_api() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let held = planned(&gateway, &payments, "order-8812").await;
    let ana = ManualForm::signed_in(&gateway, "ana").await;
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
