//! Tests changes between a decision and its transaction. The store checks again in the transaction.

use std::sync::Arc;
use std::time::Duration;

use countersign_domain::json::patch::PatchFormat;
use countersign_domain::operations::halt::Halt;
use countersign_domain::primitives::id::ReviewId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{Ballot, VoteRejected, VoteVerdict};

use countersign_service::error::Error;
use countersign_service::identity::delegations::NewDelegation;
use countersign_service::identity::passkeys::PasskeyConfirmation;
use countersign_service::identity::revocation::SignInAccess;
use countersign_service::operations::halt::HaltScope;
use countersign_service::proposals::outcome::ProposalOutcome;
use countersign_service::proposals::request::{Proposal, ProposalKind};
use countersign_service::reviews::vote::VoteOutcome;
use countersign_service::threads::create::CreatedThread;
use countersign_service::threads::create::NewThread;
use countersign_service::writes::verify::VerifyInput;
use serde_json::{Value, json};

use super::AttackScenario;
use crate::gateway::{POLICY, TestGateway, ballot, person, spawn_with_policy};
use crate::meanwhile::{InterleavedAction, second_gateway};

/// Verifies on a second gateway while `happening` runs between its decision and its commit. Returns whether it allowed
/// the write.
async fn lets_through(scene: &AttackScenario, happening: InterleavedAction) -> bool {
    let (store, second) = second_gateway(&scene.g).await;
    let token = second.identity.token_of(&scene.g.writer).await.unwrap();
    let case = &scene.case;
    let ask = VerifyInput {
        thread: case.id().as_str().unwrap().try_into().unwrap(),
        transition: case.held["transition"].as_str().unwrap().try_into().unwrap(),
        receipt: Some(case.receipt().to_owned()),
        write_id: "w1".try_into().unwrap(),
        expect: Vec::new(),
    };
    store.watching.by(happening);
    let allowed = second.writes.verify(&token, &ask).await.is_ok();
    assert!(store.watching.is_over(), "it was decided without a commit");
    allowed
}

fn halts(scene: &AttackScenario, scope: HaltScope) -> InterleavedAction {
    let service = Arc::clone(&scene.g.service);
    Box::new(move || {
        Box::pin(async move {
            let halt = Halt { proposing: false, verifying: true, reason: "now".to_owned() };
            service.operations.set_halt(&"tests".try_into().unwrap(), &scope, &halt).await.unwrap();
        })
    })
}

#[tokio::test]
async fn undisturbed_write_is_allowed() {
    let scene = AttackScenario::new(POLICY).await;
    assert!(lets_through(&scene, Box::new(|| Box::pin(async {}))).await);
}

#[tokio::test]
async fn a_halt_of_the_flow_between_decision_and_commit_counts() {
    let scene = AttackScenario::new(POLICY).await;
    let halt = halts(&scene, HaltScope::Flow("payments".try_into().unwrap()));
    assert!(!lets_through(&scene, halt).await);
}

#[tokio::test]
async fn a_halt_of_all_between_decision_and_commit_counts() {
    let scene = AttackScenario::new(POLICY).await;
    let halt = halts(&scene, HaltScope::All);
    assert!(!lets_through(&scene, halt).await);
}

#[tokio::test]
async fn a_policy_activated_between_decision_and_commit_counts() {
    let scene = AttackScenario::new(POLICY).await;
    let service = Arc::clone(&scene.g.service);
    let other = crate::gateway::source(&super::policy_with("24h", "12h"));
    let activates: InterleavedAction = Box::new(move || {
        Box::pin(async move {
            let by = "tests".try_into().unwrap();
            service.policy_changes.activate_policy(&by, None, other, Default::default()).await.unwrap();
        })
    });
    assert!(!lets_through(&scene, activates).await);
}

#[tokio::test]
async fn a_token_revoked_between_decision_and_commit_counts() {
    let scene = AttackScenario::new(POLICY).await;
    let service = Arc::clone(&scene.g.service);
    let id = service.identity.token_of(&scene.g.writer).await.unwrap().record.id;
    let revokes: InterleavedAction =
        Box::new(move || Box::pin(async move { service.identity.revoke_token(&id).await.unwrap() }));
    assert!(!lets_through(&scene, revokes).await);
}

#[tokio::test]
async fn a_receipt_revoked_between_decision_and_commit_counts() {
    let scene = AttackScenario::new(POLICY).await;
    let service = Arc::clone(&scene.g.service);
    let jti = scene.case.decision["nonce"].as_str().unwrap().try_into().unwrap();
    let revokes: InterleavedAction = Box::new(move || {
        Box::pin(async move {
            let by = countersign_service::writes::revoke_receipt::Revoker::Admin("tests".try_into().unwrap());
            service.writes.revoke_receipt(&by, &jti, "now").await.unwrap();
        })
    });
    assert!(!lets_through(&scene, revokes).await);
}

