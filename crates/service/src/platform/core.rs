//! The store, the keys, the clock and the caches of rows, which every use case needs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use countersign_adapters::archives::Archives;
use countersign_adapters::clock::Clock;
use countersign_adapters::keyring::Keyring;
use countersign_adapters::metrics::{BlockingWork, Metrics};
use countersign_adapters::traces::TraceSink;
use countersign_domain::json::size::StateLimits;
use countersign_domain::keys::Keys;
use countersign_domain::operations::halt::Halt;
use countersign_domain::primitives::id::{FlowId, NodeId, ThreadId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::flow::{Flow, Gateway};
use countersign_domain::threads::thread::Thread;
use countersign_store::change::{Draft, PreparedChange};
use countersign_store::record::{CachedRecord, Record, RecordReader, Stored};
use countersign_store::records::GATEWAY_ID;
use countersign_store::{RowFilter, Store};

use super::fair_queue::{FairQueues, QueuePermit};
use super::in_flight_keys::InFlightKeys;
use super::lease_scan_cursor::LeaseScanCursor;
use super::row_cache::RowCache;
use super::settings::{CoreParts, ServiceSettings};
use crate::error::{Error, Result};

/// The state that all capabilities share.
pub struct Core {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) keyring: Arc<Keyring>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: ServiceSettings,
    pub(crate) memory: RowCache,
    pub(crate) metrics: Metrics,
    pub(crate) traces: Arc<TraceSink>,
    pub(crate) turns: FairQueues,
    pub(crate) running: InFlightKeys,
    pub(crate) answers_kept: Duration,
    pub(crate) swept: LeaseScanCursor,
    pub(crate) archives: Option<Archives>,
}

/// The rows that nearly every decision relies on.
pub(crate) struct ThreadContext {
    pub(crate) gateway: Arc<Stored<Gateway>>,
    pub(crate) flow: Arc<Stored<Flow>>,
    pub(crate) thread: Arc<Stored<Thread>>,
    /// The thread that this thread is a branch of.
    pub(crate) origin: Option<Arc<Stored<Thread>>>,
}

impl ThreadContext {
    pub(crate) fn rely(&self, draft: &mut Draft<'_>) {
        draft.require_unchanged(&self.gateway).require_unchanged(&self.flow);
        if let Some(origin) = &self.origin {
            draft.require_unchanged(origin);
        }
    }

    /// Returns how often a node violated the policy on this head. On a branch, violations on the head that it
    /// was made from count too, so that a new branch does not reset the limit.
    pub(crate) fn violations(&self, node: &NodeId) -> u32 {
        let threads = self.origin.iter().chain([&self.thread]);
        threads.filter_map(|it| it.record.violations.get(node)).fold(0, |sum, it| sum.saturating_add(*it))
    }

    pub(crate) fn proposing_halted(&self) -> bool {
        self.gateway.record.halt.proposing || self.flow.record.halt.proposing
    }

    pub(crate) fn verifying_halted(&self) -> bool {
        self.gateway.record.halt.verifying || self.flow.record.halt.verifying
    }
}

impl Core {
    pub(crate) fn new(parts: &CoreParts) -> Self {
        Self {
            store: Arc::clone(&parts.store),
            keyring: Arc::clone(&parts.keyring),
            clock: Arc::clone(&parts.clock),
            settings: parts.settings.clone(),
            memory: RowCache::default(),
            metrics: Metrics::default(),
            traces: Arc::clone(&parts.traces),
            turns: FairQueues::default(),
            running: InFlightKeys::default(),
            answers_kept: parts.response_ttl,
            swept: LeaseScanCursor::default(),
            archives: parts.archives.clone(),
        }
    }

    pub(crate) async fn settle_identity(&self) -> Result<()> {
        let keys = self.keys()?;
        if self.fetch::<Gateway>(&keys, GATEWAY_ID).await?.is_none() {
            // The first commit writes this row. If other rows exist without it, the row was deleted, perhaps
            // to remove a halt.
            if !self.reader(&keys).list::<Flow>(RowFilter::All, None, 1).await?.is_empty() {
                return Err(Error::Broken("the gateway's own row is missing"));
            }
            let now = self.now();
            let gateway =
                Gateway { issuer: keys.issuer().to_owned(), halt: Halt::default(), stops: None, created_at: now };
            let mut draft = Draft::new(keys.row(), now);
            draft.insert(&gateway)?;
            match self.commit(draft.finish()).await {
                // On a conflict another gateway has created the row. It is compared below.
                Err(error) if !error.is_conflict() => return Err(error),
                _ => {}
            }
        }
        let gateway = self.gateway(&keys).await?;
        if gateway.record.issuer == keys.issuer() {
            Ok(())
        } else {
            Err(Error::WrongState(
                "This database was created with another keyring. Start the gateway with that keyring.",
            ))
        }
    }

