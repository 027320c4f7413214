//! Voting in another's place for a time: who counts once, who not at all, and what may be handed on. On both databases.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use countersign::clock::ClockOffset;
use countersign::domain::account::{Account, MachineRole, PersonRole};
use countersign::domain::chain::jws::{self, Typ};
use countersign::domain::chain::receipt::{Denial, Method, Receipt};
use countersign::domain::delegation::{Delegation, GIVEN_LATELY_MAX, GIVEN_MAX, LENGTH_MAX, LENGTH_MIN, RECEIVED_MAX};
use countersign::domain::event::EventType;
use countersign::domain::id::ReviewId;
use countersign::domain::keys::KeyUse;
use countersign::domain::review::{Ballot, Verdict, VoteRefused, Withdrawing};
use countersign::service::access::{NewAccount, SignedIn};
use countersign::service::delegations::{Naming, Whose};
use countersign::service::error::{Error, Result};
use countersign::service::inbox::{Part, Waiting, Wanted};
use countersign::service::passkeys::{Confirmation, Purpose};
use countersign::service::taking_back::Admission;
use countersign::service::votes::Voted;
use countersign::store::sqlite::{SqliteOptions, SqliteStore};
use countersign::web::api::problem::vote_code;
use serde_json::{Value, json};

use crate::attacks::policy_with;
use crate::gateway::{Gateway, ballot, owned_token, person, spawn_on};
use crate::passkeys_of_people::authenticator::Authenticator;
use crate::passkeys_of_people::{allow_delegating, allow_removing, assertion, enrol, get, vote as vote_signed};
use crate::rules::Scene;

const PASSWORD: &str = "correct horse battery";

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Each on both databases.
macro_rules! on_both {
    ($($name:ident($policy:expr),)*) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $name() {
                super::$name(super::Scene::on_sqlite(&$policy).await).await;
            })*
        }
        mod postgres {
            $(#[tokio::test]
            async fn $name() {
                super::$name(super::Scene::on_postgres(&$policy).await).await;
            })*
        }
    };
}

on_both! {
    a_vote_in_anothers_place_counts_and_names_both_wherever_it_is_told(super::two()),
    a_denial_in_anothers_place_names_both_too(super::two()),
    one_person_and_one_place_are_counted_once_however_people_name_each_other(super::two()),
    of_two_delegates_of_one_person_who_vote_at_once_one_counts(super::two()),
    whoever_had_a_hand_in_it_neither_votes_for_another_nor_is_voted_for(super::two()),
    what_has_ended_or_lost_its_ground_opens_nothing(super::two()),
    what_ended_or_lost_its_ground_since_does_not_count_at_the_last_vote(super::two()),
    ending_and_the_last_vote_race_and_one_wins(super::two()),
    nothing_goes_from_hand_to_hand(super::two()),
    only_reviewers_hand_on_and_receive_and_within_bounds(super::two()),
    of_two_that_are_given_at_once_both_are_counted(super::two()),
    handing_on_takes_the_password_or_a_passkey_where_there_is_one(super::two()),
    a_stage_that_asks_for_a_passkey_is_not_opened_by_a_session_of_the_one_who_is_away(super::signed()),
    what_was_handed_on_by_a_passkey_ends_with_it(super::signed()),
    what_was_handed_on_by_a_password_ends_with_it(super::two()),
    the_one_in_whose_place_it_was_cast_takes_a_vote_back_and_votes(super::two()),
    a_delegate_finds_what_waits_and_everybody_is_told_who_can_decide(super::two()),
    only_those_whom_it_concerns_and_administrators_end_it(super::two()),
    a_delegate_gets_nothing_but_the_vote(super::two()),
}

fn two() -> String {
    policy_with("need = 1", "need = 2").replace("ttl = \"24h\"", "ttl = \"480h\"\ndenials = 2")
}

fn signed() -> String {
    policy_with("need = 1", "need = 1\npasskey = true")
}

fn review(held: &Value) -> ReviewId {
    held["review"]["id"].as_str().unwrap().try_into().unwrap()
}

async fn inside(g: &Gateway, who: &Account) -> SignedIn {
    g.service.sign_in(&who.name, PASSWORD.to_owned()).await.unwrap().0
}

fn naming(to: &str, length: Duration) -> Naming {
    Naming { to: to.to_owned(), length }
}

async fn gives(g: &Gateway, from: &Account, to: &Account, length: Duration) -> Result<Delegation> {
    let shown = Confirmation::Password(PASSWORD.to_owned());
    g.service.delegate_to(&inside(g, from).await, &naming(&to.name, length), shown).await
}

async fn given(g: &Gateway, from: &Account, to: &Account) -> Delegation {
    gives(g, from, to, DAY).await.unwrap()
}

fn by(held: &Value, delegation: &Delegation, verdict: Verdict) -> Ballot {
    Ballot { delegation: Some(delegation.id.clone()), ..ballot(held, verdict) }
}

