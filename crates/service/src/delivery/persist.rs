//! Writes the results of deliveries together with the position of their cursor.
//!
//! A write is planned from the state of the cursor and runs while the cursor continues. The cursor learns the result
//! only after the write.

use std::collections::BTreeSet;

use countersign_adapters::random;
use countersign_domain::delivery::delivery_record::{Delivery, DeliveryState};
use countersign_domain::delivery::endpoint::{DeliveryPosition, Endpoint};
use countersign_domain::primitives::id::ThreadId;
use countersign_domain::primitives::time::Timestamp;
use countersign_store::RowFilter;
use countersign_store::change::{Draft, PreparedChange};
use countersign_store::record::{RecordReader, Stored};
use countersign_store::records::{behind_in, delivery_id};

use super::cursor::EndpointCursor;
use super::endpoint_health::assess_health;
use super::job::CompletedJob;
use crate::delivery::Deliveries;
use crate::delivery::target::DeliveryTarget;
use crate::error::Result;
use crate::platform::retry::ATTEMPTS_MAX;

/// Results that a cursor has to write.
struct PendingPersist {
    done: Vec<CompletedJob>,
    put_off: Vec<Delivery>,
}

impl PendingPersist {
    fn places(&self) -> BTreeSet<u64> {
        self.done.iter().map(|it| it.job.delivery.index).chain(self.put_off.iter().map(|it| it.index)).collect()
    }
}

/// State of a cursor after the write.
struct PersistedCursor {
    lane: Stored<DeliveryPosition>,
    endpoint: Option<Stored<Endpoint>>,
    /// Threads with a finished delivery, and the next delivery of each, if there is one.
    freed: Vec<(ThreadId, Option<u64>)>,
}

/// A planned write.
pub struct DeliveryPersistPlan {
    news: PendingPersist,
    after: PersistedCursor,
    drafted: PreparedChange,
}

/// A completed or failed write.
pub struct DeliveryPersistResult {
    news: PendingPersist,
    after: PersistedCursor,
    outcome: Result<()>,
}

impl DeliveryPersistPlan {
    /// Writes the plan. The cursor may continue in the meantime.
    pub async fn put(self, service: &Deliveries) -> DeliveryPersistResult {
        DeliveryPersistResult { news: self.news, after: self.after, outcome: service.core.commit(self.drafted).await }
    }
}

impl EndpointCursor {
    fn learn(&mut self, places: &BTreeSet<u64>, after: PersistedCursor) {
        self.mark_persisted(places);
        for (thread, next) in after.freed {
            self.busy.remove(&thread);
            self.busy.extend(next.map(|it| (thread, it)));
        }
        self.lane = after.lane;
        if let Some(endpoint) = after.endpoint {
            self.endpoint = endpoint;
        }
        // The endpoint was disabled since then.
        if !self.endpoint.record.is_served() {
            self.rest();
        }
    }
}

impl Deliveries {
    /// Plans a write of these results and of everything else that the cursor has found out.
    pub async fn plan(&self, lane: &mut EndpointCursor, done: Vec<CompletedJob>) -> Result<DeliveryPersistPlan> {
        done.iter().for_each(|it| self.core.metrics.attempted(&it.attempt.ended));
        let news = PendingPersist { done, put_off: std::mem::take(&mut lane.put_off) };
        self.planned(lane, news).await
    }

    /// Updates the cursor after a write. A write that conflicted with another change is planned and written again.
    pub async fn settle(&self, lane: &mut EndpointCursor, put: DeliveryPersistResult) -> Result<()> {
        let mut put = put;
        // Edits by administrators are rare, so a few attempts are enough.
        for _ in 1..ATTEMPTS_MAX {
            match put.outcome {
                Err(error) if error.is_conflict() => {}
                done => return done.map(|()| lane.learn(&put.news.places(), put.after)),
            }
            let news = self.look_again(lane, put.news).await?;
            put = self.planned(lane, news).await?.put(self).await;
        }
        put.outcome.map(|()| lane.learn(&put.news.places(), put.after))
    }

    /// Writes results and waits for the write.
    pub async fn record(&self, lane: &mut EndpointCursor, done: Vec<CompletedJob>) -> Result<()> {
        let put = self.plan(lane, done).await?.put(self).await;
        self.settle(lane, put).await
    }

