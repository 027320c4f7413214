//! Tests revealing redacted values: who may reveal which value, how it is recorded, and who is notified. On both
//! databases.

use std::sync::Arc;

use countersign_domain::chain::hash::Digest;
use countersign_domain::identity::account::Account;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::log::event::{Event, EventType};
use countersign_domain::operations::halt::Halt;
use countersign_domain::primitives::id::{PrincipalId, ReviewId};
use countersign_domain::reviews::{REVEAL_REASON_CHARS_MAX, REVEALS_MAX, Reveal, VoteVerdict};

use countersign_adapters::clock::ClockOffset;
use countersign_service::error::{Error, Result};
use countersign_service::identity::revocation::SignInAccess;
use countersign_service::operations::halt::HaltScope;
use countersign_service::reviews::details::ReviewFacts;
use countersign_service::reviews::reveal::RevealRequest;
use countersign_store::sqlite::SqliteStore;
use serde_json::{Value, json};

use crate::attacks::policy_with;
use crate::gateway::{TestGateway, person, spawn_on, spawn_with_policy};
use crate::rules::ApiScenario;
use crate::sqlite::unsynced;
use crate::under_new_policy::activate;

on_both! {
    reveal_is_recorded_with_its_event_and_shown_later,
    only_members_of_a_named_group_reveal,
    disabled_person_reveals_nothing,
    only_redacted_values_of_the_transition_are_revealed,
    reveal_requires_a_limited_and_masked_reason,
    values_of_halted_closed_or_decided_reviews_can_be_revealed,
    reveals_above_the_limit_show_nothing,
    reveal_requires_permission_under_the_current_and_the_earlier_policy,
    only_auditors_see_the_kind_of_a_redacted_value,
}

const CARD: &str = "4929 0000 0000 0000";

fn policy() -> String {
    policy_with(
        "hide = [\"payment.card\"]",
        "hide = [\"payment.card\"]\ndetect = [\"email\"]\nreveal_to = [\"security\"]",
    )
    .replace(
        "writes = [\"requested_action\", \"target_user_id\", \"payment.amount\"]",
        "writes = [\"requested_action\", \"target_user_id\", \"payment\", \"raw_text\"]",
    )
}

struct RedactedHold {
    review: ReviewId,
    transition: Digest,
    answer: Value,
    grace: Account,
}

/// Proposes a change of the user and of a card. Also adds a person of `security`.
async fn held(g: &TestGateway) -> RedactedHold {
    let grace = person(&g.service, "grace", &["security", "reviewers"]).await;
    let thread = g.thread().await;
    let patch = json!({"target_user_id": 42, "payment": {"card": CARD}});
    let ask = json!({"node": "planner", "parent": thread["transition"], "patch": patch, "format": "merge-patch"});
    let path = format!("/v1/threads/{}/transitions", thread["thread"].as_str().unwrap());
    let answer = g.post(&path, &g.planner, ask).await.expect(202);
    let review = answer["review"]["id"].as_str().unwrap().try_into().unwrap();
    let transition = answer["transition"].as_str().unwrap().try_into().unwrap();
    RedactedHold { review, transition, answer, grace }
}

fn look(held: &RedactedHold, pointer: &str, reason: &str) -> RevealRequest {
    RevealRequest {
        transition: held.transition,
        pointer: Pointer::try_from(pointer).unwrap(),
        reason: reason.to_owned(),
    }
}

async fn looks(g: &TestGateway, who: &Account, held: &RedactedHold, pointer: &str) -> Result<ReviewFacts> {
    g.service.reviews.reveal(&who.id, &held.review, &look(held, pointer, "the bank asks")).await
}

async fn recorded(g: &TestGateway, held: &RedactedHold) -> Vec<Reveal> {
    g.service.reviews.review(&held.review, &g.alice).await.unwrap().hold.reveals
}

async fn told(g: &TestGateway) -> Vec<Event> {
    while g.service.log.sequence().await.unwrap() > 0 {}
    let (events, _) = g.service.log.events_after(0, None, 1000).await.unwrap();
    events.into_iter().map(|it| it.event).filter(|it| it.kind == EventType::ReviewRevealed).collect()
}