/// Votes in another's place.
async fn casts(g: &Gateway, who: &Account, held: &Value, delegation: &Delegation) -> Result<Voted> {
    g.service.vote(&who.id, &review(held), &by(held, delegation, Verdict::Approve)).await
}

fn code<T: std::fmt::Debug>(done: Result<T>) -> String {
    match done {
        Ok(_) => "done".to_owned(),
        Err(Error::Vote(VoteRefused::Ineligible(why))) => format!("not_eligible: {}", why.code()),
        Err(Error::Vote(refused)) => vote_code(&refused).to_owned(),
        Err(Error::Invalid { detail, .. }) => detail,
        Err(Error::Forbidden(why) | Error::WrongState(why)) => why.to_owned(),
        Err(Error::Passkey(_)) => "passkey".to_owned(),
        Err(Error::NotFound(what)) => format!("no {what}"),
        Err(other) => panic!("{other:?}"),
    }
}

async fn told(g: &Gateway, kind: EventType) -> Vec<Value> {
    while g.service.sequence().await.unwrap() > 0 {}
    let (events, _) = g.service.events_after(0, None, 1000).await.unwrap();
    events.into_iter().map(|it| it.event).filter(|it| it.kind == kind).map(|it| it.data).collect()
}

async fn administrator(g: &Gateway, name: &str) -> Account {
    let new = NewAccount { name: name.to_owned(), role: PersonRole::Admin, groups: BTreeSet::new() };
    g.service.add_account(&new, PASSWORD.to_owned()).await.unwrap()
}

/// What the gateway signed.
fn verified<C: serde::de::DeserializeOwned + serde::Serialize>(g: &Gateway, token: &str, typ: Typ) -> C {
    let (claims, keys) = (jws::read::<C>(token, typ).unwrap(), g.service.keys().unwrap());
    let key = keys.public(KeyUse::Chain, claims.kid()).unwrap();
    claims.verify(key).unwrap()
}

async fn a_vote_in_anothers_place_counts_and_names_both_wherever_it_is_told(scene: Scene) {
    let g = &scene.gateway;
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    let held = g.held(&g.thread().await).await;
    assert_eq!(code(g.vote(&dana, &held, Verdict::Approve).await), "not_eligible: group");
    // It may begin after the review was opened: the place is the one who is away's, then as before.
    let delegation = given(g, &g.alice, &dana).await;
    assert_eq!(
        code(g.vote(&dana, &held, Verdict::Approve).await),
        "not_eligible: group",
        "they have no place of their own"
    );
    assert_eq!(casts(g, &dana, &held, &delegation).await.unwrap(), Voted::Waiting);
    assert_eq!(g.vote(&g.bob, &held, Verdict::Approve).await.unwrap(), Voted::Approved);
    let decision = g.decision(&held).await.expect(200);
    assert_eq!(decision["reviewers"], json!([dana.id, g.bob.id]));
    assert_eq!(decision["for"], json!({dana.id.as_str(): g.alice.id}));
    let receipt = decision["receipt"].as_str().unwrap();
    let claims = verified::<Receipt>(g, receipt, Typ::Receipt);
    let named: Vec<_> = claims.approvals.iter().map(|it| (&it.reviewer, it.absent.as_ref())).collect();
    assert_eq!(named, [(&dana.id, Some(&g.alice.id)), (&g.bob.id, None)]);
    let [first, second] = told(g, EventType::ReviewVote).await.try_into().unwrap();
    assert_eq!((&first["reviewer"], &first["for"]), (&json!(dana.id), &json!(g.alice.id)));
    assert_eq!((&first["delegation"], &second["for"]), (&json!(delegation.id), &Value::Null));
    let [given] = told(g, EventType::Delegated).await.try_into().unwrap();
    assert_eq!((&given["from"], &given["to"]), (&json!(g.alice.id), &json!(dana.id)));
    let verified = g.verify(&held_thread(g, &held).await, &held["transition"], &decision["receipt"], "w-1").await;
    assert_eq!(verified.expect(200)["allow"], true, "a receipt with both names opens its write");
    scene.passes_an_audit().await;
}

async fn held_thread(g: &Gateway, held: &Value) -> Value {
    let path = format!("/v1/transitions/{}", held["transition"].as_str().unwrap());
    g.get(&path, &g.auditor).await.expect(200)["thread"].clone()
}

async fn a_denial_in_anothers_place_names_both_too(scene: Scene) {
    let g = &scene.gateway;
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    let held = g.held(&g.thread().await).await;
    let delegation = given(g, &g.alice, &dana).await;
    g.service.vote(&dana.id, &review(&held), &by(&held, &delegation, Verdict::Deny)).await.unwrap();
    // A no stays one though the delegation ends, as it does though its voter leaves.
    g.service.end_delegation(&g.alice.id, &delegation.id).await.unwrap();
    assert_eq!(g.vote(&g.bob, &held, Verdict::Deny).await.unwrap(), Voted::Denied);
    let hold = g.service.review(&review(&held), &g.bob).await.unwrap().hold;
    let countersign::domain::review::HoldState::Denied { denial, .. } = hold.state else { panic!("{:?}", hold.state) };
    let claims = verified::<Denial>(g, &denial, Typ::Denial);
    let named: Vec<_> = claims.reviewers.iter().map(|it| it.absent.as_ref()).collect();
    assert_eq!(named, [Some(&g.alice.id), None]);
    assert_eq!(g.decision(&held).await.expect(200)["for"], json!({dana.id.as_str(): g.alice.id}));
    scene.passes_an_audit().await;
}

