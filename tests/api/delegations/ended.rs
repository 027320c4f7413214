//! Tests that a delegation opens and counts nothing after it has ended or lost its ground.

use super::*;

use crate::passwords::hashed;
use crate::sqlite::unsynced;

on_both! {
    ended_or_invalid_delegation_does_not_vote(super::two()),
    delegated_vote_is_invalid_if_its_delegation_ended_before_the_last_vote(super::two()),
    only_one_of_an_ending_delegation_and_a_concurrent_last_vote_succeeds(super::two()),
    only_its_people_and_administrators_end_a_delegation(super::two()),
    ended_delegation_stays_ended_if_the_clock_goes_back(super::two()),
}

/// The ways in which a delegation from Alice to Dana becomes invalid.
#[derive(Clone, Copy, Debug)]
enum DelegationLoss {
    Ended,
    EndedByAdmin,
    RunOut,
    AwayDisabled,
    AwayLeftTheGroup,
    AwayIsAuditor,
    DelegateDisabled,
    DelegateIsAdmin,
}

const ALL_GONE: [(DelegationLoss, &str); 8] = [
    (DelegationLoss::Ended, "not_eligible: group"),
    (DelegationLoss::EndedByAdmin, "not_eligible: group"),
    (DelegationLoss::RunOut, "not_eligible: group"),
    (DelegationLoss::AwayDisabled, "not_eligible: group"),
    (DelegationLoss::AwayLeftTheGroup, "not_eligible: group"),
    (DelegationLoss::AwayIsAuditor, "not_eligible: group"),
    (DelegationLoss::DelegateDisabled, "not_eligible: disabled"),
    (DelegationLoss::DelegateIsAdmin, "not_eligible: role"),
];

async fn takes_away(
    g: &TestGateway,
    gone: DelegationLoss,
    (away, dana, boss): (&Account, &Account, &Account),
    delegation: &Delegation,
) {
    let service = &g.service;
    let boss = service.identity.account_row(&boss.id).await.unwrap();
    let access = async |who: &Account, role: PersonRole, groups: &[&str]| {
        let groups = groups.iter().map(|it| (*it).try_into().unwrap()).collect();
        service.identity.change_access(&boss, &who.id, role, &groups).await.unwrap();
    };
    match gone {
        DelegationLoss::Ended => service.identity.end_delegation(&away.id, &delegation.id).await.unwrap(),
        DelegationLoss::EndedByAdmin => service.identity.end_delegation(&boss.record.id, &delegation.id).await.unwrap(),
        DelegationLoss::RunOut => g.pass(DAY),
        DelegationLoss::AwayDisabled => {
            drop(service.identity.set_admission(&away.name, SignInAccess::Barred).await.unwrap())
        }
        DelegationLoss::AwayLeftTheGroup => access(away, PersonRole::Reviewer, &["others"]).await,
        DelegationLoss::AwayIsAuditor => access(away, PersonRole::Auditor, &["reviewers"]).await,
        DelegationLoss::DelegateDisabled => {
            drop(service.identity.set_admission(&dana.name, SignInAccess::Barred).await.unwrap())
        }
        DelegationLoss::DelegateIsAdmin => access(dana, PersonRole::Admin, &[]).await,
    }
}

