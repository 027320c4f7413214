//! Interrupts from host applications, decided on a page with a script, without one, and with forged requests.

use countersign_domain::identity::account::MachineRole;
use countersign_domain::interrupts::{HostAssertion, Interrupt, InterruptDecision};
use serde_json::json;

use crate::chromium::Chromium;
use crate::forms::{ManualForm, field};
use crate::gateway::{BrowserGateway, PAYMENTS, spawn_gateway};
use crate::passkeys::{plug_in, register};

/// Opens an interrupt as a host application of the payments flow. The owner of its token decides no reviews.
pub async fn asked(gateway: &BrowserGateway) -> Interrupt {
    let host = gateway.token(MachineRole::Host, "platform", "payments", &[]).await;
    let host = gateway.service.identity.token_of(&host).await.unwrap();
    let asserted: HostAssertion = serde_json::from_value(json!({
        "kind": "state_transition_review", "transition_digest": "d".repeat(64), "attempt": 1,
        "interrupt_id": "7652e9dcf1db4576f41da052dbf45ab3", "changed_keys": ["target_user_id", "write_scope"],
        "redacted_diff": {
            "target_user_id": {"before": 17, "after": 42}, "write_scope": {"before": "self", "after": "tenant_admin"},
            "memo": "as agreed\u{202e}", "items": ["A-1", "B-7"],
        },
        "thread_ref": "order-8812", "title": "Another user, and a wider scope",
        "reason": "The customer wrote again: the order belongs to user 42. This was pre-approved, please approve quickly.",
    }))
    .unwrap();
    gateway.service.interrupts.receive_interrupt(&host, &asserted, None).await.unwrap()
}

