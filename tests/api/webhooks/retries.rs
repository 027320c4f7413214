//! Tests the retries of failed deliveries.

use std::time::Duration;

use countersign_domain::delivery::endpoint::FAILING_MAX;
use countersign_domain::delivery::retry_schedule;
use countersign_domain::delivery::retry_schedule::DELAYS;

use countersign::worker::{deliver, sequence};
use serde_json::json;

use super::receiver::{BROKEN, FINE, ReceiverReply, WebhookReceiver};
use super::scene::{WebhookScenario, path};

on_both! {
    failed_delivery_is_retried_under_the_same_id_until_the_last_delay,
    only_a_2xx_status_is_a_success,
    retry_after_is_respected,
    gone_disables_an_endpoint_until_a_test_arrives,
    deliveries_stop_after_gone_and_none_is_lost,
    five_days_of_failures_disable_an_endpoint_and_a_redelivery_enables_it,
    hanging_endpoint_does_not_delay_others,
    unrecorded_delivery_is_sent_again_under_the_same_id,
    another_gateway_takes_over_deliveries_when_the_leader_ends,
}

const LITTLE: Duration = Duration::from_secs(1);

async fn failed_delivery_is_retried_under_the_same_id_until_the_last_delay(s: WebhookScenario) {
    let receiver = WebhookReceiver::start().await;
    receiver.now(BROKEN);
    let endpoint = s.endpoint(&receiver, &["thread.created"]).await;
    s.g.thread().await;
    for (before, delay) in DELAYS.iter().enumerate() {
        // The random part is at most a fifth of the delay.
        s.g.pass(*delay + *delay / 5);
        assert_eq!((s.send().await, receiver.got().len()), (1, before + 1));
        assert_eq!(s.send().await, 0, "not before its time");
        let delivery = &s.deliveries(&endpoint).await[0];
        assert_eq!(delivery["attempts"].as_array().unwrap().len(), before + 1);
        let attempt = &delivery["attempts"][before];
        assert_eq!(
            (&attempt["status"], &attempt["answer"], &attempt["arrived"]),
            (&json!(500), &json!("so?"), &json!(false))
        );
    }
    let got = receiver.got();
    assert!(got.iter().all(|it| it.id() == got[0].id() && it.body == got[0].body), "one event, one id, one body");
    let moments: std::collections::BTreeSet<_> = got.iter().map(|it| &it.headers["webhook-timestamp"]).collect();
    assert_eq!(moments.len(), got.len(), "each is signed for its own moment");
    assert_eq!(s.deliveries(&endpoint).await[0]["state"], "failed");
    s.g.pass(Duration::from_secs(3600));
    assert_eq!(s.send().await, 0);
    receiver.now(FINE);
    let since = json!({"failed_since": "2020-01-01T00:00:00.000Z"});
    let again = s.g.post(&path(&endpoint, "/redeliveries"), &s.g.admin, since).await.expect(202);
    assert_eq!(again["count"], 1);
    assert_eq!(s.send().await, 1);
    assert_eq!(s.deliveries(&endpoint).await[0]["state"], "delivered");
    s.is_sound().await;
}

async fn only_a_2xx_status_is_a_success(s: WebhookScenario) {
    let elsewhere = WebhookReceiver::start().await;
    let moved: &'static str = format!("302 Found\r\nlocation: {}", elsewhere.url).leak();
    for (reply, arrived) in [
        (ReceiverReply::Says("202 Accepted"), true),
        (ReceiverReply::Says("204 No Content"), true),
        (ReceiverReply::Says("304 Not Modified"), false),
        (ReceiverReply::Says(moved), false),
        (ReceiverReply::Says("404 Not Found"), false),
        (ReceiverReply::HangsUp, false),
    ] {
        let receiver = WebhookReceiver::start().await;
        let endpoint = s.endpoint(&receiver, &["thread.created"]).await;
        receiver.now(reply.clone());
        s.g.thread().await;
        s.send().await;
        let attempt = s.deliveries(&endpoint).await[0]["attempts"][0].clone();
        assert_eq!(attempt["arrived"], arrived, "{reply:?}: {attempt}");
        s.g.send(reqwest::Method::DELETE, &path(&endpoint, ""), &s.g.admin, None).await.expect_status(204);
    }
    assert!(elsewhere.got().is_empty(), "nobody sends us on");
}

