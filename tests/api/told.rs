//! Tests the outcome of a vote that its page announced. If another vote was faster and the outcome would differ, the
//! vote is refused. On both databases.

use countersign_domain::identity::account::Account;
use countersign_domain::primitives::id::{InterruptId, ReviewId};
use countersign_domain::reviews::{Ballot, NotBulkDecidable, VotePreview, VoteRejected, VoteVerdict};

use countersign_service::error::{Error, Result};
use countersign_service::reviews::comment::NewComment;
use countersign_service::reviews::vote::VoteOutcome;
use serde_json::{Value, json};

use crate::attacks::policy_with;
use crate::gateway::{TestGateway, ballot};
use crate::rules::ApiScenario;

on_both! {
    vote_has_its_previewed_outcome_or_none,
    second_concurrent_vote_with_an_outdated_preview_is_refused,
    new_comment_stops_a_vote_on_several_reviews,
    interrupt_vote_has_its_previewed_outcome_or_none,
}

fn policy() -> String {
    policy_with("need = 1", "need = 2").replace("ttl = \"24h\"", "ttl = \"24h\"\ndenials = 2")
}

fn review(held: &Value) -> ReviewId {
    held["review"]["id"].as_str().unwrap().try_into().unwrap()
}

async fn votes(
    g: &TestGateway,
    who: &Account,
    held: &Value,
    (verdict, told): (VoteVerdict, VotePreview),
) -> Result<VoteOutcome> {
    let ballot = Ballot { told: Some(told), ..ballot(held, verdict) };
    g.service.reviews.vote(&who.id, &review(held), &ballot, None).await
}

fn moved_on(voted: &Result<VoteOutcome>) -> bool {
    matches!(voted, Err(Error::Vote(VoteRejected::MovedOn)))
}

async fn vote_has_its_previewed_outcome_or_none(scene: ApiScenario) {
    let g = &scene.gateway;
    for (verdict, last, done) in [
        (VoteVerdict::Approve, VotePreview::Passes, VoteOutcome::Approved),
        (VoteVerdict::Deny, VotePreview::Ends, VoteOutcome::Denied),
    ] {
        let held = g.held(&g.thread().await).await;
        for told in [VotePreview::Passes, VotePreview::Ends] {
            assert!(moved_on(&votes(g, &g.alice, &held, (verdict, told)).await));
        }
        assert_eq!(votes(g, &g.alice, &held, (verdict, VotePreview::Waits)).await.unwrap(), VoteOutcome::Waiting);
        assert!(moved_on(&votes(g, &g.bob, &held, (verdict, VotePreview::Waits)).await));
        assert_eq!(g.decision(&held).await.status, 202, "nothing was counted");
        assert_eq!(votes(g, &g.bob, &held, (verdict, last)).await.unwrap(), done);
    }
    scene.passes_an_audit().await;
}

async fn second_concurrent_vote_with_an_outdated_preview_is_refused(scene: ApiScenario) {
    let g = &scene.gateway;
    for _ in 0..5 {
        let held = g.held(&g.thread().await).await;
        let waits = (VoteVerdict::Approve, VotePreview::Waits);
        let (one, other) = tokio::join!(votes(g, &g.alice, &held, waits), votes(g, &g.bob, &held, waits));
        let (counted, not) = if one.is_ok() { (one, other) } else { (other, one) };
        assert!(counted.unwrap() == VoteOutcome::Waiting && moved_on(&not), "{not:?}");
        assert_eq!(g.decision(&held).await.status, 202);
    }
    scene.passes_an_audit().await;
}

async fn new_comment_stops_a_vote_on_several_reviews(scene: ApiScenario) {
    let g = &scene.gateway;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(g.held(&g.thread().await).await);
    }
    let among: Vec<(ReviewId, Ballot)> = held.iter().map(|it| (review(it), ballot(it, VoteVerdict::Approve))).collect();
    g.vote(&g.bob, &held[0], VoteVerdict::Deny).await.unwrap();
    let transition = held[1]["transition"].as_str().unwrap().try_into().unwrap();
    let saying = NewComment { transition, words: "Wait for the customer".to_owned(), nonce: "said-1".to_owned() };
    g.service.reviews.comment(&g.bob.id, &among[1].0, &saying).await.unwrap();
    let voted = g.service.inbox.vote_on_reviews(&g.alice.id, &among).await.unwrap();
    for refused in &voted[..2] {
        assert!(matches!(refused, Err(Error::Vote(VoteRejected::Alone(NotBulkDecidable::Talked)))), "{refused:?}");
    }
    assert_eq!(*voted[2].as_ref().unwrap(), VoteOutcome::Waiting);
    let (review, alone) = &among[1];
    assert_eq!(
        g.service.reviews.vote(&g.alice.id, review, alone, None).await.unwrap(),
        VoteOutcome::Waiting,
        "by itself it counts"
    );
    scene.passes_an_audit().await;
}

async fn interrupt_vote_has_its_previewed_outcome_or_none(scene: ApiScenario) {
    let g = &scene.gateway;
    let taken = g.post("/v1/interrupts", &g.host, crate::interrupts::asked()).await.expect(202);
    let id: InterruptId = taken["id"].as_str().unwrap().try_into().unwrap();
    let vote = async |who: &Account, told: VotePreview| {
        let held = json!({"transition": taken["digest"]});
        let ballot = Ballot { told: Some(told), ..ballot(&held, VoteVerdict::Approve) };
        g.service.interrupts.vote_on_interrupt(&who.id, &id, &ballot, None).await
    };
    assert!(moved_on(&vote(&g.alice, VotePreview::Passes).await));
    assert_eq!(vote(&g.alice, VotePreview::Waits).await.unwrap(), VoteOutcome::Waiting);
    assert!(moved_on(&vote(&g.bob, VotePreview::Waits).await));
    assert_eq!(vote(&g.bob, VotePreview::Passes).await.unwrap(), VoteOutcome::Approved);
    scene.passes_an_audit().await;
}