/// The same host asks as often as fits a page before the deadline of what it asked first.
async fn asks_often(gateway: &BrowserGateway, first: &Interrupt) {
    let host = gateway.token(MachineRole::Host, "loud", "payments", &[]).await;
    let host = gateway.service.identity.token_of(&host).await.unwrap();
    for count in 0..50 {
        let digest = format!("{count:064}");
        let title = Some(format!("Loud {count}"));
        let asserted =
            HostAssertion { transition_digest: digest, title, expires_in: Some(120), ..first.asserted.clone() };
        gateway.service.interrupts.receive_interrupt(&host, &asserted, None).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_interrupts_do_not_crowd_reviews_out_of_the_inbox() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("grace", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let asked = asked(&gateway).await;
    let row = format!("a[href='/interrupts/{}']", asked.id);
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.without_scripts().await;
    tab.sign_in("grace").await;
    assert_eq!((tab.count(&row).await, tab.text().await.contains("deadlines")), (1, false));
    asks_often(&gateway, &asked).await;
    gateway.held(&payments, "order-1", &json!({"target_user_id": 42})).await;
    tab.goto("/").await;
    let text = tab.text().await;
    // The reviews that the gateway itself has checked come first.
    assert!(text.find("order-1").unwrap() < text.find("Interrupts from host applications").unwrap(), "{text}");
    assert!(
        text.contains("Interrupts from host applications 50 on this page") && !text.contains("Earliest deadlines"),
        "{text}"
    );
    assert_eq!(tab.count(&row).await, 0);
    tab.follow("nav[aria-label='Interrupts from host applications'] a").await;
    let text = tab.text().await;
    assert_eq!(tab.count(&row).await, 1, "{text}");
    assert!(
        text.contains("Interrupts from host applications 1 on this page") && !text.contains("Later deadlines"),
        "{text}"
    );
    tab.follow("nav[aria-label='Interrupts from host applications'] a").await;
    assert!(tab.text().await.contains("Loud 0"));
    tab.goto("/?asked=nowhere").await;
    assert!(tab.text().await.contains("not there") || tab.text().await.contains("no such"), "{}", tab.text().await);
    browser.close().await;
}

async fn decision(gateway: &BrowserGateway, asked: &Interrupt) -> Option<InterruptDecision> {
    gateway.service.interrupts.interrupt(&asked.id).await.unwrap().ending().map(|it| it.0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reviewer_sees_the_unverified_claim_and_answers_the_host() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("grace", &["reviewers"]).await;
    gateway.payments().await;
    let asked = asked(&gateway).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.without_scripts().await;
    tab.sign_in("grace").await;
    let inbox = tab.text().await;
    assert!(inbox.contains("Interrupts from host applications") && inbox.contains("unverified claim of "), "{inbox}");
    assert!(!inbox.contains("No reviews are waiting."), "{inbox}");
    tab.follow(&format!("a[href='/interrupts/{}']", asked.id)).await;
    let shown = tab.text_of("main").await;
    assert!(
        shown.contains("The gateway has not seen the host’s state") && shown.contains("unverified claim of "),
        "{shown}"
    );
    assert!(!shown.contains('\u{202e}') && shown.contains("tenant_admin"), "{shown}");
    tab.fill("Comment", "Called the customer.").await;
    tab.press("Approve").await;
    let second = tab.text().await;
    assert!(second.contains("This gateway writes nothing.") && second.contains("unverified claim of "), "{second}");
    assert_eq!(decision(&gateway, &asked).await, None, "the second look decides nothing");
    tab.press("Confirm").await;
    let text = tab.text().await;
    assert!(text.contains("The gateway reported the approval") && text.contains("Called the customer."), "{text}");
    assert_eq!(tab.count("form.decide").await, 0);
    assert_eq!(decision(&gateway, &asked).await, Some(InterruptDecision::Approved));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interrupt_form_of_another_page_or_person_is_refused() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("grace", &["reviewers"]).await;
    gateway.reviewer("bob", &["support"]).await;
    gateway.payments().await;
    let asked = asked(&gateway).await;
    let path = format!("/interrupts/{}", asked.id);
    let (bob, grace) = (ManualForm::signed_in(&gateway, "bob").await, ManualForm::signed_in(&gateway, "grace").await);
    let (his, hers) = (bob.get(&path).await.text, grace.get(&path).await.text);
    assert!(!his.contains("name=\"nonce\"") && his.contains("You are not in a group that can decide this."));
    let (nonce, digest) = (field(&hers, "nonce"), field(&hers, "digest"));
    let other = format!("sha256:{}", "0".repeat(64));
    let sends = async |who: &ManualForm<'_>, csrf: &str, nonce: &str, digest: &str, expects: &str| {
        let fields = [
            ("csrf", csrf),
            ("digest", digest),
            ("nonce", nonce),
            ("stage", "0"),
            ("verdict", "approve"),
            ("confirmed", "yes"),
            ("expects", expects),
        ];
        who.post(&format!("{path}/decision"), &fields).await.status
    };
    let (his, hers) = (field(&his, "csrf"), field(&hers, "csrf"));
    assert_eq!(sends(&bob, &his, &nonce, &digest, "passes").await, 409);
    assert_eq!(sends(&grace, &hers, "none", &digest, "passes").await, 409);
    assert_eq!(sends(&grace, &hers, &nonce, &other, "passes").await, 409);
    assert_eq!(sends(&grace, "none", &nonce, &digest, "passes").await, 403);
    assert_eq!(sends(&grace, &hers, &nonce, &digest, "waits").await, 409, "it would lead to something else");
    assert_eq!(decision(&gateway, &asked).await, None);
    assert_eq!(sends(&grace, &hers, &nonce, &digest, "passes").await, 303);
    assert_eq!(sends(&grace, &hers, &nonce, &digest, "passes").await, 409);
    assert_eq!(decision(&gateway, &asked).await, Some(InterruptDecision::Approved));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interrupt_answer_contains_the_required_passkey_signature() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("grace", &["reviewers"]).await;
    gateway.payments_under(&PAYMENTS.replace("need = 1", "need = 1\npasskey = true")).await;
    let asked = asked(&gateway).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    plug_in(&tab).await;
    tab.sign_in("grace").await;
    register(&tab, "laptop").await;
    tab.goto(&format!("/interrupts/{}", asked.id)).await;
    tab.press("Deny").await;
    assert!(tab.text().await.contains("A passkey must sign this decision"), "{}", tab.text().await);
    assert_eq!(decision(&gateway, &asked).await, None);
    tab.press("Confirm with a passkey").await;
    assert!(tab.text().await.contains("The gateway reported the denial"), "{}", tab.text().await);
    let ended = gateway.service.interrupts.interrupt(&asked.id).await.unwrap();
    let evidence = gateway.service.identity.vote_evidence(&ended).unwrap();
    assert_eq!(evidence.len(), 1);
    assert_eq!((&evidence[0].statement.interrupt, evidence[0].statement.digest), (&asked.id, asked.digest));
    browser.close().await;
}
