//! Tests that invalid votes leave their proposal unwritten until eligible reviewers have approved it.

use countersign_domain::identity::account::{Account, MachineRole, PersonRole};
use countersign_domain::identity::party::Party;
use countersign_domain::reviews::{Ballot, BrowserCheck, VoteVerdict};

use countersign_service::error::Error;
use countersign_service::identity::accounts::NewAccount;
use countersign_service::reviews::vote::VoteOutcome;
use countersign_service::threads::redaction::RedactionDetail;
use countersign_store::Store as _;
use countersign_store::row::{SealedRow, Table};
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use countersign_web::api::problem::vote_code;
use serde_json::{Value, json};

use super::{AttackScenario, BoxFuture, policy_with};
use crate::gateway::{POLICY, ballot, owned_token, person};
use crate::passwords::hashed;

/// Returns the wire code of a refused vote.
fn code(error: &Error) -> &'static str {
    match error {
        Error::Vote(refused) => vote_code(refused),
        Error::WriteInProgress => "write_in_progress",
        Error::Halted => "halted",
        Error::Closed => "closed",
        Error::Denied(code) => code.as_str(),
        Error::NotFound(_) => "not_found",
        Error::Unauthenticated => "unauthenticated",
        other => panic!("{other:?}"),
    }
}

async fn cast(scene: &AttackScenario, who: &Account, held: &Value, ballot: Ballot) -> &'static str {
    let review = held["review"]["id"].as_str().unwrap().try_into().unwrap();
    match scene.g.service.reviews.vote(&who.id, &review, &ballot, None).await {
        Ok(voted) => panic!("the vote was counted: {voted:?}"),
        Err(error) => code(&error),
    }
}

async fn votes(scene: &AttackScenario, who: &Account, held: &Value) -> &'static str {
    cast(scene, who, held, ballot(held, VoteVerdict::Approve)).await
}

/// A pending review, how a vote on it is spoiled, and the code that the gateway returns for the vote.
struct VoteAttackCase {
    policy: String,
    code: &'static str,
    spoil: for<'a> fn(&'a AttackScenario, &'a Value) -> BoxFuture<'a, &'static str>,
}

/// Writes the unspoiled twin: another thread under the same policy, approved by every required reviewer. It has exactly
/// one row.
async fn twin(scene: &AttackScenario, policy: &str) {
    let thread = scene.g.thread().await;
    let held = scene.g.held(&thread).await;
    let digest = held["transition"].as_str().unwrap();
    let typed = policy.contains("confirm = \"typed\"").then(|| digest[digest.len() - 6..].to_owned());
    let review = held["review"]["id"].as_str().unwrap().try_into().unwrap();
    for who in [&scene.g.alice, &scene.g.bob] {
        let comment = Some("I looked it up.".to_owned());
        let honest = Ballot { comment, typed: typed.clone(), ..ballot(&held, VoteVerdict::Approve) };
        if scene.g.service.reviews.vote(&who.id, &review, &honest, None).await.unwrap() == VoteOutcome::Approved {
            break;
        }
    }
    let receipt = scene.g.decision(&held).await.expect(200)["receipt"].clone();
    let ask = json!({"thread": thread["thread"], "transition": digest, "receipt": receipt, "write_id": "twin"});
    scene.write(&ask).await.expect(200);
    assert_eq!((scene.rows(&thread["thread"]), scene.rows_all()), (1, 1), "the twin");
}

/// Checks that the spoiled vote leaves no row, and that honest votes under the same policy leave exactly one.
async fn run(case: VoteAttackCase) {
    let scene = AttackScenario::new(POLICY).await;
    scene.activate(&case.policy, json!([])).await;
    twin(&scene, &case.policy).await;
    let thread = scene.g.thread().await;
    let held = scene.g.held(&thread).await;
    assert_eq!((case.spoil)(&scene, &held).await, case.code);
    let ask = json!({"thread": thread["thread"], "transition": held["transition"], "write_id": "spoiled"});
    let refused = scene.write(&ask).await;
    assert_eq!(refused.status, 403);
    assert!(["not_head", "halted", "closed", "policy_mismatch"].contains(&refused.code()), "{}", refused.code());
    assert_eq!((scene.rows(&thread["thread"]), scene.rows_all()), (0, 1));
}

macro_rules! votes {
    ($($name:ident: $code:literal, $policy:expr, |$scene:ident, $held:ident| $body:expr;)*) => {$(
        #[tokio::test]
        async fn $name() {
            fn spoil<'a>($scene: &'a AttackScenario, $held: &'a Value) -> BoxFuture<'a, &'static str> {
                Box::pin(async move { $body })
            }
            run(VoteAttackCase { policy: $policy.to_owned(), code: $code, spoil }).await;
        }
    )*};
}