#[tokio::test]
async fn a_receipt_that_expires_between_decision_and_commit_is_expired() {
    let scene = AttackScenario::new(POLICY).await;
    let expiry = super::forge::take_apart(scene.case.receipt()).claims["exp"].as_i64().unwrap() * 1000;
    // Half a second before the expiry, and then one second passes. The clocks of gateway and store may differ in
    // between.
    let so_far = scene.g.service.core.now().millis();
    scene.g.clock.set_millis(expiry - 500 - so_far);
    let clock = scene.g.clock.clone();
    let passes: InterleavedAction = Box::new(move || Box::pin(async move { clock.set_millis(expiry + 500 - so_far) }));
    assert!(!lets_through(&scene, passes).await);
    assert_eq!(scene.write(&scene.case.ask("w2")).await.code(), "expired");
    assert_eq!(scene.rows_all(), 0);
}

fn stops_proposing(g: &TestGateway, scope: HaltScope) -> InterleavedAction {
    let service = Arc::clone(&g.service);
    Box::new(move || {
        Box::pin(async move {
            let halt = Halt { proposing: true, verifying: false, reason: "now".to_owned() };
            service.operations.set_halt(&"tests".try_into().unwrap(), &scope, &halt).await.unwrap();
        })
    })
}

fn activates_another(g: &TestGateway) -> InterleavedAction {
    let service = Arc::clone(&g.service);
    let other = crate::gateway::source(&super::policy_with("24h", "12h"));
    Box::new(move || {
        Box::pin(async move {
            let by = "tests".try_into().unwrap();
            service.policy_changes.activate_policy(&by, None, other, Default::default()).await.unwrap();
        })
    })
}

fn nothing() -> InterleavedAction {
    Box::new(|| Box::pin(async {}))
}

/// Casts a last vote on a second gateway while this happens between its decision and its commit. Returns the result.
async fn votes(happening: impl FnOnce(&TestGateway, &Value) -> InterleavedAction) -> Result<VoteOutcome, Error> {
    let g = spawn_with_policy(POLICY).await;
    let held = g.held(&g.thread().await).await;
    let review: ReviewId = held["review"]["id"].as_str().unwrap().try_into().unwrap();
    let (store, second) = second_gateway(&g).await;
    store.watching.by(happening(&g, &held));
    let voted = second.reviews.vote(&g.alice.id, &review, &ballot(&held, VoteVerdict::Approve), None).await;
    assert!(store.watching.is_over(), "it was decided without a commit");
    let approved = g.decision(&held).await.body["approved"] == true;
    assert_eq!(approved, voted.is_ok());
    voted
}

#[tokio::test]
async fn undisturbed_vote_approves() {
    assert_eq!(votes(|_, _| nothing()).await.unwrap(), VoteOutcome::Approved);
}

#[tokio::test]
async fn a_halt_between_a_vote_and_its_commit_counts() {
    for scope in [HaltScope::Flow("payments".try_into().unwrap()), HaltScope::All] {
        let voted = votes(|g, _| stops_proposing(g, scope.clone())).await;
        assert!(matches!(voted, Err(Error::Halted)), "{scope:?}: {voted:?}");
    }
}

#[tokio::test]
async fn a_policy_activated_between_a_vote_and_its_commit_counts() {
    let voted = votes(|g, _| activates_another(g)).await;
    assert!(matches!(voted, Err(Error::Vote(_))), "{voted:?}");
}

#[tokio::test]
async fn vote_of_a_person_barred_before_its_commit_is_invalid() {
    let bars = |g: &TestGateway, _: &Value| -> InterleavedAction {
        let service = Arc::clone(&g.service);
        Box::new(move || {
            Box::pin(async move { drop(service.identity.set_admission("alice", SignInAccess::Barred).await.unwrap()) })
        })
    };
    let voted = votes(bars).await;
    assert!(matches!(voted, Err(Error::Vote(_) | Error::Unauthenticated)), "{voted:?}");
}

/// Lets a review's deadline pass.
fn deadline_passes(g: &TestGateway, held: &Value) -> InterleavedAction {
    let deadline: Timestamp = serde_json::from_value(held["review"]["expires_at"].clone()).unwrap();
    // Half a second before the deadline, and then one second passes. The clocks of gateway and store may differ in
    // between.
    let to_go = deadline.millis() - g.service.core.now().millis();
    let clock = g.clock.clone();
    clock.set_millis(to_go - 500);
    Box::new(move || Box::pin(async move { clock.set_millis(to_go + 500) }))
}

