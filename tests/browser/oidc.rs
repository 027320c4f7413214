//! Sign-in with an OpenID provider, in the browser.

use std::sync::{Arc, Mutex};

use countersign_adapters::clock::Clock;
use countersign_adapters::oidc_provider::Provider;
use serde_json::json;

use crate::chromium::Chromium;
use crate::gateway::{BrowserGateway, spawn_gateway_with};
use crate::provider::{RealProvider, settings};

async fn spawn() -> (BrowserGateway, RealProvider) {
    let started = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&started);
    let g = spawn_gateway_with(move |url: &str, clock: Arc<dyn Clock>| {
        let real = RealProvider::start(url, "ES256", &json!({"carol": {"groups": ["fin"]}}));
        let provider = Provider::new(settings(&real.issuer), url, clock).unwrap();
        *kept.lock().unwrap() = Some(real);
        provider
    });
    let g = g.await;
    let real = started.lock().unwrap().take().unwrap();
    (g, real)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_signs_in_with_the_organisation_comes_back_to_their_page_and_signs_out_of_both() {
    let (gateway, _provider) = spawn().await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.goto("/policies").await;
    assert_eq!(tab.path().await, "/sign-in?next=/policies");
    tab.press_until("form[action='/sign-in/oidc'] button", "Who are you?").await;
    tab.fill("Name", "carol").await;
    tab.press_until("button[value=yes]", "Policies").await;
    assert_eq!(tab.path().await, "/policies");
    let name: String = tab.js("document.querySelector('header').innerText").await;
    assert!(name.contains("carol"), "{name}");

    let menu: bool = tab.js("(document.querySelector('.menu').open = true)").await;
    assert!(menu);
    tab.press_until("form[action='/sign-out'] button", "Leave?").await;
    tab.press_until("button[value=yes]", "Sign in with Example").await;
    tab.goto("/").await;
    assert_eq!(tab.path().await, "/sign-in");
    tab.press_until("form[action='/sign-in/oidc'] button", "Who are you?").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_and_unknown_provider_sign_ins_show_the_reason_without_scripts() {
    let (gateway, provider) = spawn().await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.without_scripts().await;
    tab.goto("/sign-in").await;
    tab.press_until("form[action='/sign-in/oidc'] button", "Who are you?").await;
    tab.press_until("button[value=no]", "Your organisation did not sign you in").await;
    let people = json!({"carol": {"groups": ["staff"]}});
    let http = reqwest::Client::new();
    http.put(format!("{}/people", provider.issuer)).body(people.to_string()).send().await.unwrap();
    tab.press_until("a.button", "Sign in with Example").await;
    tab.press_until("form[action='/sign-in/oidc'] button", "Who are you?").await;
    tab.fill("Name", "carol").await;
    tab.press_until("button[value=yes]", "You have no access to this gateway").await;
    browser.close().await;
}
