//! Two gateways on one database. One of them has cached everything that `verify` needs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use countersign_domain::chain::denial::DenialCode;
use countersign_domain::policy::StateLimits;
use countersign_domain::primitives::id::Jti;
use countersign_domain::reviews::VoteVerdict;

use countersign_adapters::clock::{ClockOffset, SystemClock};
use countersign_adapters::keyring::Keyring;
use countersign_service::error::Error;
use countersign_service::writes::verify::peek_receipt;
use countersign_service::{PeopleSettings, Service, ServiceSettings};
use countersign_store::Store;
use countersign_store::postgres::PostgresStore;
use countersign_store::sqlite::SqliteStore;
use rusqlite::Connection;
use serde_json::json;

use crate::lived::{ApprovedWrite, HistoryActors, TestClock, ask, ballot, cast, held, make, propose, receipt_of};
use crate::sqlite::unsynced;
use crate::{postgres, up_to_date};

#[derive(Clone, Copy)]
pub enum DatabaseKind {
    Sqlite,
    Postgres,
}

/// The database that both gateways are on.
enum SharedDatabase {
    File(PathBuf),
    Address(String),
}

impl SharedDatabase {
    async fn store(&self, clock_offset: ClockOffset) -> Arc<dyn Store> {
        match self {
            Self::File(path) => {
                let options = unsynced(&clock_offset);
                Arc::new(SqliteStore::open(path, options).unwrap())
            }
            Self::Address(url) => Arc::new(PostgresStore::open(url, up_to_date::patient(&clock_offset)).await.unwrap()),
        }
    }
}

/// A gateway with the keys in the folder.
async fn gateway(folder: &Path, store: Arc<dyn Store>, clock: TestClock) -> Service {
    let keyring = Keyring::open_or_create(&folder.join("keyring.json"), None, &SystemClock).unwrap();
    let settings = ServiceSettings {
        limits: StateLimits::default(),
        public_url: "http://localhost:1".to_owned(),
        session_lifetime: Duration::from_secs(3600),
        people: PeopleSettings::default(),
    };
    Service::open(store, keyring, Arc::new(clock), settings).await.unwrap()
}

/// A gateway that has cached everything that `verify` needs for the head, and another on the same database.
pub struct GatewayPair {
    pub folder: tempfile::TempDir,
    place: SharedDatabase,
    /// The gateways' clock, and the database's.
    pub clock: TestClock,
    pub databases_clock: ClockOffset,
    pub warm: Service,
    pub other: Service,
    pub cast: HistoryActors,
    pub ready: ApprovedWrite,
    pub receipt: Jti,
}

impl GatewayPair {
    pub async fn open(kind: DatabaseKind) -> Self {
        Self::open_after(kind, |_| ()).await
    }

    /// Something is done to the keyring between the head's parent and the head.
    pub async fn open_after(kind: DatabaseKind, between: impl Fn(&Keyring)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = match kind {
            DatabaseKind::Sqlite => SharedDatabase::File(folder.path().join("countersign.db")),
            DatabaseKind::Postgres => SharedDatabase::Address(up_to_date::database().await),
        };
        let (clock, databases_clock) = (TestClock::default(), ClockOffset::default());
        let warm = gateway(folder.path(), place.store(databases_clock.clone()).await, clock.clone()).await;
        let cast = cast(&warm).await;
        make(&warm, &cast.host, "ready").await;
        between(&Keyring::open(&folder.path().join("keyring.json"), None).unwrap());
        let asked = propose(&warm, &cast.agent, "ready", "planner", json!({"target_user_id": 42})).await;
        let (transition, review) = held(&asked);
        warm.reviews.vote(&cast.ada, &review, &ballot(transition, 0, VoteVerdict::Approve), None).await.unwrap();
        let ready =
            ApprovedWrite { thread: "ready", transition, receipt: receipt_of(&warm, transition).await.unwrap() };
        let other = gateway(folder.path(), place.store(databases_clock.clone()).await, clock.clone()).await;
        // A refusal is always worked out from what is stored, and remembered.
        let no_receipt = warm.writes.verify(&cast.writer, &ask(ready.thread, transition, None, "w-none")).await;
        assert!(matches!(no_receipt, Err(Error::Denied(DenialCode::ReceiptMissing))), "{no_receipt:?}");
        let receipt = peek_receipt(&ready.receipt).unwrap().jti;
        Self { folder, place, clock, databases_clock, warm, other, cast, ready, receipt }
    }

    pub async fn run(&self, sql: &str) -> u64 {
        match &self.place {
            SharedDatabase::File(path) => Connection::open(path).unwrap().execute(sql, []).unwrap() as u64,
            SharedDatabase::Address(url) => postgres::connect(url).await.execute(sql, &[]).await.unwrap(),
        }
    }

    pub async fn edit(&self, sql: &str) {
        assert!(self.run(sql).await > 0, "{sql}");
    }

    pub fn no_seal(&self) -> String {
        let zeros = "00".repeat(32);
        match self.place {
            SharedDatabase::File(_) => format!("x'{zeros}'"),
            SharedDatabase::Address(_) => format!("'\\x{zeros}'::bytea"),
        }
    }

    /// Puts the thread's row back to what it was before `between`.
    pub async fn put_back_after(&self, between: impl Future<Output = Result<(), String>>) {
        let columns = "id, alias, owner, state, due, revision, body, key_id, mac";
        self.run(&format!("CREATE TABLE kept AS SELECT {columns} FROM threads WHERE id = 'ready'")).await;
        assert_eq!(between.await, Ok(()));
        self.edit("DELETE FROM threads WHERE id = 'ready'").await;
        self.edit(&format!("INSERT INTO threads ({columns}) SELECT {columns} FROM kept")).await;
    }

    pub async fn asked(&self, of: &Service, receipt: &str, write_id: &str) -> Result<(), String> {
        let ask = ask(self.ready.thread, self.ready.transition, Some(receipt.to_owned()), write_id);
        told(of.writes.verify(&self.cast.writer, &ask).await.map(drop))
    }

    pub async fn verified_as(&self, write_id: &str) -> Result<(), String> {
        self.asked(&self.warm, &self.ready.receipt, write_id).await
    }

    pub async fn verified(&self) -> Result<(), String> {
        self.verified_as("w-warm").await
    }

    pub async fn verified_by_the_other(&self) -> Result<(), String> {
        self.asked(&self.other, &self.ready.receipt, "w-other").await
    }
}

pub fn told(outcome: Result<(), Error>) -> Result<(), String> {
    outcome.map_err(|error| match error {
        Error::Denied(code) => DenialCode::as_str(code).to_owned(),
        other => other.to_string(),
    })
}

pub fn refused(code: &str) -> Result<(), String> {
    Err(code.to_owned())
}
