//! One database for one test, and rows to put into it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use countersign_domain::keys::{Keys, RowKey};
use countersign_domain::primitives::time::Timestamp;

use countersign_adapters::clock::{Clock as _, ClockOffset, SystemClock};
use countersign_store::Store;
use countersign_store::change::{ChangeSet, FacetChange, Precondition, RowWrite};
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use countersign_store::row::{Facets, SealedRow, Table};
use countersign_store::sqlite::{OpenError, SqliteOptions, SqliteStore};
use tempfile::TempDir;

use crate::server;

/// A database of one test's own.
pub struct TestDatabase {
    /// How far its clock is off, for every store on it.
    pub offset: ClockOffset,
    place: TestDatabaseLocation,
}

enum TestDatabaseLocation {
    Sqlite { path: PathBuf, _folder: TempDir },
    Postgres { url: String },
}

/// Someone at the database itself, past the gateway.
pub enum Intruder {
    Sqlite(rusqlite::Connection),
    Postgres(tokio_postgres::Client),
}

impl TestDatabase {
    pub fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = TestDatabaseLocation::Sqlite { path: folder.path().join("countersign.db"), _folder: folder };
        Self { offset: ClockOffset::default(), place }
    }

    pub async fn postgres() -> Self {
        Self {
            offset: ClockOffset::default(),
            place: TestDatabaseLocation::Postgres { url: server::new_database().await },
        }
    }

    /// Another store on the same database, as another gateway would have.
    pub async fn open(&self) -> Arc<dyn Store> {
        self.try_open().await.unwrap()
    }

    pub async fn try_open(&self) -> Result<Arc<dyn Store>, OpenError> {
        let clock_offset = self.offset.clone();
        match &self.place {
            TestDatabaseLocation::Sqlite { path, .. } => {
                let options = SqliteOptions { clock_offset, ..SqliteOptions::default() };
                SqliteStore::open(path, options).map(|store| -> Arc<dyn Store> { Arc::new(store) })
            }
            TestDatabaseLocation::Postgres { url } => {
                // Longer than a slow machine makes anybody wait who is not stuck.
                let lock_wait = Duration::from_secs(8);
                let options = PostgresOptions { clock_offset, lock_wait, ..PostgresOptions::default() };
                Ok(Arc::new(PostgresStore::open(url, options).await?))
            }
        }
    }

    pub async fn intrude(&self) -> Intruder {
        match &self.place {
            TestDatabaseLocation::Sqlite { path, .. } => Intruder::Sqlite(rusqlite::Connection::open(path).unwrap()),
            TestDatabaseLocation::Postgres { url } => Intruder::Postgres(server::connect(url).await),
        }
    }

    /// Returns the path of a SQLite database.
    pub fn path(&self) -> &Path {
        match &self.place {
            TestDatabaseLocation::Sqlite { path, .. } => path,
            TestDatabaseLocation::Postgres { .. } => unreachable!("only asked of SQLite"),
        }
    }

    /// Returns the address of a PostgreSQL database.
    pub fn url(&self) -> &str {
        match &self.place {
            TestDatabaseLocation::Sqlite { .. } => unreachable!("only asked of PostgreSQL"),
            TestDatabaseLocation::Postgres { url } => url,
        }
    }
}

impl Intruder {
    pub async fn run(&self, sql: &str) {
        match self {
            Self::Sqlite(connection) => connection.execute_batch(sql).unwrap(),
            Self::Postgres(client) => client.batch_execute(sql).await.unwrap(),
        }
    }

    /// The first column of every row, as text.
    pub async fn ask(&self, sql: &str) -> Vec<String> {
        match self {
            Self::Sqlite(connection) => {
                let mut statement = connection.prepare(sql).unwrap();
                statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
            }
            Self::Postgres(client) => client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect(),
        }
    }

