//! Deliveries for administrators: listing, sending again, testing an endpoint, and deleting old rows.

use std::time::Duration;

use countersign_adapters::random;
use countersign_domain::delivery::delivery_record::{Delivery, DeliveryAttempt};
use countersign_domain::delivery::endpoint::DeliveryPosition;
use countersign_domain::log::event::Event;
use countersign_domain::primitives::id::{EndpointId, EventId};
use countersign_domain::primitives::time::Timestamp;
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use countersign_store::records::{deliveries_of, delivery_id, ended_of, waiting_of};
use countersign_store::{Cursor, LIST_ROWS_MAX, RowFilter};

use super::endpoint_health::assess_health;
use super::request;
use crate::delivery::Deliveries;
use crate::delivery::target::DeliveryTarget;
use crate::error::{Error, Result};
use crate::identity::actor::Actor;
use crate::log::sequencer::SequencedEvent;
use crate::platform::retry::retrying;

/// Number of rows that one change replaces or deletes.
const AT_ONCE: u32 = 250;

/// Selects deliveries of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeliveryFilter {
    /// All deliveries, the latest event first.
    All,
    /// Deliveries that wait for their next attempt, the soonest first.
    Waiting,
    /// Deliveries that were given up, the oldest first.
    Failed,
}

/// Position after a page of deliveries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeliveryCursor {
    /// Time by which the last delivery of the page is sorted.
    pub moment: i64,
    pub index: u64,
}

/// A delivery with its content.
#[derive(Clone, Debug)]
pub struct DeliveryDetails {
    pub delivery: Delivery,
    /// Body of every attempt.
    pub body: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RedeliveryRange {
    /// All deliveries that were given up since this time.
    FailedSince(Timestamp),
    /// All undelivered events after a log position.
    LogAfter(u64),
}

impl Deliveries {
    /// Returns a page of an endpoint's deliveries and the position of the next page.
    pub async fn deliveries(
        &self,
        endpoint: &EndpointId,
        which: DeliveryFilter,
        after: Option<DeliveryCursor>,
        limit: u32,
    ) -> Result<(Vec<Delivery>, Option<DeliveryCursor>)> {
        let keys = self.core.keys()?;
        self.endpoint_with_position(&keys, endpoint).await?;
        let limit = limit.min(LIST_ROWS_MAX);
        let begin = Cursor { due: 0, id: deliveries_of(endpoint) };
        let after = after.map(|it| Cursor { due: it.moment, id: delivery_id(endpoint, it.index) });
        let word = match which {
            DeliveryFilter::All => None,
            DeliveryFilter::Waiting => Some(waiting_of(endpoint, false)),
            DeliveryFilter::Failed => Some(ended_of(endpoint, false)),
        };
        let rows: Vec<Stored<Delivery>> = match &word {
            Some(word) => self.core.reader(&keys).list(RowFilter::State(word), after.as_ref(), limit).await?,
            None => self.core.reader(&keys).list(RowFilter::All, Some(after.as_ref().unwrap_or(&begin)), limit).await?,
        };
        // A short page is the last one.
        let more = rows.len() == limit as usize;
        let own: Vec<Delivery> =
            rows.into_iter().map(|it| it.record).take_while(|it| it.endpoint == *endpoint).collect();
        let last = own.last().filter(|_| more);
        let next = last.map(|it| DeliveryCursor { moment: it.moment(), index: it.index });
        Ok((own, next))
    }

    /// Returns one delivery with its content.
    pub async fn delivery(&self, endpoint: &EndpointId, index: u64) -> Result<DeliveryDetails> {
        let keys = self.core.keys()?;
        let (row, _) = self.endpoint_with_position(&keys, endpoint).await?;
        let delivery = self.core.need::<Delivery>(&keys, &delivery_id(endpoint, index), "delivery").await?.record;
        let event = self.core.need::<Event>(&keys, delivery.event.as_str(), "event").await?.record;
        let body = self.body_of(&row.record, &SequencedEvent::untraced(index, event)).await?;
        Ok(DeliveryDetails { delivery, body })
    }

    /// Sends a delivery again, even if it arrived before or the endpoint is disabled.
    pub async fn redeliver(&self, by: Actor<'_>, endpoint: &EndpointId, index: u64) -> Result<Delivery> {
        retrying!({
            let (keys, now) = (self.core.keys()?, self.core.now());
            self.endpoint_with_position(&keys, endpoint).await?;
            let stored = self.core.need::<Delivery>(&keys, &delivery_id(endpoint, index), "delivery").await?;
            if matches!(stored.record.state, countersign_domain::delivery::delivery_record::DeliveryState::Behind {}) {
                return Err(Error::WrongState(
                    "this delivery waits for an earlier one in its thread: send that one first",
                ));
            }
            let next = stored.record.again(now);
            let mut draft = Draft::new(keys.row(), now);
            by.rely(&mut draft);
            draft.replace(&stored, &next)?;
            self.core.store_response(&mut draft, &keys, &next)?;
            self.core.commit(draft.finish()).await?;
            Ok(next)
        })
    }