fn two_needed() -> String {
    policy_with("need = 1", "need = 2")
}

fn typed() -> String {
    policy_with("need = 1", "need = 1\nconfirm = \"typed\"")
}

async fn outsider(scene: &AttackScenario, name: &str, role: PersonRole, groups: &[&str]) -> Account {
    let groups = groups.iter().map(|it| (*it).try_into().unwrap()).collect();
    let new = NewAccount { name: name.to_owned(), role, groups };
    scene.g.service.identity.add_account_hashed(&new, &hashed("correct horse battery").await).await.unwrap()
}

async fn cancelled(scene: &AttackScenario, held: &Value) {
    let path = format!("/v1/transitions/{}/cancellation", held["transition"].as_str().unwrap());
    scene.g.post(&path, &scene.g.planner, json!({"reason": "never mind"})).await.expect(200);
}

votes! {
    one_person_does_not_vote_twice: "not_eligible", two_needed(), |s, held| {
        s.g.vote(&s.g.alice, held, VoteVerdict::Approve).await.unwrap();
        votes(s, &s.g.alice, held).await
    };
    voter_who_denied_does_not_approve_afterwards: "not_eligible", policy_with("need = 1", "need = 1").replace("ttl = \"24h\"", "ttl = \"24h\"\ndenials = 2"), |s, held| {
        s.g.vote(&s.g.alice, held, VoteVerdict::Deny).await.unwrap();
        votes(s, &s.g.alice, held).await
    };
    one_approval_of_two_is_not_enough: "not_eligible", two_needed(), |s, held| {
        assert_eq!(s.g.vote(&s.g.bob, held, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Waiting);
        votes(s, &s.g.bob, held).await
    };
    member_of_another_group_does_not_vote: "not_eligible", POLICY, |s, held| {
        let carol = person(&s.g.service, "carol", &["accounting"]).await;
        votes(s, &carol, held).await
    };
    person_without_a_group_does_not_vote: "not_eligible", POLICY, |s, held| {
        let carol = person(&s.g.service, "carol", &[]).await;
        votes(s, &carol, held).await
    };
    an_administrator_does_not_vote: "not_eligible", POLICY, |s, held| {
        let root = outsider(s, "root", PersonRole::Admin, &["reviewers"]).await;
        votes(s, &root, held).await
    };
    an_auditor_does_not_vote: "not_eligible", POLICY, |s, held| {
        let eve = outsider(s, "eve", PersonRole::Auditor, &["reviewers"]).await;
        votes(s, &eve, held).await
    };
    member_of_the_owning_team_does_not_vote: "not_eligible", POLICY, |s, held| {
        let carol = person(&s.g.service, "carol", &["reviewers", "platform"]).await;
        votes(s, &carol, held).await
    };
    vote_in_an_unknown_stage_is_refused: "wrong_stage", POLICY, |s, held| {
        cast(s, &s.g.alice, held, Ballot { stage: 1, ..ballot(held, VoteVerdict::Approve) }).await
    };
    vote_after_the_deadline_is_refused: "expired", POLICY, |s, held| {
        s.pass_seconds(24 * 3600);
        votes(s, &s.g.alice, held).await
    };
    vote_on_another_digest_is_refused: "digest_mismatch", POLICY, |s, held| {
        let other = s.case.held["transition"].as_str().unwrap().try_into().unwrap();
        cast(s, &s.g.alice, held, Ballot { transition: other, ..ballot(held, VoteVerdict::Approve) }).await
    };
    a_page_is_used_once: "nonce_used", two_needed(), |s, held| {
        let first = ballot(held, VoteVerdict::Approve);
        let review = held["review"]["id"].as_str().unwrap().try_into().unwrap();
        s.g.service.reviews.vote(&s.g.alice.id, &review, &first, None).await.unwrap();
        cast(s, &s.g.bob, held, first).await
    };
    vote_on_a_page_that_fails_the_browser_check_is_refused: "browser_mismatch", POLICY, |s, held| {
        cast(s, &s.g.alice, held, Ballot { browser_check: BrowserCheck::Mismatch, ..ballot(held, VoteVerdict::Approve) }).await
    };
    stage_that_requires_a_comment_refuses_a_vote_without_one: "comment_required", policy_with("need = 1", "need = 1\ncomment = \"required\""), |s, held| {
        cast(s, &s.g.alice, held, Ballot { comment: Some(" \n".to_owned()), ..ballot(held, VoteVerdict::Approve) }).await
    };
    vote_without_the_typed_confirmation_is_refused: "confirmation_not_typed", typed(), |s, held| {
        votes(s, &s.g.alice, held).await
    };
    typed_confirmation_of_another_change_is_refused: "confirmation_not_typed", typed(), |s, held| {
        let other = s.case.held["transition"].as_str().unwrap();
        let digits = Some(other[other.len() - 6..].to_owned());
        cast(s, &s.g.alice, held, Ballot { typed: digits, ..ballot(held, VoteVerdict::Approve) }).await
    };
    too_long_typed_confirmation_is_refused: "confirmation_not_typed", typed(), |s, held| {
        let whole = held["transition"].as_str().unwrap().to_owned();
        cast(s, &s.g.alice, held, Ballot { typed: Some(whole), ..ballot(held, VoteVerdict::Approve) }).await
    };
    comment_above_the_limit_is_refused: "comment_too_long", POLICY, |s, held| {
        cast(s, &s.g.alice, held, Ballot { comment: Some("x".repeat(4_001)), ..ballot(held, VoteVerdict::Approve) }).await
    };
    vote_on_a_halted_flow_is_refused: "halted", POLICY, |s, held| {
        s.halt("payments", true, false).await;
        votes(s, &s.g.alice, held).await
    };
    vote_while_all_flows_are_halted_is_refused: "halted", POLICY, |s, held| {
        s.halt("all", true, false).await;
        votes(s, &s.g.alice, held).await
    };
    vote_on_a_cancelled_review_is_refused: "review_ended", POLICY, |s, held| {
        cancelled(s, held).await;
        votes(s, &s.g.alice, held).await
    };
    vote_on_a_denied_review_is_refused: "review_ended", POLICY, |s, held| {
        s.g.vote(&s.g.bob, held, VoteVerdict::Deny).await.unwrap();
        votes(s, &s.g.alice, held).await
    };
    vote_in_a_closed_thread_is_refused: "review_ended", POLICY, |s, held| {
        let told = s.g.get(&format!("/v1/transitions/{}", held["transition"].as_str().unwrap()), &s.g.auditor).await.expect(200);
        let path = format!("/v1/threads/{}/closing", told["thread"].as_str().unwrap());
        s.g.post(&path, &s.g.admin, json!({"reason": "an exercise"})).await.expect(200);
        votes(s, &s.g.alice, held).await
    };
    review_of_an_unaccepted_policy_is_not_approved: "policy_changed", POLICY, |s, held| {
        s.activate(&policy_with("24h", "6h"), json!([])).await;
        votes(s, &s.g.alice, held).await
    };
    a_review_of_another_thread_takes_no_vote_on_this_digest: "digest_mismatch", POLICY, |s, held| {
        let other = s.g.held(&s.g.thread().await).await;
        cast(s, &s.g.alice, &other, ballot(held, VoteVerdict::Approve)).await
    };
    person_without_an_account_does_not_vote: "unauthenticated", POLICY, |s, held| {
        let review = held["review"]["id"].as_str().unwrap().try_into().unwrap();
        let nobody = "nobody".try_into().unwrap();
        code(&s.g.service.reviews.vote(&nobody, &review, &ballot(held, VoteVerdict::Approve), None).await.unwrap_err())
    };
}

/// A reviewer of one stage cannot vote in another, and every stage must be complete.
#[tokio::test]
async fn vote_counts_only_in_the_stages_of_its_voter() {
    let stages = policy_with("need = 1", "need = 1\n[[approval.stages]]\ngroups = [\"security\"]\nneed = 1");
    let scene = AttackScenario::new(POLICY).await;
    scene.activate(&stages, json!([])).await;
    let carol = person(&scene.g.service, "carol", &["security"]).await;
    let thread = scene.g.thread().await;
    let held = scene.g.held(&thread).await;
    let at = |stage: u32| Ballot { stage, ..ballot(&held, VoteVerdict::Approve) };
    assert_eq!(cast(&scene, &scene.g.alice, &held, at(1)).await, "wrong_stage");
    assert_eq!(cast(&scene, &carol, &held, at(0)).await, "wrong_stage");
    let review = held["review"]["id"].as_str().unwrap().try_into().unwrap();
    assert_eq!(scene.g.service.reviews.vote(&carol.id, &review, &at(1), None).await.unwrap(), VoteOutcome::Waiting);
    let ask = |receipt: &Value| {
        let (thread, transition) = (&thread["thread"], &held["transition"]);
        json!({"thread": thread, "transition": transition, "receipt": receipt, "write_id": "w1"})
    };
    assert_eq!(scene.write(&ask(&scene.case.decision["receipt"])).await.code(), "not_head");
    assert_eq!(scene.rows_all(), 0);
    assert_eq!(
        scene.g.service.reviews.vote(&scene.g.alice.id, &review, &at(0), None).await.unwrap(),
        VoteOutcome::Approved
    );
    let receipt = scene.g.decision(&held).await.expect(200)["receipt"].clone();
    scene.write(&ask(&receipt)).await.expect(200);
    assert_eq!(scene.rows_all(), 1);
}

/// An attacker who can seal a row could put another effect under an approval. The committed effect must have the root
/// that was shown to the reviewers.
#[tokio::test]
async fn approval_does_not_commit_a_changed_effect() {
    let scene = AttackScenario::new(POLICY).await;
    let thread = scene.g.thread().await;
    let held = scene.g.held(&thread).await;
    let file = scene.g.folder.path().join("countersign.db");
    let store = SqliteStore::open(&file, SqliteOptions::default()).unwrap();
    let row = store.get(Table::Transitions, held["transition"].as_str().unwrap()).await.unwrap().unwrap();
    let other = row.body.replace("[\"/target_user_id\",42]", "[\"/target_user_id\",99]");
    assert_ne!(other, row.body, "the effect is kept with the transition");
    let keys = scene.g.service.core.keys().unwrap();
    let sealed =
        SealedRow::seal(keys.row(), Table::Transitions, row.id.clone(), row.facets.clone(), row.revision, other);
    let put = |row: &SealedRow| {
        let database = rusqlite::Connection::open(&file).unwrap();
        let columns = (&row.body, row.mac.as_slice(), &row.id);
        database.execute("UPDATE transitions SET body = ?1, mac = ?2 WHERE id = ?3", columns).unwrap()
    };
    assert_eq!(put(&sealed), 1);
    let refused = scene.g.vote(&scene.g.alice, &held, VoteVerdict::Approve).await;
    assert!(matches!(refused, Err(Error::Broken(_))), "{refused:?}");
    let ask = json!({"thread": thread["thread"], "transition": held["transition"], "write_id": "w1"});
    assert_eq!(scene.write(&ask).await.code(), "not_head");
    assert_eq!((put(&row), scene.rows_all()), (1, 0));
    let decision = scene.g.approved(&held).await;
    let mut honest = ask.clone();
    honest["receipt"] = decision["receipt"].clone();
    let allowed = scene.write(&honest).await.expect(200);
    assert_eq!((&allowed["view"]["target_user_id"], scene.rows_all()), (&json!(42), 1));
}

/// Has an agent of this owner propose a held change on top of changes of others.
async fn held_by(scene: &AttackScenario, owner: &str, thread: &Value, parent: &Value, user: u64) -> Value {
    let agent = owned_token(&scene.g.service, "another", MachineRole::Agent, &["planner"], owner).await;
    scene.g.propose(&thread["thread"], parent, (&agent, "planner"), json!({"target_user_id": user})).await.expect(202)
}

#[tokio::test]
async fn owner_of_the_proposing_agent_does_not_vote() {
    let scene = AttackScenario::new(POLICY).await;
    let thread = scene.g.thread().await;
    let held = held_by(&scene, "alice", &thread, &thread["transition"], 99).await;
    assert_eq!(votes(&scene, &scene.g.alice, &held).await, "not_eligible");
    let ask = json!({"thread": thread["thread"], "transition": held["transition"], "write_id": "w1"});
    assert_eq!(scene.write(&ask).await.code(), "not_head");
    assert_eq!(scene.rows_all(), 0);
    scene.g.vote(&scene.g.bob, &held, VoteVerdict::Approve).await.unwrap();
    let mut honest = ask.clone();
    honest["receipt"] = scene.g.decision(&held).await.expect(200)["receipt"].clone();
    scene.write(&honest).await.expect(200);
    assert_eq!(scene.rows_all(), 1);
}

#[tokio::test]
async fn owner_of_an_earlier_agent_does_not_vote_until_a_confirmed_write() {
    let scene = AttackScenario::new(POLICY).await;
    let thread = scene.g.thread().await;
    // Alice's own agent commits a harmless change. Another team's agent then proposes a protected one.
    let hers = owned_token(&scene.g.service, "hers", MachineRole::Agent, &["input_parser"], "alice").await;
    let text = json!({"raw_text": "pay user 99"});
    let first =
        scene.g.propose(&thread["thread"], &thread["transition"], (&hers, "input_parser"), text).await.expect(201);
    let patch = json!({"target_user_id": 99});
    let node = (scene.g.planner.as_str(), "planner");
    let held = scene.g.propose(&thread["thread"], &first["transition"], node, patch).await.expect(202);
    assert_eq!(votes(&scene, &scene.g.alice, &held).await, "not_eligible");
    scene.g.vote(&scene.g.bob, &held, VoteVerdict::Approve).await.unwrap();
    // The owner is excluded from later proposals too: an approval does not change who the authors are.
    let again = json!({"node": "planner", "parent": held["transition"], "patch": {}, "reaffirm": true});
    let path = format!("/v1/threads/{}/transitions", thread["thread"].as_str().unwrap());
    let reaffirmed = scene.g.post(&path, &scene.g.planner, again).await.expect(202);
    assert_eq!(votes(&scene, &scene.g.alice, &reaffirmed).await, "not_eligible");
    scene.g.vote(&scene.g.bob, &reaffirmed, VoteVerdict::Approve).await.unwrap();
    let receipt = scene.g.decision(&reaffirmed).await.expect(200)["receipt"].clone();
    let ask = json!({"thread": thread["thread"], "transition": reaffirmed["transition"], "receipt": receipt, "write_id": "w1"});
    scene.write(&ask).await.expect(200);
    let done = scene.g.confirm("w1").await.expect(200);
    let next =
        scene.g.propose(&thread["thread"], &done["transition"], node, json!({"target_user_id": 5})).await.expect(202);
    scene.g.vote(&scene.g.alice, &next, VoteVerdict::Approve).await.unwrap();
    assert_eq!(scene.rows_all(), 1);
}

#[tokio::test]
async fn proposal_that_only_its_owner_could_approve_is_rejected() {
    let scene = AttackScenario::new(POLICY).await;
    let thread = scene.g.thread().await;
    let agent = owned_token(&scene.g.service, "own", MachineRole::Agent, &["planner"], "reviewers").await;
    let answer = scene
        .g
        .propose(&thread["thread"], &thread["transition"], (&agent, "planner"), json!({"target_user_id": 99}))
        .await;
    assert_eq!((answer.status, &answer.body["errors"][0]["code"]), (422, &json!("nobody_can_approve")));
}

#[tokio::test]
async fn approval_over_an_unknown_outcome_requires_confirmation() {
    use countersign_domain::reviews::CheckboxState;
    let scene = AttackScenario::new(POLICY).await;
    let reserved = scene.case.ask("w1");
    scene.write(&reserved).await.expect(200);
    scene.pass_seconds(31);
    let body = json!({"node": "planner", "parent": scene.case.held["transition"], "patch": {}, "reaffirm": true});
    let held = scene.agent_path("transitions", body).await.expect(202);
    assert_eq!(votes(&scene, &scene.g.alice, &held).await, "write_outcome_unknown");
    assert_eq!(scene.rows_all(), 1);
    let ticked = Ballot { outcome_unknown_accepted: CheckboxState::Yes, ..ballot(&held, VoteVerdict::Approve) };
    let review = held["review"]["id"].as_str().unwrap().try_into().unwrap();
    scene.g.service.reviews.vote(&scene.g.alice.id, &review, &ticked, None).await.unwrap();
    // It stays unknown on the next head too.
    let body = json!({"node": "planner", "parent": held["transition"], "patch": {}, "reaffirm": true});
    let next = scene.agent_path("transitions", body).await.expect(202);
    assert_eq!(votes(&scene, &scene.g.bob, &next).await, "write_outcome_unknown");
}

#[tokio::test]
async fn a_denial_is_no_receipt() {
    use countersign_domain::reviews::HoldState;
    let scene = AttackScenario::new(POLICY).await;
    let held = scene.g.held(&scene.g.thread().await).await;
    scene.g.vote(&scene.g.bob, &held, VoteVerdict::Deny).await.unwrap();
    let told = scene
        .g
        .service
        .threads
        .told(held["transition"].as_str().unwrap().try_into().unwrap(), &Party::Receiver, RedactionDetail::Whole)
        .await
        .unwrap();
    let HoldState::Denied { denial, .. } = told.hold.unwrap().state else { panic!("it was denied") };
    let refused = scene.write(&super::forge::with_receipt(&scene, denial)).await;
    assert_eq!((refused.status, refused.code()), (403, "receipt_malformed"));
    assert_eq!(scene.rows_all(), 0);
    scene.write(&scene.case.ask("w1")).await.expect(200);
    assert_eq!(scene.rows_all(), 1);
}