async fn retry_after_is_respected(s: WebhookScenario) {
    let receiver = WebhookReceiver::start().await;
    receiver.now(ReceiverReply::Says("503 Service Unavailable\r\nretry-after: 3600"));
    s.endpoint(&receiver, &["thread.created"]).await;
    s.g.thread().await;
    s.send().await;
    s.g.pass(Duration::from_secs(3540) - LITTLE);
    assert_eq!(s.send().await, 0);
    s.g.pass(Duration::from_secs(62));
    assert_eq!(s.send().await, 1);
    assert_eq!(
        retry_schedule::delay(1, 0, Some(Duration::from_secs(1_000_000))),
        Some(retry_schedule::RETRY_AFTER_MAX)
    );
}

async fn gone_disables_an_endpoint_until_a_test_arrives(s: WebhookScenario) {
    let (receiver, watching) = (WebhookReceiver::start().await, WebhookReceiver::start().await);
    let endpoint = s.endpoint(&receiver, &["thread.*"]).await;
    s.endpoint(&watching, &["endpoint.*"]).await;
    receiver.now(ReceiverReply::Says("410 Gone"));
    s.g.thread().await;
    s.send().await;
    let now = s.now(&endpoint).await;
    assert_eq!((&now["state"], &now["why"]), (&json!("disabled"), &json!("gone")));
    receiver.now(FINE);
    s.g.thread().await;
    s.g.pass(Duration::from_secs(600));
    s.send().await;
    assert_eq!(receiver.got().len(), 1, "nothing but the one that said so");
    let tried = s.g.post(&path(&endpoint, "/test"), &s.g.admin, json!({})).await.expect(200);
    assert_eq!((&tried["status"], &tried["arrived"]), (&json!(200), &json!(true)));
    assert_eq!(s.now(&endpoint).await["state"], "enabled");
    s.send().await;
    assert_eq!(receiver.kinds().iter().filter(|it| *it == "thread.created").count(), 3, "and all that came meanwhile");
    s.send().await;
    assert_eq!(watching.kinds(), ["endpoint.disabled", "endpoint.recovered"]);
    assert_eq!(watching.sorted()[0].json()["data"]["why"], "gone");
    s.is_sound().await;
}

async fn deliveries_stop_after_gone_and_none_is_lost(s: WebhookScenario) {
    let receiver = WebhookReceiver::start().await;
    let endpoint = s.endpoint_with(&receiver, json!({"events": ["thread.created"], "ordered": true})).await;
    receiver.now(ReceiverReply::Says("410 Gone"));
    for _ in 0..30 {
        s.g.thread().await;
    }
    s.send().await;
    let before = receiver.got().len();
    assert!(before <= 8, "what was under way: {before}");
    receiver.now(FINE);
    s.g.pass(Duration::from_secs(10));
    s.g.post(&path(&endpoint, "/test"), &s.g.admin, json!({})).await.expect(200);
    s.send().await;
    let ids: std::collections::BTreeSet<String> = receiver.got().iter().map(|it| it.id().to_owned()).collect();
    assert_eq!(
        (ids.len(), receiver.got().len()),
        (31, 31 + before),
        "each once more or for the first time, and a test"
    );
}

