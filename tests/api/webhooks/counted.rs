//! Tests the endpoint metrics in `/metrics`.

use std::time::Duration;

use serde_json::{Value, json};

use super::receiver::{BROKEN, ReceiverReply, WebhookReceiver};
use super::scene::{WebhookScenario, path};
use crate::metrics::Scrape;

on_both! {
    attempts_are_counted_by_result_and_each_endpoint_has_its_state,
    endpoint_with_few_events_has_no_lag,
}

const MINUTE: Duration = Duration::from_secs(60);
const GONE: ReceiverReply = ReceiverReply::Says("410 Gone");

fn id(endpoint: &Value) -> &str {
    endpoint["id"].as_str().unwrap()
}

async fn attempts_are_counted_by_result_and_each_endpoint_has_its_state(s: WebhookScenario) {
    let (fine, broken, gone) =
        (WebhookReceiver::start().await, WebhookReceiver::start().await, WebhookReceiver::start().await);
    broken.now(BROKEN);
    gone.now(GONE);
    let fine = s.endpoint(&fine, &["thread.created"]).await;
    let broken = s.endpoint(&broken, &["thread.created"]).await;
    let gone = s.endpoint(&gone, &["thread.created"]).await;
    s.g.thread().await;
    assert_eq!(s.send().await, 3);
    s.g.post(&path(&fine, "/test"), &s.g.admin, json!({})).await.expect(200);
    s.g.pass(MINUTE);
    let scrape = Scrape::of(&s.g).await;
    for (outcome, count) in [("2xx", 2.0), ("4xx", 1.0), ("5xx", 1.0), ("3xx", 0.0), ("timed_out", 0.0)] {
        assert_eq!(scrape.one("delivery_attempts_total", outcome), Some(count), "{outcome}");
    }
    for (endpoint, disabled, failing) in [(&fine, 0.0, false), (&broken, 0.0, true), (&gone, 1.0, true)] {
        assert_eq!(scrape.one("endpoint_disabled", id(endpoint)), Some(disabled), "{endpoint}");
        assert_eq!(scrape.one("endpoint_failing_seconds", id(endpoint)).unwrap() >= 60.0, failing, "{endpoint}");
        assert_eq!(scrape.one("endpoint_unsent_events", id(endpoint)), Some(0.0), "{endpoint}");
    }
}

async fn endpoint_with_few_events_has_no_lag(s: WebhookScenario) {
    let receiver = WebhookReceiver::start().await;
    let little = s.endpoint(&receiver, &["policy.activated"]).await;
    let much = s.endpoint(&receiver, &["thread.created"]).await;
    for _ in 0..3 {
        s.g.thread().await;
    }
    while s.g.service.log.sequence().await.unwrap() > 0 {}
    s.g.pass(MINUTE);
    let scrape = Scrape::of(&s.g).await;
    assert_eq!(scrape.one("endpoint_unsent_events", id(&little)), Some(0.0));
    assert_eq!(scrape.one("endpoint_unsent_event_oldest_seconds", id(&little)), Some(0.0));
    assert_eq!(scrape.one("endpoint_unsent_events", id(&much)), Some(3.0));
    assert!(scrape.one("endpoint_unsent_event_oldest_seconds", id(&much)).unwrap() >= 60.0);
    assert_eq!(s.send().await, 3);
    s.g.pass(MINUTE);
    let scrape = Scrape::of(&s.g).await;
    assert_eq!(scrape.one("endpoint_unsent_events", id(&much)), Some(0.0));
}
