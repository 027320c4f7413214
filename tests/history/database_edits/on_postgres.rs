//! The same on PostgreSQL, with the same outcomes: every table × every column updated, a row inserted, a row deleted;
//! and every edit of a label. One history is edited where it lies, and each edit is undone before the next.

use std::collections::BTreeSet;
use std::sync::Arc;

use countersign_domain::keys::Keys;

use countersign_adapters::archives::Archives;
use countersign_adapters::clock::{Clock as _, SystemClock};
use countersign_adapters::keyring::Keyring;
use countersign_service::audit::audit_with;
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_store::row::Table;
use tempfile::TempDir;
use tokio_postgres::Client;

use super::{
    COLUMNS, EditOutcome, LABEL_COLUMNS, TABLES, UNSEALED, expect, expected_tables, inserted, label_edits, updated,
};
use crate::full::is_full;
use crate::lived::{self, live_through};
use crate::{postgres, up_to_date};

/// Each deleted row and each edited label costs an audit, so only one of so many is tried by default. On SQLite all of
/// them are. The audit reads both databases through one interface, whose contract `tests/store_contract/` tests.
const SAMPLE_STEP: usize = 8;

const NO_SEAL: &str = "decode(repeat('00', 32), 'hex')";

/// A database that the test edits, with everything that an audit after each edit needs.
struct PostgresEditHarness {
    client: Client,
    store: PostgresStore,
    keys: Arc<Keys>,
    archives: Archives,
    /// The files are there as long.
    _folder: TempDir,
}

impl PostgresEditHarness {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = up_to_date::database().await;
        let lived_on = Arc::new(PostgresStore::open(&url, PostgresOptions::default()).await.unwrap());
        let service = lived::service_on(folder.path(), lived_on, Arc::new(SystemClock)).await;
        live_through(&service).await;
        drop(service);
        let client = postgres::connect(&url).await;
        client.batch_execute("CREATE SCHEMA kept").await.unwrap();
        for table in tables_of(&client).await {
            client.batch_execute(&format!("CREATE TABLE kept.{table} AS TABLE public.{table}")).await.unwrap();
        }
        let store = PostgresStore::open(&url, PostgresOptions::default()).await.unwrap();
        let keys = Keyring::open(&folder.path().join("keyring.json"), None).unwrap().current().unwrap();
        let archives = lived::archives::in_folder(folder.path());
        Self { client, store, keys, archives, _folder: folder }
    }

    /// Returns the findings of an audit: `table id: finding`.
    async fn found(&self) -> Vec<String> {
        let report = audit_with(&self.store, Some(&self.archives), &self.keys, SystemClock.now()).await.unwrap();
        report.findings.iter().map(|it| format!("{} {}: {}", it.table, it.id, it.finding)).collect()
    }

    /// Edits one row of every table, and expects that an audit finds exactly these rows unsealed. The seal of a row
    /// depends on no other row, so one audit is enough for all of them.
    async fn edit_everywhere(&self, edit: impl Fn(&str) -> String) {
        let mut edited = BTreeSet::new();
        for table in Table::ALL {
            let edit = format!("{} RETURNING id", edit(table.name()));
            let id: String = self.client.query_one(&edit, &[]).await.expect(&edit).get(0);
            edited.insert(format!("{} {id}{UNSEALED}", table.name()));
        }
        let found = self.found().await.into_iter().filter(|it| it.ends_with(UNSEALED)).collect();
        assert_eq!(edited, found, "{}", edit("each"));
        for table in Table::ALL {
            self.put_back(table.name()).await;
        }
    }

    /// Edits one row of a table, holds what is found against what is stated, and undoes it.
    async fn edit(&self, table: &str, edit: &str, outcome: EditOutcome) {
        assert_eq!(self.client.execute(edit, &[]).await.unwrap(), 1, "{edit}");
        expect(outcome, &self.found().await, edit);
        self.put_back(table).await;
    }

    async fn put_back(&self, table: &str) {
        let undo = format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM kept.{table}");
        self.client.batch_execute(&undo).await.unwrap();
    }
}

async fn tables_of(client: &Client) -> Vec<String> {
    let own = "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1";
    let mut tables: Vec<String> = client.query(own, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    tables.sort();
    tables
}

async fn columns_of(client: &Client, table: &str) -> Vec<String> {
    let own = "SELECT column_name::text FROM information_schema.columns \
        WHERE table_schema = 'public' AND table_name = $1 ORDER BY ordinal_position";
    client.query(own, &[&table]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_table_and_column_has_a_stated_outcome_on_postgres_too() {
    let client = postgres::connect(&up_to_date::database().await).await;
    assert_eq!(tables_of(&client).await, expected_tables());
    let stated: Vec<&str> = COLUMNS.iter().map(|it| it.0).collect();
    for table in Table::ALL {
        assert_eq!(columns_of(&client, table.name()).await, stated, "{}", table.name());
    }
    let stated: Vec<&str> = LABEL_COLUMNS.iter().map(|it| it.0).collect();
    assert_eq!(columns_of(&client, "labels").await, stated);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_of_any_column_a_row_more_and_a_row_less_are_found_on_postgres_too() {
    let bench = PostgresEditHarness::new().await;
    assert_eq!(bench.found().await, [""; 0], "the history itself is sound");
    for (column, outcome) in COLUMNS {
        assert_eq!(*outcome, EditOutcome::Found, "{column}");
        bench.edit_everywhere(|table| updated(table, column, NO_SEAL)).await;
    }
    bench.edit_everywhere(inserted).await;
    let step = if is_full() { 1 } else { SAMPLE_STEP };
    for (table, outcome, _) in TABLES.iter().step_by(step) {
        let name = table.name();
        let edit = format!("DELETE FROM {name} WHERE id = (SELECT max(id) FROM {name})");
        bench.edit(name, &edit, *outcome).await;
    }
    for edit in label_edits().iter().step_by(step) {
        bench.edit("labels", edit, EditOutcome::Found).await;
    }
    assert_eq!(bench.found().await, [""; 0], "and every edit was undone");
}