    /// Returns the columns of a table from the catalog of the database.
    pub async fn columns(&self, table: Table) -> Vec<String> {
        let name = table.name();
        let sql = match self {
            Self::Sqlite(_) => format!("SELECT name FROM pragma_table_info('{name}')"),
            Self::Postgres(_) => {
                format!("SELECT column_name::text FROM information_schema.columns WHERE table_name = '{name}'")
            }
        };
        self.ask(&sql).await
    }

    /// From now on a row of that id cannot be inserted into events.
    pub async fn poison_events(&self, id: &str) {
        let sql = match self {
            Self::Sqlite(_) => format!(
                "CREATE TRIGGER poison BEFORE INSERT ON events WHEN NEW.id = '{id}' \
                 BEGIN SELECT RAISE(ABORT, 'poison'); END"
            ),
            Self::Postgres(_) => format!(
                "CREATE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql AS \
                 $$ BEGIN RAISE EXCEPTION 'poison in %', NEW.body; END $$; \
                 CREATE TRIGGER poison BEFORE INSERT ON events FOR EACH ROW WHEN (NEW.id = '{id}') \
                 EXECUTE FUNCTION poison()"
            ),
        };
        self.run(&sql).await;
    }

    /// Blocks all writers until `end`.
    pub async fn begin_to_block(&self) {
        match self {
            Self::Sqlite(_) => self.run("BEGIN IMMEDIATE").await,
            Self::Postgres(_) => self.run("BEGIN; LOCK TABLE threads IN EXCLUSIVE MODE").await,
        }
    }

    pub async fn end(&self) {
        self.run("ROLLBACK").await;
    }
}

static KEYS: LazyLock<Keys> = LazyLock::new(another_keyring);

pub fn another_keyring() -> Keys {
    Keys::generate("https://test.example", now(), &mut countersign_adapters::random::fill).unwrap()
}

pub fn key() -> &'static RowKey {
    KEYS.row()
}

pub fn now() -> Timestamp {
    SystemClock.now()
}

/// A row of threads at its first revision.
pub fn row(id: &str) -> SealedRow {
    sealed(Table::Threads, id, Facets { owner: "payments".to_owned(), ..Facets::default() }, 1)
}

/// The same, with a second name.
pub fn named_row(id: &str, alias: &str) -> SealedRow {
    sealed(Table::Threads, id, Facets { alias: Some(alias.to_owned()), ..Facets::default() }, 1)
}

pub fn sealed(table: Table, id: &str, facets: Facets, revision: i64) -> SealedRow {
    SealedRow::seal(key(), table, id.to_owned(), facets, revision, format!(r#"{{"id":"{id}"}}"#))
}

/// The row's next revision, told apart from others by its body.
pub fn next(row: &SealedRow, body: &str) -> SealedRow {
    SealedRow::seal(key(), row.table, row.id.clone(), row.facets.clone(), row.revision + 1, body.to_owned())
}

pub fn change(guards: Vec<Precondition>, writes: Vec<RowWrite>) -> ChangeSet {
    ChangeSet { decided_at: now(), guards, writes, labels: Vec::new() }
}

pub fn insert(rows: &[&SealedRow]) -> ChangeSet {
    change(Vec::new(), rows.iter().map(|row| RowWrite::Insert((*row).clone())).collect())
}

/// `row` in place of the one that was read.
pub fn over(read: &SealedRow, row: SealedRow) -> RowWrite {
    let moves = FacetChange::between(&read.facets, &row.facets);
    RowWrite::Replace { row, over: read.mac.clone(), moves }
}

pub fn replace(read: &SealedRow, row: SealedRow) -> ChangeSet {
    change(Vec::new(), vec![over(read, row)])
}

pub fn remove(row: &SealedRow) -> ChangeSet {
    let remove = RowWrite::Remove { table: row.table, id: row.id.clone(), seal: row.mac.clone() };
    change(Vec::new(), vec![remove])
}

pub fn unchanged(row: &SealedRow) -> Precondition {
    Precondition::Unchanged { table: row.table, id: row.id.clone(), seal: row.mac.clone() }
}