async fn nothing_is_recorded(g: &TestGateway, held: &RedactedHold) {
    assert_eq!(recorded(g, held).await, []);
    assert_eq!(told(g).await, []);
}

/// Returns the opening with the revealed value, and the opening for everybody else.
fn opened(facts: &ReviewFacts) -> (String, String) {
    let (_, open) = facts.revealed.as_ref().expect("somebody looked");
    assert_eq!(open.from.root(), facts.opening.from.root(), "the value is the one that is committed to");
    assert_eq!(open.to.root(), facts.opening.to.root(), "the value is the one that is committed to");
    (json!(open).to_string(), json!(facts.opening).to_string())
}

async fn reveal_is_recorded_with_its_event_and_shown_later(scene: ApiScenario) {
    let g = &scene.gateway;
    let held = held(g).await;
    let facts = looks(g, &held.grace, &held, "/payment/card").await.unwrap();
    let (open, closed) = opened(&facts);
    assert!(open.contains(CARD) && open.contains("4111111111111111"), "both sides of the change: {open}");
    assert!(!closed.contains(CARD) && !closed.contains("4111111111111111"), "{closed}");
    let [reveal] = recorded(g, &held).await.try_into().unwrap();
    assert_eq!((reveal.name.as_str(), &reveal.person), ("grace", &held.grace.id));
    assert_eq!((reveal.pointer.as_str(), reveal.reason.as_str()), ("/payment/card", "the bank asks"));
    let [event] = told(g).await.try_into().unwrap();
    let data = json!({
        "review": held.review, "transition": held.transition, "person": held.grace.id, "groups": ["security"],
        "pointer": "/payment/card", "reason": "the bank asks",
    });
    assert_eq!((&event.data, event.at), (&data, reveal.at));
    let after = g.service.reviews.review(&held.review, &held.grace).await.unwrap();
    assert!(after.revealed.is_none(), "it was shown once");
    let whole = format!("{:?}", told(g).await);
    assert!(!whole.contains(CARD) && !whole.contains("4111111111111111"), "{whole}");
    g.approved(&held.answer).await;
    scene.passes_an_audit().await;
}

async fn only_members_of_a_named_group_reveal(scene: ApiScenario) {
    let g = &scene.gateway;
    let held = held(g).await;
    let refused = looks(g, &g.alice, &held, "/payment/card").await;
    assert!(matches!(refused, Err(Error::Forbidden(_))), "{:?}", refused.err());
    let refused = looks(g, &g.alice, &held, "/nothing/there").await;
    assert!(matches!(refused, Err(Error::Forbidden(_))), "whoever may not look is not told what is there");
    nothing_is_recorded(g, &held).await;
}

async fn disabled_person_reveals_nothing(scene: ApiScenario) {
    let g = &scene.gateway;
    let held = held(g).await;
    g.service.identity.set_admission("grace", SignInAccess::Barred).await.unwrap();
    let refused = looks(g, &held.grace, &held, "/payment/card").await;
    assert!(matches!(refused, Err(Error::Forbidden(_))), "{:?}", refused.err());
    nothing_is_recorded(g, &held).await;
    g.service.identity.set_admission("grace", SignInAccess::Open).await.unwrap();
    looks(g, &held.grace, &held, "/payment/card").await.unwrap();
}