    async fn planned(&self, lane: &EndpointCursor, news: PendingPersist) -> Result<DeliveryPersistPlan> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let mut put_off = news.put_off.clone();
        let mut draft = Draft::new(keys.row(), now);
        let mut health = lane.lane.record.clone();
        let mut freed: Vec<(ThreadId, Option<u64>)> = Vec::new();
        let (mut arrived, mut gone) = (false, false);
        for CompletedJob { job, attempt, retry_after } in &news.done {
            // Random jitter for the backoff, so that failed deliveries do not all retry at once.
            let chance = u32::from_be_bytes(random::bytes());
            let next = job.delivery.tried(attempt.clone(), chance, *retry_after);
            match &job.stored {
                Some(stored) => draft.replace(stored, &next)?,
                None => drop(draft.insert(&next)?),
            }
            // An event that is no longer relevant gives no evidence about the health of the receiver.
            if !attempt.ended.is_over() {
                health.note(attempt.ended.arrived(), attempt.ended_at());
                gone |= attempt.ended.is_gone();
                arrived |= attempt.ended.arrived();
            }
            let ended =
                next.thread.filter(|it| next.state.ended_at().is_some() && lane.busy.get(it) == Some(&next.index));
            if let Some(thread) = ended {
                let next = release_next(self.core.reader(&keys), &mut draft, lane, &thread, &mut put_off, now).await?;
                freed.push((thread, next));
            }
        }
        for delivery in &put_off {
            draft.insert(delivery)?;
        }
        // The position moves in the same change as the results, so that a crash loses nothing.
        health.reached = health.reached.max(lane.reached_with(&news.places()));
        let endpoint = assess_health(&mut draft, &lane.endpoint, &health, gone, arrived, now)?;
        if endpoint.is_none() {
            // A concurrent edit of the endpoint is detected here.
            draft.require_unchanged(&lane.endpoint);
        }
        let after = PersistedCursor { lane: draft.replaced(&lane.lane, health)?, endpoint, freed };
        Ok(DeliveryPersistPlan { news, after, drafted: draft.finish() })
    }

    /// Reads the rows of the cursor again after a conflict. Sent deliveries stay sent.
    async fn look_again(&self, lane: &mut EndpointCursor, mut news: PendingPersist) -> Result<PendingPersist> {
        let keys = self.core.keys()?;
        let (endpoint, row) = self.endpoint_with_position(&keys, lane.endpoint()).await?;
        // An administrator moved the position, or another gateway served the cursor.
        if row.record.reached != lane.lane.record.reached {
            lane.scan_from(row.record.reached);
        }
        // The conflicting change may have set another URL.
        lane.address = DeliveryTarget::of(&keys, &endpoint.record)?;
        (lane.endpoint, lane.lane) = (endpoint, row);
        for done in &mut news.done {
            let id = delivery_id(lane.endpoint(), done.job.delivery.index);
            let stored = self.core.reader(&keys).get::<Delivery>(&id).await?;
            // Another gateway that served the cursor may have written this row.
            if let Some(stored) = stored {
                done.job.delivery = stored.record.clone();
                done.job.stored = Some(stored);
            }
        }
        let mut unwritten = Vec::new();
        for delivery in news.put_off {
            if self.core.reader(&keys).get::<Delivery>(&delivery_id(lane.endpoint(), delivery.index)).await?.is_none() {
                unwritten.push(delivery);
            }
        }
        news.put_off = unwritten;
        Ok(news)
    }
}

/// Returns the position of the next delivery of the thread that waited for the previous one.
async fn release_next(
    reader: RecordReader<'_>,
    draft: &mut Draft<'_>,
    lane: &EndpointCursor,
    thread: &ThreadId,
    put_off: &mut [Delivery],
    now: Timestamp,
) -> Result<Option<u64>> {
    let state = DeliveryState::Waiting { due: now, by_hand: false };
    let word = behind_in(lane.endpoint(), thread);
    if let Some(next) = reader.list::<Delivery>(RowFilter::State(&word), None, 1).await?.pop() {
        draft.replace(&next, &Delivery { state, ..next.record.clone() })?;
        return Ok(Some(next.record.index));
    }
    // The next delivery may not have a row yet.
    let waits = |it: &&mut Delivery| it.thread.as_ref() == Some(thread) && it.state == DeliveryState::Behind {};
    let Some(next) = put_off.iter_mut().find(waits) else { return Ok(None) };
    next.state = state;
    Ok(Some(next.index))
}
