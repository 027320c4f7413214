//! Finding, reading and deciding reviews with the keyboard.

use chromiumoxide::cdp::browser_protocol::input::{DispatchKeyEventParams, DispatchKeyEventType};
use chromiumoxide::cdp::browser_protocol::page::EventLoadEventFired;
use futures_util::StreamExt as _;
use serde_json::json;

use crate::amendments::amended;
use crate::chromium::Chromium;
use crate::gateway::spawn_gateway;
use crate::person::BrowserTab;

const CTRL: i64 = 2;

impl BrowserTab {
    /// One key, as a finger presses it.
    pub async fn key(&self, key: &str, modifiers: i64) {
        let text = match key {
            "Enter" => Some("\r".to_owned()),
            _ if key.chars().count() == 1 && modifiers == 0 => Some(key.to_owned()),
            _ => None,
        };
        let code = if key == "Enter" { 13 } else { i64::from(key.to_ascii_uppercase().as_bytes()[0]) };
        for kind in [DispatchKeyEventType::KeyDown, DispatchKeyEventType::KeyUp] {
            let mut event = DispatchKeyEventParams::new(kind.clone());
            event.key = Some(key.to_owned());
            event.modifiers = Some(modifiers);
            event.windows_virtual_key_code = Some(code);
            event.text = text.clone().filter(|_| kind == DispatchKeyEventType::KeyDown);
            self.page.execute(event).await.unwrap();
        }
    }

    /// One key after which another page comes.
    pub async fn key_to(&self, key: &str, modifiers: i64) {
        let mut loads = self.page.event_listener::<EventLoadEventFired>().await.unwrap();
        self.key(key, modifiers).await;
        tokio::time::timeout(std::time::Duration::from_secs(20), loads.next()).await.expect("a page follows").unwrap();
    }

    async fn focused(&self) -> String {
        self.js("document.activeElement.innerText ?? ''").await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pending_review_is_found_read_and_approved_by_keyboard() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments().await;
    for name in ["order-1", "order-2"] {
        let patch = json!({"target_user_id": 42, "payment": {"amount": 5, "currency": "EUR", "card": {"number": "4"}}});
        gateway.held(&payments, name, &patch).await;
    }
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("ana").await;
    tab.goto("/").await;
    let rows: Vec<String> = tab.js("[...document.querySelectorAll('.row-title a')].map((it) => it.href)").await;
    for (key, row) in [("j", 0), ("j", 1), ("j", 1), ("k", 0)] {
        tab.key(key, 0).await;
        assert_eq!(tab.js::<String>("document.activeElement.href").await, rows[row], "{key}");
    }
    tab.key("/", 0).await;
    assert_eq!(tab.js::<String>("document.activeElement.id").await, "q");
    tab.key("j", 0).await;
    assert_eq!(tab.js::<String>("document.getElementById('q').value").await, "j", "what is typed is typed");
    tab.key_to("Enter", 0).await;
    tab.goto("/").await;
    tab.key("j", 0).await;
    tab.key_to("Enter", 0).await;
    assert!(rows[0].ends_with(&tab.path().await));
    tab.verdict("").await;
    for (key, change) in [("]", "payment.amount"), ("]", "payment.card"), ("[", "payment.amount")] {
        tab.key(key, 0).await;
        assert!(tab.focused().await.contains(change), "{key}: {}", tab.focused().await);
    }
    tab.js::<bool>("(document.getElementById('comment').focus(), true)").await;
    tab.key("a", 0).await;
    assert_eq!(tab.js::<String>("document.getElementById('comment').value").await, "a");
    tab.key("Enter", CTRL).await;
    tab.js::<bool>("(document.activeElement.blur(), true)").await;
    tab.key_to("a", 0).await;
    assert!(tab.text().await.contains("Approve this change?"), "two buttons are never pressed by Ctrl Enter");
    tab.key_to("Enter", CTRL).await;
    assert!(tab.text().await.contains("Approved by ana"), "{}", tab.text().await);
    browser.close().await;
}

/// A vote on a policy counts at once; no key leads there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_key_alone_decides_anything() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("grace", &["security"]).await;
    let id = amended(&gateway, "security").await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("grace").await;
    tab.goto(&format!("/amendments/{id}")).await;
    assert_eq!(tab.count("[data-decide] button[value=approve]").await, 1);
    for key in ["a", "d"] {
        tab.key(key, 0).await;
        assert_eq!(tab.path().await, format!("/amendments/{id}"), "{key}");
    }
    tab.goto(&format!("/amendments/{id}")).await;
    assert!(tab.text().await.contains("Waiting for approval"), "{}", tab.text().await);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keyboard_help_lists_the_keys_and_single_keys_can_be_disabled() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let payments = gateway.payments().await;
    let held = gateway.held(&payments, "order-1", &json!({"target_user_id": 42})).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.sign_in("ana").await;
    tab.goto(&format!("/reviews/{}", held.review)).await;
    tab.verdict("").await;
    let open = "document.querySelector('[data-keys]').open";
    tab.key("?", 0).await;
    assert!(tab.js::<bool>(open).await);
    tab.is_accessible("the keys' help").await;
    tab.key("d", 0).await;
    assert!(tab.js::<bool>(open).await, "nothing is pressed behind it");
    tab.js::<bool>("(document.querySelector('[data-keys] input').click(), true)").await;
    tab.press_in_page("Close").await;
    tab.until(&format!("!{open}")).await;
    tab.goto(&format!("/reviews/{}", held.review)).await;
    tab.verdict("").await;
    for key in ["a", "d", "?", "j", "/", "]"] {
        tab.key(key, 0).await;
    }
    assert!(!tab.js::<bool>(open).await);
    assert_eq!(tab.path().await, format!("/reviews/{}", held.review), "and it stays so");
    tab.click_on(".menu > summary").await;
    tab.press_in_page("Keyboard shortcuts").await;
    assert!(tab.js::<bool>(open).await, "the help is found without keys");
    browser.close().await;
}