async fn one_person_and_one_place_are_counted_once_however_people_name_each_other(scene: Scene) {
    let g = &scene.gateway;
    let (dana, erin) =
        (person(&g.service, "dana", &["elsewhere"]).await, person(&g.service, "erin", &["reviewers"]).await);
    let (to_bob, to_dana) = (given(g, &g.alice, &g.bob).await, given(g, &g.alice, &dana).await);
    let (back, of_erin) = (given(g, &g.bob, &g.alice).await, given(g, &erin, &dana).await);
    // Bob votes for Alice: then neither of them has another vote, themselves or by anybody.
    let held = g.held(&g.thread().await).await;
    assert_eq!(casts(g, &g.bob, &held, &to_bob).await.unwrap(), Voted::Waiting);
    assert_eq!(code(g.vote(&g.bob, &held, Verdict::Approve).await), "not_eligible: voted");
    assert_eq!(code(g.vote(&g.alice, &held, Verdict::Approve).await), "not_eligible: voted");
    assert_eq!(code(casts(g, &g.alice, &held, &back).await), "not_eligible: voted", "nor crosswise");
    assert_eq!(code(casts(g, &dana, &held, &to_dana).await), "not_eligible: group", "nor by another delegate");
    assert_eq!(casts(g, &dana, &held, &of_erin).await.unwrap(), Voted::Approved, "another place is another's");
    // Bob votes for himself: then not for Alice, who still has her own place.
    let held = g.held(&g.thread().await).await;
    assert_eq!(g.vote(&g.bob, &held, Verdict::Approve).await.unwrap(), Voted::Waiting);
    assert_eq!(code(casts(g, &g.bob, &held, &to_bob).await), "not_eligible: voted");
    // Nor does Dana vote for two.
    assert_eq!(casts(g, &dana, &g.held(&g.thread().await).await, &of_erin).await.unwrap(), Voted::Waiting);
    let third = g.held(&g.thread().await).await;
    assert_eq!(casts(g, &dana, &third, &to_dana).await.unwrap(), Voted::Waiting);
    assert_eq!(code(casts(g, &dana, &third, &of_erin).await), "not_eligible: voted");
    // Whoever was voted for stands in for nobody either: one human, one vote.
    assert_eq!(code(casts(g, &g.alice, &third, &back).await), "not_eligible: voted");
    scene.passes_an_audit().await;
}

async fn of_two_delegates_of_one_person_who_vote_at_once_one_counts(scene: Scene) {
    let g = &scene.gateway;
    let (dana, erin) =
        (person(&g.service, "dana", &["elsewhere"]).await, person(&g.service, "erin", &["elsewhere"]).await);
    let (one, other) = (given(g, &g.alice, &dana).await, given(g, &g.alice, &erin).await);
    for _ in 0..5 {
        let held = g.held(&g.thread().await).await;
        let (one, other) = tokio::join!(casts(g, &dana, &held, &one), casts(g, &erin, &held, &other));
        let mut came = [code(one), code(other)];
        came.sort();
        assert_eq!(came, ["done", "not_eligible: group"]);
    }
    scene.passes_an_audit().await;
}

async fn whoever_had_a_hand_in_it_neither_votes_for_another_nor_is_voted_for(scene: Scene) {
    let g = &scene.gateway;
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    let (by_alice, by_bob) = (given(g, &g.alice, &dana).await, given(g, &g.bob, &dana).await);
    for (owner, for_alice) in
        [("alice", "not_eligible: group"), ("dana", "not_eligible: author"), ("elsewhere", "not_eligible: author")]
    {
        let agent = owned_token(&g.service, &format!("of-{owner}"), MachineRole::Agent, &["planner"], owner).await;
        let (thread, patch) = (g.thread().await, json!({"target_user_id": 42}));
        let held = g.propose(&thread["thread"], &thread["transition"], (&agent, "planner"), patch).await;
        if owner == "alice" {
            person(&g.service, "spare", &["reviewers"]).await;
            assert_eq!(
                held.expect(422)["errors"][0]["code"],
                "nobody_can_approve",
                "one who is away adds nobody to those who can"
            );
        }
        let again = g.thread().await;
        let patch = json!({"target_user_id": 43});
        let held = g.propose(&again["thread"], &again["transition"], (&agent, "planner"), patch).await.expect(202);
        assert_eq!(code(casts(g, &dana, &held, &by_alice).await), for_alice, "{owner}");
        let for_bob = if owner == "alice" { "done" } else { "not_eligible: author" };
        assert_eq!(code(casts(g, &dana, &held, &by_bob).await), for_bob, "{owner}");
    }
    scene.passes_an_audit().await;
}

