//! A day of three people, from the beginning to the end: the keyboard, a passkey signature, and a race for one
//! review.

use std::time::Duration;

use countersign::worker::Workers;
use serde_json::json;

use crate::chromium::Chromium;
use crate::gateway::{PAYMENTS, spawn_gateway};
use crate::passkeys::{plug_in, register};

/// Ctrl, as a keyboard says it.
const CTRL: i64 = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn second_approval_by_passkey_and_a_simultaneous_denial_have_one_winner() {
    let gateway = spawn_gateway().await;
    for name in ["ana", "sam", "zoe"] {
        gateway.reviewer(name, &["reviewers"]).await;
    }
    let payments = gateway.payments_under(&PAYMENTS.replace("need = 1", "need = 2")).await;
    let workers = Workers::start(&gateway.service, Duration::from_secs(1));
    let patch = json!({"target_user_id": 42, "payment": {"amount": 950, "card": {"number": "4929 0000 0000 0000"}}});
    let held = gateway.held(&payments, "order-1", &patch).await;
    let path = format!("/reviews/{}", held.review);
    let (anas, sams, zoes) = (Chromium::open().await, Chromium::open().await, Chromium::open().await);

    let sam = sams.tab(&gateway).await;
    sam.sign_in("sam").await;
    sam.goto(&path).await;
    sam.verdict("").await;
    sam.press("Approve").await;
    sam.press("Confirm").await;

    let ana = anas.tab(&gateway).await;
    plug_in(&ana).await;
    ana.sign_in("ana").await;
    register(&ana, "laptop").await;
    ana.press_in("header", "Sign out").await;
    ana.press("Sign in with a passkey").await;
    ana.key("j", 0).await;
    ana.key_to("Enter", 0).await;
    assert_eq!(ana.path().await, path, "the one that waits for her");
    ana.verdict("").await;
    let read = ana.text().await;
    for words in ["payment.amount", "120", "950", "target_user_id", "42", "1 of 2 from reviewers", "Approved by sam"] {
        assert!(read.contains(words), "{words} in {read}");
    }
    ana.key_to("a", 0).await;

    let zoe = zoes.tab(&gateway).await;
    zoe.sign_in("zoe").await;
    zoe.goto(&path).await;
    zoe.verdict("").await;
    zoe.fill("Comment", "Not to that account").await;
    zoe.press("Deny").await;

    // Both are asked whether they are sure, and both are.
    tokio::join!(ana.press("Confirm with a passkey"), zoe.press("Confirm"));
    let ended = "document.querySelector('.ended-title') !== null";
    for tab in [&ana, &sam, &zoe] {
        tab.goto(&path).await;
        assert!(tab.js::<bool>(ended).await, "{}", tab.text().await);
    }
    let told = ana.text_of(".ended-title").await;
    assert!(told.contains("Approved by sam and ana") || told.contains("Denied by zoe"), "{told}");
    for tab in [&sam, &zoe] {
        let theirs = tab.text_of(".ended-title").await;
        assert_eq!(theirs.contains("Approved"), told.contains("Approved"), "{theirs} and {told}");
    }
    // The agent gets the same decision.
    let decision = gateway.get(&payments.agent, &format!("/v1/transitions/{}/decision", held.digest)).await.body;
    assert_eq!(decision["approved"], told.contains("Approved"), "{decision}");
    ana.key("?", CTRL).await;
    assert!(!ana.js::<bool>("document.querySelector('[data-keys]').open").await, "a browser's own keys are left to it");
    for browser in [anas, sams, zoes] {
        browser.close().await;
    }
    workers.stop().await;
}
