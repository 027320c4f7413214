//! Passkeys in a real browser with its virtual authenticator: registering, signing in and signing a decision. Forged
//! requests that reuse a real signature are also tested.

use chromiumoxide::cdp::browser_protocol::web_authn::{
    AddVirtualAuthenticatorParams, AuthenticatorId, AuthenticatorProtocol, AuthenticatorTransport, EnableParams,
    RemoveVirtualAuthenticatorParams, SetUserVerifiedParams, VirtualAuthenticatorOptions,
};
use countersign_domain::reviews::HoldState;
use serde_json::json;

use crate::chromium::Chromium;
use crate::forms::{ManualForm, field, form_of, held, still_waits, with};
use crate::gateway::{BrowserGateway, HeldReview, PASSWORD, PAYMENTS, spawn_gateway};
use crate::person::BrowserTab;

fn signed() -> String {
    PAYMENTS.replace("need = 1", "need = 1\npasskey = true")
}

/// Plugs an authenticator in that makes sure who uses it.
pub async fn plug_in(tab: &BrowserTab) -> AuthenticatorId {
    tab.page.execute(EnableParams::default()).await.unwrap();
    let mut options = VirtualAuthenticatorOptions::new(AuthenticatorProtocol::Ctap2, AuthenticatorTransport::Internal);
    options.has_resident_key = Some(true);
    options.has_user_verification = Some(true);
    options.is_user_verified = Some(true);
    options.automatic_presence_simulation = Some(true);
    let added = tab.page.execute(AddVirtualAuthenticatorParams::new(options)).await.unwrap();
    added.result.authenticator_id.clone()
}

pub async fn register(tab: &BrowserTab, name: &str) {
    tab.goto("/account/passkeys").await;
    tab.fill("Name", name).await;
    tab.fill("Password", PASSWORD).await;
    tab.press("Register passkey").await;
    let shown = tab.text().await;
    assert!(shown.contains("Passkey registered") && shown.contains(name), "{shown}");
}

