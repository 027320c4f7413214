//! Tests policies that reviewers approve before the policies judge a flow. On both databases.

use std::collections::BTreeSet;
use std::time::Duration;

use countersign_domain::identity::account::Account;
use countersign_domain::primitives::id::AmendmentId;
use countersign_domain::reviews::{
    Ballot, BrowserCheck, CheckboxState, Ineligible, VoteRejected, VoteVerdict, VoterProof,
};

use countersign::worker::expire;
use countersign_service::error::Error;
use countersign_service::identity::revocation::SignInAccess;
use countersign_service::policy_changes::activate::ActivationOutcome;
use countersign_service::reviews::vote::VoteOutcome;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::attacks::policy_with;
use crate::gateway::{ApiResponse, SCHEMA, TestGateway, person, source};
use crate::rules::ApiScenario;

on_both! {
    policy_waits_for_the_reviewers_that_the_active_policy_names(super::guarded(2)),
    active_policy_names_the_reviewers_of_the_next_policy(super::guarded(1)),
    one_denial_keeps_the_active_policy(super::guarded(2)),
    only_eligible_reviewers_other_than_the_proposer_vote(super::guarded(1)),
    vote_on_a_policy_is_for_one_digest_and_counts_once(super::guarded(2)),
    request_over_a_former_policy_is_superseded(super::guarded(1)),
    only_one_of_two_concurrent_last_votes_activates_the_policy(super::guarded(1)),
    policy_change_request_expires_and_can_be_cancelled(super::guarded(1)),
    policy_without_eligible_reviewers_is_refused(super::guarded(1).replace("[\"security\"]", "[\"nobody\"]")),
    change_of_the_accepted_policies_requires_approval(super::guarded(1)),
    only_administrators_and_auditors_see_or_cancel_a_policy_change_request(super::guarded(1)),
}

/// Returns the payments policy with `need` approvals by security for each later policy.
pub fn guarded(need: u32) -> String {
    policy_with(
        "[[approval.stages]]",
        &format!("[approval.policy]\ngroups = [\"security\"]\nneed = {need}\nttl = \"1h\"\n\n[[approval.stages]]"),
    )
}

pub async fn activates(g: &TestGateway, policy: &str, accepts: Value) -> ApiResponse {
    let body = json!({"policy": policy, "schemas": {"payments.schema.json": SCHEMA}, "accepts": accepts});
    g.post("/v1/flows/payments/policies", &g.admin, body).await
}

pub async fn now(g: &TestGateway, amendment: &Value) -> Value {
    g.get(&format!("/v1/amendments/{}", amendment["amendment"].as_str().unwrap()), &g.auditor).await.expect(200)
}

pub async fn active(g: &TestGateway) -> String {
    g.service.policies.active_policy(&"payments".try_into().unwrap()).await.unwrap().digest().to_string()
}

pub fn ballot(amendment: &Value, verdict: VoteVerdict) -> Ballot {
    Ballot {
        transition: amendment["digest"].as_str().unwrap().to_owned().try_into().unwrap(),
        delegation: None,
        stage: 0,
        verdict,
        nonce: countersign_adapters::random::uuid_v4().to_string(),
        comment: None,
        browser_check: BrowserCheck::NotRecomputed,
        proof: VoterProof::default(),
        typed: None,
        outcome_unknown_accepted: CheckboxState::No,
        told: None,
    }
}

async fn casts(g: &TestGateway, who: &Account, amendment: &Value, ballot: &Ballot) -> Result<VoteOutcome, Error> {
    let id = AmendmentId::try_from(amendment["amendment"].as_str().unwrap()).unwrap();
    g.service.policy_changes.vote_on_policy_change(&who.id, &id, ballot, None).await
}

async fn votes(g: &TestGateway, who: &Account, amendment: &Value, verdict: VoteVerdict) -> Result<VoteOutcome, Error> {
    casts(g, who, amendment, &ballot(amendment, verdict)).await
}

pub async fn security(g: &TestGateway) -> [Account; 2] {
    [person(&g.service, "grace", &["security"]).await, person(&g.service, "heidi", &["security"]).await]
}

