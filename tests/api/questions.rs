//! How many questions a page puts to the store: a handful, however much there is to list.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use countersign::clock::ClockOffset;
use countersign::domain::review::Verdict;
use countersign::domain::time::Timestamp;
use countersign::store::change::Change;
use countersign::store::label::{Label, Labelled};
use countersign::store::row::{Row, Table};
use countersign::store::sqlite::{SqliteOptions, SqliteStore};
use countersign::store::{Cursor, Direction, Filter, SequencerLock, Store, StoreError};

use crate::gateway::{POLICY, spawn_on};

/// A real store that counts what it is asked.
struct Counted {
    inner: SqliteStore,
    asked: AtomicUsize,
}

impl Counted {
    fn count(&self) -> &SqliteStore {
        self.asked.fetch_add(1, Ordering::SeqCst);
        &self.inner
    }
}

#[async_trait]
impl Store for Counted {
    async fn commit(&self, change: Change) -> Result<(), StoreError> {
        self.count().commit(change).await
    }
    async fn get(&self, table: Table, id: &str) -> Result<Option<Row>, StoreError> {
        self.count().get(table, id).await
    }
    async fn get_by_alias(&self, table: Table, alias: &str) -> Result<Option<Row>, StoreError> {
        self.count().get_by_alias(table, alias).await
    }
    async fn get_many(&self, table: Table, ids: &[String]) -> Result<Vec<Row>, StoreError> {
        self.count().get_many(table, ids).await
    }
    async fn list(
        &self,
        table: Table,
        filter: Filter<'_>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<Row>, StoreError> {
        self.count().list(table, filter, after, limit).await
    }
    async fn labelled(
        &self,
        table: Table,
        word: &str,
        direction: Direction,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<Labelled>, StoreError> {
        self.count().labelled(table, word, direction, after, limit).await
    }
    async fn labels(&self, after: Option<&Label>, limit: u32) -> Result<Vec<Label>, StoreError> {
        self.count().labels(after, limit).await
    }
    async fn by_alias_prefix(&self, table: Table, prefix: &str, limit: u32) -> Result<Vec<Row>, StoreError> {
        self.count().by_alias_prefix(table, prefix, limit).await
    }
    async fn last_of(&self, table: Table, owner: &str) -> Result<Option<Row>, StoreError> {
        self.count().last_of(table, owner).await
    }
    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.inner.now().await
    }
    async fn sequencer_lock(&self) -> Result<Option<Box<dyn SequencerLock>>, StoreError> {
        self.inner.sequencer_lock().await
    }
    async fn changed(&self, patience: Duration) {
        self.inner.changed(patience).await;
    }
}

/// Every page that lists, and what it may ask: who asks is two of them, the number in the title two more.
const LISTS: &[(&str, usize)] = &[
    ("/", 14),
    ("/?show=mine", 11),
    ("/?show=soon", 11),
    ("/?show=past", 11),
    ("/?show=denied&flow=payments", 11),
    ("/?show=everything", 12),
    ("/?q=target_user_id", 13),
    ("/?q=00000000", 14),
];

#[tokio::test]
async fn a_page_that_lists_asks_a_handful_of_questions_however_much_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ClockOffset::default();
    let options = SqliteOptions { clock_offset: clock.clone(), ..SqliteOptions::default() };
    let inner = SqliteStore::open(folder.path().join("countersign.db"), options).unwrap();
    let store = Arc::new(Counted { inner, asked: AtomicUsize::new(0) });
    let g = spawn_on(folder, clock, store.clone(), POLICY).await;
    let (_, secret) = g.service.sign_in("alice", "correct horse battery".to_owned()).await.unwrap();
    let mut asked: Vec<Vec<usize>> = Vec::new();
    for round in 0..2 {
        for number in 0..30 {
            let held = g.held(&g.thread().await).await;
            if number % 2 == 0 {
                g.vote(&g.alice, &held, Verdict::Deny).await.unwrap();
            }
        }
        let mut counts = Vec::new();
        for (path, most) in LISTS {
            store.asked.store(0, Ordering::SeqCst);
            let page = g.http.get(format!("{}{path}", g.url)).header("cookie", format!("countersign={secret}"));
            assert_eq!(page.send().await.unwrap().status().as_u16(), 200, "{path}");
            let count = store.asked.load(Ordering::SeqCst);
            assert!(count <= *most, "{path} asks {count} times in round {round}, at most {most}");
            counts.push(count);
        }
        asked.push(counts);
    }
    assert_eq!(asked[0], asked[1], "twice as many rows are no more questions");
}
