//! Tests accounts: invitations, changes, disabling, new passwords, and changes to one's own account.

use std::collections::BTreeSet;

use countersign_domain::identity::account::{Account, MachineRole, PersonRole};
use countersign_domain::operations::halt::LiftQuorum;
use countersign_domain::primitives::id::GroupName;

use countersign_adapters::clock::{Clock as _, SystemClock};
use countersign_adapters::keyring::Keyring;
use countersign_service::audit::audit;
use countersign_service::error::{Error, Result};
use countersign_service::identity::accounts::{NewAccount, NewToken};
use countersign_service::identity::actor::Actor;
use countersign_service::identity::administration::INVITATION_TTL;
use countersign_service::identity::owner_names::NewOwner;
use countersign_service::identity::password_reset::RESET_TTL;
use countersign_service::identity::revocation::SignInAccess;
use countersign_service::identity::self_service::PasswordChangeOutcome;
use countersign_service::identity::session::SignedIn;
use countersign_service::operations::halt::HaltScope;
use countersign_service::operations::halt_request::HaltRequest;
use countersign_service::{PeopleSettings, Stored};
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use serde_json::Value;

use crate::gateway::{TestGateway, people, spawn_for_people, spawn_gateway};
use crate::meanwhile::second_gateway;

const PASSWORD: &str = "correct horse battery";
const ANOTHER: &str = "staple battery horse";

fn groups(names: &[&str]) -> BTreeSet<GroupName> {
    names.iter().map(|it| (*it).try_into().unwrap()).collect()
}

pub async fn admin(g: &TestGateway, name: &str) -> Stored<Account> {
    let new = NewAccount { name: name.to_owned(), role: PersonRole::Admin, groups: BTreeSet::new() };
    let account = g.service.identity.add_account(&new, PASSWORD.to_owned()).await.unwrap();
    g.service.identity.account_row(&account.id).await.unwrap()
}

fn ana() -> NewAccount {
    NewAccount { name: "ana".to_owned(), role: PersonRole::Reviewer, groups: groups(&["finance"]) }
}

async fn sign_in(g: &TestGateway, name: &str, password: &str) -> Result<(SignedIn, String)> {
    g.service.identity.sign_in(name, password.to_owned()).await
}

pub async fn findings(g: &TestGateway) -> Vec<String> {
    while g.service.log.sequence().await.unwrap() > 0 {}
    let store = SqliteStore::open(g.folder.path().join("countersign.db"), SqliteOptions::default()).unwrap();
    let keys = Keyring::open(&g.folder.path().join("keyring.json"), None).unwrap().current().unwrap();
    let report = audit(&store, &keys, SystemClock.now()).await.unwrap();
    report.findings.into_iter().map(|it| it.finding).collect()
}

async fn told(g: &TestGateway, kind: &str) -> Vec<Value> {
    while g.service.log.sequence().await.unwrap() > 0 {}
    let (placed, _) = g.service.log.events_after(0, None, 1000).await.unwrap();
    let events = placed.into_iter().map(|it| serde_json::to_value(it.event).unwrap());
    events.filter(|it| it["type"] == kind).map(|it| it["data"].clone()).collect()
}

#[tokio::test]
async fn an_invitation_makes_the_account_it_names_once_and_says_by_whom() {
    let g = spawn_gateway().await;
    let gus = admin(&g, "gus").await;
    let secret = g.service.identity.invite(&gus, &ana()).await.unwrap();
    assert!(matches!(g.service.identity.invite(&gus, &ana()).await, Err(Error::Exists(_))), "one at a time");
    let short = g.service.identity.choose_password(&secret, "short".to_owned(), None).await;
    assert!(matches!(short, Err(Error::Invalid { .. })), "a password that is refused uses nothing up");
    let (made, cookie) = g.service.identity.choose_password(&secret, ANOTHER.to_owned(), None).await.unwrap();
    let account = made.account.record;
    assert_eq!(
        (account.name.as_str(), account.role, account.groups.clone()),
        ("ana", PersonRole::Reviewer, groups(&["finance"]))
    );
    assert_eq!(account.changed.as_ref().unwrap().name, "gus");
    g.service.identity.session_of(&cookie).await.unwrap();
    sign_in(&g, "ana", ANOTHER).await.unwrap();
    let again = g.service.identity.choose_password(&secret, PASSWORD.to_owned(), None).await;
    assert!(matches!(again, Err(Error::NotFound("link"))), "{again:?}");
    assert!(matches!(g.service.identity.invite(&gus, &ana()).await, Err(Error::Exists(_))), "the name is taken");
    let invited = told(&g, "access.invited").await;
    assert_eq!((invited.len(), &invited[0]["for"]["by"]["name"]), (1, &"gus".into()));
    assert!(!invited[0].to_string().contains(&secret));
    assert_eq!(findings(&g).await, [""; 0]);
}