/// What takes the ground from a delegation of Alice's to Dana.
#[derive(Clone, Copy, Debug)]
enum Gone {
    Ended,
    EndedByAdmin,
    RunOut,
    AwayDisabled,
    AwayLeftTheGroup,
    AwayIsAuditor,
    DelegateDisabled,
    DelegateIsAdmin,
}

const ALL_GONE: [(Gone, &str); 8] = [
    (Gone::Ended, "not_eligible: group"),
    (Gone::EndedByAdmin, "not_eligible: group"),
    (Gone::RunOut, "not_eligible: group"),
    (Gone::AwayDisabled, "not_eligible: group"),
    (Gone::AwayLeftTheGroup, "not_eligible: group"),
    (Gone::AwayIsAuditor, "not_eligible: group"),
    (Gone::DelegateDisabled, "not_eligible: disabled"),
    (Gone::DelegateIsAdmin, "not_eligible: role"),
];

async fn takes_away(
    g: &Gateway,
    gone: Gone,
    (away, dana, boss): (&Account, &Account, &Account),
    delegation: &Delegation,
) {
    let service = &g.service;
    let boss = service.account_row(&boss.id).await.unwrap();
    let access = async |who: &Account, role: PersonRole, groups: &[&str]| {
        let groups = groups.iter().map(|it| (*it).try_into().unwrap()).collect();
        service.change_access(&boss, &who.id, (role, &groups)).await.unwrap();
    };
    match gone {
        Gone::Ended => service.end_delegation(&away.id, &delegation.id).await.unwrap(),
        Gone::EndedByAdmin => service.end_delegation(&boss.record.id, &delegation.id).await.unwrap(),
        Gone::RunOut => g.pass(DAY),
        Gone::AwayDisabled => drop(service.set_admission(&away.name, Admission::Barred).await.unwrap()),
        Gone::AwayLeftTheGroup => access(away, PersonRole::Reviewer, &["others"]).await,
        Gone::AwayIsAuditor => access(away, PersonRole::Auditor, &["reviewers"]).await,
        Gone::DelegateDisabled => drop(service.set_admission(&dana.name, Admission::Barred).await.unwrap()),
        Gone::DelegateIsAdmin => access(dana, PersonRole::Admin, &[]).await,
    }
}

async fn what_has_ended_or_lost_its_ground_opens_nothing(scene: Scene) {
    let g = &scene.gateway;
    let boss = administrator(g, "boss").await;
    for (number, (gone, expected)) in ALL_GONE.into_iter().enumerate() {
        let away = person(&g.service, &format!("away-{number}"), &["reviewers"]).await;
        let dana = person(&g.service, &format!("dana-{number}"), &["elsewhere"]).await;
        let delegation = given(g, &away, &dana).await;
        let held = g.held(&g.thread().await).await;
        takes_away(g, gone, (&away, &dana, &boss), &delegation).await;
        assert_eq!(code(casts(g, &dana, &held, &delegation).await), expected, "{gone:?}");
    }
    scene.passes_an_audit().await;
}

async fn what_ended_or_lost_its_ground_since_does_not_count_at_the_last_vote(scene: Scene) {
    let g = &scene.gateway;
    let boss = administrator(g, "boss").await;
    for (number, (gone, _)) in ALL_GONE.into_iter().enumerate() {
        let away = person(&g.service, &format!("away-{number}"), &["reviewers"]).await;
        let dana = person(&g.service, &format!("dana-{number}"), &["elsewhere"]).await;
        let delegation = given(g, &away, &dana).await;
        let held = g.held(&g.thread().await).await;
        assert_eq!(casts(g, &dana, &held, &delegation).await.unwrap(), Voted::Waiting, "{gone:?}");
        takes_away(g, gone, (&away, &dana, &boss), &delegation).await;
        assert_eq!(g.vote(&g.bob, &held, Verdict::Approve).await.unwrap(), Voted::Waiting, "{gone:?}");
        assert_eq!(g.vote(&g.alice, &held, Verdict::Approve).await.unwrap(), Voted::Approved, "{gone:?}");
        let decision = g.decision(&held).await.expect(200);
        let claims = verified::<Receipt>(g, decision["receipt"].as_str().unwrap(), Typ::Receipt);
        assert!(claims.approvals.iter().all(|it| it.absent.is_none()), "{gone:?}: the receipt names who counted");
    }
    scene.passes_an_audit().await;
}

async fn ending_and_the_last_vote_race_and_one_wins(scene: Scene) {
    let g = &scene.gateway;
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    for _ in 0..5 {
        let delegation = given(g, &g.alice, &dana).await;
        let held = g.held(&g.thread().await).await;
        g.vote(&g.bob, &held, Verdict::Approve).await.unwrap();
        let (ended, last) =
            tokio::join!(g.service.end_delegation(&g.alice.id, &delegation.id), casts(g, &dana, &held, &delegation));
        ended.unwrap();
        match code(last).as_str() {
            "done" => assert_eq!(g.decision(&held).await.status, 200),
            "not_eligible: group" => assert_eq!(g.decision(&held).await.status, 202),
            other => panic!("{other}"),
        }
    }
    scene.passes_an_audit().await;
}