async fn only_redacted_values_of_the_transition_are_revealed(scene: ApiScenario) {
    let g = &scene.gateway;
    let this = held(g).await;
    let pointers = ["", "/payment", "/payment/amount", "/target_user_id", "/payment/card/0", "/nothing", "/raw_text"];
    for pointer in pointers {
        let refused = looks(g, &this.grace, &this, pointer).await;
        assert!(matches!(refused, Err(Error::NotFound("redacted value"))), "{pointer}: {:?}", refused.err());
    }
    let other = Digest::try_from(format!("sha256:{}", "0".repeat(64)).as_str()).unwrap();
    let wrong = RevealRequest { transition: other, ..look(&this, "/payment/card", "why not") };
    let refused = g.service.reviews.reveal(&this.grace.id, &this.review, &wrong).await;
    assert!(matches!(refused, Err(Error::WrongState(_))), "{:?}", refused.err());
    let nowhere = ReviewId::try_from("00000000-0000-0000-0000-000000000000").unwrap();
    let refused = g.service.reviews.reveal(&this.grace.id, &nowhere, &look(&this, "/payment/card", "why")).await;
    assert!(matches!(refused, Err(Error::NotFound("review"))), "{:?}", refused.err());
    nothing_is_recorded(g, &this).await;

    // A value that a detector finds is redacted as well.
    g.approved(&this.answer).await;
    let thread = g.thread().await;
    let patch = json!({"target_user_id": 43, "raw_text": "write to ana@example.org"});
    let ask = json!({"node": "planner", "parent": thread["transition"], "patch": patch, "format": "merge-patch"});
    let path = format!("/v1/threads/{}/transitions", thread["thread"].as_str().unwrap());
    let answer = g.post(&path, &g.planner, ask).await.expect(202);
    let review = answer["review"]["id"].as_str().unwrap().try_into().unwrap();
    let transition = answer["transition"].as_str().unwrap().try_into().unwrap();
    let found = RedactedHold { review, transition, answer, grace: this.grace };
    let facts = looks(g, &found.grace, &found, "/raw_text").await.unwrap();
    let (open, closed) = opened(&facts);
    assert!(open.contains("ana@example.org") && !closed.contains("ana@example.org"));
}

async fn reveal_requires_a_limited_and_masked_reason(scene: ApiScenario) {
    let g = &scene.gateway;
    let held = held(g).await;
    for reason in ["", "  \n\t ", &"x".repeat(REVEAL_REASON_CHARS_MAX + 1)] {
        let refused =
            g.service.reviews.reveal(&held.grace.id, &held.review, &look(&held, "/payment/card", reason)).await;
        assert!(matches!(&refused, Err(Error::Invalid { pointer, .. }) if pointer == "/reason"), "{:?}", refused.err());
    }
    nothing_is_recorded(g, &held).await;
    let said = look(&held, "/payment/card", " ana@example.org asked ");
    g.service.reviews.reveal(&held.grace.id, &held.review, &said).await.unwrap();
    assert_eq!(recorded(g, &held).await[0].reason, "[email] asked");
    assert_eq!(told(g).await[0].data["reason"], "[email] asked");
}

async fn values_of_halted_closed_or_decided_reviews_can_be_revealed(scene: ApiScenario) {
    let g = &scene.gateway;
    let held = held(g).await;
    let by = PrincipalId::try_from("tests").unwrap();
    let halt = Halt { proposing: true, verifying: true, reason: "drill".to_owned() };
    g.service.operations.set_halt(&by, &HaltScope::All, &halt).await.unwrap();
    looks(g, &held.grace, &held, "/payment/card").await.unwrap();
    g.service.operations.set_halt(&by, &HaltScope::All, &Halt::default()).await.unwrap();
    g.vote(&g.alice, &held.answer, VoteVerdict::Deny).await.unwrap();
    looks(g, &held.grace, &held, "/payment/card").await.unwrap();
    let thread = g.service.reviews.review(&held.review, &g.alice).await.unwrap().thread.id;
    g.service.threads.close_thread(&by, &thread, "enough").await.unwrap();
    looks(g, &held.grace, &held, "/payment/card").await.unwrap();
    assert_eq!(recorded(g, &held).await.len(), 3);
    scene.passes_an_audit().await;
}

async fn reveal_requires_permission_under_the_current_and_the_earlier_policy(scene: ApiScenario) {
    let g = &scene.gateway;
    let held = held(g).await;
    g.approved(&held.answer).await;
    activate(g, &policy().replace("[\"security\"]", "[\"security\", \"audit\"]"), &[]).await;
    looks(g, &held.grace, &held, "/payment/card").await.unwrap();
    activate(g, &policy().replace("reveal_to = [\"security\"]", "reveal_to = [\"audit\"]"), &[]).await;
    let refused = looks(g, &held.grace, &held, "/payment/card").await;
    assert!(matches!(refused, Err(Error::Forbidden(_))), "{:?}", refused.err());
    let ada = person(&g.service, "ada", &["audit"]).await;
    let refused = looks(g, &ada, &held, "/payment/card").await;
    assert!(matches!(refused, Err(Error::Forbidden(_))), "people were asked by a policy that does not name them");
    assert_eq!(recorded(g, &held).await.len(), 1);
    scene.passes_an_audit().await;
}

