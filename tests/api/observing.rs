//! Tests observe mode. A change that would require approval commits with a mark. It is not written once the flow
//! enforces its policy.

use std::collections::BTreeSet;

use countersign_domain::chain::hash::Digest;
use serde_json::{Value, json};

use countersign_service::audit::{AuditFinding, audit};
use countersign_store::sqlite::{SqliteOptions, SqliteStore};

use crate::gateway::{POLICY, TestGateway, source, spawn_with_policy};

fn observing() -> String {
    POLICY.replacen("flow = \"payments\"\n", "flow = \"payments\"\nmode = \"observe\"\n", 1)
}

/// Creates a thread whose head would have required approval.
async fn observed(g: &TestGateway) -> (Value, Value) {
    let thread = g.thread().await;
    let patch = json!({"target_user_id": 42});
    let asked = g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await.expect(201);
    (thread["thread"].clone(), asked)
}

async fn enforce(g: &TestGateway, accepts: &[&Value]) {
    activate(g, POLICY, accepts).await;
}

async fn activate(g: &TestGateway, policy: &str, accepts: &[&Value]) {
    let accepts = accepts.iter().map(|it| Digest::try_from(it.as_str().unwrap()).unwrap()).collect::<BTreeSet<_>>();
    g.service
        .policy_changes
        .activate_policy(&"tests".try_into().unwrap(), None, source(policy), accepts)
        .await
        .unwrap();
}

#[tokio::test]
async fn observed_change_commits_marked_and_is_written_without_a_receipt() {
    let g = spawn_with_policy(&observing()).await;
    let (thread, asked) = observed(&g).await;
    assert_eq!((&asked["outcome"], &asked["version"]), (&json!("committed"), &json!(1)));
    assert_eq!(asked["would_hold"][0]["code"], "protected");
    let again = g.propose(&thread, &asked["transition"], (&g.parser, "input_parser"), json!({"raw_text": "x"}));
    let harmless = again.await.expect(201);
    assert_eq!(harmless["would_hold"], Value::Null);
    let chain = g.get(&format!("/v1/threads/{}/chain", thread.as_str().unwrap()), &g.host).await.expect(200);
    let gates: Vec<Value> =
        chain["entries"].as_array().unwrap().iter().map(|it| claims(&it["entry"])["gate"]["kind"].clone()).collect();
    assert_eq!(gates, ["auto", "observed", "auto"]);
    let allowed = g.verify(&thread, &harmless["transition"], &Value::Null, "w1").await.expect(200);
    assert_eq!((&allowed["enforced"], &allowed["view"]["target_user_id"]), (&json!(false), &json!(42)));
    assert_eq!(claims(&allowed["verification"])["enforced"], json!(false));
    assert_eq!(
        g.verify(&thread, &harmless["transition"], &Value::Null, "w1").await.expect(200)["enforced"],
        json!(false)
    );
    let confirmed = g.confirm("w1").await.expect(200);
    assert_eq!(confirmed["outcome"], "confirmed");
    assert_eq!(findings(&g).await, []);
}

#[tokio::test]
async fn repeated_observed_proposal_shows_its_reasons_again() {
    let g = spawn_with_policy(&observing()).await;
    let thread = g.thread().await;
    let ask =
        || g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), json!({"target_user_id": 42}));
    let first = ask().await.expect(201);
    assert_eq!(ask().await.expect(201), first);
    assert!(first["would_hold"][0]["text"].as_str().unwrap().contains("target_user_id"), "{first}");
}

#[tokio::test]
async fn observe_mode_still_rejects_forbidden_changes() {
    let g = spawn_with_policy(&observing()).await;
    let thread = g.thread().await;
    let patch = json!({"is_admin": true});
    let answer = g.propose(&thread["thread"], &thread["transition"], (&g.parser, "input_parser"), patch).await;
    assert_eq!((answer.status, answer.code()), (422, "rejected"));
}

