//! Records outages of a store, so that the server log has one line per second about an outage and not one per call.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use countersign_adapters::clock::{Clock as _, SystemClock};
use countersign_domain::primitives::time::Timestamp;

use super::change::ChangeSet;
use super::label::{Label, LabelledRow};
use super::outage::Outage;
use super::row::{SealedRow, Table};
use super::{Cursor, Direction, LeaderLock, LeaderTask, RowFilter, ScanPage, Store, StoreError};

/// The interval of lines about refused calls.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// The time for which an outage counts as recent. A small write may succeed on a disk that is too full for larger ones.
const RECENT: Duration = Duration::from_secs(1);

/// A store that records outages.
pub struct WatchedStore {
    store: Arc<dyn Store>,
    refusing: AtomicBool,
    refusals: Mutex<OutageCounters>,
}

/// Counters of refused calls.
#[derive(Default)]
struct OutageCounters {
    /// The number of calls since the last log line.
    unlogged: u64,
    logged_at: Option<Instant>,
    last_outage: Option<(Instant, Outage)>,
}

impl WatchedStore {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, refusing: AtomicBool::new(false), refusals: Mutex::default() }
    }

    fn noted<T>(&self, done: Result<T, StoreError>) -> Result<T, StoreError> {
        // Other errors concern one change and not the database.
        if let Err(error @ (StoreError::Unavailable { .. } | StoreError::Busy)) = &done {
            self.refused(error);
        }
        done
    }

    fn refused(&self, error: &StoreError) {
        let now = SystemClock.instant();
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        self.refusing.store(true, Ordering::Relaxed);
        // Calls between two lines are counted, so the log shows the extent of an outage.
        refusals.unlogged += 1;
        // Overload is no outage of the database.
        if let StoreError::Unavailable { outage, .. } = error {
            refusals.last_outage = Some((now, *outage));
        }
        if refusals.is_line_due(now) {
            let calls = std::mem::take(&mut refusals.unlogged);
            refusals.logged_at = Some(now);
            tracing::error!(calls, %error, "the database refused calls");
        }
    }

    /// Records a commit, which shows that an outage is over. A read would not: it succeeds on a read-only database too.
    fn committed(&self) {
        if !self.refusing.load(Ordering::Relaxed) {
            return;
        }
        let now = SystemClock.instant();
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        if refusals.is_line_due(now) {
            let calls = std::mem::take(&mut refusals.unlogged);
            refusals.logged_at = Some(now);
            self.refusing.store(false, Ordering::Relaxed);
            tracing::info!(calls, "the database accepts commits again");
        }
    }
}

impl OutageCounters {
    fn is_line_due(&self, now: Instant) -> bool {
        self.logged_at.is_none_or(|it| now.saturating_duration_since(it) >= LINE_EVERY)
    }
}

#[async_trait]
impl Store for WatchedStore {
    async fn commit(&self, change: ChangeSet) -> Result<(), StoreError> {
        self.noted(self.store.commit(change).await)?;
        self.committed();
        Ok(())
    }

    async fn get(&self, table: Table, id: &str) -> Result<Option<SealedRow>, StoreError> {
        self.noted(self.store.get(table, id).await)
    }

    async fn get_by_alias(&self, table: Table, alias: &str) -> Result<Option<SealedRow>, StoreError> {
        self.noted(self.store.get_by_alias(table, alias).await)
    }

    async fn get_many(&self, table: Table, ids: &[String]) -> Result<Vec<SealedRow>, StoreError> {
        self.noted(self.store.get_many(table, ids).await)
    }

    async fn list(
        &self,
        table: Table,
        filter: RowFilter<'_>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<SealedRow>, StoreError> {
        self.noted(self.store.list(table, filter, after, limit).await)
    }

    async fn labelled(
        &self,
        table: Table,
        word: &str,
        direction: Direction,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<LabelledRow>, StoreError> {
        self.noted(self.store.labelled(table, word, direction, after, limit).await)
    }

    async fn labels(&self, after: Option<&Label>, limit: u32) -> Result<Vec<Label>, StoreError> {
        self.noted(self.store.labels(after, limit).await)
    }

    async fn walk(&self, meet: &mut (dyn FnMut(ScanPage) + Send)) -> Result<(), StoreError> {
        self.noted(self.store.walk(meet).await)
    }

    async fn by_alias_prefix(&self, table: Table, prefix: &str, limit: u32) -> Result<Vec<SealedRow>, StoreError> {
        self.noted(self.store.by_alias_prefix(table, prefix, limit).await)
    }

    async fn last_of(&self, table: Table, owner: &str) -> Result<Option<SealedRow>, StoreError> {
        self.noted(self.store.last_of(table, owner).await)
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.noted(self.store.now().await)
    }

    async fn take(&self, duty: LeaderTask) -> Result<Option<Box<dyn LeaderLock>>, StoreError> {
        self.noted(self.store.take(duty).await)
    }

    async fn bytes(&self) -> Result<Option<u64>, StoreError> {
        self.noted(self.store.bytes().await)
    }

    async fn check_storage(&self) -> Result<(), StoreError> {
        self.noted(self.store.check_storage().await)
    }

    async fn damages(&self) -> Result<Vec<String>, StoreError> {
        self.noted(self.store.damages().await)
    }

    fn recent_outage(&self) -> Option<Outage> {
        if !self.refusing.load(Ordering::Relaxed) {
            return None;
        }
        let refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = |at: Instant| SystemClock.instant().saturating_duration_since(at) < RECENT;
        refusals.last_outage.filter(|(at, _)| recent(*at)).map(|(_, outage)| outage)
    }

    async fn replaced(&self) -> String {
        self.store.replaced().await
    }

    fn queued(&self) -> usize {
        self.store.queued()
    }

    async fn changed(&self, patience: Duration) {
        self.store.changed(patience).await;
    }
}
