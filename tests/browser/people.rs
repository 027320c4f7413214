//! Pages for people, tokens and one's own account.

use countersign_domain::identity::account::PersonRole;

use crate::chromium::Chromium;
use crate::forms::{ManualForm, field};
use crate::gateway::{BrowserGateway, PASSWORD, spawn_gateway};
use crate::passkeys::{plug_in, register};
use crate::person::BrowserTab;

pub const ANOTHER: &str = "staple battery horse correct";

/// The secret that a page shows this once.
pub async fn shown(tab: &BrowserTab) -> String {
    tab.js("document.querySelector('#secret').value").await
}

async fn leave(tab: &BrowserTab) {
    tab.press_in("header", "Sign out").await;
}

async fn sign_in(tab: &BrowserTab, name: &str, password: &str) {
    tab.goto("/sign-in").await;
    tab.fill("User name", name).await;
    tab.fill("Password", password).await;
    tab.press("Sign in").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invited_person_sets_and_changes_a_password_and_ends_another_session() {
    let gateway = spawn_gateway().await;
    gateway.person("gus", PersonRole::Admin, &[]).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.without_scripts().await;
    tab.sign_in("gus").await;
    tab.goto("/people").await;
    tab.fill("User name", "ana").await;
    tab.fill("Groups", "finance, reviewers").await;
    tab.press("Create invitation").await;
    let link = shown(&tab).await;
    let path = link.strip_prefix(&gateway.url).unwrap().to_owned();
    tab.goto("/people").await;
    let text = tab.text().await;
    assert!(text.contains("ana: invitation as reviewer in finance and reviewers. Created by gus"), "{text}");
    assert!(!tab.html().await.contains(path.rsplit('/').next().unwrap()), "the secret is shown once");
    leave(&tab).await;

    tab.goto(&path).await;
    assert!(tab.text().await.contains("gus invites you as ana, reviewer in finance, reviewers."));
    tab.fill("Password", PASSWORD).await;
    tab.fill("Repeat password", "something else").await;
    tab.press("Set password").await;
    assert!(tab.text().await.contains("The two passwords do not match."));
    tab.fill("Password", PASSWORD).await;
    tab.fill("Repeat password", PASSWORD).await;
    tab.press("Set password").await;
    assert_eq!(tab.path().await, "/");
    leave(&tab).await;

    let elsewhere = ManualForm::signed_in(&gateway, "ana").await;
    sign_in(&tab, "ana", PASSWORD).await;
    tab.goto("/account").await;
    assert_eq!(tab.count(".session").await, 3 - 1, "the one from the link was left");
    tab.press("End session").await;
    assert!(tab.text().await.contains("Session ended."));
    assert_eq!(elsewhere.get("/account").await.status, 303);
    tab.fill("Current password", "not the password").await;
    tab.fill("New password", ANOTHER).await;
    tab.fill("Repeat new password", ANOTHER).await;
    tab.press("Change password").await;
    assert!(tab.text().await.contains("The current password is wrong."));
    tab.fill("Current password", PASSWORD).await;
    tab.fill("New password", ANOTHER).await;
    tab.fill("Repeat new password", ANOTHER).await;
    tab.press("Change password").await;
    assert!(tab.text().await.contains("Password changed."));
    leave(&tab).await;
    sign_in(&tab, "ana", PASSWORD).await;
    assert!(tab.text().await.contains("User name and password do not match."));
    sign_in(&tab, "ana", ANOTHER).await;
    assert_eq!(tab.path().await, "/");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_administrator_changes_disables_and_resets_another_and_never_themselves() {
    let gateway = spawn_gateway().await;
    let gus = gateway.person("gus", PersonRole::Admin, &[]).await;
    let ana = gateway.reviewer("ana", &["reviewers"]).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.without_scripts().await;
    tab.sign_in("gus").await;
    tab.goto(&format!("/people/{}", gus.id)).await;
    assert_eq!(tab.count("main form").await, 0);
    tab.goto("/people").await;
    tab.follow(&format!("a[href='/people/{}']", ana.id)).await;
    let _: bool = tab.js("(document.querySelector('#groups').value = '') === ''").await;
    tab.fill("Groups", "reviewers, security").await;
    tab.press("Save role and groups").await;
    assert!(tab.text().await.contains("Role and groups changed. The change applies now"));
    let groups = gateway.service.identity.account_row(&ana.id).await.unwrap().record.groups;
    assert_eq!(groups.iter().map(|it| it.as_str()).collect::<Vec<_>>(), ["reviewers", "security"]);
    tab.press("Disable account").await;
    assert!(tab.text().await.contains("All sessions have ended"));
    tab.press("Enable account").await;
    tab.press("Reset password").await;
    let path = shown(&tab).await.strip_prefix(&gateway.url).unwrap().to_owned();
    leave(&tab).await;
    tab.goto(&path).await;
    tab.fill("Password", ANOTHER).await;
    tab.fill("Repeat password", ANOTHER).await;
    tab.press("Set password").await;
    assert_eq!(tab.path().await, "/");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_added_shown_once_and_revoked() {
    let gateway = spawn_gateway().await;
    gateway.payments().await;
    gateway.person("gus", PersonRole::Admin, &[]).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.without_scripts().await;
    tab.sign_in("gus").await;
    tab.goto("/tokens").await;
    tab.fill("Name", "night-shift").await;
    tab.fill("Owner", "gus").await;
    tab.press("Add token").await;
    assert!(tab.text().await.contains("Nothing was changed."), "an agent without flow and node is refused");
    let _: bool = tab.js("(document.querySelector('#flow').value = 'payments') !== '' && (document.querySelector('[value=host]').checked = true)").await;
    tab.press("Add token").await;
    let token = shown(&tab).await;
    let body = serde_json::json!({"flow": "payments", "thread": "order-1", "state": {}});
    assert_eq!(gateway.post(&token, "/v1/threads", &body).await.status, 201);
    tab.goto("/tokens").await;
    assert!(tab.text().await.contains("night-shift") && !tab.html().await.contains(&token));
    let _: bool = tab.js("(document.querySelector('main tr details').open = true)").await;
    tab.press("Revoke token").await;
    assert!(tab.text().await.contains("Token revoked. The gateway rejects every request with it."));
    assert_eq!(gateway.post(&token, "/v1/threads", &body).await.status, 401);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_with_secrets_are_not_cached_and_auditors_only_read() {
    let gateway = spawn_gateway().await;
    gateway.person("gus", PersonRole::Admin, &[]).await;
    gateway.person("eve", PersonRole::Auditor, &[]).await;
    let ana = gateway.reviewer("ana", &["reviewers"]).await;
    let gus = ManualForm::signed_in(&gateway, "gus").await;
    let csrf = field(&gus.get("/people").await.text, "csrf");
    let token = [("csrf", csrf.as_str()), ("name", "x"), ("role", "auditor"), ("owner", "gus")];
    let link = [("csrf", csrf.as_str()), ("username", "ivy"), ("role", "reviewer")];
    let reset = format!("/people/{}/reset", ana.id);
    for (path, fields) in [("/tokens", &token[..]), ("/people/invitations", &link), (&reset, &token[..1])] {
        let answer = gus.post(path, fields).await;
        assert_eq!((answer.status, answer.headers["cache-control"].to_str().unwrap()), (200, "no-store"), "{path}");
    }
    let eve = ManualForm::signed_in(&gateway, "eve").await;
    let html = eve.get("/people").await.text;
    assert!(html.contains("ivy") && !html.contains("/people/invitations\""), "{html}");
    let her = field(&eve.get("/account").await.text, "csrf");
    let access = format!("/people/{}/access", ana.id);
    for path in ["/tokens", "/people/invitations", reset.as_str(), access.as_str()] {
        assert_eq!(eve.post(path, &[("csrf", her.as_str()), ("role", "admin")]).await.status, 403, "{path}");
    }
    for path in ["/tokens", "/people/invitations", reset.as_str(), access.as_str()] {
        assert_eq!(gus.post(path, &[("csrf", "none"), ("role", "admin")]).await.status, 403, "{path}");
    }
    assert_eq!(gateway.service.identity.account_row(&ana.id).await.unwrap().record.role, PersonRole::Reviewer);
}

/// Pictures are taken of these.
pub async fn peopled(gateway: &BrowserGateway) {
    gateway.person("eve", PersonRole::Auditor, &[]).await;
    gateway.reviewer("dana", &["finance", "leads"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn administrator_removes_passkeys_of_others_and_not_their_own() {
    let gateway = spawn_gateway().await;
    let gus = gateway.person("gus", PersonRole::Admin, &[]).await;
    let ana = gateway.reviewer("ana", &["reviewers"]).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    plug_in(&tab).await;
    tab.sign_in("ana").await;
    tab.goto("/account").await;
    tab.follow("main a[href='/account/passkeys']").await;
    register(&tab, "laptop").await;
    leave(&tab).await;
    tab.sign_in("gus").await;
    tab.goto(&format!("/people/{}", ana.id)).await;
    tab.press("Remove passkeys").await;
    assert!(tab.text().await.contains("Passkeys removed"), "{}", tab.text().await);
    assert_eq!(gateway.service.identity.passkeys_of(&ana.id).await.unwrap().len(), 0);
    assert_eq!(tab.count("form[action$='/passkeys']").await, 0, "there is nothing left to remove");
    let hand = ManualForm::signed_in(&gateway, "gus").await;
    let csrf = field(&hand.get("/people").await.text, "csrf");
    let own = hand.post(&format!("/people/{}/passkeys", gus.id), &[("csrf", &csrf)]).await;
    assert_eq!(own.status, 409, "{}", own.text);
    assert_eq!(hand.post(&format!("/people/{}/passkeys", ana.id), &[("csrf", "x")]).await.status, 403);
    while gateway.service.log.sequence().await.unwrap() > 0 {}
    let auditor = gateway.token(countersign_domain::identity::account::MachineRole::Auditor, "eve", "", &[]).await;
    let log = gateway.get(&auditor, "/v1/events").await.body;
    let removed = log["events"].as_array().unwrap().iter().find(|it| it["type"] == "access.passkey_removed").unwrap();
    assert_eq!(removed["data"]["by"], gus.id.as_str(), "and the log says who");
    browser.close().await;
}
