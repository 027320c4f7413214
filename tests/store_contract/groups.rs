//! Changes that share a transaction: each is taken as if it had come alone, after those before it.

use std::sync::Arc;
use std::time::Duration;

use countersign_domain::primitives::time::Timestamp;

use countersign_store::change::{ChangeSet, Precondition, RowWrite};
use countersign_store::row::{SealedRow, Table};
use countersign_store::{Store, StoreError};
use futures_util::future::join_all;
use tokio::time::timeout;

use crate::database::{TestDatabase, change, insert, named_row, next, over, remove, replace, row, unchanged};

/// As many as write beside each other on either database.
const WRITERS: usize = 2;

/// Long enough for a writer to take what is queued. If it was not, what follows is not one group, and as true.
const SETTLED: Duration = Duration::from_millis(50);

/// Commits them in this order, while every writer is kept from it, so that they wait together.
async fn together(database: &TestDatabase, store: &Arc<dyn Store>, changes: Vec<ChangeSet>) -> Vec<&'static str> {
    let intruder = database.intrude().await;
    intruder.begin_to_block().await;
    let mut before = Vec::new();
    for at in 0..WRITERS {
        let change = insert(&[&row(&format!("before {at}"))]);
        let mut commit = Box::pin(store.commit(change));
        assert!(timeout(SETTLED, &mut commit).await.is_err(), "somebody writes");
        before.push(commit);
    }
    let mut commits = Box::pin(join_all(changes.into_iter().map(|it| store.commit(it))));
    assert!(timeout(SETTLED, &mut commits).await.is_err(), "somebody writes");
    intruder.end().await;
    let (before, outcomes) = tokio::join!(join_all(before), commits);
    before.into_iter().for_each(|it| it.unwrap());
    outcomes.iter().map(word).collect()
}

fn word(outcome: &Result<(), StoreError>) -> &'static str {
    match outcome {
        Ok(()) => "done",
        Err(StoreError::Conflict("threads")) => "conflict",
        Err(StoreError::TooLate) => "too late",
        Err(_) => "failed",
    }
}

async fn there(store: &dyn Store, id: &str) -> bool {
    store.get(Table::Threads, id).await.unwrap().is_some()
}

/// Inserts a row of that id, relying on another.
fn relying(on: &SealedRow, id: &str) -> ChangeSet {
    change(vec![unchanged(on)], vec![RowWrite::Insert(row(id))])
}

pub async fn what_an_earlier_change_replaced_or_removed_is_relied_on_by_none_after_it(database: TestDatabase) {
    let store = database.open().await;
    let (kept, replaced, removed) = (row("kept"), row("replaced"), row("removed"));
    store.commit(insert(&[&kept, &replaced, &removed])).await.unwrap();
    let changes = vec![
        relying(&replaced, "1"),
        relying(&removed, "2"),
        relying(&kept, "3"),
        replace(&replaced, next(&replaced, "{}")),
        remove(&removed),
        relying(&replaced, "4"),
        relying(&removed, "5"),
        relying(&kept, "6"),
    ];
    let outcomes = together(&database, &store, changes).await;
    assert_eq!(outcomes, ["done", "done", "done", "done", "done", "conflict", "conflict", "done"]);
    for (id, is_there) in [("1", true), ("2", true), ("3", true), ("4", false), ("5", false), ("6", true)] {
        assert_eq!(there(&*store, id).await, is_there, "{id}");
    }
}

pub async fn of_changes_of_one_row_that_wait_together_the_first_wins(database: TestDatabase) {
    let store = database.open().await;
    let (first, goner) = (row("row"), row("goner"));
    store.commit(insert(&[&first, &goner])).await.unwrap();
    let changes = vec![
        replace(&first, next(&first, "1")),
        replace(&first, next(&first, "2")),
        remove(&first),
        remove(&goner),
        remove(&goner),
        replace(&goner, next(&goner, "3")),
        insert(&[&named_row("new", "alias")]),
        insert(&[&named_row("new", "other")]),
        insert(&[&named_row("newer", "alias")]),
    ];
    let outcomes = together(&database, &store, changes).await;
    let expected = ["done", "conflict", "conflict", "done", "conflict", "conflict", "done", "conflict", "conflict"];
    assert_eq!(outcomes, expected);
    assert_eq!(store.get(Table::Threads, "row").await.unwrap().unwrap().body, "1");
    assert!(!there(&*store, "goner").await && !there(&*store, "newer").await);
    assert_eq!(store.get_by_alias(Table::Threads, "alias").await.unwrap().unwrap().id, "new");
}

pub async fn of_a_refused_change_nothing_stands_in_the_way_of_those_after_it(database: TestDatabase) {
    let store = database.open().await;
    let (first, taken) = (row("row"), row("taken"));
    store.commit(insert(&[&first, &taken])).await.unwrap();
    let half = |last: RowWrite| {
        let replaced = over(&first, next(&first, "half done"));
        change(Vec::new(), vec![replaced, RowWrite::Insert(named_row("half", "alias")), last])
    };
    let late = Precondition::Before(Timestamp::default());
    let changes = vec![
        half(RowWrite::Insert(taken.clone())),
        change(vec![late], vec![over(&first, next(&first, "late"))]),
        relying(&first, "relying"),
        change(Vec::new(), vec![over(&first, next(&first, "whole")), RowWrite::Insert(named_row("whole", "alias"))]),
        half(RowWrite::Insert(row("last"))),
    ];
    let outcomes = together(&database, &store, changes).await;
    assert_eq!(outcomes, ["conflict", "too late", "done", "done", "conflict"]);
    assert_eq!(store.get(Table::Threads, "row").await.unwrap().unwrap().body, "whole");
    assert_eq!(store.get_by_alias(Table::Threads, "alias").await.unwrap().unwrap().id, "whole");
    assert!(!there(&*store, "half").await && !there(&*store, "last").await);
}