#[tokio::test]
async fn late_or_withdrawn_link_is_refused() {
    let g = spawn_gateway().await;
    let gus = admin(&g, "gus").await;
    let late = g.service.identity.invite(&gus, &ana()).await.unwrap();
    g.pass(INVITATION_TTL);
    assert!(matches!(
        g.service.identity.choose_password(&late, ANOTHER.to_owned(), None).await,
        Err(Error::NotFound("link"))
    ));
    assert_eq!(g.service.identity.open_links().await.unwrap(), []);
    let withdrawn = g.service.identity.invite(&gus, &ana()).await.unwrap();
    let open = g.service.identity.open_links().await.unwrap().pop().unwrap();
    g.service.identity.withdraw_link(&gus, &open.id).await.unwrap();
    assert!(matches!(g.service.identity.withdraw_link(&gus, &open.id).await, Err(Error::WrongState(_))));
    assert!(matches!(
        g.service.identity.choose_password(&withdrawn, ANOTHER.to_owned(), None).await,
        Err(Error::NotFound("link"))
    ));
    let reset = g.service.identity.reset_link(&gus, &g.alice.id).await.unwrap();
    g.pass(RESET_TTL);
    assert!(matches!(
        g.service.identity.choose_password(&reset, ANOTHER.to_owned(), None).await,
        Err(Error::NotFound("link"))
    ));
    // A set-up or sign-in link is no invitation, and is not withdrawn as one.
    let other = g.service.identity.sign_in_link(&g.alice.id).await.unwrap();
    assert!(matches!(
        g.service.identity.choose_password(&other, ANOTHER.to_owned(), None).await,
        Err(Error::NotFound("link"))
    ));
    assert!(matches!(g.service.identity.use_sign_in_link(&withdrawn).await, Err(Error::NotFound("link"))));
}

#[tokio::test]
async fn access_is_changed_only_by_other_administrators_and_logged() {
    let g = spawn_gateway().await;
    let (gus, hal) = (admin(&g, "gus").await, admin(&g, "hal").await);
    let oneself =
        g.service.identity.change_access(&gus, &gus.record.id, PersonRole::Reviewer, &groups(&["reviewers"])).await;
    assert!(matches!(oneself, Err(Error::WrongState(_))), "nobody makes a reviewer of themselves");
    assert!(g.service.identity.set_admission_by(&gus, "gus", SignInAccess::Barred).await.is_err());
    assert!(g.service.identity.reset_link(&gus, &gus.record.id).await.is_err());
    g.service.identity.change_access(&gus, &g.alice.id, PersonRole::Auditor, &groups(&[])).await.unwrap();
    let changed = g.service.identity.account_row(&g.alice.id).await.unwrap().record;
    assert_eq!(
        (changed.role, changed.groups.len(), changed.changed.unwrap().name.as_str()),
        (PersonRole::Auditor, 0, "gus")
    );
    let event = &told(&g, "access.account_changed").await[0];
    assert_eq!(
        (&event["by_name"], &event["role"], &event["was"]["role"]),
        (&"gus".into(), &"auditor".into(), &"reviewer".into())
    );
    // A former administrator changes nothing, even if a page of theirs is still open.
    g.service.identity.change_access(&gus, &hal.record.id, PersonRole::Auditor, &groups(&[])).await.unwrap();
    let stale = g.service.identity.change_access(&hal, &g.bob.id, PersonRole::Admin, &groups(&[])).await;
    assert!(stale.is_err(), "{stale:?}");
    assert_eq!(g.service.identity.account_row(&g.bob.id).await.unwrap().record.role, PersonRole::Reviewer);
    assert_eq!(findings(&g).await, [""; 0]);
}

