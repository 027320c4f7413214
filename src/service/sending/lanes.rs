//! Lanes: what an endpoint gets next, and writing down how it went.
//!
//! One gateway serves all lanes at a time, so what it knows of a lane stays true while it does. Should another have
//! taken over without its knowing, their changes meet in the lane's row: one of them is refused and looks again.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use super::Address;
use super::errands::Errand;
use super::jobs::{Done, Job};
use super::verdicts::verdict_of;
use crate::domain::endpoint::delivery::{Delivery, DeliveryState};
use crate::domain::endpoint::{Endpoint, Lane};
use crate::domain::event::Event;
use crate::domain::id::{EndpointId, ThreadId};
use crate::domain::keys::Keys;
use crate::domain::time::Timestamp;
use crate::random;
use crate::service::error::{Error, Result};
use crate::service::events::Placed;
use crate::service::{ATTEMPTS_MAX, Service};
use crate::store::change::Draft;
use crate::store::record::Stored;
use crate::store::records::{behind_in, deliveries_of, delivery_id, waiting_of};
use crate::store::{Cursor, Filter, LIST_ROWS_MAX};

/// So much of the log, or of what waits, is looked at together.
const LOOKED_AT: u32 = 100;

/// A lane that found nothing for its endpoint writes down how far it looked after so many events; a restart looks at
/// no more than these again.
pub const UNWRITTEN_MAX: u64 = 1_000;

/// A lane while it is served.
pub struct OpenLane {
    endpoint: Stored<Endpoint>,
    address: Address,
    lane: Stored<Lane>,
    /// Looked at up to here.
    looked: u64,
    /// Up to here there may be rows of events beyond what was reached: before a crash they were sent out of turn.
    written: u64,
    /// Places that were looked at and whose deliveries have no row yet.
    open: BTreeSet<u64>,
    /// Places of deliveries that are under way.
    under_way: HashSet<u64>,
    /// Where order counts: threads of which a delivery has not ended, and its place in the log.
    busy: BTreeMap<ThreadId, u64>,
    ready: VecDeque<Job>,
}

impl OpenLane {
    /// Whose lane it is.
    pub const fn endpoint(&self) -> &EndpointId {
        &self.endpoint.record.id
    }

    /// Whether the last attempt failed.
    pub const fn is_failing(&self) -> bool {
        self.lane.record.failing_since.is_some()
    }

    /// Whether it is as these rows are still.
    pub fn is_of(&self, endpoint: &Stored<Endpoint>, lane: &Stored<Lane>) -> bool {
        self.endpoint.seal == endpoint.seal && self.lane.seal == lane.seal
    }

    /// Everything up to here needs no looking at.
    fn reached(&self) -> u64 {
        self.open.first().map_or(self.looked, |it| self.looked.min(it - 1))
    }

    /// Looks at the log from there on, whatever was looked at before: what is ready and has no row is found again.
    fn look_from(&mut self, place: u64) {
        self.written = self.written.max(self.looked);
        self.looked = place;
        let (stored, fresh) = std::mem::take(&mut self.ready).into_iter().partition(|it| it.stored.is_some());
        self.ready = stored;
        let fresh: VecDeque<Job> = fresh;
        for Delivery { index, thread, .. } in fresh.into_iter().map(|it| it.delivery) {
            self.open.remove(&index);
            self.busy.retain(|it, _| Some(it) != thread.as_ref());
        }
    }

    /// An endpoint that is not served gets nothing more of what was ready.
    fn rest(&mut self) {
        let fresh = self.ready.iter().filter(|it| it.stored.is_none()).map(|it| it.delivery.index).min();
        self.look_from(fresh.map_or(self.looked, |it| it - 1));
        self.ready.retain(|it| it.is_by_hand());
    }