async fn nothing_goes_from_hand_to_hand(scene: Scene) {
    let g = &scene.gateway;
    let (dana, erin) =
        (person(&g.service, "dana", &["elsewhere"]).await, person(&g.service, "erin", &["elsewhere"]).await);
    let (first, second) = (given(g, &g.alice, &dana).await, given(g, &dana, &erin).await);
    let held = g.held(&g.thread().await).await;
    assert_eq!(code(casts(g, &erin, &held, &second).await), "not_eligible: group", "Dana has nothing of her own");
    assert_eq!(code(casts(g, &erin, &held, &first).await), "not_eligible: group", "and Alice named somebody else");
    assert_eq!(code(casts(g, &g.bob, &held, &first).await), "not_delegated", "nobody else uses it");
    assert_eq!(casts(g, &dana, &held, &first).await.unwrap(), Voted::Waiting);
    scene.passes_an_audit().await;
}

async fn only_reviewers_hand_on_and_receive_and_within_bounds(scene: Scene) {
    let g = &scene.gateway;
    let boss = administrator(g, "boss").await;
    let new = NewAccount { name: "ivy".to_owned(), role: PersonRole::Auditor, groups: BTreeSet::new() };
    let ivy = g.service.add_account(&new, PASSWORD.to_owned()).await.unwrap();
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    let (groupless, gone) = (person(&g.service, "lone", &[]).await, person(&g.service, "gone", &["reviewers"]).await);
    g.service.set_admission("gone", Admission::Barred).await.unwrap();
    let no_vote = "only reviewers who are in a group and can sign in have a vote to hand on";
    let no_delegate = "only a reviewer who can sign in votes in your place";
    for (from, to, why) in [
        (&boss, &dana, no_vote),
        (&ivy, &dana, no_vote),
        (&groupless, &dana, no_vote),
        (&g.alice, &boss, no_delegate),
        (&g.alice, &ivy, no_delegate),
        (&g.alice, &gone, no_delegate),
        (&g.alice, &g.alice, "name somebody else than yourself"),
    ] {
        assert_eq!(code(gives(g, from, to, DAY).await), why, "{} to {}", from.name, to.name);
    }
    let nobody = naming("nobody", DAY);
    let shown = || Confirmation::Password(PASSWORD.to_owned());
    assert_eq!(code(g.service.delegate_to(&inside(g, &g.alice).await, &nobody, shown()).await), no_delegate);
    let second = Duration::from_secs(1);
    for length in [LENGTH_MIN - second, LENGTH_MAX + second] {
        assert_eq!(code(gives(g, &g.alice, &dana, length).await), "between an hour and thirty days");
    }
    gives(g, &g.alice, &dana, LENGTH_MIN).await.unwrap();
    assert_eq!(code(gives(g, &g.alice, &dana, LENGTH_MAX).await), "you have named them already; end that first");
    for number in 1..GIVEN_MAX {
        given(g, &g.alice, &person(&g.service, &format!("d-{number}"), &[]).await).await;
    }
    let too_many = "three people at a time stand in for you at most; end one first";
    assert_eq!(code(gives(g, &g.alice, &g.bob, DAY).await), too_many);
    for number in 1..RECEIVED_MAX {
        given(g, &person(&g.service, &format!("from-{number}"), &["reviewers"]).await, &dana).await;
    }
    let full = "they stand in for ten people already; name somebody else";
    assert_eq!(code(gives(g, &g.bob, &dana, DAY).await), full);
    g.pass(LENGTH_MIN);
    for _ in 0..GIVEN_LATELY_MAX {
        let one = given(g, &g.bob, &dana).await;
        g.service.end_delegation(&g.bob.id, &one.id).await.unwrap();
    }
    let lately = "you have named others twenty times within thirty days; an administrator can help";
    assert_eq!(code(gives(g, &g.bob, &dana, DAY).await), lately);
    g.pass(LENGTH_MAX);
    given(g, &g.bob, &dana).await;
    scene.passes_an_audit().await;
}

async fn of_two_that_are_given_at_once_both_are_counted(scene: Scene) {
    let g = &scene.gateway;
    let mut people = Vec::new();
    for number in 0..6 {
        people.push(person(&g.service, &format!("d-{number}"), &[]).await);
    }
    let from = inside(g, &g.alice).await;
    let asked = people.iter().map(|it| {
        let (from, naming) = (&from, naming(&it.name, DAY));
        async move { g.service.delegate_to(from, &naming, Confirmation::Password(PASSWORD.to_owned())).await }
    });
    let done = futures_util::future::join_all(asked).await;
    assert!(done.iter().filter(|it| it.is_ok()).count() <= GIVEN_MAX, "{done:?}");
    let all = g.service.delegations(&g.alice.id, Whose::Own).await.unwrap().given;
    let numbers: Vec<u32> = all.iter().rev().map(|it| it.number).collect();
    assert_eq!(numbers, (1..=u32::try_from(all.len()).unwrap()).collect::<Vec<_>>());
    assert!(all.len() <= GIVEN_MAX);
    scene.passes_an_audit().await;
}