#[tokio::test]
async fn last_administrator_is_never_removed() {
    let g = spawn_gateway().await;
    let (gus, hal) = (admin(&g, "gus").await, admin(&g, "hal").await);
    let none = groups(&[]);
    let (one, other) = tokio::join!(
        g.service.identity.set_admission_by(&gus, "hal", SignInAccess::Barred),
        g.service.identity.change_access(&hal, &gus.record.id, PersonRole::Auditor, &none),
    );
    assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
    let everybody = g.service.identity.people().await.unwrap();
    let left = everybody.iter().find(|it| it.administers()).unwrap();
    let operator = g.service.identity.set_admission(&left.name, SignInAccess::Barred).await;
    assert!(matches!(operator, Err(Error::WrongState(_))), "the command line neither: {operator:?}");
    assert_eq!(findings(&g).await, [""; 0]);
}

#[tokio::test]
async fn a_reset_link_ends_sessions_and_lets_the_person_choose() {
    let g = spawn_gateway().await;
    let gus = admin(&g, "gus").await;
    let (_, cookie) = sign_in(&g, "alice", PASSWORD).await.unwrap();
    let secret = g.service.identity.reset_link(&gus, &g.alice.id).await.unwrap();
    assert!(g.service.identity.session_of(&cookie).await.is_err());
    let (_, between) = sign_in(&g, "alice", PASSWORD).await.unwrap();
    let (_, after) = g.service.identity.choose_password(&secret, ANOTHER.to_owned(), None).await.unwrap();
    assert!(
        g.service.identity.session_of(&between).await.is_err() && g.service.identity.session_of(&after).await.is_ok()
    );
    assert!(sign_in(&g, "alice", PASSWORD).await.is_err());
    sign_in(&g, "alice", ANOTHER).await.unwrap();
    assert!(matches!(
        g.service.identity.choose_password(&secret, PASSWORD.to_owned(), None).await,
        Err(Error::NotFound("link"))
    ));
    let secret = g.service.identity.reset_link(&gus, &g.alice.id).await.unwrap();
    g.service.identity.set_admission_by(&gus, "alice", SignInAccess::Barred).await.unwrap();
    assert!(matches!(
        g.service.identity.choose_password(&secret, PASSWORD.to_owned(), None).await,
        Err(Error::NotFound("link"))
    ));
    assert_eq!(findings(&g).await, [""; 0]);
}

#[tokio::test]
async fn new_password_ends_older_password_links() {
    let g = spawn_gateway().await;
    let gus = admin(&g, "gus").await;
    let choose = async |link: &str| g.service.identity.choose_password(link, ANOTHER.to_owned(), None).await;
    let first = g.service.identity.reset_link(&gus, &g.alice.id).await.unwrap();
    let second = g.service.identity.reset_link(&gus, &g.alice.id).await.unwrap();
    assert!(matches!(choose(&first).await, Err(Error::NotFound("link"))), "a newer one was made");
    let bobs = g.service.identity.reset_link(&gus, &g.bob.id).await.unwrap();
    choose(&second).await.unwrap();
    let third = g.service.identity.reset_link(&gus, &g.alice.id).await.unwrap();
    let (me, _) = sign_in(&g, "alice", ANOTHER).await.unwrap();
    assert_eq!(
        g.service.identity.change_password(&me, ANOTHER.to_owned(), PASSWORD.to_owned()).await.unwrap(),
        PasswordChangeOutcome::Yes
    );
    assert!(matches!(choose(&third).await, Err(Error::NotFound("link"))), "she changed it herself");
    choose(&bobs).await.unwrap();
    assert_eq!(findings(&g).await, [""; 0]);
}

