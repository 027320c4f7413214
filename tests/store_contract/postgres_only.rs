//! The parts of the contract that apply only to PostgreSQL.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use countersign_store::change::{ChangeSet, RowWrite};
use countersign_store::label::{Label, LabelChange};
use countersign_store::outage::Outage;
use countersign_store::postgres::{OpenError, PostgresOptions, PostgresStore};
use countersign_store::row::{Facets, Table};
use countersign_store::{Direction, RowFilter, Store as _, StoreError};

use crate::database::{TestDatabase, change, insert, next, replace, row, sealed, unchanged};

async fn refused(url: &str) -> OpenError {
    PostgresStore::open(url, PostgresOptions::default()).await.expect_err(url)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_connection_is_replaced_unnoticed() {
    let database = TestDatabase::postgres().await;
    let store = database.open().await;
    let intruder = database.intrude().await;
    for round in 0..5 {
        let others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
        intruder.run(&format!("SELECT pg_terminate_backend(pid) {others}")).await;
        let row = row(&round.to_string());
        store.commit(insert(&[&row])).await.unwrap();
        assert_eq!(store.get(Table::Threads, &row.id).await.unwrap().as_ref(), Some(&row));
        assert_eq!(store.list(Table::Threads, RowFilter::All, None, 10).await.unwrap().len(), round + 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_read_goes_through_an_index() {
    let database = TestDatabase::postgres().await;
    let intruder = database.intrude().await;
    let others = "SELECT pid::text FROM pg_stat_activity WHERE datname = current_database() \
                  AND pid <> pg_backend_pid() AND application_name = 'countersign'";
    // Making the tables scans them, and a session counts that at the latest when it ends.
    drop(database.open().await);
    while !intruder.ask(others).await.is_empty() {}
    let store = database.open().await;
    let scans = "SELECT coalesce(sum(seq_scan), 0)::text FROM pg_stat_user_tables WHERE relname <> 'schema_migrations'";
    intruder.run("SELECT pg_stat_force_next_flush()").await;
    let before = intruder.ask(scans).await;
    for table in Table::ALL {
        store.get(*table, "x").await.unwrap();
        store.get_by_alias(*table, "x").await.unwrap();
        store.get_many(*table, &["x".to_owned()]).await.unwrap();
        store.list(*table, RowFilter::All, None, 10).await.unwrap();
        store.by_alias_prefix(*table, "x", 10).await.unwrap();
        for direction in [Direction::Forward, Direction::Backward] {
            if table.is_labelled() {
                store.labelled(*table, "x", direction, None, 10).await.unwrap();
            }
        }
        if !table.is_listed_by_facets() {
            continue;
        }
        store.last_of(*table, "x").await.unwrap();
        let due = RowFilter::DueBy("x", countersign_domain::primitives::time::Timestamp::default());
        for filter in [RowFilter::Owner("x"), RowFilter::State("x"), due] {
            store.list(*table, filter, None, 10).await.unwrap();
        }
    }
    store.labels(None, 10).await.unwrap();
    let label = |it| Label { kept_in: "holds".to_owned(), word: "x".to_owned(), due: 0, id: it };
    let labels = vec![LabelChange::Put(label("a".to_owned())), LabelChange::Remove(label("b".to_owned()))];
    store.commit(ChangeSet { labels, ..insert(&[]) }).await.unwrap();
    // Sessions count when they end.
    drop(store);
    while !intruder.ask(others).await.is_empty() {}
    assert_eq!(intruder.ask(scans).await, before);
}

#[tokio::test]
async fn an_address_that_cannot_be_used_is_refused_by_name_and_never_repeated() {
    for (url, named) in [
        ("host=localhost password=hunter2", "postgres://"),
        ("mysql://root:hunter2@localhost/x", "postgres://"),
        ("postgres://root:hunter2@localhost/x?sslmode=verify-full", "sslmode=require"),
        ("postgres://root:hunter2@localhost/x?sslmode=perhaps", "sslmode"),
        ("postgres://root:hunter2@localhost/x?colour=red", "an unknown option"),
        // As a password is read that is not written as it has to be: what follows the host is no name of an option.
        ("postgres://root:pa@localhost?hunter2=x@db.example/x", "an unknown option"),
        ("postgres://root:hunter2@localhost:port/x", "port"),
    ] {
        let error = refused(url).await;
        assert!(matches!(&error, OpenError::Url(text) if text.contains(named)), "{url}: {error}");
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_named_without_the_password() {
    let database = TestDatabase::postgres().await;
    let elsewhere = database.url().replace("/test_", "/absent_");
    let with_password = elsewhere.replace("countersign@", "countersign:hunter2@");
    for url in ["postgres://root:hunter2@127.0.0.1:1/x", &with_password] {
        let error = refused(url).await;
        assert!(matches!(error, OpenError::Store(StoreError::Unavailable { outage: Outage::Down, .. })), "{error:?}");
        assert!(!format!("{error:?} {error}").contains("hunter2"), "{error:?}");
    }
    let address = database.url().replace("countersign@", "countersign:hunter2@");
    let store = PostgresStore::open(&address, PostgresOptions::default()).await.unwrap();
    assert!(!format!("{store:?}").contains("hunter2"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_replaced_meanwhile_is_seen_where_transactions_otherwise_see_one_moment() {
    let database = TestDatabase::postgres().await;
    let otherwise = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = %L', \
                     current_database(), 'repeatable read'); END $$";
    database.intrude().await.run(otherwise).await;
    crate::races::of_two_changes_that_rely_on_what_the_other_replaces_only_one_succeeds(database).await;
}

/// As many gateways as it takes for one transaction to begin before another ends, always.
const GATEWAYS: usize = 3;

/// Concurrent tasks for each gateway.
const EACH: usize = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_many_rely_on_is_replaced_however_many_go_on_relying_on_it() {
    let database = TestDatabase::postgres().await;
    let open = async || {
        // Longer than a slow machine takes for what is under way; nothing would be long enough for all that follows.
        let options = PostgresOptions { lock_wait: Duration::from_secs(3), ..PostgresOptions::default() };
        Arc::new(PostgresStore::open(database.url(), options).await.unwrap())
    };
    let stopping = open().await;
    let relied = sealed(Table::Flows, "payments", Facets::default(), 1);
    stopping.commit(insert(&[&relied])).await.unwrap();
    let slowly = "CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS \
                  $$ BEGIN PERFORM pg_sleep(0.05); RETURN NEW; END $$; \
                  CREATE TRIGGER slowly BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION slowly()";
    database.intrude().await.run(slowly).await;

    let begun = Arc::new(AtomicUsize::new(0));
    let mut relying = Vec::new();
    for gateway in 0..GATEWAYS {
        let store = open().await;
        for each in 0..EACH {
            let (store, begun, guard) = (Arc::clone(&store), Arc::clone(&begun), unchanged(&relied));
            relying.push(tokio::spawn(async move {
                for turn in 0.. {
                    let event = sealed(Table::Events, &format!("{gateway}-{each}-{turn}"), Facets::default(), 1);
                    let done = store.commit(change(vec![guard.clone()], vec![RowWrite::Insert(event)])).await;
                    if matches!(done, Err(StoreError::Conflict("flows"))) {
                        return;
                    }
                    done.unwrap();
                    begun.fetch_add(usize::from(turn == 0), Ordering::Relaxed);
                }
            }));
        }
    }
    while begun.load(Ordering::Relaxed) < GATEWAYS * EACH {
        tokio::task::yield_now().await;
    }
    stopping.commit(replace(&relied, next(&relied, "stopped"))).await.unwrap();
    for one in relying {
        one.await.unwrap();
    }
}
