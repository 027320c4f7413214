//! Live updates of pages when other people act.

use std::time::Duration;

use countersign::worker::Workers;
use serde_json::json;

use crate::chromium::Chromium;
use crate::forms::still_waits;
use crate::gateway::{BrowserGateway, HeldReview, PAYMENTS, Payments, spawn_gateway};
use crate::person::BrowserTab;

/// A gateway whose workers run, and the browsers of two people of whom both are asked.
struct LiveScenario {
    gateway: BrowserGateway,
    workers: Workers,
    payments: Payments,
    anas: Chromium,
    sams: Chromium,
}

impl LiveScenario {
    async fn open() -> Self {
        let gateway = spawn_gateway().await;
        for name in ["ana", "sam"] {
            gateway.reviewer(name, &["reviewers"]).await;
        }
        let payments = gateway.payments_under(&PAYMENTS.replace("need = 1", "need = 2")).await;
        let workers = Workers::start(&gateway.service, Duration::from_secs(1));
        let (anas, sams) = (Chromium::open().await, Chromium::open().await);
        Self { gateway, workers, payments, anas, sams }
    }

    async fn hold(&self, name: &str) -> HeldReview {
        self.gateway.held(&self.payments, name, &json!({"target_user_id": 42})).await
    }

    /// A tab of one of them, signed in.
    async fn ana(&self, path: &str) -> BrowserTab {
        self.at(&self.anas, "ana", path).await
    }

    async fn sam(&self, path: &str) -> BrowserTab {
        self.at(&self.sams, "sam", path).await
    }

    async fn at(&self, browser: &Chromium, name: &str, path: &str) -> BrowserTab {
        let tab = browser.tab(&self.gateway).await;
        tab.sign_in(name).await;
        tab.goto(path).await;
        tab
    }

    async fn close(self) {
        for browser in [self.anas, self.sams] {
            browser.close().await;
        }
        self.workers.stop().await;
    }
}

fn page(held: &HeldReview) -> String {
    format!("/reviews/{}", held.review)
}

async fn decide(tab: &BrowserTab, held: &HeldReview, verdict: &str) {
    tab.goto(&page(held)).await;
    tab.verdict("").await;
    tab.press(verdict).await;
    tab.press("Confirm").await;
}

