//! The process that stays alive: it starts the gateway, keeps what it acknowledged, and kills it.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use countersign_domain::identity::account::MachineRole;
use countersign_domain::json::size::StateLimits;
use countersign_domain::keys::Keys;
use countersign_domain::primitives::id::PrincipalId;

use countersign_adapters::clock::SystemClock;
use countersign_adapters::keyring::Keyring;
use countersign_service::{PeopleSettings, Service, ServiceSettings};
use countersign_store::Store;
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_store::sqlite::{SqliteOptions, SqliteStore};

use super::ack::KillAcknowledgement;
use super::child::{KillChildConfig, ORDERS};
use super::{gateway, postgres, unsynced};

#[derive(Clone, Debug)]
pub enum KillPoint {
    /// At this point of the commit of this group of changes, counted from 1.
    At(&'static str, u64),
    /// After so many acknowledgements, at any point of a commit.
    After(u64),
}

/// Half at the named points in turn, half at random; how far on is random for both.
pub fn rounds(count: usize) -> Vec<KillPoint> {
    let random = |most: u64| 1 + u64::from_be_bytes(countersign_adapters::random::bytes()) % most;
    let points = ["locked", "written", "committed"];
    let round = |turn: usize| match turn % 2 {
        0 => KillPoint::At(points[turn / 2 % points.len()], random(150)),
        _ => KillPoint::After(20 + random(400)),
    };
    (0..count).map(round).collect()
}

pub fn settings() -> ServiceSettings {
    ServiceSettings {
        limits: StateLimits::default(),
        public_url: "http://localhost:1".to_owned(),
        session_lifetime: Duration::from_secs(3600),
        people: PeopleSettings::default(),
    }
}

pub struct KillTestHome {
    pub database: String,
    folder: tempfile::TempDir,
    orders: KillChildConfig,
    forgetful: bool,
}

impl KillTestHome {
    pub async fn on_sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("countersign.db");
        let store = Arc::new(SqliteStore::open(&database, SqliteOptions::default()).unwrap());
        Self::furnish(folder, database.to_str().unwrap().to_owned(), store).await
    }

    pub async fn on_postgres() -> Self {
        let database = postgres::new_database().await;
        let store = Arc::new(PostgresStore::open(&database, PostgresOptions::default()).await.unwrap());
        Self::furnish(tempfile::tempdir().unwrap(), database, store).await
    }

    async fn furnish(folder: tempfile::TempDir, database: String, store: Arc<dyn Store>) -> Self {
        let path = folder.path().join("keyring.json");
        let keyring = Keyring::open_or_create(&path, Some("urn:test:kills"), &SystemClock).unwrap();
        let service = Service::open(store, keyring, Arc::new(SystemClock), settings()).await.unwrap();
        let by = PrincipalId::try_from("tests").unwrap();
        let policy = gateway::source(&gateway::POLICY.replace("need = 1", "need = 2"));
        service.policy_changes.activate_policy(&by, None, policy, BTreeSet::new()).await.unwrap();
        let orders = KillChildConfig {
            database: database.clone(),
            keyring: path.to_str().unwrap().to_owned(),
            synced: true,
            point: None,
            sends: None,
            host: gateway::token(&service, "host", MachineRole::Host, &[]).await,
            planner: gateway::token(&service, "planner", MachineRole::Agent, &["planner"]).await,
            writer: gateway::token(&service, "writer", MachineRole::Writer, &["database_writer"]).await,
            reviewers: [
                gateway::person(&service, "alice", &["reviewers"]).await.id.to_string(),
                gateway::person(&service, "bob", &["reviewers"]).await.id.to_string(),
            ],
        };
        Self { database, folder, orders, forgetful: false }
    }

    /// Returns the same home, where only synced data survives the process.
    pub fn forgetful(self) -> Self {
        Self { forgetful: true, ..self }
    }

    /// Marks the present database files as synced, with the write-ahead log. No process may have the database open.
    fn begin_synced(&self) {
        if self.synced().exists() {
            fs::remove_dir_all(self.synced()).unwrap();
        }
        fs::create_dir(self.synced()).unwrap();
        for suffix in ["", "-wal"] {
            let there = format!("{}{suffix}", self.database);
            if fs::exists(&there).unwrap() {
                fs::copy(there, self.synced().join(format!("countersign.db{suffix}"))).unwrap();
            }
        }
    }

    /// Returns the same home, where nothing is ever synced.
    pub fn unsynced(mut self) -> Self {
        self.orders.synced = false;
        self
    }

    fn synced(&self) -> PathBuf {
        self.folder.path().join("synced")
    }

    /// Returns the default settings of its gateway.
    pub fn orders(&self) -> KillChildConfig {
        self.orders.clone()
    }

    pub fn keys(&self) -> Arc<Keys> {
        Keyring::open(self.orders.keyring.as_ref(), None).unwrap().current().unwrap()
    }

    /// Runs the gateway until it is killed, and returns its acknowledgements in order.
    pub async fn run(&self, when: &KillPoint) -> Vec<KillAcknowledgement> {
        let mut orders = self.orders.clone();
        if let KillPoint::At(point, count) = when {
            orders.point = Some(((*point).to_owned(), *count));
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["a_child_with_orders_is_busy_until_it_is_killed", "--nocapture", "--test-threads=1"]);
        command.env(ORDERS, serde_json::to_string(&orders).unwrap());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        if self.forgetful {
            self.begin_synced();
            command.env("LD_PRELOAD", unsynced::library()).env("SYNCED_COPIES", self.synced());
        }
        let when = when.clone();
        let killed = tokio::task::spawn_blocking(move || {
            let mut child = command.spawn().unwrap();
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let mut acks = Vec::new();
            let mut reached = false;
            for line in lines {
                let Ok(ack) = serde_json::from_str::<KillAcknowledgement>(&line.unwrap()) else { continue };
                let now = matches!(ack, KillAcknowledgement::AtPoint);
                acks.push(ack);
                if !reached && (now || matches!(when, KillPoint::After(count) if acks.len() as u64 >= count)) {
                    reached = true;
                    // The loop reads on to the end of the pipe, because its lines were acknowledged.
                    child.kill().unwrap();
                }
            }
            child.wait().unwrap();
            (reached, acks)
        });
        let (reached, acks) = killed.await.unwrap();
        assert!(reached, "it ended by itself: {:?}", acks.last());
        acks
    }

    /// Resets the database to its synced files, as after a power failure.
    pub fn lose_what_was_not_synced(&self) {
        for suffix in ["", "-wal", "-shm"] {
            let kept = self.synced().join(format!("countersign.db{suffix}"));
            let there = format!("{}{suffix}", self.database);
            if kept.exists() {
                fs::copy(kept, there).unwrap();
            } else if fs::exists(&there).unwrap() {
                fs::remove_file(there).unwrap();
            }
        }
    }
}
