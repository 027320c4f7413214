//! Tests endpoints that require the events of a thread in order.

use std::time::Duration;

use serde_json::json;

use super::receiver::{BROKEN, FINE, WebhookReceiver};
use super::scene::WebhookScenario;

on_both! {
    ordered_events_wait_only_for_their_own_thread,
    redelivery_does_not_change_the_order,
    ordered_delivery_continues_after_a_failed_one_and_after_a_restart,
}

async fn ordered_events_wait_only_for_their_own_thread(s: WebhookScenario) {
    let receiver = WebhookReceiver::start().await;
    let endpoint = s.endpoint_with(&receiver, json!({"ordered": true, "events": ["thread.*", "transition.*"]})).await;
    receiver.now(BROKEN);
    let one = s.g.thread().await;
    s.g.approved(&s.g.held(&one).await).await;
    let other = s.g.thread().await;
    s.send().await;
    let of = |thread: &serde_json::Value| -> Vec<String> {
        receiver.got().iter().filter(|it| it.json()["data"]["thread"] == thread["thread"]).map(|it| it.kind()).collect()
    };
    assert_eq!((of(&one), of(&other)), (vec!["thread.created".to_owned()], vec!["thread.created".to_owned()]));
    let states: Vec<_> =
        s.deliveries(&endpoint).await.iter().map(|it| it["state"].as_str().unwrap().to_owned()).collect();
    assert_eq!(states, ["waiting", "behind", "behind", "behind", "waiting"], "the last event's first");
    receiver.now(FINE);
    s.g.pass(Duration::from_secs(10));
    s.send().await;
    let kinds = ["thread.created", "thread.created", "transition.held", "transition.committed", "transition.approved"];
    assert_eq!(of(&one), kinds, "in the thread's own order, as they came");
    assert_eq!(s.send().await, 0);
    s.is_sound().await;
}

async fn ordered_delivery_continues_after_a_failed_one_and_after_a_restart(s: WebhookScenario) {
    let receiver = WebhookReceiver::start().await;
    let endpoint = s.endpoint_with(&receiver, json!({"ordered": true, "events": ["thread.*"]})).await;
    receiver.now(BROKEN);
    let thread = s.g.thread().await["thread"].as_str().unwrap().to_owned();
    s.send().await;
    for way in ["closing", "reopening"] {
        s.g.post(&format!("/v1/threads/{thread}/{way}"), &s.g.admin, json!({"reason": "to see"})).await.expect(200);
    }
    for delay in countersign_domain::delivery::retry_schedule::DELAYS {
        // Each round has a new sender, which knows only the stored state.
        s.g.pass(delay + delay / 5);
        s.send().await;
    }
    receiver.now(FINE);
    s.g.pass(Duration::from_secs(10));
    s.send().await;
    let states: Vec<_> =
        s.deliveries(&endpoint).await.iter().map(|it| it["state"].as_str().unwrap().to_owned()).collect();
    assert_eq!(states, ["delivered", "delivered", "failed"]);
    let last: Vec<String> = receiver.got().iter().rev().take(2).rev().map(|it| it.kind()).collect();
    assert_eq!(last, ["thread.closed", "thread.reopened"]);
}

async fn redelivery_does_not_change_the_order(s: WebhookScenario) {
    let receiver = WebhookReceiver::start().await;
    let endpoint = s.endpoint_with(&receiver, json!({"ordered": true, "events": ["thread.*"]})).await;
    let thread = s.g.thread().await["thread"].as_str().unwrap().to_owned();
    s.send().await;
    receiver.now(BROKEN);
    for way in ["closing", "reopening"] {
        s.g.post(&format!("/v1/threads/{thread}/{way}"), &s.g.admin, json!({"reason": "to see"})).await.expect(200);
    }
    s.send().await;
    receiver.now(FINE);
    let first = s.deliveries(&endpoint).await.pop().unwrap()["delivery"].clone();
    let again = crate::webhooks::scene::path(&endpoint, &format!("/deliveries/{first}/redelivery"));
    s.g.post(&again, &s.g.admin, json!({})).await.expect(202);
    assert_eq!(s.send().await, 1, "only what was asked for");
    s.g.pass(Duration::from_secs(10));
    s.send().await;
    let kinds: Vec<String> = receiver.got().iter().map(|it| it.kind()).collect();
    let [created, closed, reopened] = ["thread.created", "thread.closed", "thread.reopened"];
    assert_eq!(kinds, [created, closed, created, closed, reopened]);
}