    /// What is done for a job, signed now.
    pub async fn errand(&self, service: &Service, job: &Job, now: Timestamp) -> Result<Errand> {
        let placed = Placed { index: job.delivery.index, event: job.event.clone() };
        service.errand((&self.endpoint.record, &self.address), &placed, now).await
    }
}

impl Service {
    /// Endpoints with their lanes, those that are disabled too: what was asked for by hand is sent there.
    pub async fn lanes(&self) -> Result<Vec<(Stored<Endpoint>, Stored<Lane>)>> {
        let keys = self.keys()?;
        let endpoints = self.standing_endpoints(&keys).await?;
        if endpoints.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<String> = endpoints.iter().map(|it| it.record.id.to_string()).collect();
        let mut lanes = self.reader(&keys).get_many::<Lane>(&ids).await?;
        let lane_of = |endpoint: Stored<Endpoint>| {
            let at = lanes.iter().position(|it| it.record.endpoint == endpoint.record.id)?;
            let lane = lanes.swap_remove(at);
            Some((endpoint, lane))
        };
        Ok(endpoints.into_iter().filter_map(lane_of).collect())
    }

    /// Begins to serve a lane.
    pub async fn open_lane(&self, endpoint: Stored<Endpoint>, lane: Stored<Lane>) -> Result<OpenLane> {
        let keys = self.keys()?;
        let address = Address::of(&keys, &endpoint.record)?;
        let begin = deliveries_of(&endpoint.record.id);
        let last = Cursor { due: 0, id: begin.clone() };
        let last = self.reader(&keys).list::<Delivery>(Filter::All, Some(&last), 1).await?.pop();
        let written = last.filter(|it| it.record.endpoint == endpoint.record.id).map_or(0, |it| it.record.index);
        let busy = match endpoint.record.ordered {
            true => self.busy_threads(&keys, &endpoint.record.id).await?,
            false => BTreeMap::new(),
        };
        Ok(OpenLane {
            looked: lane.record.reached,
            endpoint,
            address,
            lane,
            written,
            open: BTreeSet::new(),
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
                let rows =
                    self.reader(keys).list::<Delivery>(Filter::State(&word), after.as_ref(), LIST_ROWS_MAX).await?;
                let Some(last) = rows.last() else { break };
                after = Some(Cursor { due: last.record.moment(), id: delivery_id(endpoint, last.record.index) });
                for Delivery { thread, index, .. } in rows.into_iter().map(|it| it.record) {
                    // What was asked for by hand is behind what others wait for.
                    let at = thread.map(|it| busy.entry(it).or_insert(index));
                    at.into_iter().for_each(|it| *it = index.max(*it));
                }
            }
        }
        Ok(busy)
    }

    /// What the lane gets next, if there is anything now.
    pub async fn next_job(&self, lane: &mut OpenLane) -> Result<Option<Job>> {
        if lane.ready.is_empty() {
            self.refill(lane).await?;
        }
        let job = lane.ready.pop_front();
        if let Some(job) = &job {
            lane.under_way.insert(job.delivery.index);
        }
        Ok(job)
    }

    async fn refill(&self, lane: &mut OpenLane) -> Result<()> {
        let keys = self.keys()?;
        self.look_at_waiting(&keys, lane, true).await?;
        if lane.endpoint.record.is_served() {
            self.look_at_waiting(&keys, lane, false).await?;
            while lane.ready.is_empty() && self.look_at_log(&keys, lane).await? {}
        }
        Ok(())
    }

    async fn look_at_waiting(&self, keys: &Keys, lane: &mut OpenLane, by_hand: bool) -> Result<()> {
        let word = waiting_of(lane.endpoint(), by_hand);
        let due = self.reader(keys).list::<Delivery>(Filter::DueBy(&word, self.now()), None, LOOKED_AT).await?;
        let due: Vec<_> = due.into_iter().filter(|it| !lane.under_way.contains(&it.record.index)).collect();
        let ids: Vec<String> = due.iter().map(|it| it.record.event.to_string()).collect();
        let events = self.reader(keys).get_many::<Event>(&ids).await?;
        for stored in due {
            let event = events.iter().find(|it| it.record.id == stored.record.event);
            let event = event.ok_or(Error::Broken("an event that a delivery names"))?.record.clone();
            lane.ready.push_back(Job { delivery: stored.record.clone(), stored: Some(stored), event });
        }
        Ok(())
    }

