//! Tests `/metrics`: its values as the public parser reads them, who can read it, and its cost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use countersign_domain::operations::halt::Halt;
use countersign_domain::reviews::VoteVerdict;

use actix_web::test::{TestRequest, call_service, init_service};
use countersign::worker::Workers;
use countersign_service::operations::halt::HaltScope;
use countersign_web::client_ip::TrustedProxies;
use countersign_web::metrics_access::MetricsAccess;
use countersign_web::server::site;
use countersign_web::state::{AppState, EdgeConfig};
use reqwest::Method;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::gateway::{TestGateway, edge, spawn_gateway};
use crate::python;
use crate::rules::ApiScenario;

on_both! {
    metrics_equal_the_events(crate::gateway::POLICY),
    each_event_is_counted_by_one_of_several_gateways(crate::gateway::POLICY),
    unsequenced_events_are_counted_with_their_age(crate::gateway::POLICY),
}

const MINUTE: Duration = Duration::from_secs(60);

/// Longer than the lifetime of values that were read from the database.
const LATER: Duration = Duration::from_secs(2);

/// A scrape, as the public parser reads it.
pub struct Scrape(Vec<Value>);

impl Scrape {
    pub async fn of(g: &TestGateway) -> Self {
        let answer = g.http.get(format!("{}/metrics", g.url)).bearer_auth(&g.monitor).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 200);
        assert_eq!(answer.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
        Self::read(&answer.text().await.unwrap())
    }

    fn read(text: &str) -> Self {
        let samples: Vec<Value> = serde_json::from_str(&python::answered("scrape.py", text)).unwrap();
        for sample in &samples {
            let name = sample["name"].as_str().unwrap();
            assert!(name.starts_with("countersign_"), "{name}");
            assert_ne!(sample["help"], "", "{name}");
            assert!(["counter", "gauge", "histogram"].contains(&sample["type"].as_str().unwrap()), "{sample}");
        }
        Self(samples)
    }

    /// Returns the samples of a metric by the values of its labels, in the order of their names.
    fn all(&self, name: &str) -> BTreeMap<String, f64> {
        let name = format!("countersign_{name}");
        let of = |it: &&Value| it["name"] == name.as_str();
        let labels = |it: &Value| {
            let labels: BTreeMap<String, String> = serde_json::from_value(it["labels"].clone()).unwrap();
            labels.into_values().collect::<Vec<_>>().join(" ")
        };
        self.0.iter().filter(of).map(|it| (labels(it), it["value"].as_f64().unwrap())).collect()
    }

    pub fn one(&self, name: &str, labels: &str) -> Option<f64> {
        self.all(name).get(labels).copied()
    }
}

fn told<const N: usize>(samples: [(&str, f64); N]) -> BTreeMap<String, f64> {
    samples.into_iter().map(|(labels, value)| (labels.to_owned(), value)).collect()
}

/// Sequences and counts every event.
async fn count(g: &TestGateway) {
    while g.service.log.sequence().await.unwrap() > 0 {}
    while g.service.log.count_events().await.unwrap() > 0 {}
}

/// Creates two reviews decided after one and eleven minutes, one expired review, two open reviews, one commit and one
/// rejection.
async fn lived(g: &TestGateway) {
    let expires = g.thread().await;
    g.held(&expires).await;
    g.pass(MINUTE * 24 * 60);
    assert_eq!(countersign::worker::expire::run_once(&g.service).await.unwrap(), 1);
    let denied = g.held(&g.thread().await).await;
    g.pass(MINUTE * 11);
    g.vote(&g.alice, &denied, VoteVerdict::Deny).await.unwrap();
    let thread = g.thread().await;
    let patch = json!({"is_admin": true});
    g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await.expect(422);
    let patch = json!({"requested_action": "update_email"});
    g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await.expect(201);
    g.held(&g.thread().await).await;
    g.pass(MINUTE);
    g.held(&g.thread().await).await;
    let approved = g.held(&g.thread().await).await;
    g.pass(MINUTE);
    g.approved(&approved).await;
}

