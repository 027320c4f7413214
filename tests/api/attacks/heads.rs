//! Tests heads that the reviewers did not approve, or whose approval does not apply any more.

use serde_json::{Value, json};

use super::{AttackScenario, cases, policy_with};

/// Returns a request for another transition of the same thread.
fn ask_for(scene: &AttackScenario, transition: &Value, receipt: &Value) -> Value {
    let mut ask = scene.case.ask("spoiled");
    ask["transition"] = transition.clone();
    ask["receipt"] = receipt.clone();
    if receipt.is_null() {
        ask.as_object_mut().unwrap().remove("receipt");
    }
    ask
}

/// Commits a harmless change on the approved head. Returns a request for it without a receipt.
async fn harmless_on_top(scene: &AttackScenario) -> Value {
    let parent = scene.case.held["transition"].clone();
    let top = scene.harmless(&parent, "delete all of it").await;
    ask_for(scene, &top["transition"], &Value::Null)
}

async fn reserve(scene: &AttackScenario) {
    let case = &scene.case;
    let (id, transition, receipt) = (case.id(), &case.held["transition"], &case.decision["receipt"]);
    scene.g.verify(id, transition, receipt, "first").await.expect(200);
}

async fn revoke(scene: &AttackScenario) {
    let jti = scene.case.decision["nonce"].as_str().unwrap();
    let path = format!("/v1/receipts/{jti}/revocation");
    scene.g.post(&path, &scene.g.admin, json!({"reason": "a mistake"})).await.expect(200);
}

async fn abort(scene: &AttackScenario) {
    let body = json!({"reason": "not now"});
    let ended = scene.g.post("/v1/writes/first/abort", &scene.g.writer, body).await.expect(200);
    assert_eq!(ended["outcome"], "aborted");
}

/// Rolls back to version 0 on top of the head and has it approved. Returns (held, decision).
async fn rolled_back(scene: &AttackScenario) -> (Value, Value) {
    let parent = &scene.case.held["transition"];
    let held =
        scene.agent_path("rollbacks", json!({"node": "planner", "parent": parent, "to_version": 0})).await.expect(202);
    let decision = scene.g.approved(&held).await;
    (held, decision)
}

