//! The use cases of the gateway.
//!
//! A use case loads the rows that it needs, decides with the pure domain, and commits one change. The change
//! lists every row that the decision relied on. On a conflict, the use case loads and decides again.

pub mod archive;
pub mod audit;
pub mod branches;
pub mod delivery;
pub mod episodes;
pub mod error;
pub mod identity;
pub mod inbox;
pub mod interrupts;
pub mod log;
pub mod operations;
pub mod platform;
pub mod policies;
pub mod policy_changes;
pub mod proposals;
pub mod reviews;
pub mod threads;
pub mod writes;

use std::sync::Arc;
use std::time::{Duration, Instant};

use countersign_domain::context::Rotation;
use countersign_domain::json::size::StateLimits;
use countersign_domain::keys::Keys;
use countersign_domain::operations::halt::Halt;
use countersign_domain::primitives::id::{FlowId, NodeId, ThreadId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::flow::{Flow, Gateway};
use countersign_domain::threads::thread::Thread;

use crate::archives::Archives;
use crate::clock::Clock;
use crate::http_client::HttpClient;
use crate::keyring::Keyring;
use crate::metrics::BlockingWork;
use crate::metrics::Metrics;
use crate::service::platform::fair_queue::QueuePermit;
use crate::store::change::{Draft, PreparedChange};
pub use crate::store::record::Stored;
use crate::store::record::{CachedRecord, Record, RecordReader};
use crate::store::records::GATEWAY_ID;
use crate::store::watched::WatchedStore;
use crate::store::{RowFilter, Store};
use crate::traces::TraceSink;
use delivery::tail_cache::LogTail;
use episodes::refusal_log::EnvelopeRefusals;
use error::{Error, Result};
use identity::failure_event_limiter::FailureEventLimiter;
use identity::last_seen_times::LastSeenTimes;
use identity::sign_in_config::SignInMethods;
use log::log_end_cache::LogEndCache;
use operations::gauge_cache::GaugeCache;
use operations::readiness_cache::ReadinessCache;
use platform::fair_queue::FairQueues;
use platform::in_flight_keys::{ANSWERS_KEPT, InFlightKeys};
use platform::lease_scan_cursor::LeaseScanCursor;
use platform::row_cache::{IssuedReceipts, RowCache};
pub use platform::settings::{PeopleSettings, ServiceSettings};
use policies::policy_cache::PolicyCache;
use reviews::rejudge_cache::RejudgeCache;
use threads::head_cache::HeadCache;

/// The state that all use cases share.
pub struct Service {
    store: Arc<dyn Store>,
    keyring: Keyring,
    clock: Arc<dyn Clock>,
    settings: ServiceSettings,
    heads: HeadCache,
    policies: PolicyCache,
    memory: RowCache,
    issued: IssuedReceipts,
    holds_looked: RejudgeCache,
    interrupts_looked: RejudgeCache,
    swept: LeaseScanCursor,
    telling: FailureEventLimiter,
    sightings: LastSeenTimes,
    ways: SignInMethods,
    reach: LogEndCache,
    metrics: Metrics,
    last_facts: GaugeCache,
    last_check: ReadinessCache,
    outgoing: Option<HttpClient>,
    archives: Option<Archives>,
    running: InFlightKeys,
    answers_kept: Duration,
    tail: LogTail,
    traces: TraceSink,
    turns: FairQueues,
    rotation: Rotation,
    boundary: EnvelopeRefusals,
}

/// The rows that nearly every decision relies on.
pub(super) struct ThreadContext {
    pub(super) gateway: Arc<Stored<Gateway>>,
    pub(super) flow: Arc<Stored<Flow>>,
    pub(super) thread: Arc<Stored<Thread>>,
    /// The thread that this thread is a branch of.
    pub(super) origin: Option<Arc<Stored<Thread>>>,
}

impl ThreadContext {
    pub(super) fn rely(&self, draft: &mut Draft<'_>) {
        draft.require_unchanged(&self.gateway).require_unchanged(&self.flow);
        if let Some(origin) = &self.origin {
            draft.require_unchanged(origin);
        }
    }

    /// Returns how often a node violated the policy on this head. On a branch, violations on the head that it
    /// was made from count too, so that a new branch does not reset the limit.
    pub(super) fn violations(&self, node: &NodeId) -> u32 {
        let threads = self.origin.iter().chain([&self.thread]);
        threads.filter_map(|it| it.record.violations.get(node)).fold(0, |sum, it| sum.saturating_add(*it))
    }

    pub(super) fn proposing_halted(&self) -> bool {
        self.gateway.record.halt.proposing || self.flow.record.halt.proposing
    }

    pub(super) fn verifying_halted(&self) -> bool {
        self.gateway.record.halt.verifying || self.flow.record.halt.verifying
    }
}

impl Service {
    /// Opens the gateway on a store. The first start stores the gateway's identity, and every later start
    /// must have the same one.
    pub async fn open(
        store: Arc<dyn Store>,
        keyring: Keyring,
        clock: Arc<dyn Clock>,
        settings: ServiceSettings,
    ) -> Result<Self> {
        let service = Self {
            store: Arc::new(WatchedStore::new(store)),
            keyring,
            clock,
            settings,
            heads: HeadCache::default(),
            policies: PolicyCache::default(),
            memory: RowCache::default(),
            issued: IssuedReceipts::default(),
            holds_looked: RejudgeCache::default(),
            interrupts_looked: RejudgeCache::default(),
            swept: LeaseScanCursor::default(),
            telling: FailureEventLimiter::default(),
            sightings: LastSeenTimes::default(),
            ways: SignInMethods::default(),
            reach: LogEndCache::default(),
            metrics: Metrics::default(),
            last_facts: GaugeCache::default(),
            last_check: ReadinessCache::default(),
            outgoing: None,
            archives: None,
            running: InFlightKeys::default(),
            answers_kept: ANSWERS_KEPT,
            tail: LogTail::default(),
            traces: TraceSink::default(),
            turns: FairQueues::default(),
            rotation: Rotation::default(),
            boundary: EnvelopeRefusals::default(),
        };
        // Before anything else, so that a wrong keyring changes nothing in the database.
        service.settle_identity().await?;
        service.settle_labels().await?;
        Ok(service)
    }

    async fn settle_identity(&self) -> Result<()> {
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

    /// Sets the archive directory. Without it, state stays in the database.
    #[must_use]
    pub fn archiving_in(self, archives: Archives) -> Self {
        Self { archives: Some(archives), ..self }
    }

    /// Sets the destination of traces.
    #[must_use]
    pub fn traced_by(self, traces: TraceSink) -> Self {
        Self { traces, ..self }
    }

    pub const fn traces(&self) -> &TraceSink {
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

    fn reader<'a>(&'a self, keys: &'a Keys) -> RecordReader<'a> {
        RecordReader { store: &*self.store, key: keys.row() }
    }

    async fn fetch<R: Record>(&self, keys: &Keys, id: &str) -> Result<Option<Stored<R>>> {
        let Some(row) = self.store.get(R::TABLE, id).await? else { return Ok(None) };
        // Opening a row verifies its HMAC, so that an edit of the database is detected.
        let stored = self.reader(keys).opened::<R>(&row, id)?;
        if let Some(known) = CachedRecord::of(&row, &stored.record) {
            self.memory.keep(known);
        }
        Ok(Some(stored))
    }

    async fn need<R: Record>(&self, keys: &Keys, id: &str, what: &'static str) -> Result<Stored<R>> {
        self.fetch(keys, id).await?.ok_or(Error::NotFound(what))
    }

    async fn gateway(&self, keys: &Keys) -> Result<Stored<Gateway>> {
        self.fetch(keys, GATEWAY_ID).await?.ok_or(Error::Broken("the gateway's own row is missing"))
    }

    async fn flow(&self, keys: &Keys, flow: &FlowId) -> Result<Stored<Flow>> {
        self.need(keys, flow.as_str(), "flow").await
    }

    async fn thread(&self, keys: &Keys, thread: &ThreadId) -> Result<Stored<Thread>> {
        match self.fetch(keys, thread.as_str()).await? {
            Some(stored) => Ok(stored),
            None => Err(self.no_thread(keys, thread).await),
        }
    }

    async fn standing(&self, keys: &Keys, thread: Stored<Thread>) -> Result<ThreadContext> {
        let gateway = self.gateway(keys).await?;
        let flow = self.fetch::<Flow>(keys, thread.record.flow.as_str()).await?;
        let flow = flow.ok_or(Error::Broken("the thread's flow is missing"))?;
        Ok(ThreadContext { gateway: Arc::new(gateway), flow: Arc::new(flow), thread: Arc::new(thread), origin: None })
    }

    /// Commits a change and caches its rows. After a conflict it drops the cached rows that the decision
    /// relied on, because they may be stale.
    async fn commit(&self, drafted: PreparedChange) -> Result<()> {
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
    pub(in crate::service) async fn apart<T: Send + 'static>(
        &self,
        turn: &QueuePermit,
        kind: BlockingWork,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        self.metrics.worked(kind);
        turn.work(kind.name(), work).await
    }
}
