//! What somebody was told that their vote comes to: where others were faster and something else would follow, nothing
//! does. On both databases.

use countersign::domain::identity::account::Account;
use countersign::domain::primitives::id::{InterruptId, ReviewId};
use countersign::domain::reviews::{Alone, Ballot, Prospect, Verdict, VoteRefused};
use countersign::service::error::{Error, Result};
use countersign::service::reviews::comment::Saying;
use countersign::service::reviews::vote::Voted;
use serde_json::{Value, json};

use crate::attacks::policy_with;
use crate::gateway::{Gateway, ballot};
use crate::rules::Scene;

on_both! {
    a_vote_comes_to_what_its_voter_was_told_or_to_nothing,
    of_two_who_were_both_told_that_others_are_waited_for_one_decides_nothing,
    what_somebody_said_since_is_read_before_one_of_several_counts,
    an_answer_to_a_host_comes_to_what_its_voter_was_told_or_to_nothing,
}

fn policy() -> String {
    policy_with("need = 1", "need = 2").replace("ttl = \"24h\"", "ttl = \"24h\"\ndenials = 2")
}

fn review(held: &Value) -> ReviewId {
    held["review"]["id"].as_str().unwrap().try_into().unwrap()
}

async fn votes(g: &Gateway, who: &Account, held: &Value, (verdict, told): (Verdict, Prospect)) -> Result<Voted> {
    let ballot = Ballot { told: Some(told), ..ballot(held, verdict) };
    g.service.vote(&who.id, &review(held), &ballot).await
}

fn moved_on(voted: &Result<Voted>) -> bool {
    matches!(voted, Err(Error::Vote(VoteRefused::MovedOn)))
}

async fn a_vote_comes_to_what_its_voter_was_told_or_to_nothing(scene: Scene) {
    let g = &scene.gateway;
    for (verdict, last, done) in
        [(Verdict::Approve, Prospect::Passes, Voted::Approved), (Verdict::Deny, Prospect::Ends, Voted::Denied)]
    {
        let held = g.held(&g.thread().await).await;
        for told in [Prospect::Passes, Prospect::Ends] {
            assert!(moved_on(&votes(g, &g.alice, &held, (verdict, told)).await));
        }
        assert_eq!(votes(g, &g.alice, &held, (verdict, Prospect::Waits)).await.unwrap(), Voted::Waiting);
        assert!(moved_on(&votes(g, &g.bob, &held, (verdict, Prospect::Waits)).await));
        assert_eq!(g.decision(&held).await.status, 202, "nothing was counted");
        assert_eq!(votes(g, &g.bob, &held, (verdict, last)).await.unwrap(), done);
    }
    scene.passes_an_audit().await;
}

async fn of_two_who_were_both_told_that_others_are_waited_for_one_decides_nothing(scene: Scene) {
    let g = &scene.gateway;
    for _ in 0..5 {
        let held = g.held(&g.thread().await).await;
        let waits = (Verdict::Approve, Prospect::Waits);
        let (one, other) = tokio::join!(votes(g, &g.alice, &held, waits), votes(g, &g.bob, &held, waits));
        let (counted, not) = if one.is_ok() { (one, other) } else { (other, one) };
        assert!(counted.unwrap() == Voted::Waiting && moved_on(&not), "{not:?}");
        assert_eq!(g.decision(&held).await.status, 202);
    }
    scene.passes_an_audit().await;
}

async fn what_somebody_said_since_is_read_before_one_of_several_counts(scene: Scene) {
    let g = &scene.gateway;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(g.held(&g.thread().await).await);
    }
    let among: Vec<(ReviewId, Ballot)> = held.iter().map(|it| (review(it), ballot(it, Verdict::Approve))).collect();
    g.vote(&g.bob, &held[0], Verdict::Deny).await.unwrap();
    let transition = held[1]["transition"].as_str().unwrap().try_into().unwrap();
    let saying = Saying { transition, words: "Wait for the customer".to_owned(), nonce: "said-1".to_owned() };
    g.service.comment(&g.bob.id, &among[1].0, &saying).await.unwrap();
    let voted = g.service.vote_on_several(&g.alice.id, &among).await.unwrap();
    for refused in &voted[..2] {
        assert!(matches!(refused, Err(Error::Vote(VoteRefused::Alone(Alone::Talked)))), "{refused:?}");
    }
    assert_eq!(*voted[2].as_ref().unwrap(), Voted::Waiting);
    let (review, alone) = &among[1];
    assert_eq!(g.service.vote(&g.alice.id, review, alone).await.unwrap(), Voted::Waiting, "by itself it counts");
    scene.passes_an_audit().await;
}

async fn an_answer_to_a_host_comes_to_what_its_voter_was_told_or_to_nothing(scene: Scene) {
    let g = &scene.gateway;
    let taken = g.post("/v1/interrupts", &g.host, crate::interrupts::asked()).await.expect(202);
    let id: InterruptId = taken["id"].as_str().unwrap().try_into().unwrap();
    let vote = async |who: &Account, told: Prospect| {
        let held = json!({"transition": taken["digest"]});
        let ballot = Ballot { told: Some(told), ..ballot(&held, Verdict::Approve) };
        g.service.vote_on_interrupt(&who.id, &id, &ballot, None).await
    };
    assert!(moved_on(&vote(&g.alice, Prospect::Passes).await));
    assert_eq!(vote(&g.alice, Prospect::Waits).await.unwrap(), Voted::Waiting);
    assert!(moved_on(&vote(&g.bob, Prospect::Waits).await));
    assert_eq!(vote(&g.bob, Prospect::Passes).await.unwrap(), Voted::Approved);
    scene.passes_an_audit().await;
}