async fn reveals_above_the_limit_show_nothing(scene: ApiScenario) {
    let g = &scene.gateway;
    let held = held(g).await;
    for _ in 0..REVEALS_MAX {
        looks(g, &held.grace, &held, "/payment/card").await.unwrap();
    }
    let refused = looks(g, &held.grace, &held, "/payment/card").await;
    assert!(matches!(refused, Err(Error::WrongState(_))), "{:?}", refused.err());
    assert_eq!(recorded(g, &held).await.len(), REVEALS_MAX);
}

async fn only_auditors_see_the_kind_of_a_redacted_value(scene: ApiScenario) {
    let g = &scene.gateway;
    let held = held(g).await;
    let path = format!("/v1/transitions/{}", held.transition);
    let told = g.get(&path, &g.auditor).await.expect(200);
    let commitments = |tree: &str| told["opening"][tree]["object"]["payment"]["object"]["card"].clone();
    let opening: countersign_domain::chain::opening::Opening = serde_json::from_value(told["opening"].clone()).unwrap();
    let at = Pointer::try_from("/payment/card").unwrap();
    let root = |tree: &countersign_domain::chain::opening::OpenedTree| tree.at(&at).and_then(|it| it.root());
    assert!(commitments("from")["salt"].is_string(), "{told:#}");
    assert_eq!(
        told["hidden"],
        json!([{
            "pointer": "/payment/card",
            "before": {"type": "text", "length": "9-32", "commitment": root(&opening.from)},
            "after": {"type": "text", "length": "9-32", "commitment": root(&opening.to)},
        }])
    );
    assert_ne!(root(&opening.from), root(&opening.to));
    for token in [&g.host, &g.planner] {
        let told = g.get(&path, token).await.expect(200);
        assert!(told.get("hidden").is_none() && told.get("opening").is_none(), "{told:#}");
        assert!(!told.to_string().contains("\"9-32\""), "{told:#}");
    }
    let facts = g.service.reviews.review(&held.review, &g.alice).await.unwrap();
    let kinds: Vec<String> = facts.hidden.iter().map(|it| format!("{} {:?}", it.pointer, it.after)).collect();
    assert_eq!(kinds, ["/payment/card Some(Text(To32))"]);
}

#[tokio::test]
async fn reveal_that_cannot_be_recorded_shows_nothing() {
    let (folder, stores) = (tempfile::tempdir().unwrap(), ClockOffset::default());
    let options = unsynced(&stores);
    let store = Arc::new(SqliteStore::open(folder.path().join("countersign.db"), options).unwrap());
    let g = spawn_on(folder, ClockOffset::default(), store, &policy()).await;
    let held = held(&g).await;
    // The database refuses writes of a gateway with a wrong clock, and allows reads.
    stores.set_millis(60_000);
    let refused = looks(&g, &held.grace, &held, "/payment/card").await;
    assert!(matches!(refused, Err(Error::ClockSkew)), "{:?}", refused.err());
    stores.set_millis(0);
    nothing_is_recorded(&g, &held).await;
}

#[tokio::test]
async fn object_is_not_revealed_as_a_whole() {
    let whole = policy().replace("hide = [\"payment.card\"]", "hide = [\"payment\"]");
    let g = spawn_with_policy(&whole).await;
    let held = held(&g).await;
    let refused = looks(&g, &held.grace, &held, "/payment").await;
    assert!(matches!(refused, Err(Error::WrongState(_))), "{:?}", refused.err());
    let refused = looks(&g, &held.grace, &held, "/payment/card").await;
    assert!(matches!(refused, Err(Error::NotFound("redacted value"))), "{:?}", refused.err());
    nothing_is_recorded(&g, &held).await;
}
