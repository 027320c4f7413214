//! Tests reminders and escalations of undecided reviews. On both databases.

use std::time::Duration;

use countersign_domain::identity::account::{Account, MachineRole};
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::ReviewId;
use countersign_domain::reviews::VoteVerdict;

use countersign::worker::{escalate, expire};
use countersign_service::error::{Error, Result};
use countersign_service::identity::revocation::SignInAccess;
use countersign_service::inbox::InboxFilter;
use countersign_service::inbox::list::InboxPageSelection;
use countersign_service::reviews::vote::VoteOutcome;
use serde_json::{Value, json};

use crate::attacks::policy_with;
use crate::gateway::{TestGateway, owned_token, person};
use crate::rules::ApiScenario;

on_both! {
    reminder_and_escalation_are_logged_once_while_the_review_is_open,
    escalation_applies_at_its_time_even_before_it_is_logged,
    escalation_gives_no_second_vote_and_none_to_authors,
    a_review_that_only_an_escalation_could_decide_is_rejected,
}

const HOUR: Duration = Duration::from_secs(3600);

fn policy() -> String {
    let notices = "ttl = \"24h\"\nremind_after = \"4h\"\nescalate_after = \"12h\"\nescalate_to = [\"security\"]";
    policy_with("need = 1", "need = 2").replace("ttl = \"24h\"", notices)
}

fn review(held: &Value) -> ReviewId {
    held["review"]["id"].as_str().unwrap().try_into().unwrap()
}

fn code(voted: Result<VoteOutcome>) -> String {
    match voted {
        Ok(voted) => format!("{voted:?}"),
        Err(Error::Vote(refused)) => refused.to_string(),
        Err(other) => panic!("{other:?}"),
    }
}

const NOT_ASKED: &str = "you are not in a group that can decide this review";

async fn told(g: &TestGateway) -> Vec<(EventType, Value)> {
    while g.service.log.sequence().await.unwrap() > 0 {}
    let (events, _) = g.service.log.events_after(0, None, 1000).await.unwrap();
    let notices = |kind| matches!(kind, EventType::ReviewReminded | EventType::ReviewEscalated);
    events.into_iter().map(|it| it.event).filter(|it| notices(it.kind)).map(|it| (it.kind, it.data)).collect()
}

async fn mine(g: &TestGateway, who: &Account) -> usize {
    g.service.inbox.find(who, &InboxFilter::mine(), &InboxPageSelection::First, 10).await.unwrap().items.len()
}

async fn reminder_and_escalation_are_logged_once_while_the_review_is_open(scene: ApiScenario) {
    let g = &scene.gateway;
    let (held, denied) = (g.held(&g.thread().await).await, g.held(&g.thread().await).await);
    g.vote(&g.bob, &denied, VoteVerdict::Deny).await.unwrap();
    assert_eq!(escalate::run_once(&g.service).await.unwrap(), 0);
    g.pass(4 * HOUR);
    assert_eq!(escalate::run_once(&g.service).await.unwrap(), 1);
    assert_eq!(escalate::run_once(&g.service).await.unwrap(), 0, "once");
    g.pass(8 * HOUR);
    let (one, other) = tokio::join!(escalate::run_once(&g.service), escalate::run_once(&g.service));
    one.unwrap();
    other.unwrap();
    let facts = |kind: &str| json!({"review": held["review"]["id"], "transition": held["transition"], "expires_at": held["review"]["expires_at"], (kind.to_owned()): if kind == "to" { "security" } else { "reviewers" }});
    let list = |mut data: Value, kind: &str| {
        data[kind] = json!([data[kind]]);
        data
    };
    let expected = [
        (EventType::ReviewReminded, list(facts("groups"), "groups")),
        (EventType::ReviewEscalated, list(facts("to"), "to")),
    ];
    assert_eq!(told(g).await, expected);
    let path = format!("/v1/transitions/{}", held["transition"].as_str().unwrap());
    assert_eq!(g.get(&path, &g.host).await.expect(200)["review"]["escalated"]["to"], json!(["security"]));
    scene.passes_an_audit().await;
    // A review that expired before its escalation is not escalated any more.
    g.held(&g.thread().await).await;
    g.pass(24 * HOUR);
    assert_eq!(escalate::run_once(&g.service).await.unwrap(), 0);
    assert_eq!(expire::run_once(&g.service).await.unwrap(), 2);
    assert_eq!(told(g).await.len(), 2);
    scene.passes_an_audit().await;
}

