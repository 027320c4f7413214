//! Tests tools and budgets in proposals, over HTTP and on both databases.

use countersign_domain::identity::account::MachineRole;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::attacks::policy_with;
use crate::gateway::{ApiResponse, TestGateway, owned_token};
use crate::rules::{ApiScenario, codes};

on_both! {
    statement_has_only_the_commitment_of_tool_arguments(super::tooled()),
    tool_outside_the_allow_list_is_rejected(super::tooled()),
    malformed_tool_call_is_refused_with_its_path(super::tooled()),
    a_call_that_is_held_counts_once_it_is_approved(super::tooled()),
    a_call_that_is_denied_does_not_count(super::tooled()),
    concurrent_calls_commit_only_within_the_budget(super::tooled()),
    response_to_one_tool_call_is_not_repeated_for_another(super::tooled()),
    usage_does_not_change_the_identity_of_a_proposal(super::tooled()),
    dry_run_of_a_tool_call_has_no_effect(super::tooled()),
}

fn tooled() -> String {
    policy_with(
        "[approval]\n",
        r#"[tools]
allow = ["crm.*", "payments.refund"]
deny = ["*.delete"]
hide = ["card"]

[nodes.planner.budget]
calls = 3

[budgets.thread]
tokens = 10000

[[rules]]
name = "small refunds"
tools = ["payments.refund"]
when = "!(tool.arguments.amount <= 100)"
then = "hold"
reason = "refunds above 100 are asked about"

[approval]
"#,
    )
}

fn find(q: &str) -> Value {
    json!({"name": "crm.find", "arguments": {"q": q, "card": "4999888877776666"}})
}

fn refund(amount: i64) -> Value {
    json!({"name": "payments.refund", "arguments": {"amount": amount}})
}

/// Sends the planner's tool call with an empty patch and a usage of one token.
async fn calls(g: &TestGateway, thread: &Value, parent: &Value, tool: Value) -> ApiResponse {
    sends(g, thread, json!({"node": "planner", "parent": parent, "patch": {}, "tool": tool, "usage": {"tokens": 1}}))
        .await
}

async fn sends(g: &TestGateway, thread: &Value, body: Value) -> ApiResponse {
    g.post(&format!("/v1/threads/{}/transitions", thread.as_str().unwrap()), &g.planner, body).await
}

async fn spent(g: &TestGateway, thread: &Value) -> Value {
    g.get(&format!("/v1/threads/{}", thread.as_str().unwrap()), &g.host).await.expect(200)["spent"].clone()
}

async fn statement_has_only_the_commitment_of_tool_arguments(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let done = calls(g, &thread["thread"], &thread["transition"], find("who")).await.expect(201);
    let path = format!("/v1/transitions/{}", done["transition"].as_str().unwrap());
    let other = owned_token(&g.service, "planner2", MachineRole::Agent, &["planner"], "platform").await;
    let shown = json!([{"pointer": "/card", "hidden": true}, {"pointer": "/q", "value": "who"}]);
    for (token, arguments) in [
        (&g.planner, &shown),
        (&g.auditor, &shown),
        (&g.host, &shown),
        (&other, &Value::Null),
        (&g.parser, &Value::Null),
    ] {
        let told = g.get(&path, token).await.expect(200);
        assert_eq!(&told["arguments"], arguments);
        let stated = &told["statement"]["tool"];
        assert_eq!((&stated["name"], &told["statement"]["usage"]), (&json!("crm.find"), &json!({"tokens": 1})));
        assert!(stated["arguments"].as_str().unwrap().starts_with("sha256:"));
        assert!(!told.to_string().contains("4999888877776666"), "{told}");
    }
    let told = g.get(&path, &g.parser).await.expect(200).to_string();
    assert!(!told.contains("who"), "what one node sends is nothing for another: {told}");
    scene.passes_an_audit().await;
}

async fn tool_outside_the_allow_list_is_rejected(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let (id, head) = (&thread["thread"], &thread["transition"]);
    for name in ["mail.send", "crm.delete", "CRM.find"] {
        let refused = calls(g, id, head, json!({"name": name, "arguments": {"q": "secret-words"}})).await;
        assert_eq!((refused.status, codes(&refused)), (422, vec!["tool_not_allowed"]), "{name}");
        assert!(!refused.body.to_string().contains("secret-words"));
    }
    let rejections = g.get("/v1/rejections", &g.auditor).await.expect(200);
    assert_eq!(rejections["rejections"][0]["tool"], "CRM.find");
    assert!(!rejections.to_string().contains("secret-words"));
    assert_eq!(spent(g, id).await, json!({"calls": 0, "tokens": 0, "cost": 0}), "what is rejected does not count");
    scene.passes_an_audit().await;
}

