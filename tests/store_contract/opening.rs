//! The contract of opening a database.

use countersign_store::row::Table;
use countersign_store::sqlite::OpenError;
use futures_util::future::join_all;

use crate::database::{TestDatabase, insert, row};

pub async fn opening_again_changes_nothing(database: TestDatabase) {
    let kept = row("kept");
    database.open().await.commit(insert(&[&kept])).await.unwrap();
    let migrations = "SELECT checksum FROM schema_migrations ORDER BY version";
    let before = database.intrude().await.ask(migrations).await;
    assert!(!before.is_empty());
    for _ in 0..3 {
        let store = database.open().await;
        assert_eq!(store.get(Table::Threads, "kept").await.unwrap().as_ref(), Some(&kept));
    }
    assert_eq!(database.intrude().await.ask(migrations).await, before);
}

pub async fn stores_that_open_a_new_database_at_once_all_succeed(database: TestDatabase) {
    let stores = join_all((0..6).map(|_| database.try_open())).await;
    for (at, store) in stores.into_iter().enumerate() {
        store.unwrap().commit(insert(&[&row(&at.to_string())])).await.unwrap();
    }
}

pub async fn a_database_that_a_newer_version_had_is_refused(database: TestDatabase) {
    drop(database.open().await);
    let intruder = database.intrude().await;
    intruder.run("INSERT INTO schema_migrations (version, name, checksum) VALUES (9000, '9000_later', 'x')").await;
    let refused = database.try_open().await.err();
    assert!(matches!(refused, Some(OpenError::Newer { found: 9000, .. })), "{refused:?}");
    intruder.run("DELETE FROM schema_migrations WHERE version = 9000").await;
    assert!(database.try_open().await.is_ok());
}

pub async fn a_database_with_another_migration_of_a_known_number_is_refused(database: TestDatabase) {
    drop(database.open().await);
    let intruder = database.intrude().await;
    intruder.run("UPDATE schema_migrations SET checksum = 'other' WHERE version = 1").await;
    let refused = database.try_open().await.err();
    assert!(matches!(refused, Some(OpenError::Altered { version: 1 })), "{refused:?}");
}
