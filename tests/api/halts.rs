//! Tests halts that two people lift. Over the API, a token counts as its owner.

use std::collections::BTreeSet;
use std::sync::Arc;

use countersign_domain::identity::account::{Account, MachineRole, PersonRole};
use countersign_domain::operations::halt::{Halt, LiftQuorum};

use countersign_adapters::clock::{Clock as _, SystemClock};
use countersign_adapters::keyring::Keyring;
use countersign_service::audit::audit;
use countersign_service::error::Error;
use countersign_service::identity::accounts::NewAccount;
use countersign_service::identity::actor::Actor;
use countersign_service::identity::actor::OPERATOR;
use countersign_service::identity::revocation::SignInAccess;
use countersign_service::identity::sign_in_config::LocalAccounts;
use countersign_service::identity::sign_in_config::SignInMethods;
use countersign_service::operations::halt::HaltScope;
use countersign_service::operations::halt_request::{HaltPreview, HaltRequest};
use countersign_service::{PeopleSettings, Service};
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::{
    ApiResponse, MovedClock, POLICY, TestGateway, owned_token, people, settings, spawn_for_people, spawn_gateway,
    spawn_with_policy,
};
use crate::passwords::hashed;
use crate::sqlite::unsynced;

async fn pairs() -> TestGateway {
    spawn_for_people(PeopleSettings { lift_needs: LiftQuorum::Two, ..people() }).await
}

async fn admin(g: &TestGateway, name: &str) -> Account {
    let new = NewAccount { name: name.to_owned(), role: PersonRole::Admin, groups: BTreeSet::new() };
    g.service.identity.add_account_hashed(&new, &hashed("correct horse battery").await).await.unwrap()
}

async fn token_of(g: &TestGateway, owner: &str) -> String {
    owned_token(&g.service, &format!("admin-of-{owner}"), MachineRole::Admin, &[], owner).await
}

async fn put(g: &TestGateway, token: &str, scope: &str, (proposing, verifying): (bool, bool)) -> ApiResponse {
    let body = json!({"proposing": proposing, "verifying": verifying, "reason": "an exercise"});
    g.send(Method::PUT, &format!("/v1/halts/{scope}"), token, Some(body)).await
}

async fn findings(g: &TestGateway) -> Vec<String> {
    while g.service.log.sequence().await.unwrap() > 0 {}
    let store = SqliteStore::open(g.folder.path().join("countersign.db"), SqliteOptions::default()).unwrap();
    let keys = Keyring::open(&g.folder.path().join("keyring.json"), None).unwrap().current().unwrap();
    let report = audit(&store, &keys, SystemClock.now()).await.unwrap();
    report.findings.into_iter().map(|it| it.finding).collect()
}

async fn verifies(g: &TestGateway) -> bool {
    let thread = g.thread().await;
    g.verify(&thread["thread"], &thread["transition"], &Value::Null, "w-1").await.code() != "halted"
}

/// People write the reason for a halt, and every reader sees it.
#[tokio::test]
async fn detected_values_in_a_reason_are_not_stored() {
    let g = spawn_with_policy(&POLICY.replace("hide = [\"payment.card\"]", "detect = [\"email\"]")).await;
    admin(&g, "gus").await;
    let gus = token_of(&g, "gus").await;
    for scope in ["payments", "all"] {
        let body = json!({"proposing": true, "verifying": false, "reason": "it writes to eva@example.org"});
        g.send(Method::PUT, &format!("/v1/halts/{scope}"), &gus, Some(body)).await.expect(200);
        let by = OPERATOR.try_into().unwrap();
        let scope = if scope == "all" { HaltScope::All } else { HaltScope::Flow(scope.try_into().unwrap()) };
        let halt = Halt { proposing: true, verifying: true, reason: "and to eva@example.org".to_owned() };
        g.service.operations.set_halt(&by, &scope, &halt).await.unwrap();
    }
    while g.service.log.sequence().await.unwrap() > 0 {}
    let halts = g.service.operations.halts().await.unwrap();
    assert!(halts.iter().all(|it| it.halt.reason.starts_with("and to ")), "{halts:?}");
    assert!(!format!("{halts:?}").contains("eva@"), "{halts:?}");
    let auditor = owned_token(&g.service, "auditor-of-gus", MachineRole::Auditor, &[], "gus").await;
    let events = g.send(Method::GET, "/v1/events?after=0", &auditor, None).await.expect(200);
    assert!(events.to_string().contains("it writes to "), "{events}");
    assert!(!events.to_string().contains("eva@"), "{events}");
    assert_eq!(findings(&g).await, Vec::<String>::new());
}