    /// Looks at the next events. Whether there were any.
    async fn look_at_log(&self, keys: &Keys, lane: &mut OpenLane) -> Result<bool> {
        let (events, next) = self.events_after(lane.looked, None, LOOKED_AT).await?;
        if next == lane.looked {
            return Ok(false);
        }
        let had = self.had_before(keys, lane, next).await?;
        let mut behind = Vec::new();
        for Placed { index, event } in events {
            if had.contains(&index) || lane.under_way.contains(&index) || !lane.endpoint.record.wants(&event) {
                continue;
            }
            if !self.is_for(&lane.endpoint.record, &event).await? {
                continue;
            }
            let thread = event.thread.clone();
            let waits = lane.endpoint.record.ordered && thread.as_ref().is_some_and(|it| lane.busy.contains_key(it));
            let (now, patience) = (self.now(), lane.endpoint.record.kind.patience());
            let due = patience.map_or(now, |it| event.at.plus(it).max(now));
            let state = if waits { DeliveryState::Behind {} } else { DeliveryState::Waiting { due, by_hand: false } };
            let delivery = Delivery {
                endpoint: lane.endpoint().clone(),
                index,
                event: event.id.clone(),
                kind: event.kind,
                thread,
                state,
                tries: 0,
                attempts: Vec::new(),
            };
            if lane.endpoint.record.ordered && !waits {
                lane.busy.extend(delivery.thread.clone().map(|it| (it, index)));
            }
            if waits || due > now {
                behind.push(delivery);
                continue;
            }
            lane.open.insert(index);
            lane.ready.push_back(Job { delivery, stored: None, event });
        }
        lane.looked = next;
        if !behind.is_empty() || (lane.open.is_empty() && next - lane.lane.record.reached >= UNWRITTEN_MAX) {
            self.write(lane, Written { behind, ..Written::default() }).await?;
        }
        Ok(true)
    }

    /// Which of the next places have rows already.
    async fn had_before(&self, keys: &Keys, lane: &OpenLane, until: u64) -> Result<HashSet<u64>> {
        let ids: Vec<String> =
            (lane.looked + 1..=until.min(lane.written)).map(|it| delivery_id(lane.endpoint(), it)).collect();
        if ids.is_empty() {
            return Ok(HashSet::new());
        }
        let rows = self.reader(keys).get_many::<Delivery>(&ids).await?;
        Ok(rows.into_iter().map(|it| it.record.index).collect())
    }

    /// Writes down how jobs went, and with it how far the lane has come.
    pub async fn record(&self, lane: &mut OpenLane, done: Vec<Done>) -> Result<()> {
        let masked = |it: Done| Done { attempt: lane.address.masked(it.attempt), ..it };
        let done: Vec<Done> = done.into_iter().map(masked).collect();
        for it in &done {
            self.metrics.attempted(&it.attempt.ended);
            lane.under_way.remove(&it.job.delivery.index);
            lane.open.remove(&it.job.delivery.index);
        }
        self.write(lane, Written { done, behind: Vec::new() }).await
    }

    async fn write(&self, lane: &mut OpenLane, written: Written) -> Result<()> {
        let mut written = written;
        for _ in 1..ATTEMPTS_MAX {
            match self.write_once(lane, &written).await {
                Err(error) if error.is_conflict() => self.look_again(lane, &mut written).await?,
                done => return done,
            }
        }
        self.write_once(lane, &written).await
    }

