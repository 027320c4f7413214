//! Tests the management of endpoints over HTTP, and the requests that are refused.

use reqwest::Method;
use serde_json::{Value, json};

use super::receiver::{BROKEN, FINE, WebhookReceiver};
use super::scene::{WebhookScenario, path};

on_both! {
    endpoint_gets_only_its_events,
    later_endpoint_gets_history_without_duplicates,
    redelivery_requested_during_a_delivery_is_sent,
    enabled_endpoint_continues_where_it_stopped_or_from_now,
    invalid_endpoint_is_refused_with_its_path_and_advice,
    every_change_of_an_endpoint_is_logged,
    old_deliveries_are_deleted_and_the_log_stays,
    next_page_of_deliveries_continues_the_list,
}

async fn endpoint_gets_only_its_events(s: WebhookScenario) {
    let [all, families, flow, nothing] = [
        WebhookReceiver::start().await,
        WebhookReceiver::start().await,
        WebhookReceiver::start().await,
        WebhookReceiver::start().await,
    ];
    s.endpoint(&all, &["*"]).await;
    s.endpoint(&families, &["thread.*", "transition.held"]).await;
    s.endpoint_with(&flow, json!({"flows": ["payments"]})).await;
    s.endpoint(&nothing, &["write.lapsed"]).await;
    let thread = s.g.thread().await;
    s.g.held(&thread).await;
    s.send().await;
    assert_eq!(families.kinds(), ["thread.created", "transition.held"]);
    assert_eq!(flow.kinds(), ["thread.created", "transition.held"], "what belongs to no flow is not for it");
    assert_eq!(nothing.kinds(), [""; 0]);
    assert!(all.kinds().starts_with(&["access.endpoint_added".to_owned()]), "{:?}", all.kinds());
    let told = all.sorted().pop().unwrap().json();
    assert_eq!((&told["type"], &told["data"]["flow"]), (&json!("transition.held"), &json!("payments")));
    assert_eq!(told["data"]["thread"], thread["thread"]);
}

async fn later_endpoint_gets_history_without_duplicates(s: WebhookScenario) {
    s.g.thread().await;
    s.g.thread().await;
    s.send().await;
    let receiver = WebhookReceiver::start().await;
    let endpoint = s.endpoint(&receiver, &["thread.created"]).await;
    s.g.thread().await;
    s.send().await;
    assert_eq!(receiver.got().len(), 1, "with what happens next");
    s.g.post(&path(&endpoint, "/redeliveries"), &s.g.admin, json!({"after": 0})).await.expect(202);
    s.send().await;
    assert_eq!(receiver.got().len(), 3);
    s.g.post(&path(&endpoint, "/redeliveries"), &s.g.admin, json!({"after": 0})).await.expect(202);
    s.send().await;
    assert_eq!(receiver.got().len(), 3, "what has arrived is not sent again");
    let from_the_start = WebhookReceiver::start().await;
    s.endpoint_with(&from_the_start, json!({"events": ["thread.created"], "after": 0})).await;
    s.send().await;
    assert_eq!(from_the_start.got().len(), 3);
    let ids = |it: &WebhookReceiver| it.sorted().iter().map(|it| it.id().to_owned()).collect::<Vec<_>>();
    assert_eq!(ids(&receiver), ids(&from_the_start), "an event has one id for everybody");
}

async fn redelivery_requested_during_a_delivery_is_sent(s: WebhookScenario) {
    s.g.thread().await;
    s.send().await;
    let receiver = WebhookReceiver::start().await;
    let endpoint = s.endpoint(&receiver, &["thread.created"]).await;
    receiver.now(crate::webhooks::receiver::ReceiverReply::Hangs);
    s.g.thread().await;
    countersign::worker::sequence::run_once(&s.g.service).await.unwrap();
    let sender = countersign::worker::deliver::DeliveryWorker::new(&s.g.service);
    sender.round().await.unwrap();
    receiver.until(1).await;
    s.g.post(&path(&endpoint, "/redeliveries"), &s.g.admin, json!({"after": 0})).await.expect(202);
    receiver.now(FINE);
    sender.rest().await.unwrap();
    sender.round().await.unwrap();
    sender.rest().await.unwrap();
    let ids: std::collections::BTreeSet<String> = receiver.got().iter().map(|it| it.id().to_owned()).collect();
    assert_eq!((ids.len(), receiver.got().len()), (2, 2));
}

