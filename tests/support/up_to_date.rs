//! PostgreSQL databases with the current schema: the first one is migrated, and the others are copies of it.
//! `tests/store_contract/` tests the migration of an empty database.

use std::time::Duration;

use countersign_adapters::clock::ClockOffset;
use countersign_store::postgres::{PostgresOptions, PostgresStore};
use tokio::sync::OnceCell;
use tokio_postgres::error::SqlState;

use crate::postgres::{connect, copy_database, new_database, new_name, url};

/// Largest number of attempts to copy: the connection that opened the first database may still be closing.
const COPIES_MAX: usize = 1_000;

/// Returns options with a longer lock wait, so that a slow machine causes no timeouts.
pub fn patient(clock: &ClockOffset) -> PostgresOptions {
    PostgresOptions { clock_offset: clock.clone(), lock_wait: Duration::from_secs(8), ..PostgresOptions::default() }
}

/// The address of a new database with every table, and no row that a gateway would have.
pub async fn database() -> String {
    static FIRST: OnceCell<String> = OnceCell::const_new();
    let make = async || {
        let address = new_database().await;
        drop(PostgresStore::open(&address, PostgresOptions::default()).await.unwrap());
        address
    };
    let first = FIRST.get_or_init(make).await.rsplit_once('/').unwrap().1;
    let (client, name) = (connect(&url("postgres")).await, new_name());
    let leave = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{first}'");
    for _ in 0..COPIES_MAX {
        client.batch_execute(&leave).await.unwrap();
        match copy_database(&client, first, &name).await {
            Ok(()) => return url(&name),
            Err(error) => assert_eq!(error.code(), Some(&SqlState::OBJECT_IN_USE), "{error:?}"),
        }
    }
    panic!("somebody never leaves {first}");
}