async fn metrics_equal_the_events(scene: ApiScenario) {
    let g = &scene.gateway;
    lived(g).await;
    let (first, second) = (g.thread().await, g.thread().await);
    g.verify(&first["thread"], &first["transition"], &Value::Null, "w1").await.expect(200);
    g.pass(MINUTE);
    g.verify(&second["thread"], &second["transition"], &Value::Null, "w2").await.expect(200);
    assert_eq!(g.verify(&second["thread"], &first["transition"], &Value::Null, "w3").await.code(), "not_head");
    assert_eq!(g.verify(&json!("nowhere"), &first["transition"], &Value::Null, "w4").await.code(), "unknown_thread");
    assert_eq!(g.post("/v1/verify", &g.writer, json!({"x": 1})).await.code(), "malformed");
    assert_eq!(g.post("/v1/verify", &g.planner, json!({})).await.code(), "forbidden");
    let halt = json!({"proposing": true, "verifying": false, "reason": "drill"});
    g.send(Method::PUT, "/v1/halts/payments", &g.admin, Some(halt)).await.expect(200);
    count(g).await;
    let scrape = Scrape::of(g).await;

    assert_eq!(scrape.all("open_reviews"), told([("payments", 2.0)]));
    let oldest = scrape.one("open_review_oldest_seconds", "payments").unwrap();
    assert!((180.0..240.0).contains(&oldest), "{oldest}");
    let outcomes = [("payments committed", 1.0), ("payments held", 5.0), ("payments rejected", 1.0)];
    assert_eq!(scrape.all("proposals_total"), told(outcomes));
    let endings = [("approved payments", 1.0), ("denied payments", 1.0), ("expired payments", 1.0)];
    assert_eq!(scrape.all("reviews_ended_total"), told(endings));
    assert_eq!(scrape.all("decision_seconds_count"), told([("approved payments", 1.0), ("denied payments", 1.0)]));
    let (quick, slow) = (
        scrape.one("decision_seconds_sum", "approved payments").unwrap(),
        scrape.one("decision_seconds_sum", "denied payments").unwrap(),
    );
    assert!((60.0..90.0).contains(&quick) && (660.0..720.0).contains(&slow), "{quick} {slow}");
    let within = |le: &str| scrape.one("decision_seconds_bucket", &format!("denied payments {le}"));
    assert_eq!((within("300"), within("900"), within("+Inf")), (Some(0.0), Some(1.0), Some(1.0)));
    let denials = scrape.all("verify_denials_total");
    for (code, count) in
        [("not_head", 1.0), ("unknown_thread", 1.0), ("malformed", 1.0), ("forbidden", 1.0), ("expired", 0.0)]
    {
        assert_eq!(denials[code], count, "{code}");
    }
    assert_eq!(scrape.all("reservations"), told([("payments lapsed", 1.0), ("payments standing", 1.0)]));
    assert_eq!(scrape.all("halted"), told([("payments proposing", 1.0)]));
    let length = g.service.log.log_length().await.unwrap() as f64;
    assert_eq!(scrape.one("log_events", ""), Some(length));
    assert_eq!(scrape.all("events_total").values().sum::<f64>(), length);
    assert_eq!(scrape.one("events_total", "access.halted"), Some(1.0));
    for (name, value) in
        [("uncounted_events", 0.0), ("unplaced_events", 0.0), ("store_queue", 0.0), ("store_readable", 1.0)]
    {
        assert_eq!(scrape.one(name, ""), Some(value), "{name}");
    }
    assert_eq!(scrape.one("chain_failures_total", ""), Some(0.0));
    assert_eq!(scrape.all("build_info"), told([(env!("CARGO_PKG_VERSION"), 1.0)]));
    let requests = scrape.all("request_seconds_count");
    assert_eq!(requests["POST /v1/verify 2xx"], 2.0);
    assert_eq!(requests["POST /v1/verify 4xx"], 4.0);
    assert_eq!(requests["POST /v1/threads/{thread}/transitions 4xx"], 1.0);
}

async fn each_event_is_counted_by_one_of_several_gateways(scene: ApiScenario) {
    let g = &scene.gateway;
    lived(g).await;
    while g.service.log.sequence().await.unwrap() > 0 {}
    let others = [scene.another().await, scene.another().await];
    let all = [&*g.service, &others[0], &others[1]];
    futures_util::future::join_all(all.map(countersign::worker::count_insight::run_once)).await;
    let mut held = 0.0;
    for service in all {
        let scrape = Scrape::read(&service.operations.metrics_text().await);
        held += scrape.one("proposals_total", "payments held").unwrap_or_default();
        assert_eq!(scrape.one("open_reviews", "payments"), Some(2.0), "what is so is told by each");
    }
    assert_eq!(held, 5.0);
}

async fn unsequenced_events_are_counted_with_their_age(scene: ApiScenario) {
    let g = &scene.gateway;
    while g.service.log.sequence().await.unwrap() > 0 {}
    g.thread().await;
    g.pass(MINUTE);
    let scrape = Scrape::of(g).await;
    assert_eq!(scrape.one("unplaced_events", ""), Some(1.0));
    let oldest = scrape.one("unplaced_event_oldest_seconds", "").unwrap();
    assert!((60.0..90.0).contains(&oldest), "{oldest}");
    assert_eq!(scrape.one("uncounted_events", ""), scrape.one("log_events", ""));
    while g.service.log.sequence().await.unwrap() > 0 {}
    g.pass(LATER);
    let scrape = Scrape::of(g).await;
    assert_eq!(
        (scrape.one("unplaced_events", ""), scrape.one("unplaced_event_oldest_seconds", "")),
        (Some(0.0), Some(0.0))
    );
}

