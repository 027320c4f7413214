//! Webhooks: adding an endpoint, seeing an attempt fail and the next one pass, and everything else that is done there.

use std::time::Duration;

use countersign_domain::identity::account::PersonRole;

use countersign::worker::deliver;
use serde_json::json;

use crate::chromium::Chromium;
use crate::forms::{ManualForm, field};
use crate::gateway::{BrowserGateway, spawn_gateway};
use crate::people::shown;
use crate::person::BrowserTab;
use crate::receiver::{BROKEN, FINE, ReceiverReply, WebhookReceiver};

/// Adds an endpoint that receives `transition.held` events.
pub async fn add_endpoint(tab: &BrowserTab, name: &str, url: &str) {
    tab.goto("/endpoints").await;
    tab.fill("Name", name).await;
    tab.fill("URL", url).await;
    let _: bool = tab.js("(document.querySelector('#events').value = 'transition.held') !== ''").await;
    tab.press("Add endpoint").await;
}

/// Gives events their places, and sends what is due.
pub async fn send(gateway: &BrowserGateway) -> usize {
    while gateway.service.log.sequence().await.unwrap() > 0 {}
    deliver::run_once(&gateway.service).await.unwrap()
}

async fn office() -> (BrowserGateway, WebhookReceiver, Chromium, BrowserTab) {
    let (gateway, receiver) = (spawn_gateway().await, WebhookReceiver::start().await);
    gateway.person("gus", PersonRole::Admin, &[]).await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let browser = Chromium::open().await;
    let tab = browser.tab(&gateway).await;
    tab.without_scripts().await;
    tab.sign_in("gus").await;
    (gateway, receiver, browser, tab)
}