async fn allowed(g: &Gateway, who: &SignedIn, key: &mut Authenticator, to: &Naming) -> Confirmation {
    allow_delegating(&g.service, who, (key, to)).await
}

async fn handing_on_takes_the_password_or_a_passkey_where_there_is_one(scene: Scene) {
    let g = &scene.gateway;
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    let alice = inside(g, &g.alice).await;
    let (to, longer) = (naming("dana", DAY), naming("dana", 2 * DAY));
    for wrong in ["", "a wrong password"] {
        let done = g.service.delegate_to(&alice, &to, Confirmation::Password(wrong.to_owned())).await;
        assert_eq!(code(done), "the password is not right");
    }
    let mut key = Authenticator::new(1);
    enrol(&g.service, &alice, (&mut key, PASSWORD)).await;
    // Who resets a password, or finds one, has no passkey by that.
    let by_password = g.service.delegate_to(&alice, &to, Confirmation::Password(PASSWORD.to_owned())).await;
    assert_eq!(code(by_password), "confirm it with a passkey that you have");
    let mut of_dana = Authenticator::new(2);
    enrol(&g.service, &inside(g, &dana).await, (&mut of_dana, PASSWORD)).await;
    let others = allowed(g, &alice, &mut of_dana, &to).await;
    assert_eq!(code(g.service.delegate_to(&alice, &to, others).await), "passkey");
    let used = "the form was used before, or it took longer than five minutes; open the page again";
    let for_a_day = allowed(g, &alice, &mut key, &to).await;
    assert_eq!(code(g.service.delegate_to(&alice, &longer, for_a_day).await), used, "it signs for how long");
    let other_session = inside(g, &g.alice).await;
    let elsewhere = allowed(g, &other_session, &mut key, &to).await;
    assert_eq!(code(g.service.delegate_to(&alice, &to, elsewhere).await), used, "and in which session");
    // Some authenticators do not count, so that a signature looks as good a second time.
    let mut synced = Authenticator::synced(3);
    let session = alice.session.record.id.as_str();
    let new = crate::passkeys_of_people::new_passkey(&g.service, &alice, &mut synced, |it| {
        crate::passkeys_of_people::allow_adding(&g.service, &alice, (&mut key, it))
    });
    g.service.add_passkey(&alice, new).await.unwrap();
    let offer = g.service.offer(&alice.account.record, &to).await.unwrap();
    let challenge = g.service.passkey_challenge(&Purpose::AllowDelegating { session, terms: &offer.terms }).unwrap();
    let signature = assertion(&mut synced, &get(&g.service, &challenge));
    let again = || Confirmation::Passkey { challenge: challenge.clone(), assertion: signature.clone() };
    let delegation = g.service.delegate_to(&alice, &to, again()).await.unwrap();
    assert!(delegation.confirmed_by.is_some());
    g.service.end_delegation(&g.alice.id, &delegation.id).await.unwrap();
    assert_eq!(code(g.service.delegate_to(&alice, &to, again()).await), used, "and once");
    scene.passes_an_audit().await;
}

async fn a_stage_that_asks_for_a_passkey_is_not_opened_by_a_session_of_the_one_who_is_away(scene: Scene) {
    let g = &scene.gateway;
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    let (inside_alice, inside_dana) = (inside(g, &g.alice).await, inside(g, &dana).await);
    let mut key = Authenticator::new(2);
    enrol(&g.service, &inside_dana, (&mut key, PASSWORD)).await;
    let by_password = given(g, &g.alice, &dana).await;
    let held = g.held(&g.thread().await).await;
    let cast = async |key: &mut Authenticator, delegation: &Delegation| {
        let ballot = by(&held, delegation, Verdict::Approve);
        vote_signed(&g.service, &inside_dana, key, (&review(&held), &ballot)).await
    };
    assert_eq!(code(cast(&mut key, &by_password).await), "not_eligible: group");
    g.service.end_delegation(&g.alice.id, &by_password.id).await.unwrap();
    let mut of_alice = Authenticator::new(1);
    enrol(&g.service, &inside_alice, (&mut of_alice, PASSWORD)).await;
    let to = naming("dana", DAY);
    let shown = allowed(g, &inside_alice, &mut of_alice, &to).await;
    let by_passkey = g.service.delegate_to(&inside_alice, &to, shown).await.unwrap();
    assert_eq!(code(casts(g, &dana, &held, &by_passkey).await), "passkey_required", "the delegate signs, too");
    assert_eq!(code(cast(&mut of_alice, &by_passkey).await), "passkey_refused", "and by their own");
    assert_eq!(cast(&mut key, &by_passkey).await.unwrap(), Voted::Approved);
    let decision = g.decision(&held).await.expect(200);
    let claims = verified::<Receipt>(g, decision["receipt"].as_str().unwrap(), Typ::Receipt);
    let [approval] = claims.approvals.try_into().unwrap();
    assert_eq!(
        (approval.method, approval.reviewer, approval.absent),
        (Method::Passkey, dana.id, Some(g.alice.id.clone()))
    );
    scene.passes_an_audit().await;
}