#[tokio::test]
async fn link_of_a_former_administrator_is_refused() {
    let g = spawn_gateway().await;
    let (gus, hal) = (admin(&g, "gus").await, admin(&g, "hal").await);
    let invitation = g.service.identity.invite(&hal, &ana()).await.unwrap();
    let reset = g.service.identity.reset_link(&hal, &g.alice.id).await.unwrap();
    let refused = async || {
        assert_eq!(g.service.identity.open_links().await.unwrap(), []);
        for link in [&invitation, &reset] {
            let opened = g.service.identity.link_of(link).await;
            assert!(matches!(opened, Err(Error::NotFound("link"))), "{opened:?}");
            let used = g.service.identity.choose_password(link, ANOTHER.to_owned(), None).await;
            assert!(matches!(used, Err(Error::NotFound("link"))), "{used:?}");
        }
    };
    g.service.identity.set_admission_by(&gus, "hal", SignInAccess::Barred).await.unwrap();
    refused().await;
    g.service.identity.set_admission_by(&gus, "hal", SignInAccess::Open).await.unwrap();
    g.service.identity.change_access(&gus, &hal.record.id, PersonRole::Reviewer, &groups(&[])).await.unwrap();
    refused().await;
    sign_in(&g, "alice", PASSWORD).await.unwrap();
    assert!(g.service.identity.people().await.unwrap().iter().all(|it| it.name != "ana"));
    g.service.identity.change_access(&gus, &hal.record.id, PersonRole::Admin, &groups(&[])).await.unwrap();
    assert_eq!(g.service.identity.open_links().await.unwrap().len(), 2, "it was not the links that were withdrawn");
    for link in [&invitation, &reset] {
        g.service.identity.choose_password(link, ANOTHER.to_owned(), None).await.unwrap();
    }
    assert_eq!(findings(&g).await, [""; 0]);
}

#[tokio::test]
async fn link_is_refused_if_its_maker_is_disabled_during_its_use() {
    let g = spawn_gateway().await;
    let (gus, hal) = (admin(&g, "gus").await, admin(&g, "hal").await);
    let invitation = g.service.identity.invite(&hal, &ana()).await.unwrap();
    let reset = g.service.identity.reset_link(&hal, &g.alice.id).await.unwrap();
    let (store, second) = second_gateway(&g).await;
    for link in [&invitation, &reset] {
        let (first, by) = (g.service.clone(), gus.clone());
        store.watching.by(Box::new(move || {
            Box::pin(async move {
                first.identity.set_admission_by(&by, "hal", SignInAccess::Barred).await.unwrap();
            })
        }));
        let used = second.identity.choose_password(link, ANOTHER.to_owned(), None).await;
        assert!(store.watching.is_over() && used.is_err(), "{used:?}");
        g.service.identity.set_admission_by(&gus, "hal", SignInAccess::Open).await.unwrap();
    }
    sign_in(&g, "alice", PASSWORD).await.unwrap();
    assert!(g.service.identity.people().await.unwrap().iter().all(|it| it.name != "ana"));
}

#[tokio::test]
async fn links_made_with_a_password_end_with_it() {
    let g = spawn_gateway().await;
    let (gus, hal) = (admin(&g, "gus").await, admin(&g, "hal").await);
    let by_hal = g.service.identity.invite(&hal, &ana()).await.unwrap();
    let reset = g.service.identity.reset_link(&hal, &g.alice.id).await.unwrap();
    let by_gus = g.service.identity.reset_link(&gus, &g.bob.id).await.unwrap();
    g.service.identity.reset_link(&gus, &hal.record.id).await.unwrap();
    for link in [&by_hal, &reset] {
        let used = g.service.identity.choose_password(link, ANOTHER.to_owned(), None).await;
        assert!(matches!(used, Err(Error::NotFound("link"))), "{used:?}");
    }
    g.service.identity.choose_password(&by_gus, ANOTHER.to_owned(), None).await.unwrap();
    let by_gus = g.service.identity.invite(&gus, &ana()).await.unwrap();
    let (me, _) = sign_in(&g, "gus", PASSWORD).await.unwrap();
    assert_eq!(
        g.service.identity.change_password(&me, PASSWORD.to_owned(), ANOTHER.to_owned()).await.unwrap(),
        PasswordChangeOutcome::Yes
    );
    assert!(g.service.identity.choose_password(&by_gus, ANOTHER.to_owned(), None).await.is_err());
    assert_eq!(findings(&g).await, [""; 0]);
}