    async fn write_once(&self, lane: &mut OpenLane, written: &Written) -> Result<()> {
        let (keys, now) = (self.keys()?, self.now());
        let mut draft = Draft::new(keys.row(), now);
        let mut health = lane.lane.record.clone();
        let mut freed: Vec<(ThreadId, Option<u64>)> = Vec::new();
        let (mut arrived, mut gone) = (false, false);
        for Done { job, attempt, retry_after } in &written.done {
            let chance = u32::from_be_bytes(random::bytes());
            let next = job.delivery.tried(attempt.clone(), chance, *retry_after);
            match &job.stored {
                Some(stored) => draft.replace(stored, &next)?,
                None => drop(draft.insert(&next)?),
            }
            if !attempt.ended.is_over() {
                health.note(attempt.ended.arrived(), attempt.ended_at());
                gone |= attempt.ended.is_gone();
                arrived |= attempt.ended.arrived();
            }
            let ended =
                next.thread.filter(|it| next.state.ended_at().is_some() && lane.busy.get(it) == Some(&next.index));
            if let Some(thread) = ended {
                let next = self.let_next_go(&keys, &mut draft, lane, &thread, now).await?;
                freed.push((thread, next));
            }
        }
        for delivery in &written.behind {
            draft.insert(delivery)?;
        }
        health.reached = health.reached.max(lane.reached());
        verdict_of(&mut draft, &lane.endpoint, &health, (gone, arrived), now)?;
        draft.replace(&lane.lane, &health)?;
        self.commit(draft.finish()).await?;
        for (thread, next) in freed {
            lane.busy.remove(&thread);
            lane.busy.extend(next.map(|it| (thread, it)));
        }
        (lane.endpoint, lane.lane) = self.endpoint_and_lane(&keys, &lane.endpoint.record.id.clone()).await?;
        if lane.lane.record.reached != health.reached {
            lane.look_from(lane.lane.record.reached);
        }
        if !lane.endpoint.record.is_served() {
            lane.rest();
        }
        Ok(())
    }

    /// The thread's next delivery that waited for the one before: its place, if there is one.
    async fn let_next_go(
        &self,
        keys: &Keys,
        draft: &mut Draft<'_>,
        lane: &OpenLane,
        thread: &ThreadId,
        now: Timestamp,
    ) -> Result<Option<u64>> {
        let word = behind_in(lane.endpoint(), thread);
        let Some(next) = self.reader(keys).list::<Delivery>(Filter::State(&word), None, 1).await?.pop() else {
            return Ok(None);
        };
        let state = DeliveryState::Waiting { due: now, by_hand: false };
        draft.replace(&next, &Delivery { state, ..next.record.clone() })?;
        Ok(Some(next.record.index))
    }

    /// Somebody else changed one of the rows: what is known of the lane is read again, and what went out stays done.
    async fn look_again(&self, lane: &mut OpenLane, written: &mut Written) -> Result<()> {
        let keys = self.keys()?;
        let (endpoint, row) = self.endpoint_and_lane(&keys, lane.endpoint()).await?;
        if row.record.reached != lane.lane.record.reached {
            lane.look_from(row.record.reached);
        }
        (lane.endpoint, lane.lane) = (endpoint, row);
        for done in &mut written.done {
            let id = delivery_id(lane.endpoint(), done.job.delivery.index);
            let stored = self.reader(&keys).get::<Delivery>(&id).await?;
            if let Some(stored) = stored {
                done.job.delivery = stored.record.clone();
                done.job.stored = Some(stored);
            }
        }
        let mut unwritten = Vec::new();
        for delivery in written.behind.drain(..) {
            if self.reader(&keys).get::<Delivery>(&delivery_id(lane.endpoint(), delivery.index)).await?.is_none() {
                unwritten.push(delivery);
            }
        }
        written.behind = unwritten;
        Ok(())
    }
}

/// What a lane has to write down.
#[derive(Default)]
struct Written {
    done: Vec<Done>,
    behind: Vec<Delivery>,
}
