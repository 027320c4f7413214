//! One database for one test, and rows to put into it.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use countersign::clock::{Clock as _, ClockOffset, SystemClock};
use countersign::domain::keys::{Keys, RowKey};
use countersign::domain::time::Timestamp;
use countersign::store::Store;
use countersign::store::change::{Change, Guard, RowWrite};
use countersign::store::row::{Facets, Row, Table};
use countersign::store::sqlite::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

/// A database of one test's own.
pub struct Database {
    pub offset: ClockOffset,
    place: Place,
}

enum Place {
    Sqlite { path: PathBuf, _folder: TempDir },
}

impl Database {
    pub fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::Sqlite { path: folder.path().join("countersign.db"), _folder: folder };
        Self { offset: ClockOffset::default(), place }
    }

    /// Another store on the same database, as another gateway would have.
    pub async fn open(&self) -> Arc<dyn Store> {
        match &self.place {
            Place::Sqlite { path, .. } => {
                let options = SqliteOptions { clock_offset: self.offset.clone(), ..SqliteOptions::default() };
                Arc::new(SqliteStore::open(path, options).unwrap())
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

pub fn insert(rows: &[Row]) -> Change {
    change(Vec::new(), rows.iter().cloned().map(RowWrite::Insert).collect())
}

pub fn replace(row: Row) -> Change {
    change(Vec::new(), vec![RowWrite::Replace(row)])
}
