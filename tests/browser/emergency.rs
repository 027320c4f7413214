//! Halting in an emergency, and resuming with two administrators: in the browser, and with forged requests.

use countersign_domain::identity::account::PersonRole;
use countersign_domain::operations::halt::LiftQuorum;
use countersign_service::PeopleSettings;

use crate::chromium::Chromium;
use crate::forms::{ManualForm, field};
use crate::gateway::{BrowserGateway, order, people, spawn_for_people, spawn_gateway};
use crate::person::BrowserTab;

pub async fn pairs() -> BrowserGateway {
    spawn_for_people(PeopleSettings { lift_needs: LiftQuorum::Two, ..people() }).await
}

async fn tab_of(browser: &Chromium, gateway: &BrowserGateway, name: &str) -> BrowserTab {
    let tab = browser.tab(gateway).await;
    tab.without_scripts().await;
    tab.sign_in(name).await;
    tab.goto("/emergency").await;
    tab
}

/// Whether everything is stopped, and the payments flow by itself.
async fn stopped(gateway: &BrowserGateway) -> Vec<(bool, bool)> {
    let halts = gateway.service.operations.halts().await.unwrap();
    halts.iter().map(|it| (it.halt.proposing, it.halt.verifying)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reviewer_halts_everything_and_two_administrators_resume() {
    let gateway = pairs().await;
    let payments = gateway.payments().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    gateway.person("gus", PersonRole::Admin, &[]).await;
    gateway.person("hal", PersonRole::Admin, &[]).await;
    let browser = Chromium::open().await;
    let tab = tab_of(&browser, &gateway, "ana").await;
    tab.fill("Reason for the halt", "The planner pays the wrong people").await;
    tab.press("Halt flows").await;
    assert_eq!(stopped(&gateway).await, [(false, false), (false, false)], "asked once more first");
    assert!(tab.text().await.contains("Two administrators are needed to lift the halt."));
    tab.press("Confirm halt").await;
    let text = tab.text().await;
    assert!(text.contains("Halted. The halt applies now") && text.contains("by ana since"), "{text}");
    assert!(text.contains("The planner pays the wrong people"), "{text}");
    assert_eq!(tab.count("form[action='/emergency/lifting']").await, 0, "a reviewer lifts nothing");
    let body = serde_json::json!({"flow": "payments", "thread": "order-1", "state": order()});
    assert_eq!(gateway.post(&payments.host, "/v1/threads", &body).await.body["code"], "halted");

    tab.press_in("header", "Sign out").await;
    let tab = tab_of(&browser, &gateway, "gus").await;
    tab.fill("Reason for resuming", "The planner is fixed").await;
    tab.press("Request lifting").await;
    assert!(tab.text().await.contains("The halt is lifted when a second administrator confirms."));
    tab.press("Confirm lifting").await;
    assert!(tab.text().await.contains("Lifting requested. The halt is lifted when a second administrator confirms."));
    assert!(tab.text().await.contains("You made this request. Another administrator must confirm it."));
    assert_eq!(stopped(&gateway).await[0], (true, true));

    tab.press_in("header", "Sign out").await;
    let tab = tab_of(&browser, &gateway, "hal").await;
    assert!(tab.text().await.contains("gus requested to lift the halt of proposing and verifying"));
    tab.fill("Reason for confirming", "Seen the fix").await;
    tab.press("Confirm lifting").await;
    assert!(tab.text().await.contains("You are the second administrator: the halt is lifted immediately."));
    tab.press("Confirm lifting").await;
    assert!(tab.text().await.contains("Halt lifted. Agents and writers can continue."));
    assert_eq!(stopped(&gateway).await, [(false, false), (false, false)]);
    assert_eq!(gateway.post(&payments.host, "/v1/threads", &body).await.status, 201);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn halt_can_be_limited_to_one_flow_and_one_operation() {
    let gateway = spawn_gateway().await;
    gateway.payments().await;
    gateway.person("gus", PersonRole::Admin, &[]).await;
    let browser = Chromium::open().await;
    let tab = tab_of(&browser, &gateway, "gus").await;
    let _: bool = tab.js("(document.querySelector('#scope').value = 'payments') && (document.querySelector('form[action=\"/emergency\"] [value=verifying]').checked = true)").await;
    tab.fill("Reason for the halt", "The database moves").await;
    tab.press("Halt flows").await;
    tab.press("Confirm halt").await;
    assert_eq!(stopped(&gateway).await, [(false, false), (false, true)]);
    tab.fill("Reason for resuming", "It has moved").await;
    tab.press("Lift halt").await;
    tab.press("Confirm lifting").await;
    assert!(tab.text().await.contains("Halt lifted. Agents and writers can continue."));
    assert_eq!(stopped(&gateway).await, [(false, false), (false, false)]);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_halt_and_resume_without_permission_are_refused() {
    let gateway = spawn_gateway().await;
    gateway.reviewer("ana", &["reviewers"]).await;
    gateway.person("eve", PersonRole::Auditor, &[]).await;
    gateway.person("gus", PersonRole::Admin, &[]).await;
    let form = |csrf: &str, confirmed: &'static str| {
        [
            ("csrf", csrf.to_owned()),
            ("scope", "all".into()),
            ("what", "both".into()),
            ("reason", "drill".into()),
            ("confirmed", confirmed.into()),
            ("expects", "done".into()),
        ]
    };
    let send = async |name: &str, path: &str, csrf: Option<&str>| {
        let hand = ManualForm::signed_in(&gateway, name).await;
        let html = hand.get("/emergency").await.text;
        let fields = form(csrf.unwrap_or(&field(&html, "csrf")), "yes");
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        hand.post(path, &fields).await.status
    };
    assert_eq!(send("eve", "/emergency", None).await, 403);
    assert_eq!(send("ana", "/emergency", Some("none")).await, 403);
    assert_eq!(stopped(&gateway).await, [(false, false)]);
    assert_eq!(send("ana", "/emergency", None).await, 303);
    assert_eq!(send("ana", "/emergency/lifting", None).await, 403);
    assert_eq!(send("eve", "/emergency/lifting", None).await, 403);
    assert_eq!(stopped(&gateway).await, [(true, true)]);
    assert_eq!(send("gus", "/emergency/lifting", None).await, 303);
    assert_eq!(stopped(&gateway).await, [(false, false)]);
    let hand = ManualForm::signed_in(&gateway, "gus").await;
    let csrf = field(&hand.get("/emergency").await.text, "csrf");
    let unsaid = [("csrf", csrf.as_str()), ("scope", "all"), ("what", "both"), ("reason", " "), ("confirmed", "yes")];
    let refused = hand.post("/emergency", &unsaid).await;
    assert!(refused.status == 409 && refused.text.contains("Enter a reason"), "{}", refused.text);
    assert_eq!(stopped(&gateway).await, [(false, false)]);
}
