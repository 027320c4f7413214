//! A store above another: whatever is asked goes through, and a test decides what becomes of each change.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use countersign::domain::time::Timestamp;
use countersign::store::change::Change;
use countersign::store::label::{Label, Labelled};
use countersign::store::row::{Row, Table};
use countersign::store::{Cursor, Direction, Duty, Filter, OnDuty, Store, StoreError};

/// What becomes of a change.
#[async_trait]
pub trait Committing: Send + Sync + 'static {
    async fn commit(&self, inner: &dyn Store, change: Change) -> Result<(), StoreError>;
}

pub struct Over<C> {
    inner: Arc<dyn Store>,
    pub committing: C,
}

impl<C> Over<C> {
    pub fn new(inner: Arc<dyn Store>, committing: C) -> Arc<Self> {
        Arc::new(Self { inner, committing })
    }
}

#[async_trait]
impl<C: Committing> Store for Over<C> {
    async fn commit(&self, change: Change) -> Result<(), StoreError> {
        self.committing.commit(&*self.inner, change).await
    }
    async fn get(&self, table: Table, id: &str) -> Result<Option<Row>, StoreError> {
        self.inner.get(table, id).await
    }
    async fn get_by_alias(&self, table: Table, alias: &str) -> Result<Option<Row>, StoreError> {
        self.inner.get_by_alias(table, alias).await
    }
    async fn get_many(&self, table: Table, ids: &[String]) -> Result<Vec<Row>, StoreError> {
        self.inner.get_many(table, ids).await
    }
    async fn list(
        &self,
        table: Table,
        filter: Filter<'_>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<Row>, StoreError> {
        self.inner.list(table, filter, after, limit).await
    }
    async fn labelled(
        &self,
        table: Table,
        word: &str,
        direction: Direction,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<Labelled>, StoreError> {
        self.inner.labelled(table, word, direction, after, limit).await
    }
    async fn labels(&self, after: Option<&Label>, limit: u32) -> Result<Vec<Label>, StoreError> {
        self.inner.labels(after, limit).await
    }
    async fn by_alias_prefix(&self, table: Table, prefix: &str, limit: u32) -> Result<Vec<Row>, StoreError> {
        self.inner.by_alias_prefix(table, prefix, limit).await
    }
    async fn last_of(&self, table: Table, owner: &str) -> Result<Option<Row>, StoreError> {
        self.inner.last_of(table, owner).await
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
