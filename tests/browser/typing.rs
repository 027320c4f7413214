//! Approvals that are typed: on a phone, without scripts, and with forged requests.

use serde_json::json;

use crate::chromium::Chromium;
use crate::forms::{ManualForm, form_of, still_waits, with};
use crate::gateway::{BrowserGateway, HeldReview, PAYMENTS, Payments, spawn_gateway};

async fn asked(gateway: &BrowserGateway) -> (Payments, HeldReview) {
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments_under(&PAYMENTS.replace("need = 1", "need = 1\nconfirm = \"typed\"")).await;
    let held = gateway.held(&payments, "order-8812", &json!({"target_user_id": 42})).await;
    (payments, held)
}

fn digits(held: &HeldReview) -> &str {
    &held.digest[held.digest.len() - 6..]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_types_the_end_of_the_digest_and_then_it_is_approved() {
    let gateway = spawn_gateway().await;
    let (payments, held) = asked(&gateway).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.without_scripts().await;
    tab.resize(390, 844).await;
    tab.sign_in("ana").await;
    tab.goto(&format!("/reviews/{}", held.review)).await;
    tab.fill("Comment", "Read it twice").await;
    tab.press("Approve").await;
    let page = tab.text().await;
    assert!(page.contains(&format!("type the last six digits of the digest: {}", digits(&held))), "{page}");
    assert!(tab.js::<bool>("document.documentElement.scrollWidth <= screen.width").await);
    tab.fill("To approve, type", "000").await;
    tab.press("Confirm").await;
    let again = tab.text().await;
    for words in ["The typed text is not the end of this digest.", "Your vote was not counted.", "Read it twice"] {
        assert!(again.contains(words), "{words} in {again}");
    }
    still_waits(&gateway, &held).await;
    tab.fill("To approve, type", &format!(" {} ", digits(&held).to_uppercase())).await;
    tab.press("Confirm").await;
    let decided = tab.text().await;
    assert!(
        decided.contains("Approved by ana") && decided.contains("They typed the digest’s last digits."),
        "{decided}"
    );
    assert_eq!(gateway.decision(&payments, &held).await["approved"], true);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn approval_needs_the_typed_text_and_a_denial_does_not() {
    let gateway = spawn_gateway().await;
    let (payments, held) = asked(&gateway).await;
    let other = gateway.held(&payments, "order-8813", &json!({"target_user_id": 42})).await;
    let ana = ManualForm::signed_in(&gateway, "ana").await;
    let path = format!("/reviews/{}/decision", held.review);
    let mut fields = form_of(&ana, &held).await;
    assert_eq!(ana.post(&path, &with(&fields, "", "")).await.status, 409, "nothing typed");
    fields.push(("typed", String::new()));
    for typed in ["", "approve", &digits(&held)[1..], digits(&other), &held.digest] {
        let refused = ana.post(&path, &with(&fields, "typed", typed)).await;
        assert_eq!(refused.status, 409, "{typed}");
        assert!(refused.text.contains("The typed text is not the end of this digest."), "{typed}: {}", refused.text);
    }
    still_waits(&gateway, &held).await;
    let asked_again = ana.post(&path, &with(&fields, "verdict", "deny")).await;
    assert!(asked_again.status == 409 && asked_again.text.contains("the effect of your vote has changed"));
    still_waits(&gateway, &held).await;
    let denies = with(&fields, "verdict", "deny");
    let denies: Vec<(&str, &str)> =
        denies.into_iter().map(|it| if it.0 == "expects" { ("expects", "ends") } else { it }).collect();
    assert_eq!(ana.post(&path, &denies).await.status, 303);
    assert_eq!(gateway.decision(&payments, &held).await["decision"], "denied");
}
