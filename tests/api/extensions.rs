//! Tests extended deadlines. On both databases.

use std::time::Duration;

use countersign_domain::identity::account::{Account, MachineRole};
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::ReviewId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{
    EXTENSION_REASON_CHARS_MAX, EXTENSIONS_MAX, ExtensionRequest, Hold, VoteRejected, VoteVerdict,
};

use countersign::worker::expire;
use countersign_service::error::{Error, Result};
use countersign_service::identity::revocation::SignInAccess;
use countersign_service::reviews::vote::VoteOutcome;
use countersign_web::api::problem::vote_code;
use reqwest::Method;
use serde_json::{Value, json};

use crate::attacks::policy_with;
use crate::gateway::{TestGateway, owned_token, person};
use crate::rules::ApiScenario;
use crate::under_new_policy::activate;

on_both! {
    extended_deadline_applies_and_is_logged_with_its_reason,
    only_eligible_reviewers_extend_a_deadline_in_time_and_up_to_a_limit,
    only_one_of_two_concurrent_extensions_succeeds,
    concurrent_extension_and_last_vote_lose_nothing,
    reason_shows_no_value_that_the_current_policy_redacts,
}

const HOUR: Duration = Duration::from_secs(3600);

fn policy() -> String {
    policy_with("need = 1", "need = 2").replace("ttl = \"24h\"", "ttl = \"4h\"")
}

fn review(held: &Value) -> ReviewId {
    held["review"]["id"].as_str().unwrap().try_into().unwrap()
}

async fn hold(g: &TestGateway, held: &Value) -> Hold {
    g.service.reviews.review(&review(held), &g.alice).await.unwrap().hold
}

fn longer(hold: &Hold, more: Duration) -> ExtensionRequest {
    let (transition, deadline) = (hold.transition, hold.expires_at);
    ExtensionRequest { transition, deadline, until: deadline.plus(more), reason: "the bank is closed".to_owned() }
}

async fn moves(g: &TestGateway, who: &Account, held: &Value, ask: &ExtensionRequest) -> Result<()> {
    g.service.reviews.extend(&who.id, &review(held), ask).await
}

fn code(done: Result<()>) -> String {
    match done {
        Ok(()) => "done".to_owned(),
        Err(Error::Vote(VoteRejected::Ineligible(why))) => format!("not_eligible: {}", why.code()),
        Err(Error::Vote(refused)) => vote_code(&refused).to_owned(),
        Err(Error::WrongState(why)) => why.to_owned(),
        Err(Error::Invalid { pointer, .. }) => pointer,
        Err(other) => panic!("{other:?}"),
    }
}

async fn told(g: &TestGateway, kind: EventType) -> Vec<Value> {
    while g.service.log.sequence().await.unwrap() > 0 {}
    let (events, _) = g.service.log.events_after(0, None, 1000).await.unwrap();
    events.into_iter().map(|it| it.event).filter(|it| it.kind == kind).map(|it| it.data).collect()
}

/// Returns the data of the one extension, as the host sees it.
async fn extended_as_host(g: &TestGateway) -> Value {
    while g.service.log.sequence().await.unwrap() > 0 {}
    let page = g.get("/v1/events?limit=500", &g.host).await.expect(200);
    let events: Vec<&Value> = page["events"].as_array().unwrap().iter().collect();
    let [event] = *events.iter().filter(|it| it["type"] == "review.extended").collect::<Vec<_>>() else {
        panic!("there is one extension: {page:#}")
    };
    event["data"].clone()
}

