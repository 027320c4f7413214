//! Tests a policy that is activated during a review. A vote under the old policy is no approval under the new one
//! unless both require the same approval. On both databases.

use std::collections::BTreeSet;
use std::time::Duration;

use countersign_domain::chain::hash::Digest;
use countersign_domain::reviews::{HoldState, VoteRejected, VoteVerdict};

use countersign::worker::rejudge;
use countersign_service::error::Error;
use countersign_service::proposals::rollback::RollbackInput;
use countersign_service::reviews::vote::VoteOutcome;
use reqwest::Method;
use serde_json::{Value, json};

use crate::attacks::policy_with;
use crate::gateway::{ApiResponse, POLICY, TestGateway, source};
use crate::rules::ApiScenario;

on_both! {
    review_past_its_deadline_expires_and_is_not_restated(crate::gateway::POLICY),
}

on_both_in_full! {
    pending_review_is_restated_and_needs_new_votes(super::two_needed()),
    vote_detects_a_changed_policy_without_the_worker(super::two_needed()),
    review_with_unchanged_requirements_keeps_its_votes(super::two_needed()),
    kept_review_is_judged_again_by_every_later_policy(super::two_needed()),
    proposal_that_the_new_policy_rejects_is_set_aside(crate::gateway::POLICY),
    proposal_that_needs_no_approval_any_more_is_set_aside(crate::gateway::POLICY),
    pending_review_is_set_aside_in_observe_mode(crate::gateway::POLICY),
    proposal_without_eligible_reviewers_is_set_aside(crate::gateway::POLICY),
    rollback_and_reaffirmation_are_restated_too(crate::gateway::POLICY),
    no_review_is_judged_again_during_a_halt(crate::gateway::POLICY),
    tool_call_is_restated_with_its_arguments(crate::gateway::POLICY),
    proposal_of_a_revoked_token_is_not_restated(crate::gateway::POLICY),
    exhausted_attempts_of_an_agent_do_not_block_a_rollback(crate::attacks::policy_with("[approval]\n", "[approval]\nattempts = 1\n")),
    review_ended_by_a_new_policy_uses_no_attempt(crate::attacks::policy_with("[approval]\n", "[approval]\nattempts = 1\n")),
    worker_ends_a_kept_review_whose_policy_is_not_accepted_any_more(crate::gateway::POLICY),
    head_over_a_withdrawn_policy_is_not_written(crate::gateway::POLICY),
}

fn two_needed() -> String {
    policy_with("need = 1", "need = 2")
}

/// The same rules in another text, so under another digest.
fn retold(policy: &str) -> String {
    format!("{policy}\n# As before.\n")
}

pub async fn activate(g: &TestGateway, policy: &str, accepts: &[Digest]) {
    let accepts = accepts.iter().copied().collect::<BTreeSet<_>>();
    g.service
        .policy_changes
        .activate_policy(&"tests".try_into().unwrap(), None, source(policy), accepts)
        .await
        .unwrap();
}

pub async fn policy_of(g: &TestGateway, transition: &Value) -> Digest {
    let told = told(g, transition).await;
    Digest::try_from(told["statement"]["policy"].as_str().unwrap()).unwrap()
}

async fn told(g: &TestGateway, transition: &Value) -> Value {
    g.get(&format!("/v1/transitions/{}", transition.as_str().unwrap()), &g.auditor).await.expect(200)
}

/// Returns the proposal that superseded `held`, in the shape of a 202 response.
async fn followed(g: &TestGateway, held: &Value) -> Value {
    let decision = g.decision(held).await.expect(200);
    assert_eq!((&decision["decision"], &decision["approved"]), (&json!("superseded"), &json!(false)));
    let next = told(g, &decision["superseded_by"]).await;
    assert_eq!(next["status"], "held", "{next}");
    json!({"transition": decision["superseded_by"], "review": next["review"]})
}

/// Checks that the proposal was set aside without a successor.
async fn was_set_aside(g: &TestGateway, thread: &Value, held: &Value) {
    let decision = g.decision(held).await.expect(200);
    assert_eq!((&decision["decision"], &decision["superseded_by"]), (&json!("superseded"), &Value::Null));
    let now = g.get(&format!("/v1/threads/{}", thread["thread"].as_str().unwrap()), &g.host).await.expect(200);
    assert_eq!((&now["version"], &now["status"]), (&json!(0), &json!("open")), "{now}");
}

