//! Tests withdrawn votes, comments without a vote, and notifications of reviewers who can decide. On both databases.

use std::time::Duration;

use countersign_domain::identity::account::Account;
use countersign_domain::log::event::{Event, EventType};
use countersign_domain::operations::halt::Halt;
use countersign_domain::primitives::id::{PrincipalId, ReviewId};
use countersign_domain::reviews::{Ballot, COMMENTS_OF_ONE_MAX, VoteVerdict, WITHDRAWALS_MAX, WithdrawalRequest};

use countersign_service::error::{Error, Result};
use countersign_service::identity::revocation::SignInAccess;
use countersign_service::operations::halt::HaltScope;
use countersign_service::reviews::comment::NewComment;
use countersign_service::reviews::vote::VoteOutcome;
use countersign_web::api::problem::vote_code;
use serde_json::{Value, json};

use crate::attacks::policy_with;
use crate::gateway::{TestGateway, ballot, person};
use crate::rules::ApiScenario;

on_both! {
    withdrawn_vote_is_invalid_and_its_voter_may_vote_again,
    withdrawn_denial_ends_nothing,
    only_one_of_a_withdrawal_and_a_concurrent_last_vote_succeeds,
    only_an_active_vote_is_withdrawn_by_its_voter_and_once,
    no_vote_is_withdrawn_after_the_decision,
    approval_can_be_withdrawn_during_a_halt,
    withdrawals_are_limited,
    comments_are_shown_only_to_people,
    comments_are_limited_and_a_form_posts_once,
    eligible_people_are_listed_with_reasons,
}

fn policy() -> String {
    policy_with("need = 1", "need = 2").replace("ttl = \"24h\"", "ttl = \"24h\"\ndenials = 2")
}

fn review(held: &Value) -> ReviewId {
    held["review"]["id"].as_str().unwrap().try_into().unwrap()
}

fn nonce() -> String {
    countersign_adapters::random::uuid_v4().to_string()
}

fn withdrawing(held: &Value, vote: usize) -> WithdrawalRequest {
    WithdrawalRequest { transition: held["transition"].as_str().unwrap().try_into().unwrap(), vote, nonce: nonce() }
}

async fn take_back(g: &TestGateway, who: &Account, held: &Value, vote: usize) -> Result<()> {
    g.service.reviews.withdraw_vote(&who.id, &review(held), &withdrawing(held, vote)).await
}

async fn say(g: &TestGateway, who: &Account, held: &Value, words: &str) -> Result<()> {
    let transition = held["transition"].as_str().unwrap().try_into().unwrap();
    let saying = NewComment { transition, words: words.to_owned(), nonce: nonce() };
    g.service.reviews.comment(&who.id, &review(held), &saying).await
}

fn code(done: Result<()>) -> &'static str {
    match done {
        Ok(()) => "done",
        Err(Error::Vote(refused)) => vote_code(&refused),
        Err(Error::Unauthenticated) => "unauthenticated",
        Err(Error::Invalid { .. }) => "invalid",
        Err(Error::WrongState(_)) => "wrong_state",
        Err(other) => panic!("{other:?}"),
    }
}

async fn told(g: &TestGateway, kind: EventType) -> Vec<Event> {
    while g.service.log.sequence().await.unwrap() > 0 {}
    let (events, _) = g.service.log.events_after(0, None, 1000).await.unwrap();
    events.into_iter().map(|it| it.event).filter(|it| it.kind == kind).collect()
}

async fn halt(g: &TestGateway, proposing: bool) {
    let halt = Halt { proposing, verifying: proposing, reason: "drill".to_owned() };
    g.service.operations.set_halt(&PrincipalId::try_from("tests").unwrap(), &HaltScope::All, &halt).await.unwrap();
}