#[tokio::test]
async fn a_deadline_that_passes_between_a_vote_and_its_commit_counts() {
    let voted = votes(deadline_passes).await;
    assert!(matches!(voted, Err(Error::Vote(VoteRejected::Expired))), "{voted:?}");
}

#[tokio::test]
async fn review_whose_deadline_passes_during_a_cancellation_expires() {
    let g = spawn_with_policy(POLICY).await;
    let held = g.held(&g.thread().await).await;
    let (store, second) = second_gateway(&g).await;
    let token = second.identity.token_of(&g.planner).await.unwrap();
    store.watching.by(deadline_passes(&g, &held));
    let digest = held["transition"].as_str().unwrap().try_into().unwrap();
    let cancelled = second.threads.cancel(&token, digest, "never mind").await;
    assert!(matches!(cancelled, Err(Error::Expired)) && store.watching.is_over(), "{cancelled:?}");
    assert_ne!(g.decision(&held).await.body["decision"], "cancelled");
}

fn proposal(thread: &Value, node: &str, patch: Value) -> Proposal {
    Proposal {
        thread: thread["thread"].as_str().unwrap().try_into().unwrap(),
        node: node.try_into().unwrap(),
        parent: thread["transition"].as_str().unwrap().try_into().unwrap(),
        ask: ProposalKind::Patch { format: PatchFormat::Merge, patch },
        attempt: 1,
        rationale: None,
        tool: None,
        usage: Default::default(),
        step: None,
    }
}

/// Makes a harmless proposal on a second gateway while this happens between its decision and its commit.
async fn proposes(happening: impl FnOnce(&TestGateway) -> InterleavedAction) -> Result<ProposalOutcome, Error> {
    let g = spawn_with_policy(POLICY).await;
    let thread = g.thread().await;
    let (store, second) = second_gateway(&g).await;
    let token = second.identity.token_of(&g.parser).await.unwrap();
    let proposal = proposal(&thread, "input_parser", json!({"raw_text": "x"}));
    store.watching.by(happening(&g));
    let answer = second.proposals.propose(&token, &proposal).await;
    assert!(store.watching.is_over(), "it was decided without a commit");
    let told = g.get(&format!("/v1/threads/{}", thread["thread"].as_str().unwrap()), &g.host).await.expect(200);
    assert_eq!(told["version"], json!(u64::from(answer.is_ok())));
    answer
}

#[tokio::test]
async fn undisturbed_proposal_commits() {
    assert!(matches!(proposes(|_| nothing()).await, Ok(ProposalOutcome::Committed { version: 1, .. })));
}

#[tokio::test]
async fn a_halt_between_a_proposal_and_its_commit_counts() {
    for scope in [HaltScope::Flow("payments".try_into().unwrap()), HaltScope::All] {
        let answer = proposes(|g| stops_proposing(g, scope.clone())).await;
        assert!(matches!(answer, Err(Error::Halted)), "{scope:?}: {answer:?}");
    }
}

#[tokio::test]
async fn a_token_revoked_between_a_proposal_and_its_commit_counts() {
    let revokes = |g: &TestGateway| -> InterleavedAction {
        let (service, text) = (Arc::clone(&g.service), g.parser.clone());
        Box::new(move || {
            Box::pin(async move {
                let id = service.identity.token_of(&text).await.unwrap().record.id;
                service.identity.revoke_token(&id).await.unwrap();
            })
        })
    };
    let answer = proposes(revokes).await;
    assert!(answer.is_err(), "{answer:?}");
}

#[tokio::test]
async fn a_policy_activated_between_a_proposal_and_its_commit_judges_it() {
    let g = spawn_with_policy(POLICY).await;
    let thread = g.thread().await;
    let (store, second) = second_gateway(&g).await;
    let token = second.identity.token_of(&g.planner).await.unwrap();
    let unprotected = super::policy_with("\"target_user_id\", ", "");
    let now_free = crate::gateway::source(&unprotected);
    let proposal = proposal(&thread, "planner", json!({"target_user_id": 42}));
    g.service
        .policy_changes
        .activate_policy(&"tests".try_into().unwrap(), None, now_free, Default::default())
        .await
        .unwrap();
    let service = Arc::clone(&g.service);
    let protects: InterleavedAction = Box::new(move || {
        Box::pin(async move {
            let (by, source) = ("tests".try_into().unwrap(), crate::gateway::source(POLICY));
            service.policy_changes.activate_policy(&by, None, source, Default::default()).await.unwrap();
        })
    });
    store.watching.by(protects);
    let answer = second.proposals.propose(&token, &proposal).await.unwrap();
    assert!(store.watching.is_over() && matches!(answer, ProposalOutcome::Held { .. }), "{answer:?}");
}