async fn what_was_handed_on_by_a_passkey_ends_with_it(scene: Scene) {
    let g = &scene.gateway;
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    let (inside_alice, inside_dana) = (inside(g, &g.alice).await, inside(g, &dana).await);
    let (mut of_alice, mut of_dana) = (Authenticator::new(1), Authenticator::new(2));
    enrol(&g.service, &inside_alice, (&mut of_alice, PASSWORD)).await;
    enrol(&g.service, &inside_dana, (&mut of_dana, PASSWORD)).await;
    let held = g.held(&g.thread().await).await;
    for by_administrator in [false, true] {
        let to = naming("dana", DAY);
        let shown = allowed(g, &inside_alice, &mut of_alice, &to).await;
        let delegation = g.service.delegate_to(&inside_alice, &to, shown).await.unwrap();
        let id = of_alice.id();
        if by_administrator {
            g.service.remove_passkeys_of(&"tests".try_into().unwrap(), "alice").await.unwrap();
        } else {
            let shown = allow_removing(&g.service, &inside_alice, (&mut of_alice, &id));
            g.service.remove_passkey(&inside_alice, &id.as_str().try_into().unwrap(), shown).await.unwrap();
        }
        let ballot = by(&held, &delegation, Verdict::Approve);
        let cast = vote_signed(&g.service, &inside_dana, &mut of_dana, (&review(&held), &ballot)).await;
        assert_eq!(code(cast), "not_eligible: group", "by an administrator: {by_administrator}");
        of_alice = Authenticator::new(if by_administrator { 4 } else { 3 });
        enrol(&g.service, &inside_alice, (&mut of_alice, PASSWORD)).await;
    }
    assert_eq!(told(g, EventType::DelegationEnded).await.len(), 2);
    scene.passes_an_audit().await;
}

async fn what_was_handed_on_by_a_password_ends_with_it(scene: Scene) {
    let g = &scene.gateway;
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    let gus = administrator(g, "gus").await;
    let gus = g.service.account_row(&gus.id).await.unwrap();
    let held = g.held(&g.thread().await).await;
    let by_alice = given(g, &g.alice, &dana).await;
    let inside_alice = inside(g, &g.alice).await;
    let another = "another correct horse".to_owned();
    g.service.change_password(&inside_alice, PASSWORD.to_owned(), another).await.unwrap();
    assert_eq!(code(casts(g, &dana, &held, &by_alice).await), "not_eligible: group");
    let by_bob = given(g, &g.bob, &dana).await;
    g.service.reset_link(&gus, &g.bob.id).await.unwrap();
    assert_eq!(code(casts(g, &dana, &held, &by_bob).await), "not_eligible: group");
    scene.passes_an_audit().await;
}

async fn take_back(g: &Gateway, who: &Account, held: &Value, vote: usize) -> Result<()> {
    let transition = held["transition"].as_str().unwrap().try_into().unwrap();
    let nonce = countersign::random::uuid_v4().to_string();
    g.service.withdraw_vote(&who.id, &review(held), &Withdrawing { transition, vote, nonce }).await
}

async fn the_one_in_whose_place_it_was_cast_takes_a_vote_back_and_votes(scene: Scene) {
    let g = &scene.gateway;
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    let delegation = given(g, &g.alice, &dana).await;
    let held = g.held(&g.thread().await).await;
    casts(g, &dana, &held, &delegation).await.unwrap();
    assert_eq!(code(take_back(g, &g.bob, &held, 0).await), "nothing_to_withdraw");
    // Back from a holiday, whether or not the other can still be reached.
    g.service.end_delegation(&g.alice.id, &delegation.id).await.unwrap();
    g.service.set_admission("dana", Admission::Barred).await.unwrap();
    assert_eq!(code(g.vote(&g.alice, &held, Verdict::Approve).await), "not_eligible: voted");
    take_back(g, &g.alice, &held, 0).await.unwrap();
    assert_eq!(code(take_back(g, &g.alice, &held, 0).await), "nothing_to_withdraw");
    assert_eq!(g.vote(&g.alice, &held, Verdict::Approve).await.unwrap(), Voted::Waiting);
    assert_eq!(g.vote(&g.bob, &held, Verdict::Approve).await.unwrap(), Voted::Approved);
    let [back] = told(g, EventType::ReviewWithdrawn).await.try_into().unwrap();
    assert_eq!((&back["reviewer"], &back["by"]), (&json!(dana.id), &json!(g.alice.id)));
    scene.passes_an_audit().await;
}

