//! The parts of the contract that apply only to SQLite.

use std::path::PathBuf;

use countersign_store::outage::Outage;
use countersign_store::row::{Facets, SealedRow, Table};
use countersign_store::sqlite::SqliteStore;
use countersign_store::{LeaderTask, Store as _, StoreError};

use crate::database::{TestDatabase, insert, key, row};

fn beside(database: &TestDatabase, suffix: &str) -> PathBuf {
    let mut name = database.path().as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_else_may_read_the_file_or_its_log() {
    use std::os::unix::fs::PermissionsExt as _;
    let database = TestDatabase::sqlite();
    let store = database.open().await;
    store.commit(insert(&[&row("row")])).await.unwrap();
    let lock = store.take(LeaderTask::Sequencing).await.unwrap();
    for suffix in ["", "-wal", "-shm", "-sequencer"] {
        let mode = std::fs::metadata(beside(&database, suffix)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{suffix}");
    }
    drop(lock);
}

#[tokio::test]
async fn a_closed_store_leaves_one_file_that_holds_everything() {
    let database = TestDatabase::sqlite();
    let store = database.open().await;
    store.commit(insert(&[&row("row")])).await.unwrap();
    drop(store);
    assert!(!beside(&database, "-wal").exists());
    assert_eq!(database.intrude().await.ask("SELECT id FROM threads").await, ["row"]);
}

#[tokio::test]
async fn the_log_does_not_grow_without_bound() {
    /// Three times the bound: where the keeper is in the writer's way, it is tried again after as much once more.
    const LOG_BYTES: u64 = 3 * 64 * 1024 * 1024;
    let database = TestDatabase::sqlite();
    let store = database.open().await;
    let body = format!("\"{}\"", "x".repeat(1 << 20));
    for at in 0..320 {
        let row = SealedRow::seal(key(), Table::States, format!("{at:04}"), Facets::default(), 1, body.clone());
        store.commit(insert(&[&row])).await.unwrap();
        let log = std::fs::metadata(beside(&database, "-wal")).unwrap().len();
        assert!(log < LOG_BYTES, "{log} bytes after {at} MiB");
    }
}

fn replaced<T>(refused: Result<T, StoreError>) -> bool {
    matches!(refused, Err(StoreError::Unavailable { outage: Outage::Replaced, .. }))
}

#[tokio::test]
async fn nothing_is_reported_committed_that_went_into_a_log_that_was_removed() {
    for suffix in ["-wal", "-shm", ""] {
        let database = TestDatabase::sqlite();
        let store = database.open().await;
        store.commit(insert(&[&row("before")])).await.unwrap();
        std::fs::remove_file(beside(&database, suffix)).unwrap();
        assert!(replaced(store.commit(insert(&[&row("after")])).await), "{suffix}");
        assert!(replaced(store.get(Table::Threads, "before").await), "{suffix}: nothing is answered from it any more");
        assert!(replaced(store.check_storage().await), "{suffix}");
        assert!(store.replaced().await.contains("was removed"), "{suffix}");
    }
}

#[tokio::test]
async fn a_store_whose_log_was_replaced_writes_nothing_into_the_file_of_others() {
    let database = TestDatabase::sqlite();
    let store = database.open().await;
    store.commit(insert(&[&row("before")])).await.unwrap();
    for suffix in ["-wal", "-shm"] {
        std::fs::remove_file(beside(&database, suffix)).unwrap();
    }
    assert!(replaced(store.check_storage().await));
    let (log, file) = (beside(&database, "-wal"), std::fs::read(database.path()).unwrap());
    std::fs::write(&log, "of another process").unwrap();
    drop(store);
    assert_eq!(std::fs::read(&log).unwrap(), b"of another process");
    assert_eq!(std::fs::read(database.path()).unwrap(), file);
}

#[tokio::test]
async fn a_store_that_was_opened_to_be_read_takes_no_change() {
    let database = TestDatabase::sqlite();
    let store = database.open().await;
    store.commit(insert(&[&row("before")])).await.unwrap();
    let reading = SqliteStore::open_to_read(database.path()).unwrap();
    assert!(reading.get(Table::Threads, "before").await.unwrap().is_some());
    let refused = reading.commit(insert(&[&row("after")])).await;
    assert!(matches!(refused, Err(StoreError::Unavailable { outage: Outage::ReadOnly, .. })), "{refused:?}");
    assert_eq!(reading.damages().await.unwrap(), Vec::<String>::new());
}