#[tokio::test]
async fn halt_is_lifted_only_after_two_people_request_the_same() {
    let g = pairs().await;
    admin(&g, "gus").await;
    admin(&g, "hal").await;
    let (gus, hal) = (token_of(&g, "gus").await, token_of(&g, "hal").await);
    let again = owned_token(&g.service, "another-of-gus", MachineRole::Admin, &[], "gus").await;
    for scope in ["all", "payments"] {
        let stopped = put(&g, &gus, scope, (false, true)).await.expect(200);
        assert_eq!(stopped, json!({"scope": scope, "proposing": false, "verifying": true}));
        for first in [&gus, &gus, &again] {
            let waits = put(&g, first, scope, (false, false)).await.expect(202);
            assert_eq!((&waits["verifying"], &waits["lifting"]["name"]), (&json!(true), &json!("gus")), "{waits}");
            assert!(!verifies(&g).await, "one person has asked, with whatever token");
        }
        let lifted = put(&g, &hal, scope, (false, false)).await.expect(200);
        assert_eq!(lifted, json!({"scope": scope, "proposing": false, "verifying": false}));
        assert!(verifies(&g).await);
    }
    assert_eq!(findings(&g).await, [""; 0]);
}

#[tokio::test]
async fn halt_request_that_differs_from_its_preview_is_refused() {
    let g = pairs().await;
    let (gus, hal) = (admin(&g, "gus").await, admin(&g, "hal").await);
    let (gus, hal) = (
        g.service.identity.account_row(&gus.id).await.unwrap(),
        g.service.identity.account_row(&hal.id).await.unwrap(),
    );
    let halt = Halt { proposing: true, verifying: true, reason: "an exercise".to_owned() };
    g.service
        .operations
        .request_halt(Actor::Person(&gus), &HaltScope::All, &HaltRequest::Stop(halt.clone()))
        .await
        .unwrap();
    let lift = HaltRequest::Lift(halt);
    for (who, otherwise, told) in
        [(&gus, HaltPreview::Done, HaltPreview::Asked), (&hal, HaltPreview::Asked, HaltPreview::Done)]
    {
        let me = Actor::Person(who);
        assert_eq!(g.service.operations.preview_halt(me, &HaltScope::All, &lift).await.unwrap(), told);
        let refused = g
            .service
            .operations
            .request_halt_as_previewed(me, &HaltScope::All, &lift, Some(otherwise))
            .await
            .unwrap_err();
        assert!(
            matches!(refused, Error::WrongState(why) if why.contains("Check the halt and try again")),
            "{refused:?}"
        );
        assert!(g.service.operations.halts().await.unwrap()[0].halt.verifying, "nothing was done");
        let standing =
            g.service.operations.request_halt_as_previewed(me, &HaltScope::All, &lift, Some(told)).await.unwrap();
        assert_eq!(standing.halt.verifying, told == HaltPreview::Asked);
    }
    assert_eq!(findings(&g).await, [""; 0]);
}

#[tokio::test]
async fn second_person_of_a_lift_must_be_an_earlier_enabled_administrator() {
    let g = pairs().await;
    admin(&g, "gus").await;
    admin(&g, "hal").await;
    let (gus, hal) = (token_of(&g, "gus").await, token_of(&g, "hal").await);
    put(&g, &g.admin, "payments", (true, true)).await.expect(200);
    admin(&g, "ivy").await;
    let (ivy, late) =
        (token_of(&g, "ivy").await, owned_token(&g.service, "late", MachineRole::Admin, &[], "hal").await);
    put(&g, &gus, "payments", (false, false)).await.expect(202);
    for nobody in [&g.admin, &ivy, &late] {
        let refused = put(&g, nobody, "payments", (false, false)).await;
        assert_eq!((refused.status, refused.code()), (409, "wrong_state"), "{}", refused.body);
    }
    let both = put(&g, &hal, "all", (true, false)).await;
    both.expect(200);
    let refused = put(&g, &hal, "all", (false, true)).await;
    assert_eq!((refused.status, refused.code()), (409, "wrong_state"), "stopping and lifting at once");
    // The request of an administrator who is disabled since then is invalid.
    g.service.identity.set_admission("gus", SignInAccess::Barred).await.unwrap();
    let waits = put(&g, &hal, "payments", (false, false)).await.expect(202);
    assert_eq!(waits["lifting"]["name"], "hal");
    let refused = put(&g, &gus, "payments", (false, false)).await;
    assert_eq!(refused.status, 409, "a disabled person's token is no second person");
    g.service.identity.set_admission("gus", SignInAccess::Open).await.unwrap();
    put(&g, &gus, "payments", (false, false)).await.expect(200);
    assert_eq!(findings(&g).await, [""; 0]);
}