async fn enabled_endpoint_continues_where_it_stopped_or_from_now(s: WebhookScenario) {
    let receiver = WebhookReceiver::start().await;
    let endpoint = s.endpoint(&receiver, &["thread.created"]).await;
    for (from, then) in [("where_it_stopped", 1), ("now", 0)] {
        let off =
            s.g.send(Method::PATCH, &path(&endpoint, ""), &s.g.admin, Some(json!({"enabled": false})))
                .await
                .expect(200);
        assert_eq!((&off["state"], &off["why"]), (&json!("disabled"), &json!("by_hand")));
        s.g.thread().await;
        assert_eq!(s.send().await, 0);
        s.g.post(&path(&endpoint, "/test"), &s.g.admin, json!({})).await.expect(200);
        assert_eq!(s.now(&endpoint).await["state"], "disabled", "whoever switched it off switches it on");
        let before = receiver.got().len();
        let on = json!({"enabled": true, "from": from});
        s.g.send(Method::PATCH, &path(&endpoint, ""), &s.g.admin, Some(on)).await.expect(200);
        s.send().await;
        assert_eq!(receiver.got().len() - before, then, "{from}");
    }
    s.g.send(Method::DELETE, &path(&endpoint, ""), &s.g.admin, None).await.expect_status(204);
    s.g.thread().await;
    assert_eq!(s.send().await, 0);
    assert_eq!(s.g.get(&path(&endpoint, ""), &s.g.admin).await.status, 404);
    assert_eq!(s.g.get("/v1/endpoints", &s.g.admin).await.expect(200)["endpoints"], json!([]));
}

async fn invalid_endpoint_is_refused_with_its_path_and_advice(s: WebhookScenario) {
    let url = WebhookReceiver::start().await.url;
    let good = json!({"name": "ops", "url": url});
    let with = |name: &str, value: Value| {
        let mut ask = good.clone();
        ask[name] = value;
        ask
    };
    for (ask, at) in [
        (with("name", json!("")), "/name"),
        (with("name", json!("a\nb")), "/name"),
        (with("url", json!("http://10.0.0.7/x")), "/url"),
        (with("url", json!("http://169.254.169.254/latest/meta-data/")), "/url"),
        (with("url", json!("ftp://example.com/")), "/url"),
        (with("url", json!("https://user:word@example.com/")), "/url"),
        (with("events", json!([])), "/events"),
        (with("events", json!(["no.such"])), ""),
        (with("events", json!(["trans*"])), ""),
        (with("flows", json!(["nobody"])), "/flows"),
        (with("kind", json!("pigeon")), "/kind"),
        (with("kind", json!("")), "/kind"),
        (with("payload", json!(2)), "/payload"),
        (with("headers", json!({"webhook-id": "x"})), "/headers"),
        (with("headers", json!({"Content-Length": "3"})), "/headers"),
        (with("headers", json!({"x": "a\r\nb: c"})), "/headers"),
        (with("colour", json!("red")), ""),
    ] {
        let refused = s.g.post("/v1/endpoints", &s.g.admin, ask.clone()).await;
        assert_eq!(
            (refused.status, refused.body["errors"][0]["pointer"].as_str()),
            (400, Some(at)),
            "{ask} {:#}",
            refused.body
        );
    }
    assert_eq!(s.g.get("/v1/endpoints", &s.g.admin).await.expect(200)["endpoints"], json!([]), "nothing is half done");
    let pigeon = s.g.post("/v1/endpoints", &s.g.admin, with("kind", json!("pigeon"))).await;
    assert_eq!(pigeon.code(), "malformed");
    assert!(pigeon.body["errors"][0]["detail"].as_str().unwrap().contains("`pigeon`"), "by name: {:#}", pigeon.body);
    let endpoint = s.g.post("/v1/endpoints", &s.g.admin, good).await.expect(201);
    assert_eq!(endpoint["kind"], "webhook");
    for (rest, ask) in [
        ("/secret", json!({"overlap_secs": 604_801})),
        ("/redeliveries", json!({})),
        ("/redeliveries", json!({"failed_since": "yesterday"})),
        ("/redeliveries", json!({"failed_since": "2026-01-01T00:00:00.000Z", "after": 1})),
    ] {
        assert_eq!(s.g.post(&path(&endpoint, rest), &s.g.admin, ask.clone()).await.status, 400, "{rest} {ask}");
    }
    assert_eq!(s.g.post(&path(&endpoint, "/deliveries/1/redelivery"), &s.g.admin, json!({})).await.status, 404);
    let from = json!({"enabled": false, "from": "now"});
    assert_eq!(s.g.send(Method::PATCH, &path(&endpoint, ""), &s.g.admin, Some(from)).await.status, 400);
}

