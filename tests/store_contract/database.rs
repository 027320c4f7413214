//! One database for one test, and rows to put into it.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use countersign::clock::{Clock as _, ClockOffset, SystemClock};
use countersign::domain::keys::{Keys, RowKey};
use countersign::domain::time::Timestamp;
use countersign::store::Store;
use countersign::store::change::{Change, Guard, RowWrite};
use countersign::store::postgres::{PostgresOptions, PostgresStore};
use countersign::store::row::{Facets, Row, Table};
use countersign::store::sqlite::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

use crate::server;

/// A database of one test's own.
pub struct Database {
    pub offset: ClockOffset,
    place: Place,
}

enum Place {
    Sqlite { path: PathBuf, _folder: TempDir },
    Postgres { url: String },
}

impl Database {
    pub fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::Sqlite { path: folder.path().join("countersign.db"), _folder: folder };
        Self { offset: ClockOffset::default(), place }
    }

    pub async fn postgres() -> Self {
        Self { offset: ClockOffset::default(), place: Place::Postgres { url: server::new_database().await } }
    }

    /// Another store on the same database, as another gateway would have.
    pub async fn open(&self) -> Arc<dyn Store> {
        match &self.place {
            Place::Sqlite { path, .. } => {
                let options = SqliteOptions { clock_offset: self.offset.clone(), ..SqliteOptions::default() };
                Arc::new(SqliteStore::open(path, options).unwrap())
            }
            Place::Postgres { url } => {
                let options = PostgresOptions { clock_offset: self.offset.clone() };
                Arc::new(PostgresStore::open(url, options).await.unwrap())
            }
        }
    }
}

static KEYS: LazyLock<Keys> =
    LazyLock::new(|| Keys::generate("https://test.example", now(), &mut countersign::random::fill).unwrap());

pub fn key() -> &'static RowKey {
    KEYS.row()
}

pub fn now() -> Timestamp {
    SystemClock.now()
}

/// A row of threads at its first revision.
pub fn row(id: &str) -> Row {
    sealed(Table::Threads, id, Facets { owner: "payments".to_owned(), ..Facets::default() }, 1)
}

pub fn sealed(table: Table, id: &str, facets: Facets, revision: i64) -> Row {
    Row::seal(key(), table, id.to_owned(), facets, revision, format!(r#"{{"id":"{id}"}}"#))
}

/// The row's next revision, told apart from others by its body.
pub fn next(row: &Row, body: &str) -> Row {
    Row::seal(key(), row.table, row.id.clone(), row.facets.clone(), row.revision + 1, body.to_owned())
}

pub fn change(guards: Vec<Guard>, writes: Vec<RowWrite>) -> Change {
    Change { decided_at: now(), guards, writes }
}

pub fn insert(rows: &[&Row]) -> Change {
    change(Vec::new(), rows.iter().map(|row| RowWrite::Insert((*row).clone())).collect())
}

pub fn replace(row: Row) -> Change {
    change(Vec::new(), vec![RowWrite::Replace(row)])
}
