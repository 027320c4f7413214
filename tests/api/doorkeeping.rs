//! Tests the limits on failed sign-ins, for accounts and addresses, on all gateways and over restarts. Known browsers
//! are never locked out.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use countersign_domain::identity::account::{Account, PersonRole};

use countersign_adapters::clock::SystemClock;
use countersign_adapters::keyring::Keyring;
use countersign_service::error::Error;
use countersign_service::identity::accounts::NewAccount;
use countersign_service::identity::password_sign_in::SignInOrigin;
use countersign_service::{Service, ServiceSettings, Stored};
use countersign_store::sqlite::SqliteStore;
use futures_util::future::join_all;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::gateway::{MovedClock, SIGN_INS, TestGateway, people, settings, spawn_gateway};
use crate::passwords::hashed;
use crate::sqlite::unsynced;

const PASSWORD: &str = "correct horse battery";

fn from(address: &str) -> SignInOrigin {
    SignInOrigin { address: Some(address.to_owned()), ..SignInOrigin::default() }
}

/// Returns the result of an attempt: in, wrong, or wait.
async fn tries(service: &Service, name: &str, password: &str, from: &SignInOrigin) -> &'static str {
    match service.identity.sign_in_throttled(name, password.to_owned(), from).await {
        Ok(_) => "in",
        Err(Error::Unauthenticated) => "wrong",
        Err(Error::TooMany) => "wait",
        Err(other) => panic!("{other:?}"),
    }
}

async fn admin(g: &TestGateway) -> Stored<Account> {
    let new = NewAccount { name: "gus".to_owned(), role: PersonRole::Admin, groups: Default::default() };
    let account = g.service.identity.add_account_hashed(&new, &hashed(PASSWORD).await).await.unwrap();
    g.service.identity.account_row(&account.id).await.unwrap()
}

async fn told(g: &TestGateway, kind: &str) -> Vec<Value> {
    while g.service.log.sequence().await.unwrap() > 0 {}
    let (placed, _) = g.service.log.events_after(0, None, 1000).await.unwrap();
    let events = placed.into_iter().map(|it| serde_json::to_value(it.event).unwrap());
    events.filter(|it| it["type"] == kind).map(|it| it["data"].clone()).collect()
}

/// Fails at an account from another address each time until the next attempt must wait.
async fn slowed(g: &TestGateway, name: &str) {
    for at in 0..SIGN_INS {
        assert_eq!(tries(&g.service, name, "not the one", &from(&format!("203.0.113.{at}"))).await, "wrong");
    }
    assert_eq!(tries(&g.service, name, "not the one", &from("203.0.113.99")).await, "wait");
}

#[tokio::test]
async fn known_browser_signs_in_while_other_clients_wait() {
    let g = spawn_gateway().await;
    slowed(&g, "alice").await;
    assert_eq!(
        tries(&g.service, "alice", PASSWORD, &from("198.51.100.1")).await,
        "wait",
        "a stranger with the password"
    );
    let device = g.service.identity.device_of(&g.alice).unwrap();
    let known = SignInOrigin { device: Some(device.clone()), ..from("203.0.113.1") };
    assert_eq!(tries(&g.service, "alice", PASSWORD, &known).await, "in");
    assert_eq!(tries(&g.service, "alice", PASSWORD, &from("198.51.100.1")).await, "wait", "strangers still do");
    let mut forged = device.clone().into_bytes();
    forged[0] = if forged[0] == b'A' { b'B' } else { b'A' };
    let theirs = g.service.identity.device_of(&g.bob).unwrap();
    for device in [String::from_utf8(forged).unwrap(), theirs, String::new(), "x".to_owned(), device[..40].to_owned()] {
        let other = SignInOrigin { device: Some(device), ..from("198.51.100.1") };
        assert_eq!(tries(&g.service, "alice", PASSWORD, &other).await, "wait");
    }
    // A known browser has a limit too, of its own.
    for _ in 0..SIGN_INS {
        assert_eq!(tries(&g.service, "alice", "not the one", &known).await, "wrong");
    }
    assert_eq!(tries(&g.service, "alice", PASSWORD, &known).await, "wait");
    g.pass(countersign_service::identity::password_sign_in::DEVICE_TTL);
    assert_eq!(tries(&g.service, "alice", PASSWORD, &known).await, "in", "as anybody: nothing counts any more");
}