async fn escalation_applies_at_its_time_even_before_it_is_logged(scene: ApiScenario) {
    let g = &scene.gateway;
    let sid = person(&g.service, "sid", &["security"]).await;
    let (untold, known) = (g.held(&g.thread().await).await, g.held(&g.thread().await).await);
    g.pass(12 * HOUR - Duration::from_secs(60));
    assert_eq!(code(g.vote(&sid, &untold, VoteVerdict::Approve).await), NOT_ASKED, "not a moment before");
    g.pass(Duration::from_secs(60));
    assert_eq!(
        g.vote(&sid, &untold, VoteVerdict::Approve).await.unwrap(),
        VoteOutcome::Waiting,
        "need stays what it is"
    );
    assert_eq!(g.vote(&g.alice, &untold, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Approved);
    assert_eq!(g.decision(&untold).await.expect(200)["reviewers"], json!([sid.id, g.alice.id]));
    assert_eq!(mine(g, &sid).await, 0, "a list waits for the worker, a vote does not");
    escalate::run_once(&g.service).await.unwrap();
    assert_eq!(mine(g, &sid).await, 1);
    let path = format!("/v1/transitions/{}", known["transition"].as_str().unwrap());
    let people = g.get(&path, &g.auditor).await.expect(200)["review"]["people"].clone();
    let names: Vec<&Value> = people.as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["alice", "bob", "sid"]);
    // The first reviewers stay eligible. A reviewer who left a group of either kind is not counted.
    assert_eq!(g.vote(&sid, &known, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Waiting);
    g.service.identity.set_admission("sid", SignInAccess::Barred).await.unwrap();
    assert_eq!(g.vote(&g.alice, &known, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Waiting);
    assert_eq!(g.vote(&g.bob, &known, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Approved);
    scene.passes_an_audit().await;
}

async fn escalation_gives_no_second_vote_and_none_to_authors(scene: ApiScenario) {
    let g = &scene.gateway;
    let both = person(&g.service, "both", &["security", "reviewers"]).await;
    let owner = person(&g.service, "owner", &["security"]).await;
    let agent = owned_token(&g.service, "of-owner", MachineRole::Agent, &["planner"], "owner").await;
    let thread = g.thread().await;
    let patch = json!({"target_user_id": 42});
    let held = g.propose(&thread["thread"], &thread["transition"], (&agent, "planner"), patch).await.expect(202);
    g.pass(12 * HOUR);
    assert_eq!(g.vote(&both, &held, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Waiting);
    assert!(code(g.vote(&both, &held, VoteVerdict::Approve).await).starts_with("you have already voted"));
    assert!(
        code(g.vote(&owner, &held, VoteVerdict::Approve).await)
            .starts_with("your agent proposed this change, or you edited it")
    );
    let facts = g.service.reviews.review(&review(&held), &owner).await.unwrap();
    assert_eq!(facts.hold.may_rewrite(&owner, None, facts.now).map_err(|it| it.code()), Err("author"));
    scene.passes_an_audit().await;
}

async fn a_review_that_only_an_escalation_could_decide_is_rejected(scene: ApiScenario) {
    let g = &scene.gateway;
    for name in ["sid", "sue"] {
        person(&g.service, name, &["security"]).await;
    }
    g.service.identity.set_admission("bob", SignInAccess::Barred).await.unwrap();
    let thread = g.thread().await;
    let patch = json!({"target_user_id": 42});
    let held = g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await;
    let refused = held.expect(422);
    let error = &refused["errors"][0];
    assert_eq!(error["code"], "nobody_can_approve");
    // The agent learns the groups, as from a pending review, and never who is in them.
    assert!(error["detail"].as_str().unwrap().contains("stage 1 needs 2 reviewers of reviewers"), "{error}");
    let told = refused.to_string();
    assert!(["alice", "bob", "sid", "disabled"].iter().all(|it| !told.contains(it)), "{told}");
    let listed = g.get("/v1/rejections", &g.auditor).await.expect(200);
    let stage = &listed["rejections"][0]["unfillable"][0];
    assert_eq!((&stage["groups"], &stage["need"], &stage["eligible"]), (&json!(["reviewers"]), &json!(2), &json!(1)));
    let members = stage["members"].as_array().unwrap();
    assert!(members.contains(&json!({"name": "bob", "why_not": "disabled"})), "{members:?}");
}
