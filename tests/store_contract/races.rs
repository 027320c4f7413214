//! Many at once, through two stores on one database.

use std::sync::Arc;

use countersign_adapters::clock::{Clock as _, SystemClock};
use countersign_store::change::{ChangeSet, RowWrite};
use countersign_store::row::{Facets, SealedRow, Table};
use countersign_store::{Store, StoreError};
use futures_util::future::join_all;

use crate::database::{TestDatabase, change, insert, named_row, next, over, remove, replace, row, sealed, unchanged};

const RACERS: usize = 20;

async fn two_stores(database: &TestDatabase) -> [Arc<dyn Store>; 2] {
    [database.open().await, database.open().await]
}

/// Commits, and comes again where the store is busy: what is raced for is not decided by that.
async fn patiently(store: &Arc<dyn Store>, mut change: ChangeSet) -> Result<(), StoreError> {
    loop {
        match store.commit(change.clone()).await {
            Err(StoreError::Busy | StoreError::ClockSkew) => change.decided_at = SystemClock.now(),
            done => return done,
        }
    }
}

/// Half of them through each store; says who won, and that all others met a conflict.
async fn race(stores: &[Arc<dyn Store>; 2], count: usize, change: impl Fn(usize) -> ChangeSet) -> Vec<usize> {
    let racers = (0..count).map(|at| {
        let (store, change) = (Arc::clone(&stores[at % 2]), change(at));
        tokio::spawn(async move { patiently(&store, change).await })
    });
    let outcomes: Vec<_> = join_all(racers).await.into_iter().map(Result::unwrap).collect();
    for outcome in &outcomes {
        assert!(matches!(outcome, Ok(()) | Err(StoreError::Conflict("threads" | "flows"))), "{outcome:?}");
    }
    (0..outcomes.len()).filter(|at| outcomes[*at].is_ok()).collect()
}

pub async fn of_twenty_racing_replacements_exactly_one_wins(database: TestDatabase) {
    let stores = two_stores(&database).await;
    let first = row("row");
    stores[0].commit(insert(&[&first])).await.unwrap();
    let won = race(&stores, RACERS, |at| replace(&first, next(&first, &at.to_string()))).await;
    assert_eq!(won.len(), 1);
    assert_eq!(stores[1].get(Table::Threads, "row").await.unwrap().unwrap().body, won[0].to_string());
}

pub async fn of_twenty_racing_removals_exactly_one_wins(database: TestDatabase) {
    let stores = two_stores(&database).await;
    let first = row("row");
    stores[0].commit(insert(&[&first])).await.unwrap();
    assert_eq!(race(&stores, RACERS, |_| remove(&first)).await.len(), 1);
}

pub async fn of_twenty_racing_inserts_exactly_one_wins(database: TestDatabase) {
    let stores = two_stores(&database).await;
    let rows: Vec<SealedRow> = (0..RACERS).map(|at| named_row("row", &at.to_string())).collect();
    let won = race(&stores, RACERS, |at| insert(&[&rows[at]])).await;
    assert_eq!(won.len(), 1);
    let kept = stores[0].get(Table::Threads, "row").await.unwrap();
    assert_eq!(kept.as_ref(), Some(&rows[won[0]]));
}

pub async fn of_twenty_racing_claims_to_an_alias_exactly_one_wins(database: TestDatabase) {
    let stores = two_stores(&database).await;
    let rows: Vec<SealedRow> = (0..RACERS).map(|at| named_row(&at.to_string(), "alias")).collect();
    let won = race(&stores, RACERS, |at| insert(&[&rows[at]])).await;
    assert_eq!(won.len(), 1);
    let kept = stores[0].get_by_alias(Table::Threads, "alias").await.unwrap();
    assert_eq!(kept.as_ref(), Some(&rows[won[0]]));
}

/// Each is right by what it read; both together would not be. Flows are among the rows that many rely on.
pub async fn of_two_changes_that_rely_on_what_the_other_replaces_only_one_succeeds(database: TestDatabase) {
    let stores = two_stores(&database).await;
    let tables = [Table::Threads, Table::Flows].into_iter().cycle();
    for (round, table) in (0..40).zip(tables) {
        let [left, right] = ["left", "right"].map(|it| sealed(table, &format!("{round} {it}"), Facets::default(), 1));
        stores[0].commit(insert(&[&left, &right])).await.unwrap();
        let relying = |on: &SealedRow, replaced: &SealedRow| {
            change(vec![unchanged(on)], vec![over(replaced, next(replaced, "{}"))])
        };
        let won = race(&stores, 2, |at| if at == 0 { relying(&left, &right) } else { relying(&right, &left) }).await;
        assert_eq!(won.len(), 1, "round {round}");
    }
}

pub async fn changes_that_lock_the_same_rows_in_any_order_all_get_through(database: TestDatabase) {
    let stores = two_stores(&database).await;
    let shared: Vec<SealedRow> = (0..8).map(|at| row(&format!("shared {at}"))).collect();
    stores[0].commit(insert(&shared.iter().collect::<Vec<_>>())).await.unwrap();
    let relying = |at: usize| {
        let mut guards: Vec<_> = shared.iter().map(unchanged).collect();
        if at.is_multiple_of(2) {
            guards.reverse();
        }
        guards.rotate_left(at % 8);
        change(guards, vec![RowWrite::Insert(row(&format!("own {at:03}")))])
    };
    let won = race(&stores, 200, relying).await;
    assert_eq!(won.len(), 200);
}
