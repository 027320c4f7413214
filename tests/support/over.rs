//! A store that wraps another one. It passes every call on. A test sees the call first, and can decide the result of
//! a change or of a leader lock.

use std::sync::Arc;
use std::time::Duration;

use countersign_domain::primitives::time::Timestamp;

use async_trait::async_trait;
use countersign_store::change::ChangeSet;
use countersign_store::label::{Label, LabelledRow};
use countersign_store::row::{SealedRow, Table};
use countersign_store::{Cursor, Direction, LeaderLock, LeaderTask, RowFilter, ScanPage, Store, StoreError};

/// Calls of a store that tests observe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreOperation<'a> {
    Commit,
    Rows(Table),
    Labels,
    Walk,
    LastOf(&'a str),
}

/// Observes calls before the store answers them, and decides the results of changes and leader locks.
#[async_trait]
pub trait StoreInterceptor: Send + Sync + 'static {
    async fn commit(&self, inner: &dyn Store, change: ChangeSet) -> Result<(), StoreError> {
        inner.commit(change).await
    }

    async fn take(&self, inner: &dyn Store, duty: LeaderTask) -> Result<Option<Box<dyn LeaderLock>>, StoreError> {
        inner.take(duty).await
    }

    async fn asked(&self, _what: StoreOperation<'_>) {}

    /// Called with the next page of a scan. The scan waits for it.
    fn met(&self, _page: &ScanPage) {}
}

#[async_trait]
impl<F: Fn(StoreOperation<'_>) + Send + Sync + 'static> StoreInterceptor for F {
    async fn asked(&self, what: StoreOperation<'_>) {
        self(what);
    }
}

pub struct InterceptedStore<W> {
    inner: Arc<dyn Store>,
    pub watching: W,
}

impl<W> InterceptedStore<W> {
    pub fn new(inner: Arc<dyn Store>, watching: W) -> Arc<Self> {
        Arc::new(Self { inner, watching })
    }
}

#[async_trait]
impl<W: StoreInterceptor> Store for InterceptedStore<W> {
    async fn commit(&self, change: ChangeSet) -> Result<(), StoreError> {
        self.watching.asked(StoreOperation::Commit).await;
        self.watching.commit(&*self.inner, change).await
    }
    async fn get(&self, table: Table, id: &str) -> Result<Option<SealedRow>, StoreError> {
        self.watching.asked(StoreOperation::Rows(table)).await;
        self.inner.get(table, id).await
    }
    async fn get_by_alias(&self, table: Table, alias: &str) -> Result<Option<SealedRow>, StoreError> {
        self.watching.asked(StoreOperation::Rows(table)).await;
        self.inner.get_by_alias(table, alias).await
    }
    async fn get_many(&self, table: Table, ids: &[String]) -> Result<Vec<SealedRow>, StoreError> {
        self.watching.asked(StoreOperation::Rows(table)).await;
        self.inner.get_many(table, ids).await
    }
    async fn list(
        &self,
        table: Table,
        filter: RowFilter<'_>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<SealedRow>, StoreError> {
        self.watching.asked(StoreOperation::Rows(table)).await;
        self.inner.list(table, filter, after, limit).await
    }
    async fn labelled(
        &self,
        table: Table,
        word: &str,
        direction: Direction,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<LabelledRow>, StoreError> {
        self.watching.asked(StoreOperation::Rows(table)).await;
        self.inner.labelled(table, word, direction, after, limit).await
    }
    async fn labels(&self, after: Option<&Label>, limit: u32) -> Result<Vec<Label>, StoreError> {
        self.watching.asked(StoreOperation::Labels).await;
        self.inner.labels(after, limit).await
    }
    async fn walk(&self, meet: &mut (dyn FnMut(ScanPage) + Send)) -> Result<(), StoreError> {
        self.watching.asked(StoreOperation::Walk).await;
        let mut met = |page| {
            self.watching.met(&page);
            meet(page);
        };
        self.inner.walk(&mut met).await
    }
    async fn by_alias_prefix(&self, table: Table, prefix: &str, limit: u32) -> Result<Vec<SealedRow>, StoreError> {
        self.watching.asked(StoreOperation::Rows(table)).await;
        self.inner.by_alias_prefix(table, prefix, limit).await
    }
    async fn last_of(&self, table: Table, owner: &str) -> Result<Option<SealedRow>, StoreError> {
        self.watching.asked(StoreOperation::LastOf(owner)).await;
        self.inner.last_of(table, owner).await
    }
    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.inner.now().await
    }
    async fn take(&self, duty: LeaderTask) -> Result<Option<Box<dyn LeaderLock>>, StoreError> {
        self.watching.take(&*self.inner, duty).await
    }
    fn queued(&self) -> usize {
        self.inner.queued()
    }
    async fn changed(&self, patience: Duration) {
        self.inner.changed(patience).await;
    }
}