#[tokio::test]
async fn backoff_of_sign_ins_grows_to_a_limit_on_all_gateways() {
    let g = spawn_gateway().await;
    slowed(&g, "alice").await;
    let options = unsynced(&g.clock);
    let store = Arc::new(SqliteStore::open(g.folder.path().join("countersign.db"), options).unwrap());
    let keyring = Keyring::open_or_create(&g.folder.path().join("keyring.json"), None, &SystemClock).unwrap();
    let settings = ServiceSettings { people: people(), ..settings(&g.url) };
    let other = Service::open(store, keyring, Arc::new(MovedClock(g.clock.clone())), settings).await.unwrap();
    assert_eq!(tries(&other, "alice", PASSWORD, &from("198.51.100.1")).await, "wait");
    const NEARLY: u64 = 20;
    for wait in [60, 120, 240, 300, 300] {
        g.pass(Duration::from_secs(wait - NEARLY));
        assert_eq!(tries(&other, "alice", PASSWORD, &from("198.51.100.1")).await, "wait", "{wait}");
        g.pass(Duration::from_secs(NEARLY + 2));
        assert_eq!(tries(&g.service, "alice", "not the one", &from("198.51.100.2")).await, "wrong", "{wait}");
    }
    g.pass(Duration::from_secs(301));
    assert_eq!(tries(&other, "alice", PASSWORD, &from("198.51.100.1")).await, "in", "nobody is locked out for good");
    let slowed = told(&g, "access.sign_in_slowed").await;
    assert_eq!(slowed.len(), 6, "the first, and each that made it longer");
    assert!(slowed.iter().all(|it| it["account"] == g.alice.id.as_str() && it["until"].is_string()), "{slowed:?}");
}

#[tokio::test]
async fn unlock_by_an_administrator_is_logged() {
    let g = spawn_gateway().await;
    let gus = admin(&g).await;
    slowed(&g, "alice").await;
    assert!(g.service.identity.throttled_until(&g.alice).await.unwrap().is_some());
    g.service.identity.unlock(&gus, &g.alice.id).await.unwrap();
    assert_eq!(g.service.identity.throttled_until(&g.alice).await.unwrap(), None);
    assert_eq!(tries(&g.service, "alice", PASSWORD, &from("198.51.100.1")).await, "in");
    assert_eq!(told(&g, "access.unlocked").await[0]["by"], gus.record.id.as_str());
}

#[tokio::test]
async fn unknown_names_are_slowed_like_existing_names() {
    let g = spawn_gateway().await;
    slowed(&g, "nobody-is-called-so").await;
    slowed(&g, "alice").await;
}

/// Returns the counters of attempts in the database.
fn counters(g: &TestGateway) -> BTreeSet<String> {
    let database = rusqlite::Connection::open(g.folder.path().join("countersign.db")).unwrap();
    let mut counters = database.prepare("SELECT id FROM tries").unwrap();
    let ids = counters.query_map([], |row| row.get(0)).unwrap();
    ids.map(Result::unwrap).collect()
}

/// If an account had its own counter, attempts at other names would never slow it. Every unknown name would be slowed.
/// An attacker who fills the shared counters could read from the refusals which names exist.
#[tokio::test]
async fn a_counter_does_not_show_whether_a_name_exists() {
    let g = spawn_gateway().await;
    let shared = |it: &String| it.strip_prefix("name/~").is_some_and(|number| number.parse::<u32>().is_ok());
    for name in ["alice", "nobody-is-called-so"] {
        let before = counters(&g);
        tries(&g.service, name, "not the one", &SignInOrigin::default()).await;
        let new: Vec<String> = counters(&g).difference(&before).cloned().collect();
        assert!(new.len() == 1 && new.iter().all(shared), "{name}: {new:?}");
    }
}

#[tokio::test]
async fn names_that_share_an_unkeyed_hash_share_no_counter() {
    let g = spawn_gateway().await;
    let unkeyed = |name: &str| {
        let hash = Sha256::digest(name.as_bytes());
        u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]) % 65_536
    };
    let alike = (0..).map(|at| format!("name-{at}")).find(|it| unkeyed(it) == unkeyed("nobody")).unwrap();
    slowed(&g, &alike).await;
    assert_eq!(tries(&g.service, "nobody", "not the one", &from("198.51.100.1")).await, "wrong");
}