async fn every_change_of_an_endpoint_is_logged(s: WebhookScenario) {
    let (receiver, watching) = (WebhookReceiver::start().await, WebhookReceiver::start().await);
    s.endpoint(&watching, &["access.*"]).await;
    let secret_url = format!("{}?key=s3cret", receiver.url);
    let ask = json!({"name": "chat", "url": secret_url, "headers": {"Authorization": "Bearer t0ken"}});
    let endpoint = s.g.post("/v1/endpoints", &s.g.admin, ask).await.expect(201);
    s.g.send(Method::PATCH, &path(&endpoint, ""), &s.g.admin, Some(json!({"name": "talk"}))).await.expect(200);
    s.g.post(&path(&endpoint, "/secret"), &s.g.admin, json!({})).await.expect(200);
    s.g.send(Method::DELETE, &path(&endpoint, ""), &s.g.admin, None).await.expect_status(204);
    s.send().await;
    let own: Vec<_> =
        watching.sorted().into_iter().filter(|it| it.json()["data"]["endpoint"] == endpoint["id"]).collect();
    let kinds: Vec<String> = own.iter().map(|it| it.kind()).collect();
    let done = ["endpoint_added", "endpoint_changed", "endpoint_secret_made", "endpoint_removed"];
    assert_eq!(kinds, done.map(|it| format!("access.{it}")));
    for it in &own {
        let data = &it.json()["data"];
        assert!(data["by"].is_string() && data["by_name"] == "admin", "{data}");
        for hidden in ["s3cret", "t0ken", endpoint["secret"].as_str().unwrap()] {
            assert!(!it.body.contains(hidden), "{}", it.body);
        }
    }
}

async fn old_deliveries_are_deleted_and_the_log_stays(s: WebhookScenario) {
    let receiver = WebhookReceiver::start().await;
    let endpoint = s.endpoint(&receiver, &["thread.created"]).await;
    s.g.thread().await;
    receiver.now(BROKEN);
    s.send().await;
    receiver.now(FINE);
    s.g.thread().await;
    s.send().await;
    let events = s.g.service.log.log_length().await.unwrap();
    s.g.pass(s.g.service.delivery.deliveries_kept() + std::time::Duration::from_secs(60));
    assert_eq!(countersign::worker::prune::run_once(&s.g.service).await.unwrap(), 1);
    assert_eq!(s.deliveries(&endpoint).await.len(), 1, "what waits is not old");
    assert_eq!(s.g.service.log.log_length().await.unwrap(), events);
    s.is_sound().await;
}

async fn next_page_of_deliveries_continues_the_list(s: WebhookScenario) {
    let (receiver, other) = (WebhookReceiver::start().await, WebhookReceiver::start().await);
    let endpoint = s.endpoint(&receiver, &["thread.created"]).await;
    s.endpoint(&other, &["thread.created"]).await;
    receiver.now(BROKEN);
    for _ in 0..5 {
        s.g.thread().await;
    }
    s.send().await;
    for state in ["", "&state=waiting"] {
        let (mut seen, mut token) = (Vec::new(), String::new());
        loop {
            let rest = format!("/deliveries?page_size=2{state}{token}");
            let page = s.g.get(&path(&endpoint, &rest), &s.g.auditor).await.expect(200);
            seen.extend(page["deliveries"].as_array().unwrap().iter().map(|it| it["delivery"].as_u64().unwrap()));
            let Some(next) = page["next_page_token"].as_str() else { break };
            token = format!("&page_token={next}");
        }
        let once: std::collections::BTreeSet<_> = seen.iter().collect();
        assert_eq!((seen.len(), once.len()), (5, 5), "{state}: {seen:?}");
        assert!(!state.is_empty() || seen.is_sorted_by(|a, b| a > b), "the last event's first");
    }
    let wrong = path(&endpoint, "/deliveries?page_token=x");
    assert_eq!(s.g.get(&wrong, &s.g.auditor).await.status, 400);
}
