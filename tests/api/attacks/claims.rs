//! Tests receipts that the gateway's own key signed for something else. Every claim is checked separately.

use countersign_domain::identity::account::MachineRole;
use countersign_domain::reviews::VoteVerdict;

use countersign_service::identity::accounts::NewToken;
use serde_json::{Value, json};

use super::forge::{with_claims, with_receipt};
use super::{AttackScenario, approve, cases};
use crate::gateway::{POLICY, SCHEMA};

const OTHER_DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

fn add(claims: &mut Value, name: &str, by: i64) {
    claims[name] = json!(claims[name].as_i64().unwrap() + by);
}

/// Returns the receipt of the same change, approved in another flow of this gateway.
async fn approved_in_refunds(scene: &AttackScenario) -> String {
    let g = &scene.g;
    let policy = POLICY.replace("flow = \"payments\"", "flow = \"refunds\"");
    let body = json!({"policy": policy, "schemas": {"payments.schema.json": SCHEMA}});
    g.post("/v1/flows/refunds/policies", &g.admin, body).await.expect(200);
    let token = async |role: MachineRole, nodes: &[&str]| {
        let new = NewToken {
            name: format!("refunds-{}", role.as_str()),
            role,
            owner: countersign_service::identity::owner_names::NewOwner::Group("platform".to_owned()),
            flow: Some("refunds".try_into().unwrap()),
            nodes: nodes.iter().map(|it| (*it).try_into().unwrap()).collect(),
        };
        g.service.identity.add_token(&new).await.unwrap().1
    };
    let (host, planner) = (token(MachineRole::Host, &[]).await, token(MachineRole::Agent, &["planner"]).await);
    let state = json!({"requested_action": "none", "target_user_id": 17, "payment": {"amount": 10}});
    let thread = g.post("/v1/threads", &host, json!({"flow": "refunds", "state": state})).await.expect(201);
    let patch = json!({"target_user_id": 42, "requested_action": "update_email"});
    let held = g.propose(&thread["thread"], &thread["transition"], (&planner, "planner"), patch).await.expect(202);
    g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap();
    let decision = format!("/v1/transitions/{}/decision", held["transition"].as_str().unwrap());
    g.get(&decision, &planner).await.expect(200)["receipt"].as_str().unwrap().to_owned()
}

cases! {
    a_receipt_of_another_issuer_is_refused: "issuer_mismatch", Same, |s| with_claims(s, |it| it["iss"] = json!("urn:test:other"));
    a_receipt_for_another_writer_is_refused: "audience_mismatch", Same, |s| with_claims(s, |it| it["aud"] = json!(["other_writer"]));
    a_receipt_for_nobody_is_refused: "audience_mismatch", Same, |s| with_claims(s, |it| it["aud"] = json!([]));
    a_receipt_that_is_not_valid_yet_is_refused: "not_yet_valid", Same, |s| with_claims(s, |it| add(it, "nbf", 60));
    a_receipt_whose_claim_has_expired_is_refused: "expired", Same, |s| with_claims(s, |it| ["iat", "nbf", "exp"].iter().for_each(|name| add(it, name, -3600)));
    a_receipt_that_says_another_thread_is_refused: "thread_mismatch", Same, |s| with_claims(s, |it| it["sub"] = json!("another-thread"));
    a_receipt_that_says_another_flow_is_refused: "thread_mismatch", Same, |s| with_claims(s, |it| it["flow"] = json!("refunds"));
    a_receipt_that_says_another_policy_is_refused: "policy_mismatch", Same, |s| with_claims(s, |it| it["policy"] = json!(OTHER_DIGEST));
    a_receipt_that_says_another_version_is_refused: "version_mismatch", Same, |s| with_claims(s, |it| it["version"] = json!(2));
    a_receipt_that_says_another_transition_is_refused: "digest_mismatch", Same, |s| with_claims(s, |it| it["transition"] = json!(OTHER_DIGEST));
    a_receipt_that_says_another_parent_is_refused: "digest_mismatch", Same, |s| with_claims(s, |it| it["parent"] = json!(OTHER_DIGEST));
    a_receipt_without_a_parent_is_refused: "receipt_malformed", Same, |s| with_claims(s, |it| it["parent"] = Value::Null);
    a_receipt_that_says_another_state_is_refused: "digest_mismatch", Same, |s| with_claims(s, |it| it["to"] = json!(OTHER_DIGEST));
    a_receipt_of_another_name_is_refused: "digest_mismatch", Same, |s| with_claims(s, |it| it["jti"] = json!("AAAAAAAAAAAAAAAAAAAAAA"));
    a_receipt_with_a_claim_more_is_refused: "receipt_malformed", Same, |s| with_claims(s, |it| it["scope"] = json!("all"));
    a_receipt_with_a_claim_less_is_refused: "receipt_malformed", Same, |s| with_claims(s, |it| _ = it.as_object_mut().unwrap().remove("exp"));
    a_receipt_whose_expiry_is_a_text_is_refused: "receipt_malformed", Same, |s| with_claims(s, |it| it["exp"] = json!("9999999999"));
    a_receipt_of_another_thread_is_refused: "thread_mismatch", Same, |s| {
        let other = approve(&s.g).await;
        with_receipt(s, other.receipt().to_owned())
    };
    a_receipt_of_another_flow_is_refused: "thread_mismatch", Same, |s| {
        let receipt = approved_in_refunds(s).await;
        with_receipt(s, receipt)
    };
    an_approval_is_for_its_own_digest_only: "not_head", Same, |s| {
        let other = approve(&s.g).await;
        let mut ask = s.case.ask("spoiled");
        ask["transition"] = other.held["transition"].clone();
        ask
    };
    a_receipt_that_nobody_approved_is_refused: "receipt_malformed", Same, |s| with_claims(s, |it| it["approvals"] = json!([]));
    a_receipt_with_another_approver_is_refused: "signature_invalid", Same, |s| with_claims(s, |it| it["approvals"][0]["reviewer"] = json!("somebody"));
    a_receipt_prolonged_with_a_stolen_key_is_refused: "signature_invalid", Same, |s| with_claims(s, |it| add(it, "exp", 3600));
}