cases! {
    approved_transition_is_not_the_head_any_more: "not_head", Before, |s| {
        harmless_on_top(s).await;
        s.case.ask("spoiled")
    };
    a_harmless_change_on_top_needs_a_receipt_of_its_own: "receipt_missing", Before, |s| harmless_on_top(s).await;
    a_harmless_change_on_top_is_not_covered_by_the_receipt_below: "version_mismatch", Before, |s| {
        let top = harmless_on_top(s).await;
        ask_for(s, &top["transition"], &s.case.decision["receipt"])
    };
    ten_harmless_changes_on_top_still_require_approval: "receipt_missing", Before, |s| {
        let mut parent = s.case.held["transition"].clone();
        for turn in 0..10 {
            parent = s.harmless(&parent, &format!("turn {turn}")).await["transition"].clone();
        }
        ask_for(s, &parent, &Value::Null)
    };
    an_expired_receipt_is_refused: "expired", Before, |s| {
        s.pass_seconds(600);
        s.case.ask("spoiled")
    };
    clock_before_the_approval_refuses_its_receipt: "not_yet_valid", Before, |s| {
        s.g.clock.set_millis(-60_000);
        s.case.ask("spoiled")
    };
    an_expired_receipt_is_not_outlived_by_a_harmless_change: "receipt_missing", Before, |s| {
        s.pass_seconds(601);
        harmless_on_top(s).await
    };
    an_aborted_receipt_is_not_outlived_by_a_harmless_change: "receipt_missing", Before, |s| {
        reserve(s).await;
        abort(s).await;
        harmless_on_top(s).await
    };
    a_lapsed_receipt_is_not_outlived_by_a_harmless_change: "receipt_missing", Before, |s| {
        reserve(s).await;
        s.pass_seconds(31);
        harmless_on_top(s).await
    };
    a_revoked_receipt_is_refused: "revoked", Before, |s| {
        revoke(s).await;
        s.case.ask("spoiled")
    };
    a_revoked_receipt_is_not_outlived_by_a_harmless_change: "receipt_missing", Before, |s| {
        revoke(s).await;
        harmless_on_top(s).await
    };
    a_harmless_change_after_the_write_needs_a_receipt: "receipt_missing", Before, |s| {
        s.write(&s.case.ask("first")).await.expect(200);
        let done = s.g.confirm("first").await.expect(200);
        let top = s.harmless(&done["transition"], "and again").await;
        ask_for(s, &top["transition"], &Value::Null)
    };
    a_harmless_change_after_the_write_is_not_covered_by_the_receipt_that_was_used: "version_mismatch", Before, |s| {
        s.write(&s.case.ask("first")).await.expect(200);
        let done = s.g.confirm("first").await.expect(200);
        let top = s.harmless(&done["transition"], "and again").await;
        ask_for(s, &top["transition"], &s.case.decision["receipt"])
    };
    the_writers_own_transition_is_never_written: "already_used", Before, |s| {
        s.write(&s.case.ask("first")).await.expect(200);
        let done = s.g.confirm("first").await.expect(200);
        ask_for(s, &done["transition"], &s.case.decision["receipt"])
    };
    a_reaffirmed_head_is_not_covered_by_the_receipt_before: "version_mismatch", Before, |s| {
        let (held, _) = s.reaffirmed(&s.case.held["transition"].clone()).await;
        ask_for(s, &held["transition"], &s.case.decision["receipt"])
    };
    a_rollback_is_not_covered_by_the_receipt_of_what_it_undid: "version_mismatch", Before, |s| {
        let (held, _) = rolled_back(s).await;
        ask_for(s, &held["transition"], &s.case.decision["receipt"])
    };
    rolled_back_transition_is_not_the_head: "not_head", Before, |s| {
        rolled_back(s).await;
        s.case.ask("spoiled")
    };
    after_a_rollback_asking_again_gives_the_old_answer_and_no_write: "not_head", Before, |s| {
        rolled_back(s).await;
        let again = s.g.held(&s.case.thread).await;
        assert_eq!(again["transition"], s.case.held["transition"], "the same proposal is the same");
        let decision = s.g.decision(&again).await.expect(200);
        ask_for(s, &again["transition"], &decision["receipt"])
    };
    after_a_rollback_the_same_change_is_another_transition: "version_mismatch", Before, |s| {
        let (back, _) = rolled_back(s).await;
        let patch = json!({"target_user_id": 42, "requested_action": "update_email"});
        let node = (s.g.planner.as_str(), "planner");
        let held = s.g.propose(s.case.id(), &back["transition"], node, patch).await.expect(202);
        assert_ne!(held["transition"], s.case.held["transition"]);
        s.g.approved(&held).await;
        ask_for(s, &held["transition"], &s.case.decision["receipt"])
    };
    a_held_change_is_not_the_head: "not_head", Before, |s| {
        let thread = s.g.thread().await;
        let held = s.g.held(&thread).await;
        json!({"thread": thread["thread"], "transition": held["transition"], "receipt": s.case.decision["receipt"], "write_id": "spoiled"})
    };
    a_head_of_a_policy_that_is_not_accepted_is_refused: "policy_mismatch", Before, |s| {
        s.activate(&policy_with("24h", "12h"), json!([])).await;
        s.case.ask("spoiled")
    };
    head_on_top_of_an_unaccepted_policy_requires_approval: "receipt_missing", Before, |s| {
        // A thread that requires no approval, judged by the previous policy.
        let thread = s.g.thread().await;
        s.activate(&policy_with("24h", "12h"), json!([])).await;
        let node = (s.g.parser.as_str(), "input_parser");
        let top = s.g.propose(&thread["thread"], &thread["transition"], node, json!({"raw_text": "x"})).await.expect(201);
        json!({"thread": thread["thread"], "transition": top["transition"], "write_id": "spoiled"})
    };
    an_approval_under_another_policy_is_refused_though_that_is_accepted: "policy_mismatch", Before, |s| {
        let digest = s.case.held["transition"].as_str().unwrap();
        let told = s.g.get(&format!("/v1/transitions/{digest}"), &s.g.host).await.expect(200);
        s.activate(&policy_with("24h", "12h"), json!([told["statement"]["policy"]])).await;
        let top = harmless_on_top(s).await;
        ask_for(s, &top["transition"], &s.case.decision["receipt"])
    };
    another_value_than_expected_is_refused: "expectation_failed", Same, |s| {
        let mut ask = s.case.ask("spoiled");
        ask["expect"] = json!({"/target_user_id": 17});
        ask
    };
    one_expectation_of_two_is_not_enough: "expectation_failed", Same, |s| {
        let mut ask = s.case.ask("spoiled");
        ask["expect"] = json!({"/target_user_id": 42, "/payment/amount": 11});
        ask
    };
    a_text_is_not_the_number_expected: "expectation_failed", Same, |s| {
        let mut ask = s.case.ask("spoiled");
        ask["expect"] = json!({"/target_user_id": "42"});
        ask
    };
    writer_does_not_compare_unreadable_values: "expectation_failed", Same, |s| {
        let mut ask = s.case.ask("spoiled");
        ask["expect"] = json!({"/payment/card": "4111111111111111"});
        ask
    };
    absence_is_not_null: "expectation_failed", Same, |s| {
        let mut ask = s.case.ask("spoiled");
        ask["expect"] = json!({"/payment/amount/x": null});
        ask
    };
}

#[tokio::test]
async fn write_with_a_met_expectation_is_allowed() {
    let scene = AttackScenario::new(crate::gateway::POLICY).await;
    let mut ask = scene.case.ask("w1");
    ask["expect"] = json!({"/target_user_id": 42.0, "/payment/amount": 10});
    scene.write(&ask).await.expect(200);
    assert_eq!(scene.rows_all(), 1);
}

#[tokio::test]
async fn writer_sees_no_more_of_an_approved_head_than_its_reviewers() {
    // A later policy lets the writer read more and accepts the old one. The reviewers approved without seeing that.
    let scene = AttackScenario::new(crate::gateway::POLICY).await;
    let digest = scene.case.held["transition"].as_str().unwrap();
    let told = scene.g.get(&format!("/v1/transitions/{digest}"), &scene.g.host).await.expect(200);
    let wider = policy_with(
        "reads = [\"requested_action\", \"target_user_id\", \"payment.amount\"]\nwrites = [\"result_ref\"]",
        "reads = [\"requested_action\", \"target_user_id\", \"payment\"]\nwrites = [\"result_ref\"]",
    );
    scene.activate(&wider, json!([told["statement"]["policy"]])).await;
    let mut guess = scene.case.ask("guess");
    guess["expect"] = json!({"/payment/card": "4111111111111111"});
    assert_eq!(scene.write(&guess).await.code(), "expectation_failed");
    let allowed = scene.write(&scene.case.ask("w1")).await.expect(200);
    assert_eq!(allowed["view"]["payment"], json!({"amount": 10}));
    assert_eq!(scene.rows_all(), 1);
}