async fn a_delegate_finds_what_waits_and_everybody_is_told_who_can_decide(scene: Scene) {
    let g = &scene.gateway;
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    let held = g.held(&g.thread().await).await;
    let mine = async || {
        let found = g.service.find(&dana, &Wanted::mine(), &Part::First, 10).await.unwrap();
        (found.items.len(), g.service.waiting_for(&dana, 10).await.unwrap())
    };
    assert_eq!(mine().await, (0, Waiting::Exactly(0)));
    let delegation = given(g, &g.alice, &dana).await;
    assert_eq!(mine().await, (1, Waiting::Exactly(1)));
    let path = format!("/v1/transitions/{}", held["transition"].as_str().unwrap());
    let about_dana = async || {
        let told = g.get(&path, &g.auditor).await.expect(200);
        told["review"]["people"].as_array().unwrap().iter().find(|it| it["name"] == "dana").cloned()
    };
    let line = about_dana().await.unwrap();
    let place = json!([{"reviewer": g.alice.id, "name": "alice", "stage": 0}]);
    assert_eq!((&line["can_decide"], &line["stages"], &line["for"]), (&json!(true), &json!([0]), &place));
    let facts = g.service.review(&review(&held), &dana).await.unwrap();
    let places = facts.can_decide.unwrap();
    assert_eq!(places[0].absent.as_ref().map(|it| &it.person), Some(&g.alice.id));
    casts(g, &dana, &held, &delegation).await.unwrap();
    assert_eq!(mine().await, (0, Waiting::Exactly(0)));
    assert_eq!(about_dana().await.unwrap()["why_not"]["code"], "voted");
    g.service.end_delegation(&g.alice.id, &delegation.id).await.unwrap();
    assert_eq!(about_dana().await, None, "and is not asked any more");
}

async fn only_those_whom_it_concerns_and_administrators_end_it(scene: Scene) {
    let g = &scene.gateway;
    let (boss, dana) = (administrator(g, "boss").await, person(&g.service, "dana", &["elsewhere"]).await);
    let new = NewAccount { name: "ivy".to_owned(), role: PersonRole::Auditor, groups: BTreeSet::new() };
    let ivy = g.service.add_account(&new, PASSWORD.to_owned()).await.unwrap();
    for ends in [&g.alice, &dana, &boss] {
        let delegation = given(g, &g.alice, &dana).await;
        for other in [&g.bob, &ivy] {
            assert_eq!(code(g.service.end_delegation(&other.id, &delegation.id).await), "no delegation");
        }
        let held = g.held(&g.thread().await).await;
        g.service.end_delegation(&ends.id, &delegation.id).await.unwrap();
        g.service.end_delegation(&ends.id, &delegation.id).await.unwrap();
        assert_eq!(code(casts(g, &dana, &held, &delegation).await), "not_eligible: group", "{}", ends.name);
    }
    let ended = told(g, EventType::DelegationEnded).await;
    let by: Vec<&Value> = ended.iter().map(|it| &it["by_name"]).collect();
    assert_eq!(by, ["alice", "dana", "boss"]);
    scene.passes_an_audit().await;
}

async fn a_delegate_gets_nothing_but_the_vote(scene: Scene) {
    let g = &scene.gateway;
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    let delegation = given(g, &g.alice, &dana).await;
    let held = g.held(&g.thread().await).await;
    let may_rewrite = async || {
        let hold = g.service.review(&review(&held), &dana).await.unwrap().hold;
        hold.may_rewrite(&dana, None, g.service.now()).map_err(|it| it.code())
    };
    assert_eq!(may_rewrite().await, Err("group"));
    casts(g, &dana, &held, &delegation).await.unwrap();
    assert_eq!(may_rewrite().await, Err("group"), "nor once they have voted");
}

/// A gateway's clock may be a little behind the database's, which decides.
#[tokio::test]
async fn a_delegation_ends_by_the_databases_clock() {
    let (folder, clock, ahead) = (tempfile::tempdir().unwrap(), ClockOffset::default(), ClockOffset::default());
    let options = SqliteOptions { clock_offset: ahead.clone(), ..SqliteOptions::default() };
    let store = Arc::new(SqliteStore::open(folder.path().join("countersign.db"), options).unwrap());
    let g = spawn_on(folder, clock.clone(), store, &two()).await;
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    let (held, other) = (g.held(&g.thread().await).await, g.held(&g.thread().await).await);
    let delegation = given(&g, &g.alice, &dana).await;
    casts(&g, &dana, &other, &delegation).await.unwrap();
    let left = g.service.now().until(delegation.ends_at);
    clock.set_millis(i64::try_from(left.as_millis()).unwrap() - 900);
    ahead.set_millis(i64::try_from(left.as_millis()).unwrap() + 900);
    assert_eq!(code(casts(&g, &dana, &held, &delegation).await), "expired");
    assert_eq!(code(g.vote(&g.bob, &other, Verdict::Approve).await), "expired", "nor is it counted at the last vote");
}
