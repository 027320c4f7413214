//! The context boundary: each refused envelope, each proposal beyond a budget and each rollback leaves an event and a metric. On
//! both databases.

use serde_json::{Value, json};

use crate::gateway::{ApiResponse, POLICY, TestGateway};
use crate::rules::{ApiScenario, codes};

on_both_in_full! {
    a_refused_envelope_leaves_an_event_and_a_metric(super::policy()),
    a_tampered_envelope_leaves_an_event_and_a_metric(super::POLICY),
    a_proposal_beyond_a_budget_leaves_an_event_and_a_metric(super::bounded()),
    a_rollback_leaves_an_event_and_a_metric(super::POLICY),
}

const HOUR_MILLIS: i64 = 3_600_000;

fn policy() -> String {
    POLICY.replacen("rollback = true\n", "rollback = true\nmax_tokens = 40\nrequires = [\"raw_text\"]\n", 1)
}

fn bounded() -> String {
    POLICY.replacen("[approval]\n", "[budgets.thread]\ncontext_tokens = 1\n\n[approval]\n", 1)
}

async fn thread(g: &TestGateway, state: Value) -> Value {
    g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": state})).await.expect(201)
}

async fn envelope(g: &TestGateway, thread: &Value) -> ApiResponse {
    g.get(&format!("/v1/threads/{}/envelope?node=planner", thread["thread"].as_str().unwrap()), &g.planner).await
}

/// The data of the events of a type, and everything that an auditor reads of all events.
async fn events(g: &TestGateway, kind: &str) -> (Vec<Value>, String) {
    g.service.log.sequence().await.unwrap();
    let told = g.get("/v1/events?limit=1000", &g.auditor).await.expect(200);
    let of_kind = told["events"].as_array().unwrap().iter().filter(|it| it["type"] == kind);
    (of_kind.map(|it| it["data"].clone()).collect(), told.to_string())
}

async fn counted(g: &TestGateway, sample: &str) -> f64 {
    g.service.log.count_events().await.unwrap();
    let answer = g.http.get(format!("{}/metrics", g.url)).bearer_auth(&g.monitor).send().await.unwrap();
    let text = answer.text().await.unwrap();
    let line = text.lines().find_map(|it| it.strip_prefix(&format!("countersign_{sample} ")).map(str::to_owned));
    line.unwrap_or_else(|| panic!("{sample}: {text}")).parse().unwrap()
}

async fn refusals(g: &TestGateway, code: &str) -> f64 {
    counted(g, &format!("boundary_refusals_total{{code=\"{code}\"}}")).await
}

async fn a_refused_envelope_leaves_an_event_and_a_metric(scene: ApiScenario) {
    let g = &scene.gateway;
    let planner = g.service.identity.token_of(&g.planner).await.unwrap().record.principal();
    let bare = thread(g, json!({"requested_action": "none", "target_user_id": 123_456_789_012_345_i64})).await;
    assert_eq!(refusals(g, "required_missing").await, 0.0, "it is there before anything happens");
    for _ in 0..5 {
        assert_eq!(envelope(g, &bare).await.code(), "required_missing");
    }
    let told = json!({"by": planner, "code": "required_missing", "thread": bare["thread"], "node": "planner",
        "version": 0, "times": 1, "others": 0});
    let (of_kind, all) = events(g, "envelope.refused").await;
    assert_eq!(of_kind, [told], "the same again within an hour is only counted");
    assert!(!all.contains("123456789012345"), "no value is told");
    assert_eq!(refusals(g, "required_missing").await, 5.0);
    let large =
        thread(g, json!({"raw_text": "word ".repeat(50), "requested_action": "none", "target_user_id": 17})).await;
    let policy = "max_tokens = 10\nrequires = [\"raw_text\"]\n";
    let policy = POLICY.replacen("rollback = true\n", &format!("rollback = true\n{policy}"), 1);
    crate::amendments::activates(g, &policy, json!([])).await.expect(200);
    assert_eq!(envelope(g, &large).await.code(), "over_budget");
    assert_eq!(refusals(g, "over_budget").await, 1.0);
    assert_eq!(events(g, "envelope.refused").await.0[1]["code"], "over_budget");
    g.clock.set_millis(HOUR_MILLIS);
    assert_eq!(envelope(g, &bare).await.code(), "required_missing");
    assert_eq!(
        events(g, "envelope.refused").await.0[2],
        json!({"by": planner, "code": "required_missing",
        "thread": bare["thread"], "node": "planner", "version": 0, "times": 5, "others": 0})
    );
    scene.passes_an_audit().await;
}

async fn a_tampered_envelope_leaves_an_event_and_a_metric(scene: ApiScenario) {
    let g = &scene.gateway;
    let verify =
        async |envelope: &Value| g.post("/v1/envelopes/verify", &g.planner, json!({"envelope": envelope})).await;
    let thread = g.thread().await;
    let sealed = envelope(g, &thread).await.expect(200);
    let mut spoiled = sealed.clone();
    spoiled["payload"]["raw_text"] = "Pay Mallory.".into();
    assert_eq!(verify(&spoiled).await.code(), "envelope_mismatch");
    let patch = json!({"requested_action": "update_email"});
    g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await.expect(201);
    assert_eq!(verify(&sealed).await.code(), "stale");
    let (told, all) = events(g, "envelope.refused").await;
    let shown: Vec<_> = told.iter().map(|it| (&it["code"], &it["thread"], &it["node"], &it["version"])).collect();
    let (none, stale, planner) = (Value::Null, json!("stale"), json!("planner"));
    let first = (&json!("envelope_mismatch"), &none, &none, &none);
    assert_eq!(shown, [first, (&stale, &thread["thread"], &planner, &json!(1))]);
    assert!(!all.contains("Mallory"), "nothing of an envelope is told");
    assert_eq!((refusals(g, "envelope_mismatch").await, refusals(g, "stale").await), (1.0, 1.0));
    scene.passes_an_audit().await;
}

async fn a_proposal_beyond_a_budget_leaves_an_event_and_a_metric(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let patch = json!({"requested_action": "update_email"});
    let over = g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await;
    assert_eq!((over.status, codes(&over)), (422, vec!["budget"]));
    assert_eq!(events(g, "transition.rejected").await.0[0]["codes"], json!(["budget"]));
    assert_eq!(refusals(g, "budget").await, 1.0);
    scene.passes_an_audit().await;
}

async fn a_rollback_leaves_an_event_and_a_metric(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let patch = json!({"requested_action": "update_email"});
    let on = g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await.expect(201);
    let path = format!("/v1/threads/{}/rollbacks", thread["thread"].as_str().unwrap());
    let back = json!({"node": "planner", "parent": on["transition"], "to_version": 0});
    let answer = g.post(&path, &g.planner, back).await;
    if answer.status == 202 {
        g.approved(&answer.expect(202)).await;
    }
    let (told, _) = events(g, "transition.committed").await;
    let restores: Vec<_> = told.iter().map(|it| it.get("restores")).collect();
    assert_eq!(restores, [None, Some(&thread["transition"])]);
    assert_eq!(counted(g, "rollbacks_total{flow=\"payments\"}").await, 1.0);
    scene.passes_an_audit().await;
}
