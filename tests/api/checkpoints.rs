//! Tests reading any version of a thread. A node never reads more of a version than it was allowed to read then. On
//! both databases.

use std::collections::BTreeSet;

use countersign_domain::identity::account::MachineRole;
use serde_json::{Value, json};

use crate::attacks::policy_with;
use crate::gateway::{ApiResponse, POLICY, TestGateway, source, token};
use crate::rules::ApiScenario;

on_both_in_full! {
    every_version_is_returned_unchanged(super::POLICY),
    old_version_has_no_values_outside_the_nodes_reads(super::POLICY),
    value_that_was_unreadable_then_stays_unreadable(super::narrow()),
    restored_values_are_read_under_the_current_policy(super::POLICY),
    value_that_is_unreadable_now_is_absent_from_old_transitions(super::POLICY),
    rollback_request_reveals_no_unreadable_value(super::narrow()),
}

const READS: &str = "reads = [\"raw_text\", \"requested_action\", \"target_user_id\", \"payment.amount\"]";

/// Returns a policy under which the planner does not see the amount.
fn narrow() -> String {
    policy_with(READS, "reads = [\"raw_text\", \"requested_action\", \"target_user_id\"]").replace(
        "writes = [\"requested_action\", \"target_user_id\", \"payment.amount\"]",
        "writes = [\"requested_action\", \"target_user_id\"]",
    )
}

async fn activate(g: &TestGateway, policy: &str) {
    g.service
        .policy_changes
        .activate_policy(&"tests".try_into().unwrap(), None, source(policy), BTreeSet::new())
        .await
        .unwrap();
}

async fn at(g: &TestGateway, thread: &Value, version: u64) -> ApiResponse {
    let path = format!("/v1/threads/{}/state?node=planner&version={version}", thread.as_str().unwrap());
    g.get(&path, &g.planner).await
}

async fn says(g: &TestGateway, thread: &Value, head: &Value, what: &str) -> Value {
    let patch = json!({"requested_action": what});
    g.propose(thread, head, (&g.planner, "planner"), patch).await.expect(201)["transition"].clone()
}

/// More than a whole state and its differences.
const VERSIONS: u64 = 70;

async fn every_version_is_returned_unchanged(scene: ApiScenario) {
    let g = &scene.gateway;
    let made = g.thread().await;
    let (thread, mut heads) = (&made["thread"], vec![made["transition"].clone()]);
    for version in 1..=VERSIONS {
        let (node, patch) = ((g.parser.as_str(), "input_parser"), json!({"raw_text": format!("step {version}")}));
        let done = g.propose(thread, heads.last().unwrap(), node, patch).await.expect(201);
        heads.push(done["transition"].clone());
    }
    for version in 1..=VERSIONS {
        let seen = at(g, thread, version).await.expect(200);
        let expected = json!({"raw_text": format!("step {version}"), "requested_action": "none", "target_user_id": 17,
            "payment": {"amount": 10}});
        assert_eq!(
            (&seen["version"], &seen["transition"], &seen["state"]),
            (&json!(version), &heads[usize::try_from(version).unwrap()], &expected)
        );
    }
    let beyond = at(g, thread, VERSIONS + 1).await;
    assert_eq!((beyond.status, beyond.code()), (404, "not_found"));
    scene.passes_an_audit().await;
}

async fn old_version_has_no_values_outside_the_nodes_reads(scene: ApiScenario) {
    let g = &scene.gateway;
    let made = g.thread().await;
    says(g, &made["thread"], &made["transition"], "refund").await;
    let path = format!("/v1/threads/{}/state", made["thread"].as_str().unwrap());
    let of_another = g.get(&format!("{path}?node=database_writer&version=0"), &g.planner).await;
    assert_eq!((of_another.status, of_another.code()), (403, "forbidden"));
    let seen = g.get(&format!("{path}?node=input_parser&version=0"), &g.parser).await.expect(200);
    assert_eq!(seen["state"], json!({}), "what it does not read is not there");
    let odd = g.get(&format!("{path}?node=planner&version=-1"), &g.planner).await;
    assert_eq!(odd.status, 400);
}

