//! Tests approvals that are blocked later. The decision stays as it is, and the response shows the reason beside it.
//! Also tests proposals that only look approved. On both databases.

use countersign_domain::reviews::VoteVerdict;
use reqwest::Method;
use serde_json::{Value, json};

use crate::amendments::activates;
use crate::attacks::policy_with;
use crate::gateway::{POLICY, TestGateway, ballot};
use crate::rules::ApiScenario;

on_both! {
    write_confirmed_during_a_review_approves_nothing(super::POLICY),
    reason_that_stops_an_approval_is_shown_with_its_transition(super::POLICY),
    commit_without_a_review_is_stopped_as_well(super::POLICY),
    comment_shows_no_value_that_a_later_policy_redacts(super::POLICY),
}

async fn stopped(g: &TestGateway, transition: &Value) -> Value {
    let path = format!("/v1/transitions/{}", transition.as_str().unwrap());
    g.get(&path, &g.planner).await.expect(200).get("stopped").cloned().unwrap_or(Value::Null)
}

async fn halt(g: &TestGateway, verifying: bool) {
    let body = json!({"proposing": false, "verifying": verifying, "reason": "an exercise"});
    g.send(Method::PUT, "/v1/halts/payments", &g.admin, Some(body)).await.expect(200);
}

async fn write_confirmed_during_a_review_approves_nothing(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    g.verify(&thread["thread"], &thread["transition"], &Value::Null, "w1").await.expect(200);
    let written = g.confirm("w1").await.expect(200);
    let decision = g.decision(&held).await.expect(200);
    assert_eq!((&decision["approved"], &decision["decision"]), (&json!(false), &json!("superseded")));
    // The write has its own approval. A caller that waits for the held proposal must not be sent there.
    assert_eq!(g.decision(&written).await.expect(200)["approved"], true);
    assert_eq!(decision["superseded_by"], Value::Null, "nobody is asked about anything in its place");
    assert_eq!(stopped(g, &held["transition"]).await, Value::Null, "it is not in the chain at all");
    scene.passes_an_audit().await;
}

async fn reason_that_stops_an_approval_is_shown_with_its_transition(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    let transition = &held["transition"];
    assert_eq!(stopped(g, transition).await, Value::Null);
    let decision = g.approved(&held).await;
    assert_eq!(stopped(g, transition).await, Value::Null);
    halt(g, true).await;
    assert_eq!(stopped(g, transition).await, "halted");
    halt(g, false).await;
    let closing = format!("/v1/threads/{}/closing", thread["thread"].as_str().unwrap());
    g.post(&closing, &g.admin, json!({"reason": "an exercise"})).await.expect(200);
    assert_eq!(stopped(g, transition).await, "closed");
    let reopening = format!("/v1/threads/{}/reopening", thread["thread"].as_str().unwrap());
    g.post(&reopening, &g.admin, json!({})).await.expect(200);
    assert_eq!(stopped(g, transition).await, Value::Null);

    let ends = std::time::Duration::from_secs(600);
    g.pass(ends - std::time::Duration::from_secs(30));
    assert_eq!(stopped(g, transition).await, Value::Null);
    g.pass(std::time::Duration::from_secs(60));
    assert_eq!(stopped(g, transition).await, "expired");
    let revocation = format!("/v1/receipts/{}/revocation", decision["nonce"].as_str().unwrap());
    g.post(&revocation, &g.admin, json!({"reason": "a mistake"})).await.expect(200);
    assert_eq!(stopped(g, transition).await, "revoked");
    assert_eq!(g.decision(&held).await.expect(200), decision, "what was decided is the same for ever");
    scene.passes_an_audit().await;
}

async fn commit_without_a_review_is_stopped_as_well(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let patch = json!({"requested_action": "refund"});
    let done = g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await.expect(201);
    assert_eq!(stopped(g, &done["transition"]).await, Value::Null);
    halt(g, true).await;
    assert_eq!(stopped(g, &done["transition"]).await, "halted");
    halt(g, false).await;
    activates(g, &policy_with("ttl = \"24h\"", "ttl = \"23h\""), json!([])).await.expect(200);
    assert_eq!(stopped(g, &done["transition"]).await, "policy_mismatch");
}

async fn comment_shows_no_value_that_a_later_policy_redacts(scene: ApiScenario) {
    let g = &scene.gateway;
    let held = g.held(&g.thread().await).await;
    let mut vote = ballot(&held, VoteVerdict::Deny);
    vote.comment = Some("update_email is not for planners".to_owned());
    g.service
        .reviews
        .vote(&g.alice.id, &held["review"]["id"].as_str().unwrap().try_into().unwrap(), &vote, None)
        .await
        .unwrap();
    let comment = async || g.decision(&held).await.expect(200)["comment"].clone();
    assert_eq!(comment().await, "update_email is not for planners");
    let hiding = policy_with("hide = [\"payment.card\"]", "hide = [\"payment.card\", \"requested_action\"]");
    activates(g, &hiding, json!([])).await.expect(200);
    assert_eq!(comment().await, "[hidden] is not for planners");
}
