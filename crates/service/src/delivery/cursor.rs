//! Delivery cursors: select the next delivery of an endpoint.
//!
//! One gateway serves all cursors at a time, so its view of a cursor stays correct. If another gateway takes over
//! unnoticed, both change the same row. The store refuses one of the changes, and that gateway reads again.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::sync::Arc;

use countersign_adapters::traces::TraceSpan;
use countersign_domain::delivery::delivery_record::{Delivery, DeliveryState};
use countersign_domain::delivery::endpoint::{DeliveryPosition, Endpoint};
use countersign_domain::keys::Keys;
use countersign_domain::log::event::Event;
use countersign_domain::primitives::id::{EndpointId, ThreadId};
use countersign_domain::primitives::time::Timestamp;
use countersign_store::record::Stored;
use countersign_store::records::{LogRow, deliveries_of, delivery_id, log_id, waiting_of};
use countersign_store::{Cursor, LIST_ROWS_MAX, RowFilter};

use super::job::DeliveryJob;
use super::request::DeliveryAction;
use crate::delivery::Deliveries;
use crate::delivery::tail_cache::TailLine;
use crate::delivery::target::DeliveryTarget;
use crate::error::{Error, Result};
use crate::log::sequencer::SequencedEvent;

/// Number of log lines or waiting deliveries that are read at once.
const LOOKED_AT: u32 = 100;

/// A cursor that finds nothing for its endpoint writes its position after this many events. A restart reads at most as
/// many again.
pub const UNWRITTEN_MAX: u64 = 1_000;

/// The delivery cursor of an endpoint while it is served.
pub struct EndpointCursor {
    pub(super) endpoint: Stored<Endpoint>,
    pub(super) address: DeliveryTarget,
    pub(super) lane: Stored<DeliveryPosition>,
    looked: u64,
    /// Up to this position, deliveries may have rows although the cursor is behind. They were sent out of order before
    /// a crash.
    written: u64,
    /// Positions that were read and whose deliveries have no row yet.
    open: BTreeSet<u64>,
    /// Deliveries that are not sent yet but get a row, so that they do not block the ones behind them.
    pub(super) put_off: Vec<Delivery>,
    /// Positions of deliveries that were started and whose result is not written yet.
    under_way: HashSet<u64>,
    /// For ordered delivery: threads with an unfinished delivery, and its log position.
    pub(super) busy: BTreeMap<ThreadId, u64>,
    ready: VecDeque<DeliveryJob>,
}

impl EndpointCursor {
    pub const fn endpoint(&self) -> &EndpointId {
        &self.endpoint.record.id
    }

    /// Returns the address that the cursor currently uses.
    pub const fn address(&self) -> &DeliveryTarget {
        &self.address
    }

    /// Returns true if the last attempt failed.
    pub const fn is_failing(&self) -> bool {
        self.lane.record.failing_since.is_some()
    }

    /// Returns true if these rows are unchanged.
    pub fn is_of(&self, endpoint: &Stored<Endpoint>, lane: &Stored<DeliveryPosition>) -> bool {
        self.endpoint.seal == endpoint.seal && self.lane.seal == lane.seal
    }

    /// Returns the number of deliveries that were started and are not written yet.
    pub fn unpersisted_count(&self) -> usize {
        self.under_way.len()
    }

    /// Returns true if something has to be written although no delivery has ended.
    pub fn has_news(&self) -> bool {
        // Writing the position for each skipped event would cost one commit per event.
        let far = self.looked.saturating_sub(self.lane.record.reached) >= UNWRITTEN_MAX;
        !self.put_off.is_empty() || (far && self.open.is_empty())
    }

    /// Returns true if the cursor may read ahead during a write. In ordered delivery, the write may release the next
    /// delivery.
    pub const fn scans_ahead(&self) -> bool {
        !self.endpoint.record.ordered
    }

    /// Returns the position that is reached once these positions have rows.
    pub(super) fn reached_with(&self, written: &BTreeSet<u64>) -> u64 {
        self.open.difference(written).next().map_or(self.looked, |it| self.looked.min(it - 1))
    }

    /// Marks positions that now have rows.
    pub(super) fn mark_persisted(&mut self, written: &BTreeSet<u64>) {
        self.open.retain(|it| !written.contains(it));
        self.under_way.retain(|it| !written.contains(it));
    }

