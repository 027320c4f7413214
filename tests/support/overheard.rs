//! A real store that tells what it is asked before it answers.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use countersign::domain::time::Timestamp;
use countersign::store::change::Change;
use countersign::store::label::{Label, Labelled};
use countersign::store::row::{Row, Table};
use countersign::store::{Cursor, Direction, Duty, Filter, OnDuty, Store, StoreError};

/// What it is asked, as far as any test looks at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked<'a> {
    Labels,
    LastOf(&'a str),
    Other,
}

/// Whoever is told.
pub type Ear = Box<dyn Fn(Asked<'_>) + Send + Sync>;

pub struct Overheard {
    inner: Arc<dyn Store>,
    ear: Ear,
}

impl Overheard {
    pub fn new(inner: Arc<dyn Store>, ear: Ear) -> Self {
        Self { inner, ear }
    }

    fn asked(&self, what: Asked<'_>) -> &dyn Store {
        (self.ear)(what);
        &*self.inner
    }
}

#[async_trait]
impl Store for Overheard {
    async fn commit(&self, change: Change) -> Result<(), StoreError> {
        self.asked(Asked::Other).commit(change).await
    }
    async fn get(&self, table: Table, id: &str) -> Result<Option<Row>, StoreError> {
        self.asked(Asked::Other).get(table, id).await
    }
    async fn get_by_alias(&self, table: Table, alias: &str) -> Result<Option<Row>, StoreError> {
        self.asked(Asked::Other).get_by_alias(table, alias).await
    }
    async fn get_many(&self, table: Table, ids: &[String]) -> Result<Vec<Row>, StoreError> {
        self.asked(Asked::Other).get_many(table, ids).await
    }
    async fn list(
        &self,
        table: Table,
        filter: Filter<'_>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<Row>, StoreError> {
        self.asked(Asked::Other).list(table, filter, after, limit).await
    }
    async fn labelled(
        &self,
        table: Table,
        word: &str,
        direction: Direction,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<Labelled>, StoreError> {
        self.asked(Asked::Other).labelled(table, word, direction, after, limit).await
    }
    async fn labels(&self, after: Option<&Label>, limit: u32) -> Result<Vec<Label>, StoreError> {
        self.asked(Asked::Labels).labels(after, limit).await
    }
    async fn by_alias_prefix(&self, table: Table, prefix: &str, limit: u32) -> Result<Vec<Row>, StoreError> {
        self.asked(Asked::Other).by_alias_prefix(table, prefix, limit).await
    }
    async fn last_of(&self, table: Table, owner: &str) -> Result<Option<Row>, StoreError> {
        self.asked(Asked::LastOf(owner)).last_of(table, owner).await
    }
    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.inner.now().await
    }
    async fn take(&self, duty: Duty) -> Result<Option<Box<dyn OnDuty>>, StoreError> {
        self.inner.take(duty).await
    }
    fn queued(&self) -> usize {
        self.inner.queued()
    }
    async fn changed(&self, patience: Duration) {
        self.inner.changed(patience).await;
    }
}