async fn extended_deadline_applies_and_is_logged_with_its_reason(scene: ApiScenario) {
    let g = &scene.gateway;
    let (held, other) = (g.held(&g.thread().await).await, g.held(&g.thread().await).await);
    let before = hold(g, &held).await;
    let ask = ExtensionRequest { reason: "ask about 4111111111111111 first".to_owned(), ..longer(&before, HOUR) };
    moves(g, &g.alice, &held, &ask).await.unwrap();
    let path = format!("/v1/transitions/{}", held["transition"].as_str().unwrap());
    let review_told = g.get(&path, &g.host).await.expect(200)["review"].clone();
    assert_eq!(review_told["expires_at"], json!(before.expires_at.plus(HOUR)));
    assert_eq!(
        (&review_told["extended"]["by"], &review_told["extended"]["was"]),
        (&json!(g.alice.id), &json!(before.expires_at))
    );
    let [event] = told(g, EventType::ReviewExtended).await.try_into().unwrap();
    assert_eq!(event["reason"], "ask about 4111111111111111 first", "auditors read what was said");
    let event = extended_as_host(g).await;
    assert_eq!((&event["person"], &event["was"]), (&json!(g.alice.id), &json!(before.expires_at)));
    assert_eq!(event["until"], json!(before.expires_at.plus(HOUR)));
    let reason = event["reason"].as_str().unwrap();
    assert!(reason.contains("first") && !reason.contains("41111111"), "hosts read events: {reason}");
    g.pass(4 * HOUR + HOUR / 2);
    expire::run_once(&g.service).await.unwrap();
    assert_eq!(g.decision(&other).await.expect(200)["decision"], "expired", "the other's deadline was not moved");
    assert_eq!(g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Waiting);
    assert_eq!(g.vote(&g.bob, &held, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Approved);
    scene.passes_an_audit().await;
    let last = g.held(&g.thread().await).await;
    moves(g, &g.bob, &last, &longer(&hold(g, &last).await, HOUR)).await.unwrap();
    g.pass(5 * HOUR);
    expire::run_once(&g.service).await.unwrap();
    assert_eq!(g.decision(&last).await.expect(200)["decision"], "expired", "a moved deadline is one");
    scene.passes_an_audit().await;
}

/// While the flow is halted nothing is judged again, so the pending review still has the previous policy.
async fn reason_shows_no_value_that_the_current_policy_redacts(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let patch = json!({"target_user_id": 777_123});
    let held = g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await.expect(202);
    let stop = json!({"proposing": true, "verifying": false, "reason": "a look"});
    g.send(Method::PUT, "/v1/halts/payments", &g.admin, Some(stop)).await.expect(200);
    activate(g, &policy().replace("hide = [\"payment.card\"]", "hide = [\"payment.card\", \"target_user_id\"]"), &[])
        .await;
    let ask = ExtensionRequest { reason: "ask 777123 first".to_owned(), ..longer(&hold(g, &held).await, HOUR) };
    moves(g, &g.alice, &held, &ask).await.unwrap();
    assert_eq!(extended_as_host(g).await["reason"], "ask [hidden] first");
    scene.passes_an_audit().await;
}

async fn only_eligible_reviewers_extend_a_deadline_in_time_and_up_to_a_limit(scene: ApiScenario) {
    let g = &scene.gateway;
    let (dana, gone) =
        (person(&g.service, "dana", &["elsewhere"]).await, person(&g.service, "gone", &["reviewers"]).await);
    person(&g.service, "spare", &["reviewers"]).await;
    g.service.identity.set_admission("gone", SignInAccess::Barred).await.unwrap();
    let agent = owned_token(&g.service, "of-bob", MachineRole::Agent, &["planner"], "bob").await;
    let thread = g.thread().await;
    let patch = json!({"target_user_id": 42});
    let held = g.propose(&thread["thread"], &thread["transition"], (&agent, "planner"), patch).await.expect(202);
    let now = hold(g, &held).await;
    let ask = longer(&now, HOUR);
    assert_eq!(code(moves(g, &dana, &held, &ask).await), "not_eligible: group");
    assert_eq!(code(moves(g, &g.bob, &held, &ask).await), "not_eligible: author");
    assert_eq!(code(moves(g, &gone, &held, &ask).await), "not_eligible: disabled");
    let other = hold(g, &g.held(&g.thread().await).await).await;
    let of_another = ExtensionRequest { transition: other.transition, ..ask.clone() };
    assert_eq!(code(moves(g, &g.alice, &held, &of_another).await), "digest_mismatch");
    let milli = |moment: Timestamp, by: i64| Timestamp::from_millis(moment.millis() + by);
    for (until, why) in [
        (now.expires_at, "the new deadline must be later than the current one"),
        (milli(now.expires_at, -1), "the new deadline must be later than the current one"),
        (
            milli(now.expires_at.plus(4 * HOUR), 1),
            "a review can be extended to at most twice the time that the policy gives",
        ),
    ] {
        assert_eq!(code(moves(g, &g.alice, &held, &ExtensionRequest { until, ..ask.clone() }).await), why);
    }
    for reason in [" ".to_owned(), "x".repeat(EXTENSION_REASON_CHARS_MAX + 1)] {
        assert_eq!(code(moves(g, &g.alice, &held, &ExtensionRequest { reason, ..ask.clone() }).await), "/reason");
    }
    g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap();
    for _ in 0..EXTENSIONS_MAX {
        let now = hold(g, &held).await;
        moves(g, &g.alice, &held, &longer(&now, HOUR / 2)).await.expect("whoever voted is still asked");
    }
    let now = hold(g, &held).await;
    assert_eq!(
        code(moves(g, &g.alice, &held, &longer(&now, HOUR)).await),
        "a deadline can be extended at most five times"
    );
    // The limit counts from the first deadline, however often the deadline was extended.
    let far = g.held(&g.thread().await).await;
    let first = hold(g, &far).await;
    moves(g, &g.bob, &far, &longer(&first, 4 * HOUR)).await.unwrap();
    let now = hold(g, &far).await;
    let more = longer(&now, Duration::from_millis(1));
    let too_late = "a review can be extended to at most twice the time that the policy gives";
    assert_eq!(code(moves(g, &g.bob, &far, &more).await), too_late);
    let late = hold(g, &g.held(&g.thread().await).await).await;
    g.pass(4 * HOUR);
    let late = g.service.reviews.extend(&g.alice.id, &late.id, &longer(&late, HOUR)).await;
    assert_eq!(code(late), "expired", "what is over stays over");
    g.vote(&g.bob, &far, VoteVerdict::Deny).await.unwrap();
    assert_eq!(code(moves(g, &g.alice, &far, &longer(&now, HOUR)).await), "review_ended");
    assert_eq!(told(g, EventType::ReviewExtended).await.len(), EXTENSIONS_MAX + 1);
    scene.passes_an_audit().await;
}

async fn only_one_of_two_concurrent_extensions_succeeds(scene: ApiScenario) {
    let g = &scene.gateway;
    for _ in 0..5 {
        let held = g.held(&g.thread().await).await;
        let ask = longer(&hold(g, &held).await, HOUR);
        let (one, other) = tokio::join!(moves(g, &g.alice, &held, &ask), moves(g, &g.bob, &held, &ask));
        let mut came = [code(one), code(other)];
        came.sort();
        assert_eq!(came, ["done", "the deadline has changed since you opened the page; reload it"]);
        assert_eq!(
            code(moves(g, &g.alice, &held, &ask).await),
            "the deadline has changed since you opened the page; reload it"
        );
    }
    scene.passes_an_audit().await;
}

async fn concurrent_extension_and_last_vote_lose_nothing(scene: ApiScenario) {
    let g = &scene.gateway;
    for _ in 0..5 {
        let held = g.held(&g.thread().await).await;
        g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap();
        let ask = longer(&hold(g, &held).await, HOUR);
        let (moved, last) = tokio::join!(moves(g, &g.alice, &held, &ask), g.vote(&g.bob, &held, VoteVerdict::Approve));
        assert_eq!(last.unwrap(), VoteOutcome::Approved);
        assert!(["done", "review_ended"].contains(&code(moved).as_str()));
    }
    scene.passes_an_audit().await;
}
