//! Kills the gateway with SIGKILL while it is busy. Every acknowledged change must survive.
//!
//! This binary runs itself again as the gateway that is killed ([`child`]). The process that you started stays alive,
//! stores every acknowledgement from the pipe, and checks the remaining rows ([`left`]). `TEST_KILLS=200` kills that
//! many times, half of them on each database. The default is 20. A further run on SQLite discards all data that was not
//! synced when the process died, as after a power failure.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "../support/description.rs"]
mod description;
#[expect(dead_code, reason = "what has no HTTP uses a part")]
#[path = "../support/gateway.rs"]
mod gateway;
#[path = "../support/passwords.rs"]
mod passwords;
#[path = "../support/postgres.rs"]
mod postgres;
#[path = "../support/sqlite.rs"]
mod sqlite;

mod ack;
mod archiving;
mod child;
mod guarded;
mod left;
mod parent;
mod receivers;
mod sending;
mod unsynced;

use countersign_store::Store;
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_store::sqlite::{SqliteOptions, SqliteStore};

use ack::KillAcknowledgement;
use parent::{KillPoint, KillTestHome, rounds};

/// A database is killed this often before a new one takes its place: looking at all that is left takes longer each time.
const KILLS_A_DATABASE: usize = 10;

/// How often each database is killed.
fn kills() -> usize {
    let all: usize = std::env::var("TEST_KILLS").map_or(20, |it| it.parse().expect("TEST_KILLS is a number"));
    all.div_ceil(2)
}

async fn open_sqlite(house: &KillTestHome) -> Box<dyn Store> {
    Box::new(SqliteStore::open(&house.database, SqliteOptions::default()).unwrap())
}

async fn open_postgres(house: &KillTestHome) -> Box<dyn Store> {
    Box::new(PostgresStore::open(&house.database, PostgresOptions::default()).await.unwrap())
}

/// Kills the gateway of a test home repeatedly, and checks the database after each kill.
async fn kill(house: &KillTestHome, open: impl AsyncFn(&KillTestHome) -> Box<dyn Store>, kills: usize) {
    let mut acks: Vec<KillAcknowledgement> = Vec::new();
    for when in rounds(kills) {
        acks.extend(house.run(&when).await);
        let store = open(house).await;
        let wrong = left::look(&*store, &house.keys(), &acks).await;
        assert!(wrong.is_empty(), "killed {when:?}, after {} acknowledgements:\n{}", acks.len(), wrong.join("\n"));
    }
    let decided = acks.iter().filter(|it| matches!(it, KillAcknowledgement::Approved { .. })).count();
    let confirmed = acks.iter().filter(|it| matches!(it, KillAcknowledgement::Confirmed { .. })).count();
    assert!(decided > 0 && confirmed > 0, "it was not busy: {decided} approved, {confirmed} confirmed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_on_sqlite_it_keeps_every_acknowledgement_and_no_half_decision() {
    let mut to_do = kills();
    while to_do > 0 {
        let now = to_do.min(KILLS_A_DATABASE);
        kill(&KillTestHome::on_sqlite().await, open_sqlite, now).await;
        to_do -= now;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_on_postgres_it_keeps_every_acknowledgement_and_no_half_decision() {
    let mut to_do = kills();
    while to_do > 0 {
        let now = to_do.min(KILLS_A_DATABASE);
        kill(&KillTestHome::on_postgres().await, open_postgres, now).await;
        to_do -= now;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_on_sqlite_was_synced() {
    let house = KillTestHome::on_sqlite().await.forgetful();
    let mut acks: Vec<KillAcknowledgement> = Vec::new();
    for when in rounds(4) {
        acks.extend(house.run(&when).await);
        house.lose_what_was_not_synced();
        let wrong = left::look(&*open_sqlite(&house).await, &house.keys(), &acks).await;
        assert!(
            wrong.is_empty(),
            "the power failed {when:?}, after {} acknowledgements:\n{}",
            acks.len(),
            wrong.join("\n")
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_syncs_the_same_run_is_seen_to_lose_what_it_acknowledged() {
    let house = KillTestHome::on_sqlite().await.forgetful().unsynced();
    let acks = house.run(&KillPoint::After(200)).await;
    house.lose_what_was_not_synced();
    let wrong = left::look(&*open_sqlite(&house).await, &house.keys(), &acks).await;
    assert!(wrong.iter().any(|it| it.starts_with("lost: ")), "{} acknowledgements: {wrong:?}", acks.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acknowledgement_of_what_never_was_is_found_to_be_lost() {
    let house = KillTestHome::on_sqlite().await;
    let mut acks = house.run(&KillPoint::After(50)).await;
    let (thread, transition) = ("no-such-thread".to_owned(), "sha256:0".to_owned());
    acks.push(KillAcknowledgement::Committed { thread, version: 1, transition });
    let wrong = left::look(&*open_sqlite(&house).await, &house.keys(), &acks).await;
    assert_eq!(wrong.len(), 1, "{wrong:?}");
}
