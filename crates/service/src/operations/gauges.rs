//! Gauges read from the database for `/metrics`. The number of queries is bounded, and concurrent scrapes
//! share one result.

use std::collections::BTreeMap;
use std::time::Duration;

use countersign_adapters::metrics::{self, DatabaseGauges, LeaseState, Metrics};
use countersign_domain::keys::Keys;
use countersign_domain::log::event::Event;
use countersign_domain::primitives::id::EndpointId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::Hold;
use countersign_domain::threads::archive::Archive;
use countersign_domain::threads::thread::Thread;
use countersign_store::record::{ListBounds, Record, Stored};
use countersign_store::records::{COUNTED, InsightRow, LogRow, OPEN, RESERVED, UnsequencedEvent, log_id};
use countersign_store::{LIST_ROWS_MAX, RowFilter};

use super::halt::HaltScope;
use crate::delivery::cursor::UNWRITTEN_MAX;
use crate::error::Result;
use crate::operations::Operations;

/// How long a result is reused. Prometheus scrapes every 15 seconds, and a thousand concurrent scrapes cause
/// one query.
const FRESH_MILLIS: i64 = 2_000;

/// How many pages of a thousand rows are counted for each gauge. Opening a row costs some microseconds, so
/// this takes a tenth of a second. More rows than this only exist if something else is wrong.
const PAGES_MAX: usize = 10;

impl Operations {
    /// Returns the counters of this gateway.
    pub fn metrics(&self) -> &Metrics {
        &self.core.metrics
    }

    /// Returns all counters and gauges in the Prometheus text format.
    pub async fn metrics_text(&self) -> String {
        // The lock is held during the queries on purpose: concurrent scrapes wait for it and share one
        // result.
        let mut last = self.last_facts.0.lock().await;
        let now = self.core.now();
        let fresh = |at: &Timestamp| (0..FRESH_MILLIS).contains(&(now.millis() - at.millis()));
        if !last.as_ref().is_some_and(|it| fresh(&it.0)) {
            let facts = self.facts(now).await;
            if let Err(error) = &facts {
                let error = error as &dyn std::error::Error;
                tracing::error!(error, "the gauges of /metrics could not be read from the database");
            }
            // A failure is cached too, so that scrapes do not add load to a failing database.
            *last = Some((now, facts.ok()));
        }
        let facts = last.as_ref().and_then(|it| it.1.as_ref());
        self.core.metrics.text(facts, self.core.store.queued())
    }

    async fn facts(&self, now: Timestamp) -> Result<DatabaseGauges> {
        let keys = self.core.keys()?;
        let mut facts = DatabaseGauges::default();
        for halting in self.halts().await? {
            let flow = match halting.scope {
                HaltScope::All => None,
                HaltScope::Flow(flow) => {
                    // A flow without a pending review gets a gauge of 0, so that its time series exists.
                    facts.open.entry(flow.clone()).or_default();
                    Some(flow)
                }
            };
            facts.halts.push((flow, halting.halt));
        }
        for hold in self.counted_pages::<Hold>(&keys, RowFilter::State(OPEN)).await? {
            let hold = hold.record;
            // An expired review is no longer pending, even if the worker has not ended it yet.
            if hold.is_open(now) {
                let open = facts.open.entry(hold.flow).or_default();
                open.count += 1;
                open.oldest = open.oldest.max(hold.opened_at.until(now));
            }
        }
        for thread in self.counted_pages::<Thread>(&keys, RowFilter::State(RESERVED)).await? {
            let thread = thread.record;
            let lease = if thread.expired_write(now).is_some() { LeaseState::Lapsed } else { LeaseState::Standing };
            *facts.reservations.entry((thread.flow, lease)).or_default() += 1;
        }
        let waiting = self.counted_pages::<UnsequencedEvent>(&keys, RowFilter::All).await?;
        facts.unplaced = waiting.len() as u64;
        if let Some(first) = waiting.first() {
            // The sequencer may have assigned its position since then. The event itself is never deleted.
            let event = self.core.need::<Event>(&keys, first.record.event.as_str(), "event").await?;
            facts.unplaced_oldest = event.record.at.until(now);
        }
        facts.log = self.log.log_length().await?;
        facts.lanes = self.lane_facts(&keys, facts.log, now).await?;
        let counted = self.core.fetch::<InsightRow>(&keys, COUNTED).await?;
        facts.uncounted = match counted.map(|it| it.record) {
            Some(InsightRow::Counted(counted)) => facts.log.saturating_sub(counted.index),
            Some(InsightRow::Figures(_)) | None => facts.log,
        };
        let archives = self.counted_pages::<Archive>(&keys, RowFilter::All).await?;
        facts.archives = archives.len() as u64;
        facts.archive_bytes = archives.iter().map(|it| it.record.bytes).sum();
        facts.database_bytes = self.core.store.bytes().await?;
        Ok(facts)
    }

    /// Returns the gauges of each endpoint. A delivery cursor that finds nothing for its endpoint is stored
    /// only once in [`UNWRITTEN_MAX`] events, so this examines the events after it.
    async fn lane_facts(
        &self,
        keys: &Keys,
        log: u64,
        now: Timestamp,
    ) -> Result<BTreeMap<EndpointId, metrics::CursorGauges>> {
        let lanes = self.delivery.endpoint_positions().await?;
        let first =
            lanes.iter().map(|it| it.1.record.reached).min().unwrap_or(log).max(log.saturating_sub(UNWRITTEN_MAX));
        // Read once for all endpoints.
        let last = if first < log { self.log.events_after(first, None, LIST_ROWS_MAX).await?.0 } else { Vec::new() };
        let mut told = BTreeMap::new();
        for (endpoint, lane) in lanes {
            let (endpoint, lane) = (endpoint.record, lane.record);
            let (unsent, oldest) = if lane.reached < first {
                let oldest = self.core.need::<LogRow>(keys, &log_id(lane.reached + 1), "log entry").await?;
                let oldest = self.core.need::<Event>(keys, oldest.record.event.as_str(), "event").await?;
                (log - lane.reached, Some(oldest.record.at))
            } else {
                let mut wanted =
                    last.iter().filter(|it| it.index > lane.reached && endpoint.is_subscribed_to(&it.event)).peekable();
                let oldest = wanted.peek().map(|it| it.event.at);
                (wanted.count() as u64, oldest)
            };
            let facts = metrics::CursorGauges {
                unsent,
                unsent_oldest: oldest.map_or(Duration::ZERO, |it| it.until(now)),
                failing: lane.failing_since.map_or(Duration::ZERO, |it| it.until(now)),
                disabled: !endpoint.is_served(),
            };
            told.insert(endpoint.id, facts);
        }
        Ok(told)
    }

    /// Returns the first rows of a list, up to [`PAGES_MAX`] pages.
    async fn counted_pages<R: Record>(&self, keys: &Keys, filter: RowFilter<'_>) -> Result<Vec<Stored<R>>> {
        Ok(self.core.reader(keys).select(filter, None, ListBounds::pages(PAGES_MAX), Some).await?.items)
    }
}