    /// Reads the log again from a position. Deliveries that are ready and have no row are found again.
    pub(super) fn scan_from(&mut self, place: u64) {
        // Everything that was read so far may have a row now.
        self.written = self.written.max(self.looked);
        self.looked = place;
        let (stored, fresh) = std::mem::take(&mut self.ready).into_iter().partition(|it| it.stored.is_some());
        self.ready = stored;
        let fresh: VecDeque<DeliveryJob> = fresh;
        for Delivery { index, thread, .. } in fresh.into_iter().map(|it| it.delivery) {
            self.open.remove(&index);
            self.busy.retain(|it, _| Some(it) != thread.as_ref());
        }
        for Delivery { index, .. } in self.put_off.extract_if(.., |it| it.index > place) {
            self.open.remove(&index);
        }
    }

    /// Drops the ready deliveries of an endpoint that is not served.
    pub(super) fn rest(&mut self) {
        let fresh = self.ready.iter().filter(|it| it.stored.is_none()).map(|it| it.delivery.index).min();
        self.scan_from(fresh.map_or(self.looked, |it| it - 1));
        // Manual deliveries are also sent to disabled endpoints.
        self.ready.retain(|it| it.is_by_hand());
    }

    /// Schedules a log line for the endpoint: now, later, or after the delivery before it in its thread.
    fn schedule_line(&mut self, line: Arc<TailLine>, now: Timestamp) {
        let SequencedEvent { index, event, .. } = &line.placed;
        let (index, thread, ordered) = (*index, event.thread.clone(), self.endpoint.record.ordered);
        // In ordered delivery, a thread has one unfinished delivery at most.
        let waits = ordered && thread.as_ref().is_some_and(|it| self.busy.contains_key(it));
        let due = self.endpoint.record.kind.patience().map_or(now, |it| event.at.plus(it).max(now));
        let state = if waits { DeliveryState::Behind {} } else { DeliveryState::Waiting { due, by_hand: false } };
        // Later deliveries of this thread now have to wait for this one.
        if ordered && !waits {
            self.busy.extend(thread.clone().map(|it| (it, index)));
        }
        let delivery = Delivery {
            endpoint: self.endpoint().clone(),
            index,
            event: event.id.clone(),
            kind: event.kind,
            thread,
            state,
            tries: 0,
            attempts: Vec::new(),
        };
        self.open.insert(index);
        if waits || due > now {
            self.put_off.push(delivery);
        } else {
            self.ready.push_back(DeliveryJob { delivery, stored: None, line });
        }
    }

    /// Returns the action of a delivery, signed now.
    pub async fn errand(
        &self,
        service: &Deliveries,
        job: &DeliveryJob,
        now: Timestamp,
        piece: &TraceSpan,
    ) -> Result<DeliveryAction> {
        service.errand(&self.endpoint.record, &self.address, &job.line, piece.place(), now).await
    }
}

impl Deliveries {
    /// Returns all endpoints with their cursors. Disabled ones are included, because manual deliveries are still sent
    /// to them.
    pub async fn endpoint_positions(&self) -> Result<Vec<(Stored<Endpoint>, Stored<DeliveryPosition>)>> {
        let keys = self.core.keys()?;
        let endpoints = self.active_endpoints(&keys).await?;
        if endpoints.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<String> = endpoints.iter().map(|it| it.record.id.to_string()).collect();
        let mut lanes = self.core.reader(&keys).get_many::<DeliveryPosition>(&ids).await?;
        let lane_of = |endpoint: Stored<Endpoint>| {
            let at = lanes.iter().position(|it| it.record.endpoint == endpoint.record.id)?;
            let lane = lanes.swap_remove(at);
            Some((endpoint, lane))
        };
        Ok(endpoints.into_iter().filter_map(lane_of).collect())
    }

    pub async fn open_cursor(
        &self,
        endpoint: Stored<Endpoint>,
        lane: Stored<DeliveryPosition>,
    ) -> Result<EndpointCursor> {
        let keys = self.core.keys()?;
        let address = DeliveryTarget::of(&keys, &endpoint.record)?;
        let begin = deliveries_of(&endpoint.record.id);
        let last = Cursor { due: 0, id: begin.clone() };
        let last = self.core.reader(&keys).list::<Delivery>(RowFilter::All, Some(&last), 1).await?.pop();
        // Deliveries up to this position may have rows, so they must not be created a second time.
        let written = last.filter(|it| it.record.endpoint == endpoint.record.id).map_or(0, |it| it.record.index);
        let busy = match endpoint.record.ordered {
            true => self.busy_threads(&keys, &endpoint.record.id).await?,
            // Unordered delivery never waits for another delivery.
            false => BTreeMap::new(),
        };
        Ok(EndpointCursor {
            looked: lane.record.reached,
            endpoint,
            address,
            lane,
            written,
            open: BTreeSet::new(),
            put_off: Vec::new(),
            under_way: HashSet::new(),
            busy,
            ready: VecDeque::new(),
        })
    }

