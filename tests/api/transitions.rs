//! Tests transition rules and rules that warn, over HTTP and on both databases.

use serde_json::{Value, json};

use crate::attacks::policy_with;
use crate::gateway::TestGateway;
use crate::rules::ApiScenario;

on_both_in_full! {
    value_that_goes_back_in_its_order_is_rejected(super::following()),
    new_thread_must_satisfy_its_rules(super::following()),
    a_rollback_goes_back_on_purpose(super::following()),
    result_of_a_writer_must_satisfy_the_rules(super::following()),
    warning_is_stored_and_shown_to_permitted_readers(super::warning()),
    a_held_request_has_its_warnings(super::warning()),
}

fn following() -> String {
    policy_with(
        "[approval]\n",
        r#"[transitions]
ordered_enum = { "$.requested_action" = ["none", "update_email", "refund"] }
immutable = ["payment.card"]

[approval]
"#,
    )
    .replace("writes = [\"result_ref\"]", "writes = [\"result_ref\", \"requested_action\", \"payment.card\"]")
}

fn warning() -> String {
    policy_with(
        "[approval]\n",
        r#"[[rules]]
name = "refunds"
when = "change.path == '/requested_action' && change.after == 'refund'"
then = "warn"
reason = "a refund: look twice"

[approval]
"#,
    )
}

async fn value_that_goes_back_in_its_order_is_rejected(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let ask = |parent: Value, patch: Value| {
        let id = thread["thread"].clone();
        async move { g.propose(&id, &parent, (&g.planner, "planner"), patch).await }
    };
    let on = ask(thread["transition"].clone(), json!({"requested_action": "update_email"})).await.expect(201);
    let back = ask(on["transition"].clone(), json!({"requested_action": "none"})).await;
    assert_eq!((back.status, back.code()), (422, "rejected"));
    let error = json!({
        "pointer": "/requested_action", "code": "order_regressed", "value": "none",
        "detail": "the value went back in its order",
    });
    assert_eq!(back.body["errors"], json!([error]));
    ask(on["transition"].clone(), json!({"requested_action": "refund"})).await.expect(201);
    scene.passes_an_audit().await;
}

async fn new_thread_must_satisfy_its_rules(scene: ApiScenario) {
    let g = &scene.gateway;
    let state = json!({"requested_action": "none", "target_user_id": 17, "payment": {"amount": 10}});
    let refused = g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": state})).await;
    assert_eq!((refused.status, &refused.body["errors"][0]["code"]), (422, &json!("immutable")));
    assert_eq!(refused.body["errors"].as_array().unwrap().len(), 1);
}

async fn a_rollback_goes_back_on_purpose(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let patch = json!({"requested_action": "refund"});
    let on = g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await.expect(201);
    let path = format!("/v1/threads/{}/rollbacks", thread["thread"].as_str().unwrap());
    let body = json!({"node": "planner", "parent": on["transition"], "to_version": 0});
    let held = g.post(&path, &g.planner, body).await.expect(202);
    assert_eq!(g.approved(&held).await["version"], 2);
    scene.passes_an_audit().await;
}

async fn result_of_a_writer_must_satisfy_the_rules(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let patch = json!({"requested_action": "update_email"});
    let on = g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await.expect(201);
    g.verify(&thread["thread"], &on["transition"], &Value::Null, "w1").await.expect(200);
    let result = json!({"result": {"result_ref": "row 1", "requested_action": "none"}});
    let confirmed = g.post("/v1/writes/w1/confirm", &g.writer, result).await.expect(200);
    assert_eq!((&confirmed["outcome"], &confirmed["result_refused"]), (&json!("confirmed"), &json!(true)));
    assert_eq!(confirmed["errors"][0]["code"], "order_regressed", "{confirmed}");
    scene.passes_an_audit().await;
}

/// The data of the events of this type, the latest last.
async fn told_by_events(g: &TestGateway, kind: &str) -> Vec<Value> {
    while g.service.log.sequence().await.unwrap() > 0 {}
    let (placed, _) = g.service.log.events_after(0, None, 1000).await.unwrap();
    let events = placed.into_iter().map(|it| serde_json::to_value(it.event).unwrap());
    events.filter(|it| it["type"] == kind).map(|it| it["data"].clone()).collect()
}

fn refunds() -> Value {
    json!([{"rule": "refunds", "pointer": "/requested_action", "detail": "a refund: look twice"}])
}

async fn warning_is_stored_and_shown_to_permitted_readers(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let ask = || {
        let patch = json!({"requested_action": "refund"});
        g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch)
    };
    let told = ask().await.expect(201);
    assert_eq!((&told["outcome"], &told["warnings"]), (&json!("committed"), &refunds()));
    assert_eq!(ask().await.expect(201), told, "asking again tells the same");
    let path = format!("/v1/transitions/{}", told["transition"].as_str().unwrap());
    for (token, warnings) in
        [(&g.planner, refunds()), (&g.auditor, refunds()), (&g.host, refunds()), (&g.parser, Value::Null)]
    {
        assert_eq!(g.get(&path, token).await.expect(200)["warnings"], warnings);
    }
    let event = told_by_events(g, "transition.committed").await.pop().unwrap();
    assert_eq!((&event["warnings"][0]["rule"], event["warnings"].as_array().unwrap().len()), (&json!("refunds"), 1));
    let patch = json!({"raw_text": "x"});
    let quiet = g.propose(&thread["thread"], &told["transition"], (&g.parser, "input_parser"), patch).await.expect(201);
    assert_eq!(quiet["warnings"], Value::Null);
    assert_eq!(told_by_events(g, "transition.committed").await.pop().unwrap()["warnings"], Value::Null);
    let supposed = json!({"state": {"requested_action": "none", "target_user_id": 17}, "node": "planner", "patch": {"requested_action": "refund"}});
    let supposed = g.post("/v1/flows/payments/judgements", &g.auditor, supposed).await.expect(200);
    assert_eq!((&supposed["outcome"], &supposed["warnings"][0]["rule"]), (&json!("commit"), &json!("refunds")));
    scene.passes_an_audit().await;
}

async fn a_held_request_has_its_warnings(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let patch = json!({"requested_action": "refund", "target_user_id": 42});
    let held = g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await.expect(202);
    assert_eq!((&held["warnings"], held["reasons"].as_array().unwrap().len()), (&refunds(), 1));
    assert_eq!(told_by_events(g, "transition.held").await.pop().unwrap()["warnings"][0]["rule"], "refunds");
    let (_, secret) = g.service.identity.sign_in("alice", "correct horse battery".to_owned()).await.unwrap();
    let url = format!("{}/reviews/{}", g.url, held["review"]["id"].as_str().unwrap());
    let page = g.http.get(url).header("cookie", format!("countersign={secret}")).send().await.unwrap();
    let page = page.text().await.unwrap();
    assert!(page.contains("Warnings") && page.contains("a refund: look twice"), "{page}");
    g.approved(&held).await;
    let event = told_by_events(g, "transition.committed").await.pop().unwrap();
    assert_eq!(event["warnings"][0]["rule"], "refunds", "what was warned of stands beside the commit too");
    scene.passes_an_audit().await;
}
