//! Tests dry runs: judgements without effect.

use serde_json::{Value, json};

use crate::gateway::{ApiResponse, POLICY, TestGateway, spawn_gateway};

const CALL: &str = "/v1/flows/payments/judgements";

async fn judged(g: &TestGateway, patch: Value) -> ApiResponse {
    let state = json!({"target_user_id": 17, "requested_action": "none", "payment": {"amount": 10}});
    g.post(CALL, &g.auditor, json!({"state": state, "node": "planner", "patch": patch})).await
}

#[tokio::test]
async fn dry_run_judges_a_proposal_without_effect() {
    let g = spawn_gateway().await;
    let before = g.get("/v1/events?limit=500", &g.auditor).await.expect(200);
    let told = judged(&g, json!({"requested_action": "refund"})).await.expect(200);
    assert_eq!((&told["outcome"], &told["errors"], &told["reasons"]), (&json!("commit"), &json!([]), &json!([])));
    let change = json!([{"pointer": "/requested_action", "before": "none", "after": "refund"}]);
    assert_eq!(told["diff"], change);
    let told = judged(&g, json!({"target_user_id": 42})).await.expect(200);
    assert_eq!((&told["outcome"], &told["reasons"][0]["code"]), (&json!("hold"), &json!("protected")));
    let told = judged(&g, json!({"is_admin": true, "payment": {"card": "4111111111111111"}})).await.expect(200);
    assert_eq!((&told["outcome"], &told["diff"]), (&json!("reject"), &json!([])));
    assert_eq!(told["errors"][0]["code"], "write_not_allowed");
    assert_eq!(g.get("/v1/events?limit=500", &g.auditor).await.expect(200), before);
    assert_eq!(g.get("/v1/rejections", &g.auditor).await.expect(200)["rejections"], json!([]));
}

#[tokio::test]
async fn dry_run_can_use_a_candidate_policy() {
    let g = spawn_gateway().await;
    let ask = |policy: &str| json!({"state": {"target_user_id": 17}, "node": "planner", "patch": {"target_user_id": 42}, "policy": policy});
    let open = "flow = \"payments\"\n[nodes.planner]\nreads = [\"target_user_id\"]\nwrites = [\"target_user_id\"]\n";
    let told = g.post(CALL, &g.admin, ask(open)).await.expect(200);
    assert_eq!(told["outcome"], "commit");
    let other = g.post(CALL, &g.admin, ask(&open.replace("payments", "refunds"))).await;
    assert_eq!((other.status, other.code()), (400, "malformed"));
    let unsound = g.post(CALL, &g.admin, ask("flow = 1")).await;
    assert_eq!((unsound.status, unsound.code()), (422, "policy_refused"));
    let active = judged(&g, json!({"target_user_id": 42})).await.expect(200);
    assert_eq!(active["outcome"], "hold", "the candidate was not put in force: {POLICY}");
    let gone = g.post("/v1/flows/nowhere/judgements", &g.admin, ask(open)).await;
    assert_eq!((gone.status, gone.code()), (404, "not_found"));
    let no_state = g.post(CALL, &g.admin, json!({"state": [], "node": "planner", "patch": {}})).await;
    assert_eq!((no_state.status, no_state.code()), (400, "malformed"));
}

#[tokio::test]
async fn dry_run_can_suppose_a_caller_and_earlier_steps() {
    let g = spawn_gateway().await;
    let rules = r#"
flow = "payments"
[nodes.planner]
reads = ["$"]
writes = ["$"]
[budgets.node]
calls = 2
[tools]
allow = ["crm.find"]
[[rules]]
when = "principal.owner != 'platform' || principal.id != 'one' || !('parser' in thread.committed_nodes)"
then = "deny"
reason = "not so"
"#;
    let ask = |more: Value| {
        let mut ask = json!({"state": {}, "node": "planner", "patch": {"a": 1}, "policy": rules});
        ask.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let g = &g;
        async move { g.post(CALL, &g.auditor, ask).await }
    };
    let principal = json!({"id": "one", "owner": "platform"});
    let told = ask(json!({"principal": principal, "committed_nodes": ["parser"]})).await.expect(200);
    assert_eq!(told["outcome"], "commit");
    let other = json!({"principal": {"id": "one", "owner": "others"}, "committed_nodes": ["parser"]});
    assert_eq!(ask(other).await.expect(200)["errors"][0]["code"], "rule_denied");
    for left_open in [json!({}), json!({"principal": principal}), json!({"committed_nodes": ["parser"]})] {
        let told = ask(left_open).await.expect(200);
        assert_eq!(told["errors"][0]["code"], "rule_error");
        assert!(
            told["errors"][0]["detail"].as_str().unwrap().ends_with("set `principal` and `committed_nodes`"),
            "{told}"
        );
    }
    let calls = |calls: u64| {
        json!({
            "principal": principal, "committed_nodes": ["parser"], "totals": {"planner": {"calls": calls}},
            "tool": {"name": "crm.find", "arguments": {}},
        })
    };
    assert_eq!(ask(calls(1)).await.expect(200)["outcome"], "commit");
    assert_eq!(ask(calls(2)).await.expect(200)["errors"][0]["code"], "budget");
    let wrong = ask(json!({"principal": {"id": "one"}})).await;
    assert_eq!((wrong.status, &wrong.body["errors"][0]["pointer"]), (400, &json!("/principal")));
}
