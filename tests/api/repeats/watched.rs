//! A store that records the tables of each change, and that can fail or delay the next one.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use countersign_adapters::clock::ClockOffset;
use countersign_adapters::keyring::Keyring;
use countersign_service::Service;
use countersign_store::change::{ChangeSet, RowWrite};
use countersign_store::postgres::PostgresStore;
use countersign_store::row::Table;
use countersign_store::sqlite::SqliteStore;
use countersign_store::{Store, StoreError};
use countersign_web::client_ip::TrustedProxies;
use countersign_web::server::serve;
use countersign_web::state::AppState;
use tokio::sync::Notify;

use crate::gateway::{MovedClock, TestGateway, edge, settings, spawn_on};
use crate::over::{InterceptedStore, StoreInterceptor};
use crate::sqlite::unsynced;

/// The fault of the next change that stores an answer.
pub enum InjectedFault {
    /// The process ends, or its connection, before anything is written.
    Before,
    /// The process ends after everything is written, and does not learn of it.
    After,
    /// The change waits until it is released. The first signal reports that it has arrived.
    Tarries(Arc<Notify>, Arc<Notify>),
}

type NotingStore = InterceptedStore<ChangeRecorder>;

#[derive(Default)]
pub struct ChangeRecorder {
    changes: Mutex<Vec<Vec<Table>>>,
    mishap: Mutex<Option<InjectedFault>>,
}

/// A gateway on a store with an interceptor.
pub struct IdempotencyScenario {
    pub gateway: TestGateway,
    pub store: Arc<NotingStore>,
}

impl IdempotencyScenario {
    pub async fn on_sqlite(policy: &str) -> Self {
        let (folder, clock) = (tempfile::tempdir().unwrap(), ClockOffset::default());
        let options = unsynced(&clock);
        let store = SqliteStore::open(folder.path().join("countersign.db"), options).unwrap();
        Self::on(folder, clock, Arc::new(store), policy).await
    }

    pub async fn on_postgres(policy: &str) -> Self {
        let clock = ClockOffset::default();
        let options = crate::up_to_date::patient(&clock);
        let store = PostgresStore::open(&crate::up_to_date::database().await, options).await.unwrap();
        Self::on(tempfile::tempdir().unwrap(), clock, Arc::new(store), policy).await
    }

    async fn on(folder: tempfile::TempDir, clock: ClockOffset, inner: Arc<dyn Store>, policy: &str) -> Self {
        let store = InterceptedStore::new(inner, ChangeRecorder::default());
        let kept: Arc<dyn Store> = Arc::<NotingStore>::clone(&store);
        Self { gateway: spawn_on(folder, clock, kept, policy).await, store }
    }
}

impl IdempotencyScenario {
    /// Returns the address of another gateway on the same database.
    pub async fn another(&self) -> String {
        let g = &self.gateway;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://localhost:{}", listener.local_addr().unwrap().port());
        let keyring = Keyring::open(&g.folder.path().join("keyring.json"), None).unwrap();
        let kept: Arc<dyn Store> = Arc::<NotingStore>::clone(&self.store);
        let clock = Arc::new(MovedClock(g.clock.clone()));
        let service = Arc::new(Service::open(kept, keyring, clock, settings(&g.url)).await.unwrap());
        let app = AppState::new(service, Arc::new(edge(&url, TrustedProxies::default())));
        tokio::spawn(serve(app, listener, 1, Duration::from_secs(1)).unwrap());
        url
    }
}

impl ChangeRecorder {
    pub fn expect(&self, mishap: InjectedFault) {
        *self.mishap.lock().unwrap() = Some(mishap);
    }

    /// Returns the tables of each change since the last call.
    pub fn changes(&self) -> Vec<Vec<Table>> {
        std::mem::take(&mut self.changes.lock().unwrap())
    }

    fn note(&self, change: &ChangeSet) -> Option<InjectedFault> {
        let table = |write: &RowWrite| match write {
            RowWrite::Insert(row) | RowWrite::Replace { row, .. } => row.table,
            RowWrite::Remove { table, .. } => *table,
        };
        let tables: Vec<Table> = change.writes.iter().map(table).collect();
        let keeps = tables.contains(&Table::Answers);
        self.changes.lock().unwrap().push(tables);
        if keeps { self.mishap.lock().unwrap().take() } else { None }
    }
}

#[async_trait]
impl StoreInterceptor for ChangeRecorder {
    async fn commit(&self, inner: &dyn Store, change: ChangeSet) -> Result<(), StoreError> {
        let lost = || StoreError::Database("the connection is gone".to_owned());
        match self.note(&change) {
            Some(InjectedFault::Before) => return Err(lost()),
            Some(InjectedFault::After) => return inner.commit(change).await.and(Err(lost())),
            Some(InjectedFault::Tarries(here, go_on)) => {
                here.notify_one();
                go_on.notified().await;
            }
            None => {}
        }
        inner.commit(change).await
    }
}
