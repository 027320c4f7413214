//! Two stores on one database.

use std::sync::Arc;
use std::time::Duration;

use countersign_adapters::clock::{Clock as _, SystemClock};
use countersign_store::row::{SealedRow, Table};
use countersign_store::{LeaderTask, Store};
use futures_util::future::join_all;

use crate::database::{TestDatabase, insert, next, replace, row};

/// Longer than anything here should take.
const LONG: Duration = Duration::from_secs(30);

pub async fn the_sequencers_lock_is_one_stores_until_it_is_dropped(database: TestDatabase) {
    let (one, other) = (database.open().await, database.open().await);
    let held = one.take(LeaderTask::Sequencing).await.unwrap().expect("nobody has it");
    assert!(other.take(LeaderTask::Sequencing).await.unwrap().is_none());
    assert!(one.take(LeaderTask::Sequencing).await.unwrap().is_none());
    drop(held);
    let until_it_is_free = async {
        loop {
            if let Some(held) = other.take(LeaderTask::Sequencing).await.unwrap() {
                return held;
            }
        }
    };
    let held = tokio::time::timeout(LONG, until_it_is_free).await.expect("dropping it frees it");
    assert!(one.take(LeaderTask::Sequencing).await.unwrap().is_none());
    drop(held);
}

pub async fn a_duty_that_was_left_is_anybodys_at_once(database: TestDatabase) {
    let (one, other) = (database.open().await, database.open().await);
    for _ in 0..50 {
        one.take(LeaderTask::Copying).await.unwrap().expect("the other one left it").leave().await;
        other.take(LeaderTask::Copying).await.unwrap().expect("this one left it").leave().await;
    }
}

/// How long a wait took that began before the commit did.
async fn waited_for(waiting: &Arc<dyn Store>, committing: &dyn Store, commit: &SealedRow) -> Duration {
    let (began, wait) = loop {
        let (began, store) = (SystemClock.instant(), Arc::clone(waiting));
        let mut wait = tokio::spawn(async move { store.changed(LONG).await });
        // It began in earnest if it has not ended by itself: what was committed a moment ago cuts waits short.
        if tokio::time::timeout(Duration::from_millis(50), &mut wait).await.is_err() {
            break (began, wait);
        }
    };
    committing.commit(insert(&[commit])).await.unwrap();
    wait.await.unwrap();
    SystemClock.instant() - began
}

pub async fn a_commit_wakes_who_waits_at_this_store_and_at_another(database: TestDatabase) {
    let (one, other) = (database.open().await, database.open().await);
    assert!(waited_for(&one, &*one, &row("own")).await < LONG / 2);
    assert!(waited_for(&one, &*other, &row("another's")).await < LONG / 2);
}

pub async fn a_commit_just_before_the_wait_is_not_waited_out(database: TestDatabase) {
    let store = database.open().await;
    store.commit(insert(&[&row("row")])).await.unwrap();
    let began = SystemClock.instant();
    store.changed(LONG).await;
    assert!(SystemClock.instant() - began < LONG / 2);
}

pub async fn patience_ends_without_a_commit(database: TestDatabase) {
    let store = database.open().await;
    tokio::time::timeout(LONG, store.changed(Duration::from_millis(20))).await.unwrap();
}

pub async fn two_stores_see_each_others_commits_and_lose_none(database: TestDatabase) {
    let stores: [Arc<dyn Store>; 2] = [database.open().await, database.open().await];
    let writers = (0..16).map(|writer| {
        let stores = stores.clone();
        tokio::spawn(async move {
            let mut last = row(&format!("writer {writer}"));
            stores[writer % 2].commit(insert(&[&last])).await.unwrap();
            for turn in 0..20 {
                let store = &stores[(writer + turn) % 2];
                // A commit of the other store is visible here immediately.
                assert_eq!(store.get(Table::Threads, &last.id).await.unwrap().as_ref(), Some(&last));
                let read = last;
                last = next(&read, &turn.to_string());
                store.commit(replace(&read, last.clone())).await.unwrap();
            }
            last
        })
    });
    for last in join_all(writers).await {
        let last = last.unwrap();
        assert_eq!(last.revision, 21);
        for store in &stores {
            assert_eq!(store.get(Table::Threads, &last.id).await.unwrap().as_ref(), Some(&last));
        }
    }
}