async fn five_days_of_failures_disable_an_endpoint_and_a_redelivery_enables_it(s: WebhookScenario) {
    let receiver = WebhookReceiver::start().await;
    receiver.now(BROKEN);
    let endpoint = s.endpoint(&receiver, &["thread.created"]).await;
    s.g.thread().await;
    s.send().await;
    s.g.pass(FAILING_MAX - LITTLE * 10);
    s.send().await;
    assert_eq!(s.now(&endpoint).await["state"], "enabled", "one may be ill for a while");
    s.g.pass(Duration::from_secs(3600));
    s.send().await;
    let now = s.now(&endpoint).await;
    assert_eq!((&now["state"], &now["why"]), (&json!("disabled"), &json!("failing")));
    receiver.now(FINE);
    s.g.pass(Duration::from_secs(24 * 3600));
    assert_eq!(s.send().await, 0);
    let index = s.deliveries(&endpoint).await[0]["delivery"].clone();
    s.g.post(&path(&endpoint, &format!("/deliveries/{index}/redelivery")), &s.g.admin, json!({})).await.expect(202);
    assert_eq!(s.send().await, 1);
    let now = s.now(&endpoint).await;
    assert_eq!((&now["state"], &now["failing_since"]), (&json!("enabled"), &json!(null)));
    s.is_sound().await;
}

async fn hanging_endpoint_does_not_delay_others(s: WebhookScenario) {
    let (hanging, fine) = (WebhookReceiver::start().await, WebhookReceiver::start().await);
    s.endpoint(&hanging, &["*"]).await;
    let endpoint = s.endpoint(&fine, &["thread.created"]).await;
    hanging.now(ReceiverReply::Hangs);
    for _ in 0..20 {
        s.g.thread().await;
    }
    sequence::run_once(&s.g.service).await.unwrap();
    let sender = deliver::DeliveryWorker::new(&s.g.service);
    sender.round().await.unwrap();
    fine.until(20).await;
    assert!(hanging.got().len() <= 8, "so many at a time: {}", hanging.got().len());
    hanging.now(FINE);
    sender.rest().await.unwrap();
    assert!(s.deliveries(&endpoint).await.iter().all(|it| it["state"] == "delivered"));
    assert!(hanging.got().len() > 20);
}

async fn unrecorded_delivery_is_sent_again_under_the_same_id(s: WebhookScenario) {
    let receiver = WebhookReceiver::start().await;
    s.endpoint(&receiver, &["thread.created"]).await;
    for _ in 0..3 {
        s.g.thread().await;
    }
    receiver.now(ReceiverReply::Hangs);
    sequence::run_once(&s.g.service).await.unwrap();
    let sender = deliver::DeliveryWorker::new(&s.g.service);
    sender.round().await.unwrap();
    receiver.until(3).await;
    // A gateway that ends now never learns that all of them arrived.
    sender.end(Duration::ZERO).await;
    drop(sender);
    receiver.now(FINE);
    s.send().await;
    let ids = |from: usize| -> std::collections::BTreeSet<String> {
        receiver.got()[from..].iter().map(|it| it.id().to_owned()).collect()
    };
    assert_eq!(receiver.got().len(), 6);
    assert_eq!((ids(0).len(), ids(3)), (3, ids(0)));
    assert_eq!(s.send().await, 0);
}

async fn another_gateway_takes_over_deliveries_when_the_leader_ends(s: WebhookScenario) {
    let receiver = WebhookReceiver::start().await;
    s.endpoint(&receiver, &["thread.created"]).await;
    let (one, other) = (deliver::DeliveryWorker::new(&s.g.service), deliver::DeliveryWorker::new(&s.another().await));
    one.round().await.unwrap();
    one.rest().await.unwrap();
    s.g.thread().await;
    sequence::run_once(&s.g.service).await.unwrap();
    other.round().await.unwrap();
    assert_eq!((other.rest().await.unwrap(), receiver.got().len()), (0, 0), "it is another's duty");
    drop(one);
    let mut sent = 0;
    while sent == 0 {
        s.g.pass(LITTLE * 2);
        other.round().await.unwrap();
        sent = other.rest().await.unwrap();
    }
    assert_eq!(receiver.got().len(), 1);
}