#[tokio::test]
async fn a_head_that_was_only_observed_is_not_written_once_the_flow_enforces() {
    let g = spawn_with_policy(&observing()).await;
    let (thread, asked) = observed(&g).await;
    let policy = claims(&asked["entry"])["policy"].clone();
    enforce(&g, &[]).await;
    let refused = g.verify(&thread, &asked["transition"], &Value::Null, "w1").await;
    assert_eq!((refused.status, refused.code()), (403, "policy_mismatch"));
    enforce(&g, &[&policy]).await;
    let refused = g.verify(&thread, &asked["transition"], &Value::Null, "w2").await;
    assert_eq!((refused.status, refused.code()), (403, "receipt_missing"));
    // A harmless change on top does not help: a change that was never approved requires its own approval from then on.
    let patch = json!({"raw_text": "harmless"});
    let on_top = g.propose(&thread, &asked["transition"], (&g.parser, "input_parser"), patch).await.expect(201);
    let refused = g.verify(&thread, &on_top["transition"], &Value::Null, "w3").await;
    assert_eq!((refused.status, refused.code()), (403, "receipt_missing"));
    // The only way on is that reviewers approve the current state.
    let path = format!("/v1/threads/{}/transitions", thread.as_str().unwrap());
    let ask = json!({"node": "planner", "parent": on_top["transition"], "patch": {}, "reaffirm": true});
    let held = g.post(&path, &g.planner, ask).await.expect(202);
    let decision = g.approved(&held).await;
    let allowed = g.verify(&thread, &held["transition"], &decision["receipt"], "w4").await.expect(200);
    assert_eq!(allowed["enforced"], json!(true));
}

#[tokio::test]
async fn aborted_write_of_an_observed_head_needs_no_receipt() {
    let g = spawn_with_policy(&observing()).await;
    let (thread, asked) = observed(&g).await;
    g.verify(&thread, &asked["transition"], &Value::Null, "w1").await.expect(200);
    g.post("/v1/writes/w1/abort", &g.writer, json!({"reason": "not now"})).await.expect(200);
    g.verify(&thread, &asked["transition"], &Value::Null, "w2").await.expect(200);
    // Under enforcement, the head still requires approval after an aborted write.
    g.post("/v1/writes/w2/abort", &g.writer, json!({"reason": "not now"})).await.expect(200);
    enforce(&g, &[&claims(&asked["entry"])["policy"]]).await;
    assert_eq!(g.verify(&thread, &asked["transition"], &Value::Null, "w3").await.code(), "receipt_missing");
}

#[tokio::test]
async fn approved_change_needs_its_receipt_even_in_observe_mode() {
    let g = spawn_with_policy(POLICY).await;
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    let decision = g.approved(&held).await;
    let statement =
        g.get(&format!("/v1/transitions/{}", held["transition"].as_str().unwrap()), &g.host).await.expect(200);
    activate(&g, &observing(), &[&statement["statement"]["policy"]]).await;
    let (id, transition) = (&thread["thread"], &held["transition"]);
    assert_eq!(g.verify(id, transition, &Value::Null, "w1").await.code(), "receipt_missing");
    let allowed = g.verify(id, transition, &decision["receipt"], "w2").await.expect(200);
    assert_eq!(allowed["enforced"], json!(false), "the flow does not enforce, whatever this head was");
    g.confirm("w2").await.expect(200);
    assert_eq!(findings(&g).await, []);
}

#[tokio::test]
async fn observe_mode_marks_proposals_that_always_require_approval() {
    let g = spawn_with_policy(&observing()).await;
    let (thread, asked) = observed(&g).await;
    let path = format!("/v1/threads/{}", thread.as_str().unwrap());
    let reaffirm = json!({"node": "planner", "parent": asked["transition"], "patch": {}, "reaffirm": true});
    let again = g.post(&format!("{path}/transitions"), &g.planner, reaffirm).await.expect(201);
    assert_eq!(again["would_hold"][0]["code"], "reaffirm");
    let back = json!({"node": "planner", "parent": again["transition"], "to_version": 0});
    let back = g.post(&format!("{path}/rollbacks"), &g.planner, back).await.expect(201);
    assert_eq!((&back["version"], &back["would_hold"][0]["code"]), (&json!(3), &json!("rollback")));
    assert_eq!(claims(&back["entry"])["gate"], json!({"kind": "observed"}));
    g.verify(&thread, &back["transition"], &Value::Null, "w1").await.expect(200);
    assert_eq!(findings(&g).await, []);
}

async fn findings(g: &TestGateway) -> Vec<AuditFinding> {
    let store = SqliteStore::open(g.folder.path().join("countersign.db"), SqliteOptions::default()).unwrap();
    audit(&store, &g.service.core.keys().unwrap(), g.service.core.now()).await.unwrap().findings
}

fn claims(token: &Value) -> Value {
    use base64::Engine as _;
    let payload = token.as_str().unwrap().split('.').nth(1).unwrap();
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(payload).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}