#[tokio::test]
async fn a_broken_chain_is_counted() {
    let scene = ApiScenario::on_sqlite(crate::gateway::POLICY).await;
    let (g, other) = (&scene.gateway, scene.another().await);
    let thread = g.thread().await;
    // Another gateway changed the gateway's row, so this gateway's cache is outdated.
    for verifying in [true, false] {
        let halt = Halt { proposing: false, verifying, reason: "drill".to_owned() };
        other.operations.set_halt(&"tests".try_into().unwrap(), &HaltScope::All, &halt).await.unwrap();
    }
    let database = Connection::open(g.folder.path().join("countersign.db")).unwrap();
    database.execute_batch("UPDATE events SET body = replace(body, 'payments', 'refunds') WHERE owner <> ''").unwrap();
    let denied = g.verify(&thread["thread"], &thread["transition"], &Value::Null, "w").await;
    assert_eq!(denied.code(), "chain_broken");
    let scrape = Scrape::of(g).await;
    assert_eq!(scrape.one("chain_failures_total", ""), Some(1.0));
    assert_eq!(scrape.one("verify_denials_total", "chain_broken"), Some(1.0));
}

#[tokio::test]
async fn unreadable_metrics_are_left_out() {
    let g = spawn_gateway().await;
    g.held(&g.thread().await).await;
    assert_eq!(Scrape::of(&g).await.one("open_reviews", "payments"), Some(1.0));
    let database = Connection::open(g.folder.path().join("countersign.db")).unwrap();
    database.execute_batch("UPDATE holds SET body = body || ' '").unwrap();
    g.pass(LATER);
    let scrape = Scrape::of(&g).await;
    assert_eq!((scrape.one("store_readable", ""), scrape.one("open_reviews", "payments")), (Some(0.0), None));
    assert!(scrape.one("log_events", "").is_none());
    assert!(scrape.all("request_seconds_count").contains_key("POST /v1/threads 2xx"));
}

/// Requests of unauthenticated clients are counted under existing labels.
#[tokio::test]
async fn unauthenticated_clients_add_no_labels() {
    let g = spawn_gateway().await;
    for number in 0..5 {
        let method = Method::from_bytes(format!("MADEUP{number}").as_bytes()).unwrap();
        g.send(method, &format!("/nowhere/{number}?q={number}"), "x", None).await;
        g.get(&format!("/v1/threads/made-up-{number}"), &g.host).await.expect(404);
    }
    let requests = Scrape::of(&g).await.all("request_seconds_count");
    assert!(
        !requests.keys().any(|it| it.contains("MADEUP") || it.contains("made-up") || it.contains("nowhere")),
        "{requests:?}"
    );
    assert_eq!(requests["GET /v1/threads/{thread} 4xx"], 5.0);
    assert_eq!(
        requests.iter().filter(|it| it.0.starts_with("other unmatched")).map(|it| it.1).sum::<f64>(),
        5.0,
        "{requests:?}"
    );
}

#[actix_web::test]
async fn configuration_sets_the_readers_of_metrics() {
    let g = spawn_gateway().await;
    for (access, nobody, host, monitor) in [
        (MetricsAccess::Off, 404, 404, 404),
        (MetricsAccess::Token, 401, 403, 200),
        (MetricsAccess::Open, 200, 200, 200),
    ] {
        let edge = EdgeConfig { metrics: access, ..edge(&g.url, TrustedProxies::default()) };
        let site = init_service(site(AppState::new(Arc::clone(&g.service), Arc::new(edge)))).await;
        for (token, status) in [(None, nobody), (Some(&g.host), host), (Some(&g.monitor), monitor)] {
            let request = TestRequest::get().uri("/metrics").peer_addr("127.0.0.1:1".parse().unwrap());
            let request = match token {
                Some(token) => request.insert_header(("authorization", format!("Bearer {token}"))),
                None => request,
            };
            let answer = call_service(&site, request.to_request()).await;
            assert_eq!(answer.status().as_u16(), status, "{access:?} {token:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_worker_says_whether_it_works() {
    /// Workers that are listed under the name of the earlier release as well.
    const FORMER_NAMES: usize = 6;
    let g = spawn_gateway().await;
    let workers = Workers::start(&g.service, Duration::from_millis(10));
    let all = async {
        loop {
            let text = g.service.operations.metrics_text().await;
            if text.matches("countersign_worker_failing{").count() == workers.count() + FORMER_NAMES {
                break text;
            }
            tokio::task::yield_now().await;
        }
    };
    let text = tokio::time::timeout(MINUTE, all).await.unwrap();
    workers.stop().await;
    assert!(Scrape::read(&text).all("worker_failing").values().all(|it| *it == 0.0), "{text}");
}