async fn policy_waits_for_the_reviewers_that_the_active_policy_names(scene: ApiScenario) {
    let g = &scene.gateway;
    let [grace, heidi] = security(g).await;
    let before = active(g).await;
    let laxer = policy_with("\"target_user_id\", \"execution", "\"execution");
    let asked = activates(g, &laxer, json!([])).await.expect(202);
    assert_eq!((&asked["state"], &asked["over"]), (&json!("open"), &json!(before)));
    assert_eq!(asked["needed"], json!([{"groups": ["security"], "need": 2}]));
    // The new policy does not judge proposals yet, and the same request does not open a second policy change request.
    let held = g.held(&g.thread().await).await;
    assert_eq!(held["outcome"], "held");
    assert_eq!(activates(g, &laxer, json!([])).await.expect(202)["amendment"], asked["amendment"]);
    assert_eq!(votes(g, &grace, &asked, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Waiting);
    assert_eq!(active(g).await, before);
    assert_eq!(votes(g, &heidi, &asked, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Approved);
    assert_eq!(json!(active(g).await), asked["policy"]);
    assert_eq!(now(g, &asked).await["state"], "activated");
    let thread = g.thread().await;
    let patch = json!({"target_user_id": 42});
    g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await.expect(201);
    scene.passes_an_audit().await;
}

/// Otherwise anyone who may propose a policy could remove the approval that the active policy requires.
async fn active_policy_names_the_reviewers_of_the_next_policy(scene: ApiScenario) {
    let g = &scene.gateway;
    let [grace, _] = security(g).await;
    let unguarded = activates(g, crate::gateway::POLICY, json!([])).await.expect(202);
    votes(g, &grace, &unguarded, VoteVerdict::Approve).await.unwrap();
    // From here on a new policy requires no approval, not even one that requires approval of later policies.
    activates(g, &policy_with("24h", "12h"), json!([])).await.expect(200);
    activates(g, &guarded(1), json!([])).await.expect(200);
    activates(g, crate::gateway::POLICY, json!([])).await.expect(202);
    scene.passes_an_audit().await;
}

async fn one_denial_keeps_the_active_policy(scene: ApiScenario) {
    let g = &scene.gateway;
    let [grace, heidi] = security(g).await;
    let before = active(g).await;
    let asked = activates(g, crate::gateway::POLICY, json!([])).await.expect(202);
    assert_eq!(votes(g, &grace, &asked, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Waiting);
    assert_eq!(votes(g, &heidi, &asked, VoteVerdict::Deny).await.unwrap(), VoteOutcome::Denied);
    assert_eq!((active(g).await, &now(g, &asked).await["state"]), (before, &json!("denied")));
    // After a denial, the same request opens a new policy change request.
    assert_ne!(activates(g, crate::gateway::POLICY, json!([])).await.expect(202)["amendment"], asked["amendment"]);
    scene.passes_an_audit().await;
}

async fn only_eligible_reviewers_other_than_the_proposer_vote(scene: ApiScenario) {
    let g = &scene.gateway;
    security(g).await;
    let owner = person(&g.service, "ines", &["security", "platform"]).await;
    let asked = activates(g, crate::gateway::POLICY, json!([])).await.expect(202);
    for (who, why) in [(&g.alice, Ineligible::Group), (&owner, Ineligible::Author)] {
        let refused = votes(g, who, &asked, VoteVerdict::Approve).await;
        assert!(matches!(&refused, Err(Error::Vote(VoteRejected::Ineligible(it))) if *it == why), "{refused:?}");
    }
    let grace = g.service.identity.set_admission("grace", SignInAccess::Barred).await.unwrap();
    let refused = votes(g, &grace, &asked, VoteVerdict::Approve).await;
    assert!(matches!(&refused, Err(Error::Vote(VoteRejected::Ineligible(Ineligible::Disabled)))), "{refused:?}");
    assert_eq!(now(g, &asked).await["state"], "open");
    scene.passes_an_audit().await;
}

async fn vote_on_a_policy_is_for_one_digest_and_counts_once(scene: ApiScenario) {
    let g = &scene.gateway;
    let [grace, heidi] = security(g).await;
    let one = activates(g, crate::gateway::POLICY, json!([])).await.expect(202);
    let other = activates(g, &policy_with("24h", "12h"), json!([])).await.expect(202);
    let of_the_other = casts(g, &grace, &one, &ballot(&other, VoteVerdict::Approve)).await;
    assert!(matches!(of_the_other, Err(Error::Vote(VoteRejected::Digest))));
    let vote = ballot(&one, VoteVerdict::Approve);
    assert_eq!(casts(g, &grace, &one, &vote).await.unwrap(), VoteOutcome::Waiting);
    assert!(matches!(casts(g, &heidi, &one, &vote).await, Err(Error::Vote(VoteRejected::NonceUsed))));
    let twice = votes(g, &grace, &one, VoteVerdict::Approve).await;
    assert!(matches!(twice, Err(Error::Vote(VoteRejected::Ineligible(Ineligible::Voted)))));
    scene.passes_an_audit().await;
}

async fn request_over_a_former_policy_is_superseded(scene: ApiScenario) {
    let g = &scene.gateway;
    let [grace, heidi] = security(g).await;
    let one = activates(g, &guarded(1).replace("24h", "12h"), json!([])).await.expect(202);
    let other = activates(g, &guarded(1).replace("24h", "6h"), json!([])).await.expect(202);
    assert_eq!(votes(g, &grace, &one, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Approved);
    assert_eq!(now(g, &other).await["state"], "superseded");
    assert!(matches!(votes(g, &heidi, &other, VoteVerdict::Approve).await, Err(Error::Vote(VoteRejected::Ended))));
    assert_eq!(json!(active(g).await), one["policy"]);
    scene.passes_an_audit().await;
}

async fn only_one_of_two_concurrent_last_votes_activates_the_policy(scene: ApiScenario) {
    let g = &scene.gateway;
    let [grace, heidi] = security(g).await;
    let one = activates(g, &guarded(1).replace("24h", "12h"), json!([])).await.expect(202);
    let other = activates(g, &guarded(1).replace("24h", "6h"), json!([])).await.expect(202);
    let at_once =
        join_all([votes(g, &grace, &one, VoteVerdict::Approve), votes(g, &heidi, &other, VoteVerdict::Approve)]);
    let approved = at_once.await.into_iter().filter(|it| matches!(it, Ok(VoteOutcome::Approved))).count();
    assert_eq!(approved, 1);
    let mut states = vec![now(g, &one).await["state"].clone(), now(g, &other).await["state"].clone()];
    states.sort_by_key(Value::to_string);
    assert_eq!(states, ["activated", "superseded"]);
    scene.passes_an_audit().await;
}

async fn policy_change_request_expires_and_can_be_cancelled(scene: ApiScenario) {
    let g = &scene.gateway;
    let [grace, _] = security(g).await;
    let asked = activates(g, crate::gateway::POLICY, json!([])).await.expect(202);
    let path = format!("/v1/amendments/{}/cancellation", asked["amendment"].as_str().unwrap());
    let cancelled = g.post(&path, &g.admin, json!({"reason": "a slip"})).await.expect(200);
    assert_eq!(cancelled["state"], "cancelled");
    assert!(matches!(votes(g, &grace, &asked, VoteVerdict::Approve).await, Err(Error::Vote(VoteRejected::Ended))));
    let asked = activates(g, crate::gateway::POLICY, json!([])).await.expect(202);
    g.pass(Duration::from_secs(3_601));
    assert_eq!(now(g, &asked).await["state"], "expired");
    assert!(matches!(votes(g, &grace, &asked, VoteVerdict::Approve).await, Err(Error::Vote(VoteRejected::Expired))));
    // An expired request does not block a new one, whether or not a worker has ended it.
    let again = activates(g, crate::gateway::POLICY, json!([])).await.expect(202);
    assert_ne!(again["amendment"], asked["amendment"]);
    assert_eq!(expire::run_once(&g.service).await.unwrap(), 1);
    assert_eq!(now(g, &asked).await["state"], "expired");
    assert_eq!(votes(g, &grace, &again, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Approved);
    scene.passes_an_audit().await;
}

async fn policy_without_eligible_reviewers_is_refused(scene: ApiScenario) {
    let g = &scene.gateway;
    let refused = activates(g, crate::gateway::POLICY, json!([])).await;
    assert_eq!((refused.status, refused.code()), (409, "wrong_state"));
    assert!(refused.body["detail"].as_str().unwrap().contains("[approval.policy]"), "{}", refused.body);
    person(&g.service, "ivan", &["nobody"]).await;
    activates(g, crate::gateway::POLICY, json!([])).await.expect(202);
    scene.passes_an_audit().await;
}

/// A caller who could accept any policy by name could have heads written that its reviewers never saw.
async fn change_of_the_accepted_policies_requires_approval(scene: ApiScenario) {
    let g = &scene.gateway;
    let [grace, _] = security(g).await;
    let first = active(g).await;
    let one = activates(g, &guarded(1).replace("24h", "12h"), json!([])).await.expect(202);
    votes(g, &grace, &one, VoteVerdict::Approve).await.unwrap();
    let same = guarded(1).replace("24h", "12h");
    activates(g, &same, json!([])).await.expect(200);
    let accepting = activates(g, &same, json!([first])).await.expect(202);
    assert_eq!(accepting["accepts"], json!([first]));
    let by_hand = "command-line".try_into().unwrap();
    let (policy, none) = (source(crate::gateway::POLICY), BTreeSet::new());
    let asked = g.service.policy_changes.activate_policy(&by_hand, None, policy, none).await.unwrap();
    assert!(matches!(asked, ActivationOutcome::Waiting(_)), "{asked:?}");
    scene.passes_an_audit().await;
}

async fn only_administrators_and_auditors_see_or_cancel_a_policy_change_request(scene: ApiScenario) {
    let g = &scene.gateway;
    security(g).await;
    let asked = activates(g, crate::gateway::POLICY, json!([])).await.expect(202);
    let path = format!("/v1/amendments/{}", asked["amendment"].as_str().unwrap());
    let listed = g.get("/v1/flows/payments/amendments", &g.auditor).await.expect(200);
    assert_eq!(listed["amendments"], json!([asked]));
    for token in [&g.host, &g.parser, &g.writer] {
        assert_eq!(g.get(&path, token).await.status, 403);
        assert_eq!(g.post(&format!("{path}/cancellation"), token, json!({"reason": "x"})).await.status, 403);
    }
    assert_eq!(g.post(&format!("{path}/cancellation"), &g.auditor, json!({"reason": "x"})).await.status, 403);
    assert_eq!(g.get("/v1/amendments/none", &g.admin).await.code(), "not_found");
    scene.passes_an_audit().await;
}