async fn value_that_was_unreadable_then_stays_unreadable(scene: ApiScenario) {
    let g = &scene.gateway;
    let made = g.thread().await;
    let (thread, hidden) = (&made["thread"], json!({"requested_action": "none", "target_user_id": 17}));
    activate(g, POLICY).await;
    let head = says(g, thread, &made["transition"], "refund").await;
    let whole = json!({"requested_action": "refund", "target_user_id": 17, "payment": {"amount": 10}});
    assert_eq!(at(g, thread, 1).await.expect(200)["state"], whole, "the head is read by the policy of today");
    assert_eq!(at(g, thread, 0).await.expect(200)["state"], hidden, "version 0 was not given whole then");
    activate(g, &policy_with(READS, "reads = [\"requested_action\", \"payment.amount\"]")).await;
    says(g, thread, &head, "update_email").await;
    assert_eq!(at(g, thread, 0).await.expect(200)["state"], json!({"requested_action": "none"}));
    let now = json!({"requested_action": "refund", "payment": {"amount": 10}});
    assert_eq!(at(g, thread, 1).await.expect(200)["state"], now, "what is kept from it now is kept in the past");
}

async fn restored_values_are_read_under_the_current_policy(scene: ApiScenario) {
    let g = &scene.gateway;
    let made = g.thread().await;
    let thread = &made["thread"];
    let head = says(g, thread, &made["transition"], "refund").await;
    activate(g, &narrow()).await;
    let back = json!({"node": "planner", "parent": head, "to_version": 0});
    let path = format!("/v1/threads/{}/rollbacks", thread.as_str().unwrap());
    let back = g.post(&path, &g.planner, back).await.expect(202);
    g.approved(&back).await;
    let hidden = json!({"requested_action": "none", "target_user_id": 17});
    for version in [0, 2] {
        assert_eq!(at(g, thread, version).await.expect(200)["state"], hidden, "version {version}");
    }
}

async fn diff_of(g: &TestGateway, transition: &Value, token: &str) -> Value {
    g.get(&format!("/v1/transitions/{}", transition.as_str().unwrap()), token).await.expect(200)["diff"].clone()
}

async fn value_that_is_unreadable_now_is_absent_from_old_transitions(scene: ApiScenario) {
    let g = &scene.gateway;
    let made = g.thread().await;
    let done = says(g, &made["thread"], &made["transition"], "refund").await;
    let both = token(&g.service, "both", MachineRole::Agent, &["input_parser", "planner"]).await;
    let told = json!([{"pointer": "/requested_action", "before": "none", "after": "refund"}]);
    for who in [&g.planner, &both] {
        assert_eq!(diff_of(g, &done, who).await, told);
    }
    // The parser may now read what only the planner could read before, and the planner may not. Neither could read it
    // both then and now.
    let planner = policy_with(READS, "reads = [\"raw_text\", \"target_user_id\", \"payment.amount\"]");
    activate(g, &planner.replacen("reads = [\"raw_text\"]", "reads = [\"raw_text\", \"requested_action\"]", 1)).await;
    for who in [&g.planner, &g.parser, &both] {
        assert_eq!(diff_of(g, &done, who).await, json!([]));
    }
    assert_eq!(at(g, &made["thread"], 1).await.expect(200)["state"].get("requested_action"), None);
}

async fn rollback_request_reveals_no_unreadable_value(scene: ApiScenario) {
    let g = &scene.gateway;
    let made = g.thread().await;
    let thread = &made["thread"];
    activate(g, POLICY).await;
    let path = format!("/v1/threads/{}", thread.as_str().unwrap());
    let pays = json!({"node": "planner", "parent": made["transition"], "format": "merge-patch",
        "patch": {"payment": {"amount": 20}, "requested_action": "refund"}});
    let paid = g.post(&format!("{path}/transitions"), &g.planner, pays).await.expect(202);
    g.approved(&paid).await;
    let back = json!({"node": "planner", "parent": paid["transition"], "to_version": 0});
    let held = g.post(&format!("{path}/rollbacks"), &g.planner, back).await.expect(202);
    // The policy redacted the amount of version 0 for the planner then, and its return has no approval yet.
    let seen = json!([{"pointer": "/requested_action", "before": "refund", "after": "none"}]);
    assert_eq!(held["diff"], seen);
    assert_eq!(diff_of(g, &held["transition"], &g.planner).await, seen);
    g.approved(&held).await;
    assert_eq!(at(g, thread, 2).await.expect(200)["state"]["payment"], json!({"amount": 10}), "it is the head now");
}