async fn ended_or_invalid_delegation_does_not_vote(scene: ApiScenario) {
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

async fn delegated_vote_is_invalid_if_its_delegation_ended_before_the_last_vote(scene: ApiScenario) {
    let g = &scene.gateway;
    let boss = administrator(g, "boss").await;
    for (number, (gone, _)) in ALL_GONE.into_iter().enumerate() {
        let away = person(&g.service, &format!("away-{number}"), &["reviewers"]).await;
        let dana = person(&g.service, &format!("dana-{number}"), &["elsewhere"]).await;
        let delegation = given(g, &away, &dana).await;
        let held = g.held(&g.thread().await).await;
        assert_eq!(casts(g, &dana, &held, &delegation).await.unwrap(), VoteOutcome::Waiting, "{gone:?}");
        takes_away(g, gone, (&away, &dana, &boss), &delegation).await;
        assert_eq!(g.vote(&g.bob, &held, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Waiting, "{gone:?}");
        assert_eq!(g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Approved, "{gone:?}");
        let decision = g.decision(&held).await.expect(200);
        let claims = verified::<Receipt>(g, decision["receipt"].as_str().unwrap(), TokenType::Receipt);
        assert!(claims.approvals.iter().all(|it| it.absent.is_none()), "{gone:?}: the receipt names who counted");
    }
    scene.passes_an_audit().await;
}

async fn only_one_of_an_ending_delegation_and_a_concurrent_last_vote_succeeds(scene: ApiScenario) {
    let g = &scene.gateway;
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    for _ in 0..5 {
        let delegation = given(g, &g.alice, &dana).await;
        let held = g.held(&g.thread().await).await;
        g.vote(&g.bob, &held, VoteVerdict::Approve).await.unwrap();
        let (ended, last) = tokio::join!(
            g.service.identity.end_delegation(&g.alice.id, &delegation.id),
            casts(g, &dana, &held, &delegation)
        );
        ended.unwrap();
        match code(last).as_str() {
            "done" => assert_eq!(g.decision(&held).await.status, 200),
            "not_eligible: group" => assert_eq!(g.decision(&held).await.status, 202),
            other => panic!("{other}"),
        }
    }
    scene.passes_an_audit().await;
}

async fn only_its_people_and_administrators_end_a_delegation(scene: ApiScenario) {
    let g = &scene.gateway;
    let (boss, dana) = (administrator(g, "boss").await, person(&g.service, "dana", &["elsewhere"]).await);
    let new = NewAccount { name: "ivy".to_owned(), role: PersonRole::Auditor, groups: BTreeSet::new() };
    let ivy = g.service.identity.add_account_hashed(&new, &hashed(PASSWORD).await).await.unwrap();
    for ends in [&g.alice, &dana, &boss] {
        let delegation = given(g, &g.alice, &dana).await;
        for other in [&g.bob, &ivy] {
            assert_eq!(code(g.service.identity.end_delegation(&other.id, &delegation.id).await), "no delegation");
        }
        let held = g.held(&g.thread().await).await;
        g.service.identity.end_delegation(&ends.id, &delegation.id).await.unwrap();
        g.service.identity.end_delegation(&ends.id, &delegation.id).await.unwrap();
        assert_eq!(code(casts(g, &dana, &held, &delegation).await), "not_eligible: group", "{}", ends.name);
    }
    let ended = told(g, EventType::DelegationEnded).await;
    let by: Vec<&Value> = ended.iter().map(|it| &it["by_name"]).collect();
    assert_eq!(by, ["alice", "dana", "boss"]);
    scene.passes_an_audit().await;
}

/// If the clock goes back, an ended delegation stays ended, and an active one can still be ended.
async fn ended_delegation_stays_ended_if_the_clock_goes_back(scene: ApiScenario) {
    let g = &scene.gateway;
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    g.pass(DAY);
    let delegation = given(g, &g.alice, &dana).await;
    g.pass(HOUR);
    let held = g.held(&g.thread().await).await;
    g.service.identity.end_delegation(&g.alice.id, &delegation.id).await.unwrap();
    g.clock.set_millis(g.clock.applied_to(Timestamp::from_millis(0)).millis() - 1_800_000);
    assert_eq!(code(casts(g, &dana, &held, &delegation).await), "not_eligible: group", "it stood at that moment");
    let other = given(g, &g.bob, &dana).await;
    g.clock.set_millis(0);
    g.service.identity.end_delegation(&g.bob.id, &other.id).await.unwrap();
    g.pass(DAY + HOUR);
    let held = g.held(&g.thread().await).await;
    assert_eq!(code(casts(g, &dana, &held, &other).await), "not_eligible: group", "ended before it began");
    scene.passes_an_audit().await;
}

/// A gateway's clock may be slightly behind the database's clock, which decides.
#[tokio::test]
async fn a_delegation_ends_by_the_databases_clock() {
    let (folder, clock, ahead) = (tempfile::tempdir().unwrap(), ClockOffset::default(), ClockOffset::default());
    let options = unsynced(&ahead);
    let store = Arc::new(SqliteStore::open(folder.path().join("countersign.db"), options).unwrap());
    let g = spawn_on(folder, clock.clone(), store, &two()).await;
    let dana = person(&g.service, "dana", &["elsewhere"]).await;
    let (held, other) = (g.held(&g.thread().await).await, g.held(&g.thread().await).await);
    let delegation = given(&g, &g.alice, &dana).await;
    casts(&g, &dana, &other, &delegation).await.unwrap();
    let left = g.service.core.now().until(delegation.ends_at);
    clock.set_millis(i64::try_from(left.as_millis()).unwrap() - 900);
    ahead.set_millis(i64::try_from(left.as_millis()).unwrap() + 900);
    assert_eq!(code(casts(&g, &dana, &held, &delegation).await), "expired");
    assert_eq!(
        code(g.vote(&g.bob, &other, VoteVerdict::Approve).await),
        "expired",
        "nor is it counted at the last vote"
    );
}