    pub fn traces(&self) -> &TraceSink {
        &self.traces
    }

    /// Returns the time by the gateway's own clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns a moment of the monotonic clock, for measurements.
    pub fn instant(&self) -> Instant {
        self.clock.instant()
    }

    /// Returns the base URL under which people reach the gateway.
    pub fn public_url(&self) -> &str {
        &self.settings.public_url
    }

    /// Returns the current keys of the keyring.
    pub fn keys(&self) -> Result<Arc<Keys>> {
        Ok(self.keyring.current()?)
    }

    pub fn limits(&self) -> &StateLimits {
        &self.settings.limits
    }

    pub(crate) fn reader<'a>(&'a self, keys: &'a Keys) -> RecordReader<'a> {
        RecordReader { store: &*self.store, key: keys.row() }
    }

    pub(crate) async fn fetch<R: Record>(&self, keys: &Keys, id: &str) -> Result<Option<Stored<R>>> {
        let Some(row) = self.store.get(R::TABLE, id).await? else { return Ok(None) };
        // Opening a row verifies its HMAC, so that an edit of the database is detected.
        let stored = self.reader(keys).opened::<R>(&row, id)?;
        if let Some(known) = CachedRecord::of(&row, &stored.record) {
            self.memory.keep(known);
        }
        Ok(Some(stored))
    }

    pub(crate) async fn need<R: Record>(&self, keys: &Keys, id: &str, what: &'static str) -> Result<Stored<R>> {
        self.fetch(keys, id).await?.ok_or(Error::NotFound(what))
    }

    pub(crate) async fn gateway(&self, keys: &Keys) -> Result<Stored<Gateway>> {
        self.fetch(keys, GATEWAY_ID).await?.ok_or(Error::Broken("the gateway's own row is missing"))
    }

    pub(crate) async fn flow(&self, keys: &Keys, flow: &FlowId) -> Result<Stored<Flow>> {
        self.need(keys, flow.as_str(), "flow").await
    }

    pub(crate) async fn thread(&self, keys: &Keys, thread: &ThreadId) -> Result<Stored<Thread>> {
        match self.fetch(keys, thread.as_str()).await? {
            Some(stored) => Ok(stored),
            None => Err(self.no_thread(keys, thread).await),
        }
    }

    pub(crate) async fn standing(&self, keys: &Keys, thread: Stored<Thread>) -> Result<ThreadContext> {
        let gateway = self.gateway(keys).await?;
        let flow = self.fetch::<Flow>(keys, thread.record.flow.as_str()).await?;
        // Flows are never deleted, so a missing row is damage.
        let flow = flow.ok_or(Error::Broken("the thread's flow is missing"))?;
        Ok(ThreadContext { gateway: Arc::new(gateway), flow: Arc::new(flow), thread: Arc::new(thread), origin: None })
    }

    /// Commits a change and caches its rows. After a conflict it drops the cached rows that the decision
    /// relied on, because they may be stale.
    pub(crate) async fn commit(&self, drafted: PreparedChange) -> Result<()> {
        let names: Vec<_> = drafted.change.names().map(|(table, id)| (table, id.to_owned())).collect();
        match self.store.commit(drafted.change).await {
            Ok(()) => {
                drafted.known.into_iter().for_each(|known| self.memory.keep(known));
                Ok(())
            }
            Err(error) => {
                self.memory.forget(&names);
                Err(error.into())
            }
        }
    }

    /// Waits until a gateway commits, or for at most `patience`. The return is only a hint to check again.
    pub async fn changed(&self, patience: Duration) {
        self.store.changed(patience).await;
    }

    /// Runs work on a blocking thread, and counts it in the metrics.
    pub(crate) async fn apart<T: Send + 'static>(
        &self,
        turn: &QueuePermit,
        kind: BlockingWork,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        self.metrics.worked(kind);
        turn.work(kind.name(), work).await
    }
}
