//! Journey of a person from the set-up link to a decided review.

use serde_json::json;

use crate::chromium::Chromium;
use crate::gateway::{PASSWORD, spawn_gateway};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_the_set_up_link_to_an_approval_that_the_agent_learns_of() {
    let gateway = spawn_gateway().await;
    let secret = gateway.service.identity.set_up_link().await.unwrap().unwrap();
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.goto(&format!("/set-up/{secret}")).await;
    tab.fill("User name", "ana").await;
    tab.fill("Groups", "reviewers").await;
    tab.fill("Password", PASSWORD).await;
    tab.press("Set up account").await;
    assert!(tab.text().await.contains("No reviews are waiting."));
    let used = gateway.http.get(gateway.at(&format!("/set-up/{secret}"))).send().await.unwrap();
    assert_eq!(used.status(), 404, "the link works once");

    let payments = gateway.payments().await;
    let held = gateway.held(&payments, "order-8812", &json!({"target_user_id": 42})).await;
    tab.press_in("header", "Sign out").await;
    assert_eq!(tab.path().await, "/sign-in");
    tab.goto(&format!("/reviews/{}", held.review)).await;
    assert_eq!(tab.path().await, format!("/sign-in?next=/reviews/{}", held.review));
    tab.fill("User name", "ana").await;
    tab.fill("Password", PASSWORD).await;
    tab.press("Sign in").await;
    assert_eq!(tab.path().await, format!("/reviews/{}", held.review), "and on to where they wanted");

    tab.goto("/").await;
    assert!(tab.js::<String>("document.title").await.starts_with("(1) Inbox"));
    let inbox = tab.text().await;
    for words in [
        "planner wants to change target_user_id: 17 → 42",
        "You can decide",
        "0 of 1 reviewers",
        "Refund for order-8812",
    ] {
        assert!(inbox.contains(words), "{words} in {inbox}");
    }
    tab.follow(".row-title a").await;
    assert_eq!(tab.path().await, format!("/reviews/{}", held.review));
    assert!(tab.verdict("").await.contains("Recomputed in this browser: matches"));
    tab.fill("Comment", "Checked by phone.").await;
    tab.press("Approve").await;
    let second = tab.text().await;
    for words in [
        "Approve this change?",
        "target_user_id: 17 → 42",
        &held.digest,
        "Checked by phone.",
        "database_writer may write it once, within 10 min",
    ] {
        assert!(second.contains(words), "{words} in {second}");
    }
    assert!(gateway.decision(&payments, &held).await.get("approved").is_none_or(|it| it != true), "not yet");
    tab.press("Confirm").await;
    assert_eq!(tab.path().await, format!("/reviews/{}", held.review));
    let decided = tab.text().await;
    for words in [
        "Approved by ana",
        "It was committed as version 1. The receipt waits for its writer",
        "This review has ended.",
        "Their browser reported that the page gives this digest.",
    ] {
        assert!(decided.contains(words), "{words} in {decided}");
    }
    let decision = gateway.decision(&payments, &held).await;
    assert_eq!((&decision["approved"], &decision["comment"]), (&json!(true), &json!("Checked by phone.")));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_phone_shows_what_why_for_whom_until_when_and_both_verdicts_without_scrolling() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let held = gateway.held(&payments, "order-8812", &json!({"target_user_id": 42})).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.resize(390, 844).await;
    tab.sign_in("ana").await;
    tab.goto(&format!("/reviews/{}", held.review)).await;
    assert_eq!(tab.text_of("h1").await, "planner wants to change target_user_id: 17 → 42");
    assert!(tab.text_of(".reasons").await.contains("target_user_id is protected and requires approval"));
    assert!(
        tab.text_of(".facts")
            .await
            .contains("Mira Novak, customer care requested by agent-of-machines, an agent of machines")
    );
    assert!(
        tab.text_of(".reads caption")
            .await
            .contains("If approved, database_writer may write once, from exactly these values:")
    );
    for selector in ["h1", ".reasons", ".facts > :nth-child(2)", ".facts time", ".reads caption", ".approve", ".deny"] {
        assert!(tab.in_first_screen(selector).await, "{selector}");
    }
    assert!(tab.js::<bool>("document.documentElement.scrollWidth <= screen.width").await);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denial_ends_it_and_another_tab_learns_by_whom_and_keeps_the_comment() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    gateway.reviewer("sam", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let held = gateway.held(&payments, "order-8812", &json!({"target_user_id": 42})).await;
    let page = format!("/reviews/{}", held.review);
    let (hers, his) = (Chromium::open().await, Chromium::open().await);
    let (ana, sam) = (hers.tab(&gateway).await, his.tab(&gateway).await);
    ana.sign_in("ana").await;
    sam.sign_in("sam").await;
    ana.goto(&page).await;
    sam.goto(&page).await;
    sam.verdict("").await;
    sam.fill("Comment", "Fine by me").await;

    ana.verdict("").await;
    ana.press("Deny").await;
    assert!(ana.text().await.contains("The review ends. Nothing is committed"));
    ana.press("Confirm").await;
    assert!(ana.text().await.contains("Denied by ana"));

    sam.press("Approve").await;
    let told = sam.text().await;
    for words in ["This review has already been decided. Your vote was not counted.", "Denied by ana", "Fine by me"] {
        assert!(told.contains(words), "{words} in {told}");
    }
    assert_eq!(sam.count("button[name=verdict]").await, 0, "nothing is left to press");
    let decision = gateway.decision(&payments, &held).await;
    assert_eq!((&decision["approved"], &decision["decision"]), (&json!(false), &json!("denied")));
    sam.goto("/").await;
    assert!(sam.text_of("section[aria-labelledby=decided]").await.contains("Denied by ana"));
    hers.close().await;
    his.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deciding_works_without_scripts_and_then_nothing_is_claimed() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let held = gateway.held(&payments, "order-8812", &json!({"target_user_id": 42})).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.without_scripts().await;
    tab.sign_in("ana").await;
    tab.follow(".row-title a").await;
    let page = tab.text().await;
    assert!(page.contains("Not recomputed here") && !page.contains("Recomputed in this browser"));
    tab.press("Approve").await;
    tab.press("Confirm").await;
    let decided = tab.text().await;
    assert!(decided.contains("Approved by ana") && decided.contains("Not recomputed in their browser."), "{decided}");
    assert_eq!(gateway.decision(&payments, &held).await["approved"], true);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unused_receipt_is_revoked_by_its_approver_only() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    gateway.reviewer("sam", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let held = gateway.held(&payments, "order-8812", &json!({"target_user_id": 42})).await;
    let page = format!("/reviews/{}", held.review);
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("ana").await;
    tab.goto(&page).await;
    tab.verdict("").await;
    tab.press("Approve").await;
    tab.press("Confirm").await;
    tab.fill("Reason to revoke the receipt", "Wrong account after all").await;
    tab.press("Revoke receipt").await;
    let text = tab.text().await;
    for words in ["The receipt was revoked before a writer used it", "Wrong account after all"] {
        assert!(text.contains(words), "{words} in {text}");
    }
    assert_eq!(tab.count("form[action$=revocation]").await, 0);
    let receipt = gateway.decision(&payments, &held).await["receipt"].clone();
    let ask = json!({"thread": held.thread, "transition": held.digest, "receipt": receipt, "write_id": "w1"});
    let refused = gateway.post(&payments.writer, "/v1/verify", &ask).await;
    assert_eq!((refused.status, &refused.body["code"]), (403, &json!("revoked")), "{refused:?}");
    let other = browser.tab(&gateway).await;
    other.goto("/").await;
    other.press_in("header", "Sign out").await;
    other.sign_in("sam").await;
    other.goto(&page).await;
    assert_eq!(other.count("form[action$=revocation]").await, 0);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn used_receipt_cannot_be_revoked_and_the_thread_shows_its_history() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let held = gateway.held(&payments, "order-8812", &json!({"target_user_id": 42})).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("ana").await;
    tab.goto(&format!("/reviews/{}", held.review)).await;
    tab.verdict("").await;
    tab.press("Approve").await;
    tab.press("Confirm").await;
    let receipt = gateway.decision(&payments, &held).await["receipt"].clone();
    let ask = json!({"thread": held.thread, "transition": held.digest, "receipt": receipt, "write_id": "w1"});
    assert_eq!(gateway.post(&payments.writer, "/v1/verify", &ask).await.status, 200);
    tab.fill("Reason to revoke the receipt", "Too late").await;
    tab.press("Revoke receipt").await;
    let told = tab.text().await;
    assert!(told.contains("A writer has used the receipt. It can no longer be revoked."), "{told}");
    assert!(told.contains("database_writer is writing now."), "{told}");
    let confirmed = gateway.post(&payments.writer, "/v1/writes/w1/confirm", &json!({"result": {}})).await;
    assert_eq!(confirmed.status, 200, "{confirmed:?}");
    tab.goto(&format!("/reviews/{}", held.review)).await;
    assert!(tab.text().await.contains("The receipt was used: database_writer has written."));
    tab.goto("/threads/order-8812").await;
    let thread = tab.text().await;
    for words in [
        "confirmed by database_writer",
        "proposed by planner as agent-of-machines, an agent of machines target_user_id",
        "by ana",
        "created by the host",
        "recorded as version 2",
    ] {
        assert!(thread.contains(words), "{words} in {thread}");
    }
    browser.close().await;
}
