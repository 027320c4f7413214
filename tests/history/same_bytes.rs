//! The same inputs lead to the same bytes on SQLite and on PostgreSQL: entries, statements and states.
//!
//! Keys, ids and times are part of the inputs, and a gateway draws random ids. So one gateway makes one history on both
//! databases at once. Each change goes to both. Each read goes to both and must return the same rows with the same
//! seals. Afterwards a gateway on each database alone must return the same content.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use countersign_domain::json::canonical::canonical;
use countersign_domain::primitives::id::NodeId;
use countersign_domain::primitives::time::Timestamp;

use async_trait::async_trait;
use countersign_adapters::clock::SystemClock;
use countersign_service::Service;
use countersign_service::audit::audit_with;
use countersign_store::change::ChangeSet;
use countersign_store::label::{Label, LabelledRow};
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_store::row::{SealedRow, Table};
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use countersign_store::{
    Cursor, Direction, LIST_ROWS_MAX, LeaderLock, LeaderTask, RowFilter, ScanPage, Store, StoreError,
};
use serde::Serialize;
use serde_json::json;
use tokio::sync::RwLock;

use crate::lived::{self, live_through, make, propose, thread};
use crate::postgres;

/// Both databases as one. Nothing is read between the two halves of a change.
struct MirroredStore {
    sqlite: Arc<dyn Store>,
    postgres: Arc<dyn Store>,
    changing: RwLock<()>,
}

fn agreed<T: PartialEq + std::fmt::Debug>(
    one: Result<T, StoreError>,
    other: Result<T, StoreError>,
) -> Result<T, StoreError> {
    assert_eq!(format!("{:?}", one.as_ref().err()), format!("{:?}", other.as_ref().err()));
    if let (Ok(one), Ok(other)) = (&one, &other) {
        assert_eq!(one, other);
    }
    other
}

fn by_id(rows: Result<Vec<SealedRow>, StoreError>) -> Result<Vec<SealedRow>, StoreError> {
    rows.map(|mut rows| {
        rows.sort_by(|one, other| one.id.cmp(&other.id));
        rows
    })
}

#[async_trait]
impl Store for MirroredStore {
    async fn commit(&self, change: ChangeSet) -> Result<(), StoreError> {
        let _alone = self.changing.write().await;
        agreed(self.sqlite.commit(change.clone()).await, self.postgres.commit(change).await)
    }

    async fn get(&self, table: Table, id: &str) -> Result<Option<SealedRow>, StoreError> {
        let _still = self.changing.read().await;
        agreed(self.sqlite.get(table, id).await, self.postgres.get(table, id).await)
    }

    async fn get_by_alias(&self, table: Table, alias: &str) -> Result<Option<SealedRow>, StoreError> {
        let _still = self.changing.read().await;
        agreed(self.sqlite.get_by_alias(table, alias).await, self.postgres.get_by_alias(table, alias).await)
    }

    async fn get_many(&self, table: Table, ids: &[String]) -> Result<Vec<SealedRow>, StoreError> {
        let _still = self.changing.read().await;
        agreed(by_id(self.sqlite.get_many(table, ids).await), by_id(self.postgres.get_many(table, ids).await))
    }

    async fn list(
        &self,
        table: Table,
        filter: RowFilter<'_>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<SealedRow>, StoreError> {
        let _still = self.changing.read().await;
        let sqlite = self.sqlite.list(table, filter, after, limit).await;
        agreed(sqlite, self.postgres.list(table, filter, after, limit).await)
    }

