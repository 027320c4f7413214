//! Tests approvals that admit a change for all later heads (`covers = "commit"`), and their revocation before a write.
//! On both databases.

use countersign_domain::chain::hash::Digest;
use serde_json::{Value, json};

use crate::attacks::policy_with;
use crate::gateway::{ApiResponse, TestGateway};
use crate::rules::ApiScenario;
use crate::under_new_policy::activate;

on_both_in_full! {
    commit_on_top_of_an_approval_for_later_heads_needs_no_receipt,
    commit_on_top_of_a_revoked_approval_requires_its_own_approval,
    later_revocation_stops_earlier_commits_on_top,
    approval_revoked_during_an_aborted_write_is_not_written_later,
    revocation_does_not_undo_an_allowed_write,
    revocation_after_a_confirmed_write_has_no_effect,
    branch_of_a_head_with_a_revoked_approval_requires_its_own_approval,
    observed_change_requires_its_own_approval_once_the_flow_enforces,
}

fn policy() -> String {
    let for_good = policy_with("[approval]\n", "[approval]\ncovers = \"commit\"\n");
    for_good.replace("rollback = true", "rollback = true\nfork = true")
}

/// Makes an approved change of the target user. Returns its thread, the held proposal and the decision.
async fn approved(g: &TestGateway) -> (Value, Value, Value) {
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    let decision = g.approved(&held).await;
    (thread["thread"].clone(), held["transition"].clone(), decision)
}

/// Commits a harmless change on top of a head.
async fn on_top(g: &TestGateway, thread: &Value, head: &Value, text: &str) -> Value {
    let done = g.propose(thread, head, (&g.parser, "input_parser"), json!({"raw_text": text})).await.expect(201);
    done["transition"].clone()
}

async fn take_back(g: &TestGateway, decision: &Value) {
    let path = format!("/v1/receipts/{}/revocation", decision["nonce"].as_str().unwrap());
    g.post(&path, &g.admin, json!({"reason": "a mistake"})).await.expect(200);
}

async fn written(g: &TestGateway, thread: &Value, head: &Value, name: &str) -> ApiResponse {
    g.verify(thread, head, &Value::Null, name).await
}

fn refused(answer: &ApiResponse, code: &str) {
    assert_eq!((answer.status, answer.code()), (403, code), "{:#}", answer.body);
}

/// Reaffirms the head, approves it and writes it.
async fn is_written_once_approved_anew(g: &TestGateway, thread: &Value, head: &Value) {
    let body = json!({"node": "planner", "parent": head, "patch": {}, "reaffirm": true});
    let path = format!("/v1/threads/{}/transitions", thread.as_str().unwrap());
    let held = g.post(&path, &g.planner, body).await.expect(202);
    let decision = g.approved(&held).await;
    g.verify(thread, &held["transition"], &decision["receipt"], "anew").await.expect(200);
    g.confirm("anew").await.expect(200);
}

async fn commit_on_top_of_an_approval_for_later_heads_needs_no_receipt(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, head, _) = approved(g).await;
    let top = on_top(g, &thread, &head, "harmless").await;
    let allowed = written(g, &thread, &top, "w1").await.expect(200);
    assert_eq!(allowed["view"]["target_user_id"], 42);
    g.confirm("w1").await.expect(200);
    scene.passes_an_audit().await;
}

async fn commit_on_top_of_a_revoked_approval_requires_its_own_approval(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, head, decision) = approved(g).await;
    take_back(g, &decision).await;
    let mut top = on_top(g, &thread, &head, "harmless").await;
    refused(&written(g, &thread, &top, "w1").await, "receipt_missing");
    top = on_top(g, &thread, &top, "and again").await;
    refused(&written(g, &thread, &top, "w1").await, "receipt_missing");
    is_written_once_approved_anew(g, &thread, &top).await;
    scene.passes_an_audit().await;
}

