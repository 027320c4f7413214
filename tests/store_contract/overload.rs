//! The store under more changes than its queue holds.

use std::pin::pin;

use countersign_store::StoreError;
use countersign_store::row::SealedRow;
use futures_util::future::join_all;
use futures_util::poll;

use crate::database::{TestDatabase, insert, row};

pub async fn when_too_much_is_queued_the_rest_is_told_to_come_again(database: TestDatabase) {
    /// More than any queue and everything under way together.
    const CHANGES: usize = 8_000;
    let store = database.open().await;
    let intruder = database.intrude().await;
    intruder.begin_to_block().await;
    let rows: Vec<SealedRow> = (0..CHANGES).map(|at| row(&format!("{at:05}"))).collect();
    let mut commits = pin!(join_all(rows.iter().map(|row| store.commit(insert(&[row])))));
    assert!(poll!(&mut commits).is_pending());
    intruder.end().await;
    let outcomes = commits.await;
    let done = outcomes.iter().filter(|it| it.is_ok()).count();
    let busy = outcomes.iter().filter(|it| matches!(it, Err(StoreError::Busy))).count();
    assert_eq!(done + busy, CHANGES, "{:?}", outcomes.iter().find(|it| it.is_err()));
    assert!(busy > 0 && done > 0, "{done} done, {busy} told to come again");
    // Every outcome matches the stored rows, and the store accepts changes again.
    for (row, outcome) in rows.iter().zip(&outcomes).step_by(97) {
        assert_eq!(store.get(row.table, &row.id).await.unwrap().is_some(), outcome.is_ok());
    }
    store.commit(insert(&[&row("afterwards")])).await.unwrap();
}