async fn malformed_tool_call_is_refused_with_its_path(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let (id, head) = (&thread["thread"], &thread["transition"]);
    let body = json!({"node": "planner", "parent": head, "patch": {}, "usage": {"tokens": 1}});
    for (member, value, place) in [
        ("tool", json!("crm.find"), "/tool"),
        ("tool", json!({"name": "crm.find"}), "/tool/arguments"),
        ("tool", json!({"name": "crm.find", "arguments": []}), "/tool/arguments"),
        ("tool", json!({"name": "crm find", "arguments": {}}), "/tool/name"),
        ("tool", json!({"name": "crm.find", "arguments": {}, "more": 1}), "/tool/more"),
        ("usage", json!({"tokens": -1}), "/usage/tokens"),
        ("usage", json!({"cost": 1e-9}), "/usage/cost"),
        ("usage", json!([]), "/usage"),
    ] {
        let mut body = body.clone();
        body[member] = value.clone();
        let refused = sends(g, id, body).await;
        assert_eq!(refused.status, 400, "{value}");
        assert_eq!(refused.body["errors"][0]["pointer"], place, "{value}: {}", refused.body);
    }
    for member in ["tool", "usage"] {
        let mut body = json!({"node": "planner", "parent": head, "patch": {}, "reaffirm": true});
        body[member] = if member == "tool" { find("x") } else { json!({"tokens": 1}) };
        assert_eq!(sends(g, id, body).await.status, 400, "a reaffirmation calls nothing");
    }
    let unsaid = sends(g, id, json!({"node": "planner", "parent": head, "patch": {}})).await;
    assert_eq!(codes(&unsaid), ["budget"], "what is bounded must be said");
    for arguments in [json!({}), json!({"amount": "5"}), json!({"amount": null})] {
        let refused = calls(g, id, head, json!({"name": "payments.refund", "arguments": arguments})).await;
        assert_eq!((refused.status, codes(&refused)), (422, vec!["rule_error"]), "{arguments}");
    }
}

async fn a_call_that_is_held_counts_once_it_is_approved(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let id = &thread["thread"];
    let held = calls(g, id, &thread["transition"], refund(101)).await.expect(202);
    assert_eq!(held["reasons"][0]["text"], "refunds above 100 are asked about", "{held}");
    assert_eq!(spent(g, id).await["calls"], 0);
    let review = held["review"]["id"].as_str().unwrap().try_into().unwrap();
    let facts = g.service.reviews.review(&review, &g.alice).await.unwrap();
    assert_eq!(facts.call.unwrap().name.as_str(), "payments.refund");
    g.approved(&held).await;
    assert_eq!(spent(g, id).await, json!({"calls": 1, "tokens": 1, "cost": 0}));
    scene.passes_an_audit().await;
}

async fn a_call_that_is_denied_does_not_count(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let held = calls(g, &thread["thread"], &thread["transition"], refund(101)).await.expect(202);
    g.vote(&g.alice, &held, countersign_domain::reviews::VoteVerdict::Deny).await.unwrap();
    assert_eq!(spent(g, &thread["thread"]).await, json!({"calls": 0, "tokens": 0, "cost": 0}));
    scene.passes_an_audit().await;
}

async fn concurrent_calls_commit_only_within_the_budget(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let id = &thread["thread"];
    let caller = |number: usize| async move {
        let mut committed = 0;
        for turn in 0..40 {
            let head = g.get(&format!("/v1/threads/{}", id.as_str().unwrap()), &g.host).await.expect(200);
            let answer = calls(g, id, &head["transition"], find(&format!("{number}-{turn}"))).await;
            match answer.status {
                201 => committed += 1,
                422 => {
                    assert_eq!(codes(&answer), ["budget"]);
                    return committed;
                }
                _ => assert!([409, 503].contains(&answer.status), "{}", answer.body),
            }
        }
        panic!("never told that the budget is used up")
    };
    let committed: usize = join_all((0..6).map(caller)).await.into_iter().sum();
    assert_eq!((committed, &spent(g, id).await["calls"]), (3, &json!(3)));
    scene.passes_an_audit().await;
}

async fn response_to_one_tool_call_is_not_repeated_for_another(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let (id, head) = (&thread["thread"], &thread["transition"]);
    let first = calls(g, id, head, find("one")).await.expect(201);
    assert_eq!(calls(g, id, head, find("one")).await.expect(201), first, "asking twice is asking once");
    for other in [find("two"), json!({"name": "crm.read", "arguments": {"q": "one", "card": "4999888877776666"}})] {
        let answer = calls(g, id, head, other).await;
        assert_eq!((answer.status, answer.code()), (409, "head_moved"), "{}", answer.body);
    }
    let without = sends(g, id, json!({"node": "planner", "parent": head, "patch": {}, "usage": {"tokens": 1}})).await;
    assert_eq!(without.status, 409);
    assert_eq!(spent(g, id).await["calls"], 1);
}

async fn usage_does_not_change_the_identity_of_a_proposal(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let (id, head) = (&thread["thread"], &thread["transition"]);
    let body = |tokens: u64| json!({"node": "planner", "parent": head, "patch": {}, "usage": {"tokens": tokens}});
    let refused = sends(g, id, body(10_001)).await;
    assert_eq!(codes(&refused), ["budget"]);
    let less = sends(g, id, body(1)).await;
    assert_eq!(codes(&less), ["budget"], "it was answered already; to ask anew is another attempt");
    let mut anew = body(1);
    anew["attempt"] = json!(2);
    sends(g, id, anew).await.expect(201);
}

async fn dry_run_of_a_tool_call_has_no_effect(scene: ApiScenario) {
    let g = &scene.gateway;
    let ask = |tool: Value| json!({"state": {"requested_action": "none", "target_user_id": 17}, "patch": {}, "node": "planner", "tool": tool, "usage": {"tokens": 1}});
    for (tool, outcome) in
        [(find("x"), "commit"), (refund(101), "hold"), (json!({"name": "mail", "arguments": {}}), "reject")]
    {
        let told = g.post("/v1/flows/payments/judgements", &g.admin, ask(tool)).await.expect(200);
        assert_eq!(told["outcome"], outcome, "{told}");
    }
    let malformed = g.post("/v1/flows/payments/judgements", &g.admin, ask(json!("x"))).await;
    assert_eq!((malformed.status, &malformed.body["errors"][0]["pointer"]), (400, &json!("/tool")));
}