/// An attacker who fails at a name sees no difference when its owner signs in from a new browser.
#[tokio::test]
async fn a_sign_in_does_not_reset_the_counter_of_its_name() {
    let g = spawn_gateway().await;
    for at in 0..SIGN_INS - 1 {
        assert_eq!(tries(&g.service, "alice", "not the one", &from(&format!("203.0.113.{at}"))).await, "wrong");
    }
    assert_eq!(tries(&g.service, "alice", PASSWORD, &from("198.51.100.1")).await, "in");
    assert_eq!(tries(&g.service, "alice", "not the one", &from("203.0.113.98")).await, "wrong");
    assert_eq!(tries(&g.service, "alice", "not the one", &from("203.0.113.99")).await, "wait");
}

#[tokio::test]
async fn concurrent_attempts_count_separately() {
    let g = spawn_gateway().await;
    let all = (0..4 * SIGN_INS).map(|at| {
        let service = Arc::clone(&g.service);
        async move {
            service
                .identity
                .sign_in_throttled("alice", "not the one".to_owned(), &from(&format!("203.0.113.{at}")))
                .await
        }
    });
    let answers = join_all(all).await;
    let looked = answers.iter().filter(|it| matches!(it, Err(Error::Unauthenticated))).count();
    assert!(looked <= SIGN_INS as usize, "{looked} passwords were looked at");
}

#[tokio::test]
async fn flood_of_failed_sign_ins_is_logged_as_a_count() {
    const FLOOD: u32 = 80;
    let g = spawn_gateway().await;
    for at in 0..FLOOD {
        let answer = tries(&g.service, &format!("name-{at}"), "not the one", &from(&format!("203.0.{at}.1"))).await;
        assert_eq!(answer, "wrong");
    }
    let one_by_one = told(&g, "access.sign_in_failed").await.len();
    assert!((60..FLOOD as usize).contains(&one_by_one), "{one_by_one}");
    g.pass(Duration::from_secs(60));
    tries(&g.service, "bob", "not the one", &from("198.51.100.1")).await;
    let events = told(&g, "access.sign_in_failed").await;
    let untold: u64 = events.iter().filter_map(|it| it["untold"].as_u64()).sum();
    assert_eq!(events.len() as u64 + untold, u64::from(FLOOD) + 1, "none is lost");
}

#[tokio::test]
async fn last_use_of_a_token_is_written_once_every_few_minutes() {
    let g = spawn_gateway().await;
    let id = format!("token/{}", g.writer.strip_prefix("cs_").unwrap().split('_').next().unwrap());
    let ids = [id.clone()];
    assert!(g.service.identity.last_seen(&ids).await.unwrap().is_empty());
    g.get("/v1/threads/none", &g.writer).await;
    assert!(g.service.identity.last_seen(&ids).await.unwrap().contains_key(&id));
    assert!(g.service.identity.flush_last_seen().await.unwrap() > 0);
    g.get("/v1/threads/none", &g.writer).await;
    assert_eq!(g.service.identity.flush_last_seen().await.unwrap(), 0, "it is written already, nearly");
    let before = g.service.identity.last_seen(&ids).await.unwrap()[&id];
    g.pass(countersign_service::identity::last_seen_times::GRAIN);
    g.get("/v1/threads/none", &g.writer).await;
    assert_eq!(g.service.identity.flush_last_seen().await.unwrap(), 1);
    assert!(g.service.identity.last_seen(&ids).await.unwrap()[&id] > before);
    // A refused client is not recorded as seen.
    let stranger = [format!("token/{}", "x".repeat(32))];
    g.get("/v1/threads/none", &format!("cs_{}_secret", "x".repeat(32))).await;
    assert!(g.service.identity.last_seen(&stranger).await.unwrap().is_empty());
}

/// An attacker who had the password may have signed in with any number of browsers.
#[tokio::test]
async fn new_password_resets_known_browsers() {
    const ANOTHER: &str = "battery horse correct";
    let g = spawn_gateway().await;
    let (me, _) = g.service.identity.sign_in("alice", PASSWORD.to_owned()).await.unwrap();
    let device = g.service.identity.device_of(&me.account.record).unwrap();
    g.service.identity.change_password(&me, PASSWORD.to_owned(), ANOTHER.to_owned()).await.unwrap();
    let now = g.service.identity.account_row(&g.alice.id).await.unwrap().record;
    slowed(&g, "alice").await;
    let since = SignInOrigin { device: Some(g.service.identity.device_of(&now).unwrap()), ..from("203.0.113.1") };
    assert_eq!(tries(&g.service, "alice", ANOTHER, &since).await, "in");
    let before = SignInOrigin { device: Some(device), ..from("198.51.100.1") };
    assert_eq!(tries(&g.service, "alice", ANOTHER, &before).await, "wait");
}