    async fn labelled(
        &self,
        table: Table,
        word: &str,
        direction: Direction,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<LabelledRow>, StoreError> {
        let _still = self.changing.read().await;
        let sqlite = self.sqlite.labelled(table, word, direction, after, limit).await;
        agreed(sqlite, self.postgres.labelled(table, word, direction, after, limit).await)
    }

    async fn labels(&self, after: Option<&Label>, limit: u32) -> Result<Vec<Label>, StoreError> {
        let _still = self.changing.read().await;
        agreed(self.sqlite.labels(after, limit).await, self.postgres.labels(after, limit).await)
    }

    async fn walk(&self, meet: &mut (dyn FnMut(ScanPage) + Send)) -> Result<(), StoreError> {
        let _still = self.changing.read().await;
        self.sqlite.walk(meet).await
    }

    async fn by_alias_prefix(&self, table: Table, prefix: &str, limit: u32) -> Result<Vec<SealedRow>, StoreError> {
        let _still = self.changing.read().await;
        let sqlite = self.sqlite.by_alias_prefix(table, prefix, limit).await;
        agreed(sqlite, self.postgres.by_alias_prefix(table, prefix, limit).await)
    }

    async fn last_of(&self, table: Table, owner: &str) -> Result<Option<SealedRow>, StoreError> {
        let _still = self.changing.read().await;
        agreed(self.sqlite.last_of(table, owner).await, self.postgres.last_of(table, owner).await)
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.sqlite.now().await
    }

    async fn take(&self, duty: LeaderTask) -> Result<Option<Box<dyn LeaderLock>>, StoreError> {
        self.sqlite.take(duty).await
    }

    fn queued(&self) -> usize {
        self.sqlite.queued()
    }
    async fn changed(&self, patience: Duration) {
        self.sqlite.changed(patience).await;
    }
}

/// A gateway with the keys in the folder.
async fn gateway(folder: &Path, store: Arc<dyn Store>) -> Service {
    lived::service_on(folder, store, Arc::new(SystemClock)).await
}

fn bytes(of: &impl Serialize) -> String {
    serde_json::to_string(of).unwrap()
}

/// Returns everything that the gateway has about a thread: each entry, statement and opening, and the states as the
/// writer reads them.
async fn told(service: &Service, name: &str) -> Vec<String> {
    let mut told = Vec::new();
    let writer = NodeId::try_from("database_writer").unwrap();
    for (row, transition) in service.reviews.chain(&thread(name), 0, LIST_ROWS_MAX).await.unwrap() {
        let opening = service.reviews.opening(transition.digest).await.unwrap();
        let view = service.threads.state_view(&thread(name), &writer, Some(row.version)).await.unwrap();
        told.extend([row.entry, transition.statement.canonical(), bytes(&opening), canonical(&view.state)]);
    }
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_inputs_come_to_the_same_bytes_on_both_databases() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite: Arc<dyn Store> =
        Arc::new(SqliteStore::open(folder.path().join("countersign.db"), SqliteOptions::default()).unwrap());
    let url = postgres::new_database().await;
    let postgres: Arc<dyn Store> = Arc::new(PostgresStore::open(&url, PostgresOptions::default()).await.unwrap());
    let both =
        MirroredStore { sqlite: Arc::clone(&sqlite), postgres: Arc::clone(&postgres), changing: RwLock::new(()) };
    let service = gateway(folder.path(), Arc::new(both)).await;
    let (cast, _) = live_through(&service).await;
    make(&service, &cast.host, "odd").await;
    for text in ["a zero: \0", "e\u{301} is not \u{e9}", "\u{2028} 😀 \u{fb33} \\ \" \u{7f}", ""] {
        propose(&service, &cast.agent, "odd", "input_parser", json!({"raw_text": text})).await;
    }

    for table in Table::ALL {
        let whole =
            async |store: &Arc<dyn Store>| store.list(*table, RowFilter::All, None, LIST_ROWS_MAX).await.unwrap();
        let (one, other) = (whole(&sqlite).await, whole(&postgres).await);
        assert!(one.len() < LIST_ROWS_MAX as usize && one == other, "{table:?}");
        assert!(!one.is_empty() || matches!(table, Table::Outbox), "the history has nothing of {table:?}");
    }
    let on_sqlite = gateway(folder.path(), sqlite.clone()).await;
    let on_postgres = gateway(folder.path(), postgres.clone()).await;
    for (name, versions) in [
        ("round", 5),
        ("writes", 1),
        ("revoked", 2),
        ("waiting", 1),
        ("ready", 2),
        ("rewritten", 2),
        ("odd", 5),
        ("long", 17),
    ] {
        let told_there = told(&on_sqlite, name).await;
        assert_eq!(told_there.len(), versions * 4, "{name}");
        assert_eq!(told_there, told(&on_postgres, name).await);
    }
    for (store, service) in [(&sqlite, &on_sqlite), (&postgres, &on_postgres)] {
        let (keys, archives) = (service.core.keys().unwrap(), lived::archives::in_folder(folder.path()));
        let report = audit_with(&**store, Some(&archives), &keys, service.core.now()).await.unwrap();
        assert_eq!(report.findings, []);
    }
}