    async fn busy_threads(&self, keys: &Keys, endpoint: &EndpointId) -> Result<BTreeMap<ThreadId, u64>> {
        let mut busy = BTreeMap::new();
        for by_hand in [false, true] {
            let word = waiting_of(endpoint, by_hand);
            let mut after: Option<Cursor> = None;
            loop {
                let rows = self
                    .core
                    .reader(keys)
                    .list::<Delivery>(RowFilter::State(&word), after.as_ref(), LIST_ROWS_MAX)
                    .await?;
                let Some(last) = rows.last() else { break };
                after = Some(Cursor { due: last.record.moment(), id: delivery_id(endpoint, last.record.index) });
                for Delivery { thread, index, .. } in rows.into_iter().map(|it| it.record) {
                    // A manual delivery is behind the one that others wait for.
                    let at = thread.map(|it| busy.entry(it).or_insert(index));
                    at.into_iter().for_each(|it| *it = index.max(*it));
                }
            }
        }
        Ok(busy)
    }

    /// Returns the next delivery of the cursor if there is one now.
    pub async fn next_delivery(&self, lane: &mut EndpointCursor) -> Result<Option<DeliveryJob>> {
        if lane.ready.is_empty() {
            self.refill(lane).await?;
        }
        let job = lane.ready.pop_front();
        if let Some(job) = &job {
            lane.under_way.insert(job.delivery.index);
        }
        Ok(job)
    }

    async fn refill(&self, lane: &mut EndpointCursor) -> Result<()> {
        let keys = self.core.keys()?;
        // Manual deliveries come first and are also sent to disabled endpoints.
        self.read_waiting(&keys, lane, true).await?;
        if lane.endpoint.record.is_served() {
            self.read_waiting(&keys, lane, false).await?;
            while lane.ready.is_empty() && !lane.has_news() && self.read_next_lines(&keys, lane).await? {}
        }
        Ok(())
    }

    async fn read_waiting(&self, keys: &Keys, lane: &mut EndpointCursor, by_hand: bool) -> Result<()> {
        let word = waiting_of(lane.endpoint(), by_hand);
        let due =
            self.core.reader(keys).list::<Delivery>(RowFilter::DueBy(&word, self.core.now()), None, LOOKED_AT).await?;
        // A delivery in progress still has its old row, and must not be sent twice.
        let due: Vec<_> = due.into_iter().filter(|it| !lane.under_way.contains(&it.record.index)).collect();
        let ids: Vec<String> = due.iter().map(|it| it.record.event.to_string()).collect();
        let events = self.core.reader(keys).get_many::<Event>(&ids).await?;
        let places: Vec<String> = due.iter().map(|it| log_id(it.record.index)).collect();
        let places = self.core.reader(keys).get_many::<LogRow>(&places).await?;
        for stored in due {
            let event = events.iter().find(|it| it.record.id == stored.record.event);
            let event = event.ok_or(Error::Broken("an event that a delivery names"))?.record.clone();
            let index = stored.record.index;
            let trace = places.iter().find(|it| it.record.index == index).and_then(|it| it.record.trace.clone());
            let line = TailLine::new(SequencedEvent { index, event, trace });
            lane.ready.push_back(DeliveryJob { delivery: stored.record.clone(), stored: Some(stored), line });
        }
        Ok(())
    }

    /// Reads the next events. Returns true if there were any.
    async fn read_next_lines(&self, keys: &Keys, lane: &mut EndpointCursor) -> Result<bool> {
        let (lines, next) = self.lines_after(lane.looked, LOOKED_AT).await?;
        if next == lane.looked {
            return Ok(false);
        }
        let had = self.positions_with_rows(keys, lane, next).await?;
        for line in lines {
            let SequencedEvent { index, event, .. } = &line.placed;
            // After a crash, some of these events were already delivered.
            if had.contains(index) || lane.under_way.contains(index) || !lane.endpoint.record.is_subscribed_to(event) {
                continue;
            }
            if !self.is_for(&lane.endpoint.record, event).await? {
                continue;
            }
            lane.schedule_line(line, self.core.now());
        }
        // Events for other endpoints are skipped, but the position still moves.
        lane.looked = next;
        Ok(true)
    }

    /// Returns which of the next positions have rows already.
    async fn positions_with_rows(&self, keys: &Keys, lane: &EndpointCursor, until: u64) -> Result<HashSet<u64>> {
        let ids: Vec<String> =
            (lane.looked + 1..=until.min(lane.written)).map(|it| delivery_id(lane.endpoint(), it)).collect();
        if ids.is_empty() {
            return Ok(HashSet::new());
        }
        let rows = self.core.reader(keys).get_many::<Delivery>(&ids).await?;
        Ok(rows.into_iter().map(|it| it.record.index).collect())
    }
}