async fn again(g: &TestGateway, thread: &Value, attempt: u32) -> ApiResponse {
    let patch = json!({"target_user_id": 42, "requested_action": "update_email"});
    let body = json!({"node": "planner", "parent": thread["transition"], "patch": patch, "attempt": attempt});
    g.post(&format!("/v1/threads/{}/transitions", thread["thread"].as_str().unwrap()), &g.planner, body).await
}

fn changed(voted: Result<VoteOutcome, Error>) {
    assert!(matches!(voted, Err(Error::Vote(VoteRejected::PolicyChanged))), "{voted:?}");
}

async fn pending_review_is_restated_and_needs_new_votes(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    assert_eq!(g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Waiting);
    let stricter = policy_with("need = 1", "need = 2\ncomment = \"required\"");
    activate(g, &stricter, &[]).await;
    assert_eq!(rejudge::run_once(&g.service).await.unwrap(), 1);
    let next = followed(g, &held).await;
    // The old review cannot be decided any more, and the first vote is invalid.
    assert!(matches!(g.vote(&g.bob, &held, VoteVerdict::Approve).await, Err(Error::Vote(VoteRejected::Ended))));
    assert_ne!(policy_of(g, &next["transition"]).await, policy_of(g, &held["transition"]).await);
    let statement = told(g, &next["transition"]).await["statement"].clone();
    assert_eq!((&statement["attempt"], &statement["parent"]), (&json!(2), &thread["transition"]));
    let silent = g.vote(&g.alice, &next, VoteVerdict::Approve).await;
    assert!(matches!(silent, Err(Error::Vote(VoteRejected::CommentRequired))), "{silent:?}");
    for (who, so_far) in [(&g.alice, VoteOutcome::Waiting), (&g.bob, VoteOutcome::Approved)] {
        let ballot = crate::gateway::ballot(&next, VoteVerdict::Approve);
        let ballot = countersign_domain::reviews::Ballot { comment: Some("I looked".to_owned()), ..ballot };
        let review = next["review"]["id"].as_str().unwrap().try_into().unwrap();
        assert_eq!(g.service.reviews.vote(&who.id, &review, &ballot, None).await.unwrap(), so_far);
    }
    // The same request as either attempt returns the outcome of that attempt.
    assert_eq!(again(g, &thread, 1).await.expect(202)["transition"], held["transition"]);
    assert_eq!(again(g, &thread, 2).await.expect(202)["transition"], next["transition"]);
    let decision = g.decision(&next).await.expect(200);
    g.verify(&thread["thread"], &next["transition"], &decision["receipt"], "w1").await.expect(200);
    g.confirm("w1").await.expect(200);
    scene.passes_an_audit().await;
}

async fn vote_detects_a_changed_policy_without_the_worker(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    assert_eq!(g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Waiting);
    activate(g, &policy_with("payment.card\"", "payment.card\", \"payment.amount\""), &[]).await;
    // No worker has run yet, so this vote would be the last one.
    changed(g.vote(&g.bob, &held, VoteVerdict::Approve).await);
    let next = followed(g, &held).await;
    let decision = g.approved(&next).await;
    g.verify(&thread["thread"], &next["transition"], &decision["receipt"], "w1").await.expect(200);
    scene.passes_an_audit().await;
}

