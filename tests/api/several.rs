//! Tests votes on several reviews at once. Each vote counts separately, and none counts if its review requires more.

use countersign_domain::primitives::id::ReviewId;
use countersign_domain::reviews::{Ballot, NotBulkDecidable, VoteRejected, VoteVerdict, VoterProof};

use countersign_service::error::Error;
use countersign_service::reviews::vote::VoteOutcome;
use serde_json::Value;

use crate::attacks::policy_with;
use crate::gateway::{TestGateway, ballot, spawn_gateway, spawn_with_policy};
use crate::passkeys_of_people::authenticator::Authenticator;
use crate::passkeys_of_people::{enrol, sign_in};

fn of(held: &Value) -> ReviewId {
    held["review"]["id"].as_str().unwrap().try_into().unwrap()
}

async fn several(g: &TestGateway, number: usize) -> Vec<Value> {
    let mut held = Vec::new();
    for _ in 0..number {
        held.push(g.held(&g.thread().await).await);
    }
    held
}

#[tokio::test]
async fn invalid_vote_among_several_does_not_stop_the_others() {
    let g = spawn_gateway().await;
    let held = several(&g, 3).await;
    g.vote(&g.bob, &held[1], VoteVerdict::Deny).await.unwrap();
    let votes: Vec<(ReviewId, Ballot)> = held.iter().map(|it| (of(it), ballot(it, VoteVerdict::Approve))).collect();
    let voted = g.service.inbox.vote_on_reviews(&g.alice.id, &votes).await.unwrap();
    assert!(matches!(
        voted.as_slice(),
        [Ok(VoteOutcome::Approved), Err(Error::Vote(VoteRejected::Ended)), Ok(VoteOutcome::Approved)]
    ));
    let [first, last] = [&held[0], &held[2]];
    assert_ne!(g.decision(first).await.expect(200)["nonce"], g.decision(last).await.expect(200)["nonce"]);
}

#[tokio::test]
async fn votes_on_several_reviews_are_refused_if_a_stage_requires_a_passkey() {
    let g = spawn_with_policy(&policy_with("need = 1", "need = 1\npasskey_within = \"5m\"")).await;
    let mut key = Authenticator::new(1);
    let (person, _) = g.service.identity.sign_in("alice", "correct horse battery".to_owned()).await.unwrap();
    enrol(&g.service, &person, (&mut key, "correct horse battery")).await;
    let (person, _) = sign_in(&g.service, g.alice.id.as_str(), &mut key).await.unwrap();
    let held = several(&g, 2).await;
    let proven = |it: &Value| {
        let proof = VoterProof::of_session(&person.session.record);
        (of(it), Ballot { proof, ..ballot(it, VoteVerdict::Approve) })
    };
    let votes: Vec<(ReviewId, Ballot)> = held.iter().map(proven).collect();
    for refused in g.service.inbox.vote_on_reviews(&g.alice.id, &votes).await.unwrap() {
        assert!(matches!(refused, Err(Error::Vote(VoteRejected::Alone(NotBulkDecidable::Passkey)))), "{refused:?}");
    }
    let (review, alone) = &votes[0];
    assert_eq!(
        g.service.reviews.vote(&g.alice.id, review, alone, None).await.unwrap(),
        VoteOutcome::Approved,
        "by itself it counts"
    );
}

#[tokio::test]
async fn votes_on_several_reviews_are_refused_if_confirmation_is_typed() {
    let g = spawn_with_policy(&policy_with("need = 1", "need = 1\nconfirm = \"typed\"")).await;
    let held = several(&g, 2).await;
    let digits = |it: &Value| it["transition"].as_str().map(|it| it[it.len() - 6..].to_owned());
    let typed = |it: &Value| (of(it), Ballot { typed: digits(it), ..ballot(it, VoteVerdict::Approve) });
    let votes: Vec<(ReviewId, Ballot)> = held.iter().map(typed).collect();
    for refused in g.service.inbox.vote_on_reviews(&g.alice.id, &votes).await.unwrap() {
        assert!(matches!(refused, Err(Error::Vote(VoteRejected::Alone(NotBulkDecidable::Typing)))), "{refused:?}");
    }
    let (review, alone) = &votes[0];
    assert_eq!(
        g.service.reviews.vote(&g.alice.id, review, alone, None).await.unwrap(),
        VoteOutcome::Approved,
        "by itself it counts"
    );
}

#[tokio::test]
async fn more_than_fifty_are_not_voted_on_at_once() {
    let g = spawn_gateway().await;
    let held = g.held(&g.thread().await).await;
    let votes: Vec<(ReviewId, Ballot)> = (0..51).map(|_| (of(&held), ballot(&held, VoteVerdict::Approve))).collect();
    assert!(matches!(g.service.inbox.vote_on_reviews(&g.alice.id, &votes).await, Err(Error::Invalid { .. })));
    assert_eq!(g.decision(&held).await.status, 202);
}