#[tokio::test]
async fn a_person_changes_the_password_and_ends_sessions_of_their_own_only() {
    let g = spawn_gateway().await;
    let (me, here) = sign_in(&g, "alice", PASSWORD).await.unwrap();
    let (there, elsewhere) = sign_in(&g, "alice", PASSWORD).await.unwrap();
    let (bobs, his) = sign_in(&g, "bob", PASSWORD).await.unwrap();
    let wrong = g.service.identity.change_password(&me, "not the password".to_owned(), ANOTHER.to_owned()).await;
    assert_eq!(wrong.unwrap(), PasswordChangeOutcome::WrongPassword);
    assert_eq!(told(&g, "access.sign_in_failed").await.len(), 1);
    g.service.identity.end_session(&me, &bobs.session.record.id).await.unwrap();
    assert!(g.service.identity.session_of(&his).await.is_ok(), "another's session is not one's own");
    g.service.identity.end_session(&me, &there.session.record.id).await.unwrap();
    assert!(
        g.service.identity.session_of(&elsewhere).await.is_err() && g.service.identity.session_of(&here).await.is_ok()
    );
    let (_, elsewhere) = sign_in(&g, "alice", PASSWORD).await.unwrap();
    assert_eq!(g.service.identity.sessions_of(&g.alice.id).await.unwrap().len(), 2);
    let changed = g.service.identity.change_password(&me, PASSWORD.to_owned(), ANOTHER.to_owned()).await;
    assert_eq!(changed.unwrap(), PasswordChangeOutcome::Yes);
    assert!(
        g.service.identity.session_of(&elsewhere).await.is_err() && g.service.identity.session_of(&here).await.is_ok()
    );
    assert!(sign_in(&g, "alice", PASSWORD).await.is_err());
    sign_in(&g, "alice", ANOTHER).await.unwrap();
    g.service.identity.end_other_sessions(&me).await.unwrap();
    assert_eq!(g.service.identity.sessions_of(&g.alice.id).await.unwrap().len(), 1);
    assert_eq!(findings(&g).await, [""; 0]);
}

#[tokio::test]
async fn account_changed_since_a_halt_does_not_count_for_its_lift() {
    let g = spawn_for_people(PeopleSettings { lift_needs: LiftQuorum::Two, ..people() }).await;
    let (gus, hal) = (admin(&g, "gus").await, admin(&g, "hal").await);
    let halt =
        countersign_domain::operations::halt::Halt { proposing: true, verifying: true, reason: "drill".to_owned() };
    g.service
        .operations
        .request_halt(Actor::Person(&gus), &HaltScope::All, &HaltRequest::Stop(halt.clone()))
        .await
        .unwrap();
    // The administrator who makes the link may open it as well.
    let secret = g.service.identity.reset_link(&gus, &hal.record.id).await.unwrap();
    let (taken, _) = g.service.identity.choose_password(&secret, ANOTHER.to_owned(), None).await.unwrap();
    g.service
        .operations
        .request_halt(Actor::Person(&gus), &HaltScope::All, &HaltRequest::Lift(halt.clone()))
        .await
        .unwrap();
    let second = g
        .service
        .operations
        .request_halt(Actor::Person(&taken.account), &HaltScope::All, &HaltRequest::Lift(halt))
        .await;
    assert!(matches!(second, Err(Error::WrongState(_))), "{second:?}");
}

#[tokio::test]
async fn token_events_name_the_person() {
    let g = spawn_gateway().await;
    let gus = admin(&g, "gus").await;
    let (name, owner, nodes) = ("reader".to_owned(), NewOwner::Existing("gus".to_owned()), BTreeSet::new());
    let new = NewToken { name, role: MachineRole::Auditor, owner, flow: None, nodes };
    let (token, text) = g.service.identity.add_token_by(&gus, &new).await.unwrap();
    g.service.identity.token_of(&text).await.unwrap();
    g.service.identity.revoke_token_by(&gus, &token.id).await.unwrap();
    assert!(g.service.identity.token_of(&text).await.is_err());
    for kind in ["access.token_added", "access.token_revoked"] {
        assert_eq!(told(&g, kind).await.last().unwrap()["by"], gus.record.id.as_str(), "{kind}");
    }
    assert_eq!(findings(&g).await, [""; 0]);
}