const BAR: &str = "document.querySelector('[data-news]').innerText";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inbox_offers_new_reviews_without_moving_its_rows() {
    let office = LiveScenario::open().await;
    let first = office.hold("order-1").await;
    let tab = office.ana("/").await;
    let place = "JSON.stringify(document.querySelector('[data-review]').getBoundingClientRect())";
    let before: String = tab.js(place).await;
    assert_eq!(tab.js::<String>("document.title").await, "(1) Inbox · Countersign");
    office.hold("order-2").await;
    office.hold("order-3").await;
    tab.until(&format!("{BAR}.startsWith('2 new')")).await;
    tab.until("document.title.startsWith('(3) ')").await;
    assert_eq!(tab.count("[data-review]").await, 1, "what is read stays as it is");
    let sam = office.sam("/").await;
    decide(&sam, &first, "Deny").await;
    tab.until("document.querySelector('[data-review]').innerText.includes('Denied')").await;
    assert_eq!(tab.js::<String>(place).await, before, "not even by what is over");
    tab.press_in_page("Show").await;
    tab.until("document.querySelectorAll('[data-waiting] [data-review]').length === 2").await;
    assert!(tab.js::<bool>("document.querySelector('[data-news]').hidden").await);
    office.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn review_decided_by_another_person_names_them_and_disables_its_buttons() {
    let office = LiveScenario::open().await;
    let held = office.hold("order-1").await;
    let path = page(&held);
    let tab = office.ana(&path).await;
    tab.verdict("").await;
    tab.fill("Comment", "I was about to say").await;
    let confirming = office.anas.tab(&office.gateway).await;
    confirming.goto(&path).await;
    confirming.verdict("").await;
    confirming.press("Approve").await;
    let change = "document.querySelector('.changes')";
    tab.js::<bool>(&format!("(window.was = {change}, true)")).await;
    let sam = office.sam("/").await;
    decide(&sam, &held, "Approve").await;
    tab.until("document.querySelector('[data-part=stages]').innerText.includes('1 of 2')").await;
    let text = tab.text().await;
    assert!(text.contains("Approved by sam") && text.contains("sam approved"), "{text}");
    assert_eq!(tab.count("[data-decide] button:not(:disabled)").await, 2, "ana is still asked");
    sam.press("Withdraw vote").await;
    decide(&sam, &held, "Deny").await;
    tab.until(&format!("{BAR}.includes('Denied by sam')")).await;
    assert_eq!(tab.count("[data-decide] button:not(:disabled)").await, 0);
    assert_eq!(tab.js::<String>("document.getElementById('comment').value").await, "I was about to say");
    assert!(tab.js::<bool>(&format!("window.was === {change}")).await, "the change is the one that was read");
    let said: String = tab.js("document.querySelector('[data-alarm]').textContent").await;
    assert!(said.starts_with("Denied by sam"), "{said}");
    // The other tab of the same browser, in which she was asked whether she is sure.
    confirming.until(&format!("{BAR}.includes('Denied by sam')")).await;
    assert_eq!(confirming.count("[data-decide] button:not(:disabled)").await, 0);
    confirming.press_in_page("Reload page").await;
    confirming.until(&format!("location.pathname === '{path}'")).await;
    office.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn click_right_after_a_live_update_is_ignored() {
    let office = LiveScenario::open().await;
    let held = office.hold("order-1").await;
    let path = page(&held);
    let tab = office.ana(&path).await;
    tab.verdict("").await;
    // As if a finger came down in the very moment.
    let press = "(new MutationObserver(() => {
        const form = document.querySelector('[data-decide][data-resting]');
        if (form && window.pressed === undefined) {
            window.pressed = location.pathname;
            form.querySelector('button.approve').click();
        }
    }).observe(document.querySelector('main'), { subtree: true, attributes: true }), true)";
    tab.js::<bool>(press).await;
    let sam = office.sam("/").await;
    decide(&sam, &held, "Approve").await;
    tab.until("window.pressed !== undefined").await;
    tab.until("!document.querySelector('[data-decide][data-resting]')").await;
    assert_eq!(tab.path().await, path, "nothing was sent");
    assert_eq!(tab.js::<String>("window.pressed").await, path, "and the page is still the same");
    tab.press("Approve").await;
    tab.press("Confirm").await;
    assert!(tab.text().await.contains("Approved"), "a moment later it is");
    office.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn approval_is_confirmed_again_if_other_votes_make_it_the_last_one() {
    let office = LiveScenario::open().await;
    let held = office.hold("order-1").await;
    let path = page(&held);
    // Without scripts, so that nothing but the form can know.
    let ana = office.anas.tab(&office.gateway).await;
    ana.without_scripts().await;
    ana.sign_in("ana").await;
    ana.goto(&path).await;
    ana.press("Approve").await;
    assert!(ana.text().await.contains("The review waits for more votes"));
    let sam = office.sam("/").await;
    decide(&sam, &held, "Approve").await;
    ana.press("Confirm").await;
    let text = ana.text().await;
    assert!(
        text.contains("Other reviewers have voted since you opened this page")
            && text.contains("committed immediately"),
        "{text}"
    );
    still_waits(&office.gateway, &held).await;
    ana.press("Confirm").await;
    assert!(ana.text().await.contains("Approved by sam and ana"), "{}", ana.text().await);
    office.close().await;
}

/// The same address with a fragment would be no load.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opening_it_again_loads_the_page_wherever_on_it_one_was() {
    let office = LiveScenario::open().await;
    let held = office.hold("order-1").await;
    let tab = office.ana(&format!("/reviews/{}#timeline", held.review)).await;
    tab.verdict("").await;
    let sam = office.sam("/").await;
    decide(&sam, &held, "Deny").await;
    tab.until(&format!("{BAR}.includes('Denied by sam')")).await;
    tab.press_in_page("Reload page").await;
    tab.until("document.querySelector('[data-decide]') === null && document.querySelector('.ended-title') !== null")
        .await;
    office.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tabs_share_one_event_stream_and_another_tab_takes_it_over() {
    let office = LiveScenario::open().await;
    let first = office.ana("/").await;
    let mut others = Vec::new();
    for _ in 0..7 {
        let tab = office.anas.tab(&office.gateway).await;
        tab.goto("/").await;
        others.push(tab);
    }
    office.hold("order-1").await;
    for tab in &others {
        tab.until(&format!("{BAR}.startsWith('1 new')")).await;
    }
    first.page.close().await.unwrap();
    office.hold("order-2").await;
    for tab in &others {
        tab.until(&format!("{BAR}.startsWith('2 new')")).await;
    }
    office.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_shows_a_session_ended_in_another_tab_and_leaves_typed_text() {
    let office = LiveScenario::open().await;
    let held = office.hold("order-1").await;
    let tab = office.ana(&page(&held)).await;
    tab.verdict("").await;
    tab.fill("Comment", "half a sentence").await;
    let other = office.anas.tab(&office.gateway).await;
    other.goto("/account").await;
    other.press_in("header", "Sign out").await;
    office.hold("order-2").await;
    tab.until(&format!("{BAR}.includes('You are signed out')")).await;
    assert_eq!(tab.js::<String>("document.getElementById('comment').value").await, "half a sentence");
    office.close().await;
}