#[tokio::test]
async fn repeated_halt_cancels_a_requested_lift() {
    let g = pairs().await;
    let (gus, hal) = (admin(&g, "gus").await, admin(&g, "hal").await);
    let [gus, hal, alice] = [&gus.id, &hal.id, &g.alice.id];
    let pull = async |who, wish: HaltRequest| {
        let person = g.service.identity.account_row(who).await.unwrap();
        g.service.operations.request_halt(Actor::Person(&person), &HaltScope::All, &wish).await.unwrap()
    };
    let halt = |proposing, verifying| Halt { proposing, verifying, reason: "drill".to_owned() };
    pull(alice, HaltRequest::Stop(halt(true, false))).await;
    pull(gus, HaltRequest::Lift(halt(true, true))).await;
    let stopped = pull(alice, HaltRequest::Stop(halt(false, true))).await;
    let stops = stopped.stops.unwrap();
    assert_eq!((stops.lifting, stops.proposing.unwrap().name), (None, "alice".to_owned()));
    let asked = pull(hal, HaltRequest::Lift(halt(true, false))).await;
    assert!(asked.halt.proposing && asked.stops.unwrap().lifting.is_some(), "it begins anew");
    let part = pull(gus, HaltRequest::Lift(halt(true, false))).await;
    assert_eq!((part.halt.proposing, part.halt.verifying), (false, true), "what nobody lifted stays");
    assert_eq!(findings(&g).await, [""; 0]);
}

#[tokio::test]
async fn audit_finds_a_lift_without_its_second_person() {
    let g = pairs().await;
    let halt = |verifying| Halt { proposing: false, verifying, reason: "drill".to_owned() };
    let operator = OPERATOR.try_into().unwrap();
    for verifying in [true, false] {
        g.service.operations.set_halt(&operator, &HaltScope::All, &halt(verifying)).await.unwrap();
    }
    assert_eq!(findings(&g).await, [""; 0]);
    for verifying in [true, false] {
        g.service
            .operations
            .set_halt(&"somebody".try_into().unwrap(), &HaltScope::All, &halt(verifying))
            .await
            .unwrap();
    }
    assert_eq!(findings(&g).await, ["a halt was lifted without its second person"]);
}

#[tokio::test]
async fn one_person_lifts_a_halt_by_default_and_a_long_reason_is_cut() {
    let g = spawn_gateway().await;
    put(&g, &g.admin, "payments", (true, true)).await.expect(200);
    let lifted = put(&g, &g.admin, "payments", (false, false)).await.expect(200);
    assert!(lifted.get("lifting").is_none());
    // A halt does not fail because its reason is too long.
    let body = json!({"proposing": true, "verifying": true, "reason": "x".repeat(2_000)});
    g.send(Method::PUT, "/v1/halts/all", &g.admin, Some(body)).await.expect(200);
    while g.service.log.sequence().await.unwrap() > 0 {}
    let events = g.get("/v1/events?limit=500", &g.auditor).await.expect(200)["events"].clone();
    let said = events.as_array().unwrap().iter().rev().find(|it| it["type"] == "access.halted").unwrap();
    assert_eq!(said["data"]["reason"], "x".repeat(1_000), "of a reason, so much is kept");
    assert_eq!(findings(&g).await, [""; 0]);
}

/// This also holds for a clock that went back in between.
#[tokio::test]
async fn former_or_barred_administrator_does_not_count_for_a_lift() {
    let g = pairs().await;
    let (gus, hal) = (admin(&g, "gus").await, admin(&g, "hal").await);
    let ids = [&gus.id, &hal.id];
    let row = async |which: usize| g.service.identity.account_row(ids[which]).await.unwrap();
    g.pass(std::time::Duration::from_secs(7200));
    let halt = Halt { proposing: false, verifying: true, reason: "an exercise".to_owned() };
    g.service
        .operations
        .request_halt(Actor::Person(&row(0).await), &HaltScope::All, &HaltRequest::Stop(halt.clone()))
        .await
        .unwrap();
    let lift = HaltRequest::Lift(halt);
    g.service.operations.request_halt(Actor::Person(&row(0).await), &HaltScope::All, &lift).await.unwrap();
    g.clock.set_millis(3_600_000);
    let none = BTreeSet::new();
    g.service.identity.change_access(&row(1).await, ids[0], PersonRole::Auditor, &none).await.unwrap();
    g.pass(std::time::Duration::from_secs(7200));
    let standing =
        g.service.operations.request_halt(Actor::Person(&row(1).await), &HaltScope::All, &lift).await.unwrap();
    assert!(standing.halt.verifying, "there is one who asks");
    let (folder, clock) = (g.folder.path(), Arc::new(MovedClock(g.clock.clone())));
    let options = unsynced(&g.clock);
    let store = Arc::new(SqliteStore::open(folder.join("countersign.db"), options).unwrap());
    let keyring = Keyring::open(&folder.join("keyring.json"), None).unwrap();
    let other = Service::open(store, keyring, clock, settings(&g.url)).await.unwrap();
    let other = other.with_sign_in_methods(SignInMethods { local: LocalAccounts::Off, provider: None });
    let refused = other.operations.request_halt(Actor::Person(&row(1).await), &HaltScope::All, &lift).await;
    assert!(matches!(refused, Err(Error::WrongState(why)) if why.contains("disabled")), "{refused:?}");
    assert_eq!(findings(&g).await, [""; 0]);
}