/// Votes on a second gateway while the delegation ends between the decision and the commit.
async fn votes_while_it_ends(need: u32, last: impl FnOnce(Result<VoteOutcome, Error>)) {
    let g = spawn_with_policy(&super::policy_with("need = 1", &format!("need = {need}"))).await;
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    let (alice, _) = g.service.identity.sign_in("alice", "correct horse battery".to_owned()).await.unwrap();
    let naming = NewDelegation { to: "dana".to_owned(), length: Duration::from_secs(24 * 3600) };
    let shown = PasskeyConfirmation::Password("correct horse battery".to_owned());
    let delegation = g.service.identity.delegate_to(&alice, &naming, shown).await.unwrap();
    let held = g.held(&g.thread().await).await;
    let review: ReviewId = held["review"]["id"].as_str().unwrap().try_into().unwrap();
    let by_dana = Ballot { delegation: Some(delegation.id.clone()), ..ballot(&held, VoteVerdict::Approve) };
    let (store, second) = second_gateway(&g).await;
    let (service, id) = (Arc::clone(&g.service), delegation.id.clone());
    let ends: InterleavedAction = Box::new(move || {
        Box::pin(async move { service.identity.end_delegation(&alice.account.record.id, &id).await.unwrap() })
    });
    let voted = if need == 1 {
        store.watching.by(ends);
        second.reviews.vote(&dana.id, &review, &by_dana, None).await
    } else {
        second.reviews.vote(&dana.id, &review, &by_dana, None).await.unwrap();
        store.watching.by(ends);
        second.reviews.vote(&g.bob.id, &review, &ballot(&held, VoteVerdict::Approve), None).await
    };
    assert!(store.watching.is_over(), "it was decided without a commit");
    last(voted);
    assert_eq!(g.decision(&held).await.status, 202);
}

#[tokio::test]
async fn a_delegation_that_ends_between_a_vote_and_its_commit_opens_nothing() {
    votes_while_it_ends(1, |voted| assert!(matches!(voted, Err(Error::Vote(_))), "{voted:?}")).await;
}

#[tokio::test]
async fn a_delegation_that_ends_between_the_last_vote_and_its_commit_does_not_count() {
    votes_while_it_ends(2, |voted| assert_eq!(voted.unwrap(), VoteOutcome::Waiting)).await;
}

/// Creates a thread on a second gateway while this happens between its decision and its commit.
async fn creates(happening: impl FnOnce(&TestGateway) -> InterleavedAction) -> Result<CreatedThread, Error> {
    let g = spawn_with_policy(POLICY).await;
    let (store, second) = second_gateway(&g).await;
    let host = second.identity.token_of(&g.host).await.unwrap();
    let new = NewThread {
        flow: "payments".try_into().unwrap(),
        thread: Some("order-1".try_into().unwrap()),
        state: json!({"requested_action": "none", "target_user_id": 17}),
        context: Default::default(),
        episode: None,
    };
    store.watching.by(happening(&g));
    let created = second.threads.create_thread(&host, &new).await;
    assert!(store.watching.is_over(), "it was decided without a commit");
    assert_eq!(g.service.threads.overview(&"order-1".try_into().unwrap()).await.is_ok(), created.is_ok());
    created
}

#[tokio::test]
async fn thread_is_created_under_the_policy_active_at_its_commit() {
    let created = creates(|_| nothing()).await;
    assert!(created.is_ok(), "{created:?}");
    let created = creates(activates_another).await;
    assert!(created.is_ok(), "decided again: {created:?}");
    for scope in [HaltScope::Flow("payments".try_into().unwrap()), HaltScope::All] {
        let created = creates(|g| stops_proposing(g, scope.clone())).await;
        assert!(matches!(created, Err(Error::Halted)), "{scope:?}: {created:?}");
    }
    let revokes = |g: &TestGateway| -> InterleavedAction {
        let (service, text) = (Arc::clone(&g.service), g.host.clone());
        Box::new(move || {
            Box::pin(async move {
                let id = service.identity.token_of(&text).await.unwrap().record.id;
                service.identity.revoke_token(&id).await.unwrap();
            })
        })
    };
    let created = creates(revokes).await;
    assert!(matches!(created, Err(Error::Unauthenticated)), "{created:?}");
}