async fn withdrawn_vote_is_invalid_and_its_voter_may_vote_again(scene: ApiScenario) {
    let g = &scene.gateway;
    let held = g.held(&g.thread().await).await;
    g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap();
    assert_eq!(code(g.vote(&g.alice, &held, VoteVerdict::Approve).await.map(drop)), "not_eligible");
    take_back(g, &g.alice, &held, 0).await.unwrap();
    assert_eq!(g.vote(&g.bob, &held, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Waiting, "one of two counts");
    assert_eq!(g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Approved);
    let facts = g.service.reviews.review(&review(&held), &g.alice).await.unwrap();
    let votes: Vec<_> = facts.hold.votes.iter().map(|it| (it.name.as_str(), it.stands())).collect();
    assert_eq!(votes, [("alice", false), ("bob", true), ("alice", true)], "what was taken back stays to be read");
    let decision = g.decision(&held).await.expect(200);
    assert_eq!(decision["reviewers"], json!([g.bob.id, g.alice.id]));
    let [event] = told(g, EventType::ReviewWithdrawn).await.try_into().unwrap();
    let data = json!({
        "review": held["review"]["id"], "transition": held["transition"], "reviewer": g.alice.id, "stage": 0,
        "verdict": "approve", "vote": 0,
    });
    assert_eq!(event.data, data);
    scene.passes_an_audit().await;
}

async fn withdrawn_denial_ends_nothing(scene: ApiScenario) {
    let g = &scene.gateway;
    let carol = person(&g.service, "carol", &["reviewers"]).await;
    let held = g.held(&g.thread().await).await;
    g.vote(&g.alice, &held, VoteVerdict::Deny).await.unwrap();
    take_back(g, &g.alice, &held, 0).await.unwrap();
    assert_eq!(g.vote(&g.bob, &held, VoteVerdict::Deny).await.unwrap(), VoteOutcome::Waiting, "one of two counts");
    g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap();
    assert_eq!(g.vote(&carol, &held, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Approved);
    scene.passes_an_audit().await;
}

async fn only_one_of_a_withdrawal_and_a_concurrent_last_vote_succeeds(scene: ApiScenario) {
    let g = &scene.gateway;
    for _ in 0..5 {
        let held = g.held(&g.thread().await).await;
        g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap();
        let (back, last) = tokio::join!(take_back(g, &g.alice, &held, 0), g.vote(&g.bob, &held, VoteVerdict::Approve));
        match (code(back), last.unwrap()) {
            ("done", VoteOutcome::Waiting) => assert_eq!(g.decision(&held).await.status, 202),
            ("review_ended", VoteOutcome::Approved) => assert_eq!(g.decision(&held).await.status, 200),
            other => panic!("{other:?}"),
        }
    }
    scene.passes_an_audit().await;
}

async fn only_an_active_vote_is_withdrawn_by_its_voter_and_once(scene: ApiScenario) {
    let g = &scene.gateway;
    let (held, other) = (g.held(&g.thread().await).await, g.held(&g.thread().await).await);
    g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap();
    assert_eq!(code(take_back(g, &g.bob, &held, 0).await), "nothing_to_withdraw");
    assert_eq!(code(take_back(g, &g.alice, &held, 1).await), "nothing_to_withdraw");
    let of_other = g.service.reviews.withdraw_vote(&g.alice.id, &review(&held), &withdrawing(&other, 0)).await;
    assert_eq!(code(of_other), "digest_mismatch");
    let nobody = "nobody".try_into().unwrap();
    let by_nobody = g.service.reviews.withdraw_vote(&nobody, &review(&held), &withdrawing(&held, 0)).await;
    assert_eq!(code(by_nobody), "unauthenticated");
    // A form that is sent again after another vote does not withdraw that vote.
    let form = withdrawing(&held, 0);
    g.service.reviews.withdraw_vote(&g.alice.id, &review(&held), &form).await.unwrap();
    g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap();
    assert_eq!(code(g.service.reviews.withdraw_vote(&g.alice.id, &review(&held), &form).await), "nonce_used");
    assert_eq!(code(take_back(g, &g.alice, &held, 0).await), "nothing_to_withdraw");
    let again = WithdrawalRequest { vote: 1, ..form };
    assert_eq!(code(g.service.reviews.withdraw_vote(&g.alice.id, &review(&held), &again).await), "nonce_used");
    g.service.identity.set_admission("alice", SignInAccess::Barred).await.unwrap();
    assert_eq!(code(take_back(g, &g.alice, &held, 1).await), "not_eligible");
    assert_eq!(told(g, EventType::ReviewWithdrawn).await.len(), 1);
    scene.passes_an_audit().await;
}

async fn no_vote_is_withdrawn_after_the_decision(scene: ApiScenario) {
    let g = &scene.gateway;
    let (approved, late) = (g.held(&g.thread().await).await, g.held(&g.thread().await).await);
    for who in [&g.alice, &g.bob] {
        g.vote(who, &approved, VoteVerdict::Approve).await.unwrap();
    }
    assert_eq!(code(take_back(g, &g.alice, &approved, 0).await), "review_ended");
    g.vote(&g.alice, &late, VoteVerdict::Approve).await.unwrap();
    g.pass(Duration::from_secs(24 * 3600));
    assert_eq!(code(take_back(g, &g.alice, &late, 0).await), "expired");
    assert_eq!(told(g, EventType::ReviewWithdrawn).await, []);
}

async fn approval_can_be_withdrawn_during_a_halt(scene: ApiScenario) {
    let g = &scene.gateway;
    let held = g.held(&g.thread().await).await;
    g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap();
    halt(g, true).await;
    take_back(g, &g.alice, &held, 0).await.unwrap();
    halt(g, false).await;
    assert_eq!(g.vote(&g.bob, &held, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Waiting);
    scene.passes_an_audit().await;
}

async fn withdrawals_are_limited(scene: ApiScenario) {
    let g = &scene.gateway;
    let held = g.held(&g.thread().await).await;
    for turn in 0..=WITHDRAWALS_MAX {
        g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap();
        let expected = if turn < WITHDRAWALS_MAX { "done" } else { "withdrawn_too_often" };
        assert_eq!(code(take_back(g, &g.alice, &held, turn).await), expected);
    }
    assert_eq!(g.vote(&g.bob, &held, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Approved, "it still counts");
    scene.passes_an_audit().await;
}

async fn comments_are_shown_only_to_people(scene: ApiScenario) {
    let g = &scene.gateway;
    let held = g.held(&g.thread().await).await;
    say(g, &g.bob, &held, "who is user 42?").await.unwrap();
    g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap();
    g.vote(&g.bob, &held, VoteVerdict::Approve).await.unwrap();
    say(g, &g.alice, &held, "an old customer of ours").await.unwrap();
    let facts = g.service.reviews.review(&review(&held), &g.alice).await.unwrap();
    let words: Vec<_> = facts.hold.comments.iter().map(|it| (it.name.as_str(), it.words.as_str())).collect();
    assert_eq!(words, [("bob", "who is user 42?"), ("alice", "an old customer of ours")]);
    let path = format!("/v1/transitions/{}", held["transition"].as_str().unwrap());
    let mut said = g.decision(&held).await.expect(200).to_string();
    for token in [&g.planner, &g.host] {
        said += &g.get(&path, token).await.expect(200).to_string();
        said += &g.get("/v1/events?after=0", token).await.body.to_string();
    }
    assert!(!said.contains("42?") && !said.contains("customer of ours"), "{said}");
    assert_eq!(told(g, EventType::ReviewCommented).await.len(), 2, "that something was said is an event");
    scene.passes_an_audit().await;
}

async fn comments_are_limited_and_a_form_posts_once(scene: ApiScenario) {
    let g = &scene.gateway;
    let held = g.held(&g.thread().await).await;
    assert_eq!(code(say(g, &g.alice, &held, " \n").await), "invalid");
    assert_eq!(code(say(g, &g.alice, &held, &"x".repeat(4_001)).await), "invalid");
    let transition = held["transition"].as_str().unwrap().try_into().unwrap();
    let once = NewComment { transition, words: "once".to_owned(), nonce: nonce() };
    g.service.reviews.comment(&g.alice.id, &review(&held), &once).await.unwrap();
    assert_eq!(code(g.service.reviews.comment(&g.alice.id, &review(&held), &once).await), "nonce_used");
    for _ in 1..COMMENTS_OF_ONE_MAX {
        say(g, &g.alice, &held, "and again").await.unwrap();
    }
    assert_eq!(code(say(g, &g.alice, &held, "one too many").await), "wrong_state");
    say(g, &g.bob, &held, "another has room").await.unwrap();
    g.service.identity.set_admission("bob", SignInAccess::Barred).await.unwrap();
    assert_eq!(code(say(g, &g.bob, &held, "whoever left says nothing").await), "not_eligible");
    scene.passes_an_audit().await;
}

async fn eligible_people_are_listed_with_reasons(scene: ApiScenario) {
    let g = &scene.gateway;
    person(&g.service, "carol", &["reviewers", "platform"]).await;
    person(&g.service, "dave", &["elsewhere"]).await;
    person(&g.service, "erin", &["reviewers"]).await;
    g.service.identity.set_admission("erin", SignInAccess::Barred).await.unwrap();
    let held = g.held(&g.thread().await).await;
    g.vote(&g.bob, &held, VoteVerdict::Approve).await.unwrap();
    let path = format!("/v1/transitions/{}", held["transition"].as_str().unwrap());
    let people = async || {
        let told = g.get(&path, &g.auditor).await.expect(200);
        let line = |it: &Value| format!("{} {}{}", it["name"], it["can_decide"], it["why_not"]["code"]);
        told["review"]["people"].as_array().unwrap().iter().map(line).collect::<Vec<_>>()
    };
    let rest = [r#""bob" false"voted""#, r#""carol" false"author""#, r#""erin" false"disabled""#];
    assert_eq!(people().await, [&[r#""alice" truenull"#], &rest[..]].concat(), "dave is not asked");
    halt(g, true).await;
    assert_eq!(people().await[0], r#""alice" false"halted""#);
    halt(g, false).await;
    for token in [&g.planner, &g.host] {
        let told = g.get(&path, token).await.expect(200);
        assert_eq!(
            (&told["review"]["can_decide"], &told["review"]["why_not"]["code"]),
            (&json!(false), &json!("machine"))
        );
        assert_eq!(told["review"]["people"], Value::Null, "who could decide is not theirs to know");
        assert!(!told.to_string().contains("carol"), "{told}");
    }
    let last = Ballot { comment: None, ..ballot(&held, VoteVerdict::Approve) };
    g.service.reviews.vote(&g.alice.id, &review(&held), &last, None).await.unwrap();
    assert_eq!(people().await[0], r#""alice" false"ended""#);
    assert_eq!(g.get(&path, &g.planner).await.expect(200)["review"]["why_not"]["code"], "ended");
}