async fn state(
    gateway: &BrowserGateway,
    held: &HeldReview,
    who: &countersign_domain::identity::account::Account,
) -> HoldState {
    gateway.service.reviews.review(&held.review.as_str().try_into().unwrap(), who).await.unwrap().hold.state
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_registers_a_passkey_signs_in_with_it_and_signs_a_decision() {
    let gateway = spawn_gateway().await;
    let ana = gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments_under(&signed()).await;
    let held = held(&gateway, "signed", &payments).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    let authenticator = plug_in(&tab).await;
    tab.sign_in("ana").await;
    tab.goto(&format!("/reviews/{}", held.review)).await;
    tab.verdict("").await;
    tab.press("Approve").await;
    let asked = tab.text().await;
    assert!(asked.contains("A passkey must sign this decision, and you have none"), "{asked}");
    register(&tab, "laptop").await;
    tab.press_in("header", "Sign out").await;
    tab.press("Sign in with a passkey").await;
    assert_eq!(tab.path().await, "/", "{}", tab.text().await);
    tab.goto(&format!("/reviews/{}", held.review)).await;
    tab.verdict("").await;
    tab.fill("Comment", "Looked at it\ntwice").await;
    tab.press("Approve").await;
    let buttons = tab.text_of("form .buttons").await;
    assert_eq!(buttons, "Confirm with a passkey Go back", "there is no way around it");
    tab.page.execute(SetUserVerifiedParams::new(authenticator.clone(), false)).await.unwrap();
    tab.press_only("Confirm with a passkey").await;
    let _: bool = tab.js(
        "new Promise((done) => { const look = () => document.querySelector('[data-passkey-problem]').hidden ? setTimeout(look, 20) : done(true); look(); })",
    ).await;
    assert!(tab.text().await.contains("Nothing was signed"), "nobody was made sure of");
    still_waits(&gateway, &held).await;
    tab.page.execute(SetUserVerifiedParams::new(authenticator, true)).await.unwrap();
    tab.press("Confirm with a passkey").await;
    assert!(matches!(state(&gateway, &held, &ana).await, HoldState::Approved { .. }), "{}", tab.text().await);
    tab.goto("/account/passkeys").await;
    tab.press("Remove passkey").await;
    assert!(
        tab.text().await.contains("You are not signed in") || tab.path().await.starts_with("/sign-in"),
        "the session that it opened ended"
    );
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_passkey_is_confirmed_by_the_first_and_without_scripts_the_page_says_what_is_missing() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    let laptop = plug_in(&tab).await;
    tab.sign_in("ana").await;
    register(&tab, "laptop").await;
    assert_eq!(tab.count("input[type=password]").await, 0, "the password brings no second one in");
    tab.fill("Name", "blue key").await;
    tab.press_only("Confirm with a passkey").await;
    let renamed = "new Promise((done) => { const look = () => document.querySelector('[data-passkey=add] [data-passkey-go]').innerText.startsWith('Register the new') ? done(true) : setTimeout(look, 20); look(); })";
    let _: bool = tab.js(renamed).await;
    // With the old one there, the browser would rightly say that it has one already.
    tab.page.execute(RemoveVirtualAuthenticatorParams::new(laptop)).await.unwrap();
    plug_in_usb(&tab).await;
    tab.press("Register the new passkey").await;
    let shown = tab.text().await;
    assert!(shown.contains("blue key") && shown.contains("laptop"), "{shown}");
    browser.close().await;
    let hand = ManualForm::signed_in(&gateway, "ana").await;
    let page = hand.get("/account/passkeys").await.text;
    assert!(page.contains("Passkeys need JavaScript") && page.contains("data-passkey-go hidden"), "{page}");
}

async fn plug_in_usb(tab: &BrowserTab) {
    let mut options = VirtualAuthenticatorOptions::new(AuthenticatorProtocol::Ctap2, AuthenticatorTransport::Usb);
    options.has_resident_key = Some(true);
    options.has_user_verification = Some(true);
    options.is_user_verified = Some(true);
    options.automatic_presence_simulation = Some(true);
    tab.page.execute(AddVirtualAuthenticatorParams::new(options)).await.unwrap();
}

/// Returns the signed decision from the browser's form, without sending the form.
async fn sign_only(tab: &BrowserTab, held: &HeldReview) -> Vec<(&'static str, String)> {
    tab.goto(&format!("/reviews/{}", held.review)).await;
    tab.verdict("").await;
    tab.fill("Comment", "typed with care").await;
    tab.press("Approve").await;
    let _: bool = tab.js("(document.querySelector('form[data-passkey]').submit = () => {}, true)").await;
    tab.press_only("Confirm with a passkey").await;
    let filled = "new Promise((done) => { const it = document.querySelector('[name=assertion]'); const look = () => it.value ? done(true) : setTimeout(look, 20); look(); })";
    let _: bool = tab.js(filled).await;
    let mut fields = Vec::new();
    for name in [
        "csrf",
        "digest",
        "nonce",
        "stage",
        "verdict",
        "comment",
        "browser_check",
        "confirmed",
        "expects",
        "sign_until",
        "assertion",
    ] {
        fields.push((name, tab.js::<String>(&format!("document.querySelector('[name={name}]').value")).await));
    }
    fields
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passkey_signature_is_valid_for_one_form_only() {
    let gateway = spawn_gateway().await;
    let ana = gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments_under(&signed()).await;
    let (this, that) = (held(&gateway, "this", &payments).await, held(&gateway, "that", &payments).await);
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    plug_in(&tab).await;
    tab.sign_in("ana").await;
    register(&tab, "laptop").await;
    let fields = sign_only(&tab, &this).await;
    let mut hand = ManualForm::new(&gateway);
    let cookies = tab.page.get_cookies().await.unwrap();
    hand.cookie = cookies.iter().map(|it| format!("{}={}", it.name, it.value)).collect::<Vec<_>>().join("; ");
    let path = format!("/reviews/{}/decision", this.review);
    let assertion = &fields.iter().find(|it| it.0 == "assertion").unwrap().1;
    let mut other_page: serde_json::Value = serde_json::from_str(assertion).unwrap();
    other_page["client_data"] = json!("e30");
    let other_page = other_page.to_string();
    let late = countersign_domain::primitives::time::Timestamp::from_millis(4_000_000_000_000).to_string();
    for (name, value, words) in [
        ("verdict", "deny", "the passkey signed something else; open the page again"),
        ("comment", "typed with care!", "the passkey signed something else; open the page again"),
        ("sign_until", late.as_str(), "The signature expired"),
        ("sign_until", "soon", "The signature expired"),
        ("assertion", "", "A passkey must sign this decision"),
        ("assertion", "{}", "your browser sent no passkey"),
        ("assertion", other_page.as_str(), "this is not a valid passkey assertion"),
    ] {
        let refused = hand.post(&path, &with(&fields, name, value)).await;
        assert_eq!(refused.status, 409, "{name}={value}: {}", refused.text);
        assert!(refused.text.contains(words), "{name}={value}: {}", refused.text);
    }
    let elsewhere: Vec<(&'static str, String)> = form_of(&hand, &that).await;
    let mut moved = elsewhere.clone();
    for name in ["sign_until", "assertion"] {
        moved.push((name, fields.iter().find(|it| it.0 == name).unwrap().1.clone()));
    }
    let refused = hand.post(&format!("/reviews/{}/decision", that.review), &with(&moved, "", "")).await;
    assert!(refused.text.contains("the passkey signed something else; open the page again"), "{}", refused.text);
    for held in [&this, &that] {
        still_waits(&gateway, held).await;
    }
    let counted = hand.post(&path, &with(&fields, "", "")).await;
    assert_eq!(counted.status, 303, "{}", counted.text);
    assert!(matches!(state(&gateway, &this, &ana).await, HoldState::Approved { .. }));
    let again = hand.post(&path, &with(&fields, "", "")).await;
    assert_eq!(again.status, 409, "played again");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_passkey_sign_in_is_refused() {
    let gateway = spawn_gateway().await;
    let (hand, csrf) = ManualForm::at_the_door(&gateway).await;
    let page = hand.get("/sign-in").await.text;
    let challenge = field(&page, "challenge");
    let made_up = json!({
        "authenticator_data": "AAAA", "client_data": "e30", "passkey": "AAAAAAAAAAAAAAAAAAAAAA", "signature": "AAAA",
    })
    .to_string();
    let fields = [
        ("csrf", csrf.as_str()),
        ("next", "/"),
        ("challenge", challenge.as_str()),
        ("assertion", made_up.as_str()),
        ("account", "x"),
    ];
    let refused = hand.post("/sign-in/passkey", &fields).await;
    assert_eq!(refused.status, 401, "{}", refused.text);
    assert_eq!(hand.post_from("https://evil.example", "/sign-in/passkey", &fields).await.status, 403);
}