async fn later_revocation_stops_earlier_commits_on_top(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, head, decision) = approved(g).await;
    let top = on_top(g, &thread, &head, "harmless").await;
    take_back(g, &decision).await;
    refused(&written(g, &thread, &top, "w1").await, "revoked");
    let top = on_top(g, &thread, &top, "and again").await;
    refused(&written(g, &thread, &top, "w1").await, "receipt_missing");
    is_written_once_approved_anew(g, &thread, &top).await;
    scene.passes_an_audit().await;
}

async fn approval_revoked_during_an_aborted_write_is_not_written_later(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, head, decision) = approved(g).await;
    let top = on_top(g, &thread, &head, "harmless").await;
    written(g, &thread, &top, "w1").await.expect(200);
    take_back(g, &decision).await;
    g.post("/v1/writes/w1/abort", &g.writer, json!({"reason": "the target is away"})).await.expect(200);
    refused(&written(g, &thread, &top, "w2").await, "revoked");
    let top = on_top(g, &thread, &top, "and again").await;
    refused(&written(g, &thread, &top, "w2").await, "receipt_missing");
    is_written_once_approved_anew(g, &thread, &top).await;
    scene.passes_an_audit().await;
}

async fn revocation_does_not_undo_an_allowed_write(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, head, decision) = approved(g).await;
    let top = on_top(g, &thread, &head, "harmless").await;
    written(g, &thread, &top, "w1").await.expect(200);
    take_back(g, &decision).await;
    let done = g.confirm("w1").await.expect(200);
    let top = on_top(g, &thread, &done["transition"], "and again").await;
    written(g, &thread, &top, "w2").await.expect(200);
    scene.passes_an_audit().await;
}

async fn revocation_after_a_confirmed_write_has_no_effect(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, head, decision) = approved(g).await;
    g.verify(&thread, &head, &decision["receipt"], "w1").await.expect(200);
    let done = g.confirm("w1").await.expect(200);
    let top = on_top(g, &thread, &done["transition"], "harmless").await;
    take_back(g, &decision).await;
    written(g, &thread, &top, "w2").await.expect(200);
    scene.passes_an_audit().await;
}

async fn branch_of_a_head_with_a_revoked_approval_requires_its_own_approval(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, _, decision) = approved(g).await;
    let fork = async |name: &str| {
        let path = format!("/v1/threads/{}/forks", thread.as_str().unwrap());
        let made = g.post(&path, &g.planner, json!({"node": "planner", "branches": [name]})).await.expect(201);
        let branch = made["branches"][0]["thread"].as_str().unwrap().to_owned();
        g.get(&format!("/v1/threads/{branch}"), &g.host).await.expect(200)["owes"].clone()
    };
    assert_eq!(fork("before").await, json!(false));
    take_back(g, &decision).await;
    assert_eq!(fork("after").await, json!(true));
    scene.passes_an_audit().await;
}

async fn observed_change_requires_its_own_approval_once_the_flow_enforces(scene: ApiScenario) {
    let g = &scene.gateway;
    let observing = format!("mode = \"observe\"\n{}", policy());
    activate(g, &observing, &[]).await;
    let thread = g.thread().await;
    let (id, patch) = (&thread["thread"], json!({"target_user_id": 42}));
    let changed = g.propose(id, &thread["transition"], (&g.planner, "planner"), patch).await.expect(201);
    let path = format!("/v1/transitions/{}", changed["transition"].as_str().unwrap());
    let told = g.get(&path, &g.auditor).await.expect(200);
    let observed = Digest::try_from(told["statement"]["policy"].as_str().unwrap()).unwrap();
    activate(g, &policy(), &[observed]).await;
    refused(&written(g, id, &changed["transition"], "w1").await, "receipt_missing");
    let mut top = on_top(g, id, &changed["transition"], "harmless").await;
    refused(&written(g, id, &top, "w1").await, "receipt_missing");
    top = on_top(g, id, &top, "and again").await;
    refused(&written(g, id, &top, "w1").await, "receipt_missing");
    is_written_once_approved_anew(g, id, &top).await;
    scene.passes_an_audit().await;
}