async fn held(gateway: &BrowserGateway, threads: &[&str]) {
    let payments = gateway.payments().await;
    for thread in threads {
        gateway.held(&payments, thread, &json!({"target_user_id": 42})).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_delivery_is_shown_and_succeeds_when_it_is_sent_again() {
    let (gateway, receiver, browser, tab) = office().await;
    add_endpoint(&tab, "ops", &receiver.url).await;
    let secret = shown(&tab).await;
    assert!(secret.starts_with("whsec_"), "{secret}");
    receiver.now(BROKEN);
    held(&gateway, &["order-1"]).await;
    assert_eq!(send(&gateway).await, 1);

    tab.goto("/endpoints").await;
    assert!(tab.text().await.contains("Failing") && !tab.html().await.contains(&secret));
    tab.follow(".list a").await;
    let text = tab.text().await;
    assert!(text.contains("All deliveries have failed since") && text.contains("Answered 500"), "{text}");
    tab.follow(".list a").await;
    let text = tab.text().await;
    assert!(text.contains("Retry scheduled") && text.contains("Answered 500"), "{text}");
    let request = receiver.got().remove(0);
    for (what, shown) in [("its id", request.id()), ("its body", &request.body)] {
        assert!(text.contains(shown), "{what}: {text}");
    }
    assert!(text.contains(&format!("webhook-timestamp: {}", request.headers["webhook-timestamp"])), "{text}");
    assert!(tab.html().await.contains("so?"), "what the receiver answered");

    receiver.now(FINE);
    let delivery = tab.path().await;
    tab.press("Repeat delivery").await;
    assert!(tab.text().await.contains("Delivery queued."));
    assert_eq!(send(&gateway).await, 1);
    tab.goto(&delivery).await;
    let text = tab.text_of("main").await;
    assert!(text.contains("Delivered") && text.contains("Answered 200") && text.contains("Answered 500"), "{text}");
    assert_eq!(receiver.got()[1].id(), request.id(), "a receiver that remembers ids sees it once");
    tab.follow(".crumbs a:last-of-type").await;
    assert!(tab.text().await.contains("Deliveries succeed."));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_event_shows_its_result_and_enables_a_disabled_endpoint() {
    let (gateway, receiver, browser, tab) = office().await;
    add_endpoint(&tab, "ops", &receiver.url).await;
    receiver.now(ReceiverReply::Says("410 Gone"));
    held(&gateway, &["order-1"]).await;
    send(&gateway).await;
    tab.goto("/endpoints").await;
    tab.follow(".list a").await;
    let text = tab.text().await;
    assert!(text.contains("Disabled") && text.contains("because it answered 410 (gone)."), "{text}");
    tab.press("Send test event").await;
    let text = tab.text().await;
    assert!(text.contains("Test event Answered 410") && text.contains("Disabled"), "{text}");
    receiver.now(FINE);
    tab.press("Send test event").await;
    let text = tab.text().await;
    assert!(text.contains("Test event Answered 200") && text.contains("Enabled"), "{text}");
    assert_eq!(receiver.got().last().unwrap().kind(), "endpoint.test");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_deliveries_are_sent_again_and_earlier_events_come_from_the_audit_log() {
    let (gateway, receiver, browser, tab) = office().await;
    let payments = gateway.payments().await;
    gateway.held(&payments, "order-0", &json!({"target_user_id": 42})).await;
    while gateway.service.log.sequence().await.unwrap() > 0 {}
    add_endpoint(&tab, "ops", &receiver.url).await;
    receiver.now(BROKEN);
    for thread in ["order-1", "order-2"] {
        gateway.held(&payments, thread, &json!({"target_user_id": 42})).await;
    }
    // Ten attempts each, a day apart at most; a success in between keeps the endpoint.
    for _ in 0..10 {
        send(&gateway).await;
        gateway.clock.advance(Duration::from_secs(30 * 3600));
        receiver.now(FINE);
        let endpoint = gateway.service.delivery.endpoints().await.unwrap().remove(0).endpoint.id;
        gateway.service.delivery.test_endpoint(&endpoint).await.unwrap();
        receiver.now(BROKEN);
    }
    tab.sign_in("gus").await;
    tab.goto("/endpoints").await;
    tab.follow(".list a").await;
    tab.follow(".tabs a:last-of-type").await;
    assert_eq!(tab.count("main .list tbody tr").await, 2);
    assert!(tab.text().await.contains("Failed"));
    receiver.now(FINE);
    let before = receiver.got().len();
    tab.press("Repeat failed deliveries").await;
    assert_eq!((send(&gateway).await, receiver.got().len() - before), (2, 2));
    tab.press("Repeat failed deliveries").await;
    assert!(tab.text().await.contains("There are no deliveries to send again."));
    tab.press("Send events from the log").await;
    assert_eq!((send(&gateway).await, receiver.got().len() - before), (1, 3), "only what has not arrived");
    let last = receiver.got().pop().unwrap().json();
    assert_eq!(last["data"]["thread"], "order-0");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_is_changed_gets_another_secret_is_switched_off_and_on_and_removed() {
    let (gateway, receiver, browser, tab) = office().await;
    let payments = gateway.payments().await;
    tab.goto("/endpoints").await;
    tab.fill("Name", "ops").await;
    tab.fill("URL", "http://10.0.0.7/hook").await;
    tab.press("Add endpoint").await;
    assert!(tab.text().await.contains("Nothing was changed."), "an address inside is refused");
    assert_eq!(tab.js::<String>("document.querySelector('#name').value").await, "ops", "what was typed is there");
    add_endpoint(&tab, "ops", &receiver.url).await;
    let first = shown(&tab).await;

    tab.goto("/endpoints").await;
    tab.follow(".list a").await;
    let page = tab.path().await;
    let _: bool = tab.js("(document.querySelector('[name=replace_headers]').checked = true) && (document.querySelector('#events').value = 'thread.created') !== '' && (document.querySelector('#headers').value = 'X-Team: p4yments') !== ''").await;
    tab.press("Save settings").await;
    let text = tab.text().await;
    assert!(text.contains("Endpoint changed.") && text.contains("Events thread.created"), "{text}");
    assert!(!tab.html().await.contains("p4yments"), "a header's value is not shown again");
    gateway.held(&payments, "order-1", &json!({"target_user_id": 42})).await;
    assert_eq!(send(&gateway).await, 1);
    let got = receiver.got().remove(0);
    assert_eq!((got.kind().as_str(), got.headers["x-team"].as_str()), ("thread.created", "p4yments"));

    tab.press("Rotate secret").await;
    let second = shown(&tab).await;
    assert!(second.starts_with("whsec_") && second != first && tab.text().await.contains("Valid until"));
    tab.goto(&page).await;
    assert!(tab.text().await.contains("the previous secret also signs until"));

    for (go_on, sent) in [("where_it_stopped", 1), ("now", 0)] {
        tab.press("Disable endpoint").await;
        let text = tab.text().await;
        assert!(
            text.contains("An administrator disabled the endpoint.") && text.contains("Nothing has been sent since"),
            "{text}"
        );
        gateway.held(&payments, &format!("order-{go_on}"), &json!({"target_user_id": 42})).await;
        assert_eq!(send(&gateway).await, 0);
        let _: bool = tab.js(&format!("document.querySelector('[value={go_on}]').checked = true")).await;
        tab.press("Enable endpoint").await;
        assert!(tab.text().await.contains("Endpoint enabled."));
        assert_eq!(send(&gateway).await, sent, "{go_on}");
    }

    let _: bool = tab.js("[...document.querySelectorAll('main details')].every(it => it.open = true)").await;
    tab.press("Remove endpoint").await;
    let text = tab.text().await;
    assert!(text.contains("Endpoint removed.") && text.contains("No endpoints yet."), "{text}");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auditors_only_read_endpoints_and_reviewers_have_no_access() {
    let (gateway, receiver) = (spawn_gateway().await, WebhookReceiver::start().await);
    gateway.person("gus", PersonRole::Admin, &[]).await;
    gateway.person("eve", PersonRole::Auditor, &[]).await;
    gateway.reviewer("ana", &["reviewers"]).await;
    let gus = ManualForm::signed_in(&gateway, "gus").await;
    let csrf = field(&gus.get("/account").await.text, "csrf");
    let url = format!("{}?key=s3cret", receiver.url);
    let new = [("csrf", csrf.as_str()), ("name", "ops"), ("url", &url), ("events", "transition.held")];
    let added = gus.post("/endpoints", &new).await;
    assert_eq!((added.status, added.headers["cache-control"].to_str().unwrap()), (200, "no-store"));
    held(&gateway, &["order-1"]).await;
    assert_eq!(send(&gateway).await, 1);
    let told = gateway.service.delivery.endpoints().await.unwrap().remove(0);
    let place = gateway.service.delivery.deliveries(
        &told.endpoint.id,
        countersign_service::delivery::deliveries::DeliveryFilter::All,
        None,
        1,
    );
    let place = place.await.unwrap().0[0].index;
    let endpoint = format!("/endpoints/{}", told.endpoint.id);
    let delivery = format!("{endpoint}/deliveries/{place}");
    let (eve, ana) = (ManualForm::signed_in(&gateway, "eve").await, ManualForm::signed_in(&gateway, "ana").await);
    for path in ["/endpoints", &endpoint, &delivery] {
        let seen = eve.get(path).await;
        assert_eq!(seen.status, 200, "{path}");
        assert!(!seen.text.contains("s3cret"), "{path}: what is in an address may be a secret");
        assert!(!seen.text.contains("action=\"/endpoints"), "{path}");
        assert_eq!(ana.get(path).await.status, 403, "{path}");
    }
    let posts =
        ["settings", "serving", "secret", "test", "redeliveries", "removal"].map(|it| format!("{endpoint}/{it}"));
    let posts = posts.into_iter().chain(["/endpoints".to_owned(), format!("{delivery}/redelivery")]);
    for path in posts {
        for hand in [&eve, &ana] {
            let own = field(&hand.get("/account").await.text, "csrf");
            assert_eq!(hand.post(&path, &[("csrf", own.as_str()), ("serving", "off")]).await.status, 403, "{path}");
        }
        assert_eq!(gus.post(&path, &[("csrf", "none"), ("serving", "off")]).await.status, 403, "{path}");
    }
    assert_eq!(receiver.got().len(), 1);
    assert!(gateway.service.delivery.endpoint(&told.endpoint.id).await.unwrap().endpoint.is_served());
}

/// Fills a field that has a name of its own in the page.
async fn put(tab: &BrowserTab, id: &str, value: &str) {
    let code = format!("(document.querySelector('#{id}').value = {}) !== null", json!(value));
    let _: bool = tab.js(&code).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resume_endpoint_is_added_and_invalid_input_is_returned_as_typed() {
    let (gateway, receiver, browser, tab) = office().await;
    gateway.payments().await;
    tab.goto("/endpoints").await;
    let wrong = "{\"go\": \"{nobody}\"}";
    for (id, value) in [("name", "jobs"), ("kind", "resume"), ("url", &receiver.url), ("body", wrong)] {
        put(&tab, id, value).await;
    }
    for (id, value) in [
        ("look_url", receiver.url.as_str()),
        ("look_pointer", "/state"),
        ("look_waiting", "\"waiting\""),
        ("flows", "payments"),
    ] {
        put(&tab, id, value).await;
    }
    tab.press("Add endpoint").await;
    assert!(tab.text().await.contains("Unknown placeholder `{nobody}`"), "{}", tab.text().await);
    let typed: Vec<String> =
        tab.js("['kind', 'body', 'look_pointer'].map(it => document.querySelector('#' + it).value)").await;
    assert_eq!(typed, ["resume", wrong, "/state"]);
    put(&tab, "body", "{\"go\": \"{approved}\"}").await;
    tab.press("Add endpoint").await;
    assert!(shown(&tab).await.starts_with("whsec_"), "it is signed");
    tab.goto("/endpoints").await;
    tab.follow(".list a").await;
    let text = tab.text().await;
    assert!(text.contains("Resume by template") && text.contains("Test connection"), "{text}");
    assert!(tab.html().await.contains("sent only while /state in the preflight answer is"), "{}", tab.html().await);

    tab.goto("/endpoints").await;
    for (id, value) in [("name", "agents"), ("kind", "langgraph"), ("url", &receiver.url), ("assistant", "agent")] {
        put(&tab, id, value).await;
    }
    tab.press("Add endpoint").await;
    assert!(tab.text().await.contains("Name the flows whose runs this endpoint resumes"), "{}", tab.text().await);
    put(&tab, "flows", "payments").await;
    tab.press("Add endpoint").await;
    let text = tab.text().await;
    assert!(text.contains("it has no secret") && text.contains("LangGraph server"), "{text}");
    assert!(!text.contains("Rotate secret") && !text.contains("whpk_"), "{text}");
    tab.press("Test connection").await;
    let text = tab.text().await;
    assert!(text.contains("Connection test") && text.contains("Nothing was sent"), "{text}");
    browser.close().await;
}