    /// Sends many deliveries again. Returns the number of deliveries or log positions.
    pub async fn redeliver_many(&self, by: Actor<'_>, endpoint: &EndpointId, again: RedeliveryRange) -> Result<u64> {
        match again {
            RedeliveryRange::LogAfter(after) => retrying!(self.read_again(by, endpoint, after)),
            RedeliveryRange::FailedSince(since) => {
                // One change has a limited size, so the deliveries are sent again in batches.
                let mut sent = 0;
                loop {
                    match retrying!(self.redeliver_failed(by, endpoint, since, sent))? {
                        0 => return Ok(sent),
                        more => sent += more,
                    }
                }
            }
        }
    }

    /// Sends one batch again. The response is stored with the last batch. After a crash, the rest is still marked as
    /// failed, and a repeated request sends it.
    async fn redeliver_failed(&self, by: Actor<'_>, endpoint: &EndpointId, since: Timestamp, sent: u64) -> Result<u64> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        self.endpoint_with_position(&keys, endpoint).await?;
        let word = ended_of(endpoint, false);
        // `~` sorts after every id, so the list begins exactly at `since`.
        let before = Cursor { due: since.millis().saturating_sub(1), id: "~".to_owned() };
        let failed = self.core.reader(&keys).list::<Delivery>(RowFilter::State(&word), Some(&before), AT_ONCE).await?;
        let mut draft = Draft::new(keys.row(), now);
        by.rely(&mut draft);
        for stored in &failed {
            draft.replace(stored, &stored.record.again(now))?;
        }
        // Only the last batch stores the response, because it knows the total.
        if failed.len() < AT_ONCE as usize {
            self.core.store_response(&mut draft, &keys, &(sent + failed.len() as u64))?;
        }
        if !failed.is_empty() {
            self.core.commit(draft.finish()).await?;
        }
        Ok(failed.len() as u64)
    }

    async fn read_again(&self, by: Actor<'_>, endpoint: &EndpointId, after: u64) -> Result<u64> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let (_, lane) = self.endpoint_with_position(&keys, endpoint).await?;
        // The cursor is not there yet and will send these events anyway.
        if after >= lane.record.reached {
            return Ok(0);
        }
        let mut draft = Draft::new(keys.row(), now);
        by.rely(&mut draft);
        draft.replace(&lane, &DeliveryPosition { reached: after, ..lane.record.clone() })?;
        let places = lane.record.reached - after;
        self.core.store_response(&mut draft, &keys, &places)?;
        self.core.commit(draft.finish()).await?;
        Ok(places)
    }

    /// Sends a test message to an endpoint and returns the result. A disabled endpoint that accepts it is enabled
    /// again.
    pub async fn test_endpoint(&self, id: &EndpointId) -> Result<DeliveryAttempt> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let (endpoint, _) = self.endpoint_with_position(&keys, id).await?;
        let event = EventId::try_from(random::uuid_v7(now).to_string()).expect("a UUID is a name");
        let address = DeliveryTarget::of(&keys, &endpoint.record)?;
        let errand = request::test_action(&keys, &endpoint.record, &address, &event, now, self.core.public_url())?;
        // Some receivers repeat their input, so secrets are masked before the result is stored or shown.
        let attempt = address.masked(errand.run(self.outgoing()?).await.attempt(now));
        self.core.metrics.attempted(&attempt.ended);
        retrying!(self.note_test(id, &attempt))?;
        Ok(attempt)
    }

    async fn note_test(&self, id: &EndpointId, attempt: &DeliveryAttempt) -> Result<()> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let (endpoint, lane) = self.endpoint_with_position(&keys, id).await?;
        let mut health = lane.record.clone();
        health.note(attempt.ended.arrived(), attempt.ended_at());
        let mut draft = Draft::new(keys.row(), now);
        assess_health(&mut draft, &endpoint, &health, attempt.ended.is_gone(), attempt.ended.arrived(), now)?;
        draft.replace(&lane, &health)?;
        self.core.store_response(&mut draft, &keys, attempt)?;
        self.core.commit(draft.finish()).await
    }

    /// Deletes deliveries that ended before this age. The audit log still has their events. Returns how many.
    pub async fn forget_deliveries(&self, age: Duration) -> Result<usize> {
        let (keys, until) = (self.core.keys()?, self.core.now().minus(age));
        let mut forgotten = 0;
        for endpoint in self.all_endpoints(&keys).await? {
            for arrived in [true, false] {
                let word = ended_of(&endpoint.record.id, arrived);
                let old =
                    self.core.reader(&keys).list::<Delivery>(RowFilter::DueBy(&word, until), None, AT_ONCE).await?;
                // An empty change would still cost a commit.
                if old.is_empty() {
                    continue;
                }
                let mut draft = Draft::new(keys.row(), self.core.now());
                for stored in &old {
                    draft.remove(stored);
                }
                self.core.commit(draft.finish()).await?;
                forgotten += old.len();
            }
        }
        Ok(forgotten)
    }
}