async fn review_with_unchanged_requirements_keeps_its_votes(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    let old = policy_of(g, &held["transition"]).await;
    assert_eq!(g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Waiting);
    activate(g, &retold(&two_needed()), &[old]).await;
    assert_eq!(rejudge::run_once(&g.service).await.unwrap(), 1);
    // The result is stored, so that the worker does not judge it again every second.
    assert_eq!(rejudge::run_once(&g.service).await.unwrap(), 0);
    assert_eq!(g.vote(&g.bob, &held, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Approved);
    let decision = g.decision(&held).await.expect(200);
    g.verify(&thread["thread"], &held["transition"], &decision["receipt"], "w1").await.expect(200);
    scene.passes_an_audit().await;
}

/// If a new policy changes anything that reviewers decide by, they decide again.
async fn kept_review_is_judged_again_by_every_later_policy(scene: ApiScenario) {
    let g = &scene.gateway;
    let two = two_needed();
    let differing = [
        ("need = 2", "need = 1"),
        ("groups = [\"reviewers\"]", "groups = [\"reviewers\", \"finance\"]"),
        ("need = 2", "need = 2\ncomment = \"required\""),
        ("[approval]\n", "[approval]\ndenials = 2\n"),
        ("[approval]\n", "[approval]\ncovers = \"commit\"\n"),
        ("receipt_ttl = \"10m\"", "receipt_ttl = \"11m\""),
        ("payment.card\"", "payment.card\", \"raw_text\""),
        ("payment.card\"]", "payment.card\"]\ndetect = [\"email\"]"),
        ("payment.card\"]", "payment.card\"]\nreveal_to = [\"reviewers\"]"),
        ("[approval]\n", "[tools]\nallow = [\"crm.*\"]\nhide = [\"card\"]\n\n[approval]\n"),
        ("reads = [\"requested_action\", \"target_user_id\", \"payment.amount\"]", "reads = [\"$\"]"),
        ("protected = [\"target_user_id\",", "protected = [\"target_user_id\", \"requested_action\","),
        ("payment.card\"]", "payment.card\"]\npatterns = { order = 'ORD-\\d{4}' }"),
    ];
    for (from, to) in differing {
        activate(g, &two, &[]).await;
        let thread = g.thread().await;
        let held = g.held(&thread).await;
        let old = policy_of(g, &held["transition"]).await;
        assert_eq!(g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Waiting);
        activate(g, &retold(&two), &[old]).await;
        rejudge::run_once(&g.service).await.unwrap();
        assert!(two.contains(from), "{from}");
        activate(g, &two.replacen(from, to, 1), &[old]).await;
        changed(g.vote(&g.bob, &held, VoteVerdict::Approve).await);
        followed(g, &held).await;
    }
    scene.passes_an_audit().await;
}

async fn proposal_that_the_new_policy_rejects_is_set_aside(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    let old = policy_of(g, &held["transition"]).await;
    activate(g, &policy_with("rollback = true", "deny = [\"target_user_id\"]"), &[old]).await;
    changed(g.vote(&g.alice, &held, VoteVerdict::Approve).await);
    was_set_aside(g, &thread, &held).await;
    let rejected = again(g, &thread, 2).await.expect(422);
    assert_eq!(rejected["errors"][0]["code"], "write_denied");
    scene.passes_an_audit().await;
}

async fn proposal_that_needs_no_approval_any_more_is_set_aside(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    let old = policy_of(g, &held["transition"]).await;
    activate(g, &policy_with("\"target_user_id\", \"execution", "\"execution"), &[old]).await;
    assert_eq!(rejudge::run_once(&g.service).await.unwrap(), 1);
    was_set_aside(g, &thread, &held).await;
    assert_eq!(again(g, &thread, 2).await.expect(201)["outcome"], "committed");
    scene.passes_an_audit().await;
}

async fn pending_review_is_set_aside_in_observe_mode(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    let old = policy_of(g, &held["transition"]).await;
    activate(g, &policy_with("flow = \"payments\"\n", "flow = \"payments\"\nmode = \"observe\"\n"), &[old]).await;
    assert_eq!(rejudge::run_once(&g.service).await.unwrap(), 1);
    was_set_aside(g, &thread, &held).await;
    scene.passes_an_audit().await;
}

async fn proposal_without_eligible_reviewers_is_set_aside(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    activate(g, &policy_with("\"reviewers\"", "\"nobody\""), &[]).await;
    assert_eq!(rejudge::run_once(&g.service).await.unwrap(), 1);
    was_set_aside(g, &thread, &held).await;
    scene.passes_an_audit().await;
}

async fn rollback_and_reaffirmation_are_restated_too(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let path = format!("/v1/threads/{}", thread["thread"].as_str().unwrap());
    let patch = json!({"requested_action": "refund"});
    let ahead = g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await.expect(201);
    let asks = [
        ("rollbacks", json!({"node": "planner", "parent": ahead["transition"], "to_version": 0})),
        ("transitions", json!({"node": "planner", "parent": ahead["transition"], "patch": {}, "reaffirm": true})),
    ];
    for (index, (way, ask)) in asks.into_iter().enumerate() {
        activate(g, &retold(POLICY), &[]).await;
        let held = g.post(&format!("{path}/{way}"), &g.planner, ask).await.expect(202);
        activate(g, POLICY, &[]).await;
        assert_eq!(rejudge::run_once(&g.service).await.unwrap(), 1, "{index}");
        let next = followed(g, &held).await;
        let (before, after) = (told(g, &held["transition"]).await, told(g, &next["transition"]).await);
        for same in ["type", "restores", "parent", "principal"] {
            assert_eq!(before["statement"][same], after["statement"][same], "{same}");
        }
        assert_eq!(g.vote(&g.alice, &next, VoteVerdict::Deny).await.unwrap(), VoteOutcome::Denied);
    }
    scene.passes_an_audit().await;
}

async fn review_past_its_deadline_expires_and_is_not_restated(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    activate(g, &retold(POLICY), &[]).await;
    g.pass(Duration::from_secs(25 * 3600));
    rejudge::run_once(&g.service).await.unwrap();
    assert_eq!(g.decision(&held).await.expect(200)["decision"], "expired");
    scene.passes_an_audit().await;
}

async fn no_review_is_judged_again_during_a_halt(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    let halt = async |proposing: bool| {
        let ask = json!({"proposing": proposing, "verifying": false, "reason": "drill"});
        g.send(Method::PUT, "/v1/halts/payments", &g.admin, Some(ask)).await.expect(200);
    };
    halt(true).await;
    activate(g, &retold(POLICY), &[]).await;
    rejudge::run_once(&g.service).await.unwrap();
    assert!(matches!(g.vote(&g.alice, &held, VoteVerdict::Approve).await, Err(Error::Halted)));
    assert_eq!(told(g, &held["transition"]).await["status"], "held");
    halt(false).await;
    changed(g.vote(&g.alice, &held, VoteVerdict::Approve).await);
    g.approved(&followed(g, &held).await).await;
    scene.passes_an_audit().await;
}

async fn tool_call_is_restated_with_its_arguments(scene: ApiScenario) {
    let g = &scene.gateway;
    let tooled = policy_with("[approval]\n", "[tools]\nallow = [\"crm.*\"]\n\n[approval]\n");
    activate(g, &tooled, &[]).await;
    let thread = g.thread().await;
    let ask = json!({"node": "planner", "parent": thread["transition"], "patch": {"target_user_id": 42},
        "tool": {"name": "crm.find", "arguments": {"q": "x"}}, "usage": {"tokens": 7, "cost": 0.25}, "rationale": "why"});
    let path = format!("/v1/threads/{}/transitions", thread["thread"].as_str().unwrap());
    let held = g.post(&path, &g.planner, ask).await.expect(202);
    activate(g, &retold(&tooled), &[]).await;
    rejudge::run_once(&g.service).await.unwrap();
    let next = followed(g, &held).await;
    let (before, after) = (told(g, &held["transition"]).await, told(g, &next["transition"]).await);
    for same in ["usage", "rationale", "node"] {
        assert_eq!(before["statement"][same], after["statement"][same], "{same}");
    }
    assert_eq!(before["arguments"], after["arguments"]);
    assert_eq!(after["statement"]["tool"]["name"], "crm.find");
    g.approved(&next).await;
    scene.passes_an_audit().await;
}

async fn proposal_of_a_revoked_token_is_not_restated(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    let stolen = g.service.identity.token_of(&g.planner).await.unwrap().record.id;
    g.service.identity.revoke_token(&stolen).await.unwrap();
    activate(g, &retold(POLICY), &[]).await;
    rejudge::run_once(&g.service).await.unwrap();
    let now = told(g, &held["transition"]).await;
    assert_eq!((&now["status"], &now["superseded_by"]), (&json!("superseded"), &Value::Null));
    let thread = g.get(&format!("/v1/threads/{}", thread["thread"].as_str().unwrap()), &g.host).await.expect(200);
    assert_eq!(thread["status"], "open");
    scene.passes_an_audit().await;
}

async fn review_ended_by_a_new_policy_uses_no_attempt(scene: ApiScenario) {
    let g = &scene.gateway;
    let once = policy_with("[approval]\n", "[approval]\nattempts = 1\n");
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    activate(g, &retold(&once), &[]).await;
    rejudge::run_once(&g.service).await.unwrap();
    let next = followed(g, &held).await;
    // A proposal that requires no approval any more does not count as an attempt either.
    activate(g, &once.replace("rollback = true", "deny = [\"target_user_id\"]"), &[]).await;
    rejudge::run_once(&g.service).await.unwrap();
    was_set_aside(g, &thread, &next).await;
    activate(g, &once, &[]).await;
    again(g, &thread, 3).await.expect(202);
    scene.passes_an_audit().await;
}

async fn exhausted_attempts_of_an_agent_do_not_block_a_rollback(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let (id, first) = (&thread["thread"], &thread["transition"]);
    let moved = g.propose(id, first, (&g.parser, "input_parser"), json!({"raw_text": "on"})).await.expect(201);
    let head = &moved["transition"];
    let asks = async |user: u32| g.propose(id, head, (&g.planner, "planner"), json!({"target_user_id": user})).await;
    let path = format!("/v1/transitions/{}/cancellation", asks(42).await.expect(202)["transition"].as_str().unwrap());
    g.post(&path, &g.planner, json!({"reason": "never mind"})).await.expect(200);
    assert_eq!(asks(43).await.body["errors"][0]["code"], "attempts_exhausted");
    let back = json!({"node": "planner", "parent": head, "to_version": 0});
    let back = g.post(&format!("/v1/threads/{}/rollbacks", id.as_str().unwrap()), &g.planner, back).await;
    assert_eq!(back.body["errors"][0]["code"], "attempts_exhausted", "nor has the agent a rollback");
    let rollback = RollbackInput {
        thread: id.as_str().unwrap().parse().unwrap(),
        node: "planner".parse().unwrap(),
        parent: head.as_str().unwrap().parse().unwrap(),
        to_version: 0,
        attempt: 1,
        reason: Some("as it was".to_owned()),
    };
    let review = g.service.proposals.ask_for_rollback(&g.alice.id, &rollback).await.unwrap();
    assert_eq!(g.service.reviews.review(&review, &g.alice).await.unwrap().hold.state, HoldState::Open {});
    scene.passes_an_audit().await;
}

async fn worker_ends_a_kept_review_whose_policy_is_not_accepted_any_more(scene: ApiScenario) {
    let g = &scene.gateway;
    let held = g.held(&g.thread().await).await;
    let old = policy_of(g, &held["transition"]).await;
    activate(g, &retold(POLICY), &[old]).await;
    assert_eq!(rejudge::run_once(&g.service).await.unwrap(), 1);
    assert_eq!(rejudge::run_once(&g.service).await.unwrap(), 0);
    activate(g, &retold(POLICY), &[]).await;
    assert_eq!(rejudge::run_once(&g.service).await.unwrap(), 1);
    followed(g, &held).await;
    scene.passes_an_audit().await;
}

async fn head_over_a_withdrawn_policy_is_not_written(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, twin) = (g.thread().await, g.thread().await);
    let harmless = async |thread: &Value, parent: &Value, what: &str| {
        let patch = json!({"requested_action": what});
        g.propose(&thread["thread"], parent, (&g.planner, "planner"), patch).await.expect(201)["transition"].clone()
    };
    let verify = async |thread: &Value, transition: &Value, receipt: &Value, write_id: &str| {
        g.verify(&thread["thread"], transition, receipt, write_id).await
    };
    let first = policy_of(g, &thread["transition"]).await;
    let second = retold(POLICY);
    activate(g, &second, &[first]).await;
    let (head, twins) = (
        harmless(&thread, &thread["transition"], "refund").await,
        harmless(&twin, &twin["transition"], "refund").await,
    );
    let second = policy_of(g, &head).await;
    verify(&twin, &twins, &Value::Null, "while-accepted").await.expect(200);

    // The first policy is withdrawn. The head was committed under the second, which is accepted.
    activate(g, &retold(&retold(POLICY)), &[second]).await;
    assert_eq!(verify(&thread, &head, &Value::Null, "w1").await.code(), "policy_mismatch");
    // A harmless change on top does not help either. The reviewers must approve it.
    let next = harmless(&thread, &head, "update_email").await;
    assert_eq!(verify(&thread, &next, &Value::Null, "w2").await.code(), "receipt_missing");
    let path = format!("/v1/threads/{}/transitions", thread["thread"].as_str().unwrap());
    let ask = json!({"node": "planner", "parent": next, "patch": {}, "reaffirm": true});
    let held = g.post(&path, &g.planner, ask).await.expect(202);
    g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap();
    let receipt = g.decision(&held).await.expect(200)["receipt"].clone();
    verify(&thread, &held["transition"], &receipt, "w3").await.expect(200);
    scene.passes_an_audit().await;
}
