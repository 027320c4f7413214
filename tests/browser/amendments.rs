//! Policy change requests that reviewers decide in the browser, with and without a script, and with forged requests.

use countersign_domain::primitives::id::AmendmentId;
use serde_json::json;

use crate::chromium::Chromium;
use crate::forms::{ManualForm, field};
use crate::gateway::{BrowserGateway, PAYMENTS, spawn_gateway};
use crate::passkeys::{plug_in, register};

/// Proposes a change of the payments policy that requires approval, and returns the ID of the policy change request.
pub async fn amended(gateway: &BrowserGateway, group: &str) -> AmendmentId {
    let guarded = format!("{PAYMENTS}\n[approval.policy]\ngroups = [\"{group}\"]\n");
    gateway.activate(&guarded).await;
    // The reversing mark is not obeyed on the page.
    gateway.activate(&guarded.replace("need = 1", "need = 1 # \u{202e}lla tsuj").replace("10m", "5m")).await;
    gateway.service.policy_changes.open_policy_changes().await.unwrap().pop().unwrap().id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reviewer_reads_the_policy_difference_and_approves_it() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("grace", &["security"]).await;
    gateway.reviewer("bob", &["reviewers"]).await;
    let id = amended(&gateway, "security").await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.without_scripts().await;
    tab.sign_in("grace").await;
    assert!(tab.text().await.contains("Policy changes that you can decide"));
    tab.follow(&format!("a[href='/amendments/{id}']")).await;
    let shown = tab.text_of(".diff-lines .added").await;
    assert!(!shown.contains('\u{202e}'), "{shown}");
    tab.fill("Comment", "Agreed with finance.").await;
    tab.press("Approve").await;
    let text = tab.text().await;
    assert!(text.contains("Activated") && text.contains("Agreed with finance."), "{text}");
    assert_eq!(tab.count("form.decide").await, 0);
    let active = gateway.service.policies.active_policy(&"payments".try_into().unwrap()).await.unwrap();
    assert!(active.source().text.contains("lla tsuj"));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policy_change_vote_outside_of_the_group_is_refused() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("grace", &["security"]).await;
    gateway.reviewer("bob", &["reviewers"]).await;
    let id = amended(&gateway, "security").await;
    let path = format!("/amendments/{id}");
    let (bob, grace) = (ManualForm::signed_in(&gateway, "bob").await, ManualForm::signed_in(&gateway, "grace").await);
    let (his, hers) = (bob.get(&path).await.text, grace.get(&path).await.text);
    assert!(!his.contains("name=\"nonce\"") && his.contains("You are not in a group that can decide this."));
    let (nonce, digest) = (field(&hers, "nonce"), field(&hers, "digest"));
    let vote = |csrf: &str, nonce: &str| {
        [
            ("csrf", csrf.to_owned()),
            ("digest", digest.clone()),
            ("nonce", nonce.to_owned()),
            ("stage", "0".into()),
            ("verdict", "approve".into()),
        ]
    };
    let decision = format!("{path}/decision");
    let sends = async |who: &ManualForm<'_>, fields: [(&str, String); 5]| {
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        who.post(&decision, &fields).await.status
    };
    // Her nonce is no one else's, and a page's nonce is for what it showed.
    assert_eq!(sends(&bob, vote(&field(&his, "csrf"), &nonce)).await, 409);
    assert_eq!(sends(&grace, vote(&field(&hers, "csrf"), "none")).await, 409);
    assert_eq!(sends(&grace, vote("none", &nonce)).await, 403);
    let amendment = gateway.service.policy_changes.amendment(&id).await.unwrap();
    assert_eq!((amendment.votes.len(), amendment.state.word()), (0, "open"));
    assert_eq!(sends(&grace, vote(&field(&hers, "csrf"), &nonce)).await, 303);
    assert_eq!(sends(&grace, vote(&field(&hers, "csrf"), &nonce)).await, 409);
    assert_eq!(json!(gateway.service.policy_changes.amendment(&id).await.unwrap().state.word()), "activated");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policy_change_that_requires_a_passkey_is_approved_only_with_one() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("grace", &["security"]).await;
    let guarded = format!("{PAYMENTS}\n[approval.policy]\ngroups = [\"security\"]\npasskey = true\n");
    gateway.activate(&guarded).await;
    gateway.activate(&guarded.replace("10m", "5m")).await;
    let id = gateway.service.policy_changes.open_policy_changes().await.unwrap().pop().unwrap().id;
    let waits = async || gateway.service.policy_changes.amendment(&id).await.unwrap().state.ended_at().is_none();
    let (path, grace) = (format!("/amendments/{id}"), ManualForm::signed_in(&gateway, "grace").await);
    let page = grace.get(&path).await.text;
    let fields = ["csrf", "digest", "nonce", "stage"].map(|name| (name, field(&page, name)));
    let mut fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    fields.extend([("verdict", "approve"), ("confirmed", "yes")]);
    let asked = grace.post(&format!("{path}/decision"), &fields).await;
    assert!(asked.text.contains("A passkey must sign this decision, and you have none"), "{}", asked.text);
    assert!(waits().await);
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    plug_in(&tab).await;
    tab.sign_in("grace").await;
    register(&tab, "laptop").await;
    tab.goto(&path).await;
    tab.fill("Comment", "Agreed with finance.").await;
    tab.press("Approve").await;
    let page = tab.text().await;
    assert!(page.contains("Approve this policy change?") && page.contains("Agreed with finance."), "{page}");
    assert!(waits().await);
    tab.press("Confirm with a passkey").await;
    assert!(tab.text().await.contains("The gateway activated it"), "{}", tab.text().await);
    browser.close().await;
}
