//! Delivers events to endpoints. Each endpoint has a delivery cursor and a task of its own, so that none
//! waits for another.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use countersign_domain::primitives::id::EndpointId;
use countersign_domain::primitives::time::Timestamp;
use countersign_service::Service;
use countersign_service::delivery::cursor::EndpointCursor;
use countersign_service::delivery::job::{CompletedJob, DeliveryJob};
use countersign_service::delivery::target::DeliveryLeadership;
use countersign_service::error::{Error, Result};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{self, JoinError, JoinSet};

/// Concurrent requests to one healthy endpoint. A failing endpoint gets one at a time.
pub const LANE_WIDTH_MAX: usize = 8;

/// Requests to one endpoint that are in progress, or finished and not yet stored.
pub const LANE_UNWRITTEN_MAX: usize = 32;

/// Requests to all endpoints, beyond one that each endpoint always has. An endpoint that hangs can use these
/// up, and the others still have their own one.
pub const SHARED_MAX: usize = 64;

/// How often a standby gateway tries to take over the delivery.
const STANDBY: Duration = Duration::from_secs(1);

/// Sends everything that is due, once. Returns how much was sent. If another gateway is the leader, it sends
/// nothing.
pub async fn run_once(service: &Arc<Service>) -> Result<usize> {
    let sender = DeliveryWorker::new(service);
    sender.round().await?;
    sender.rest().await
}

pub struct DeliveryWorker {
    service: Arc<Service>,
    shared: Arc<Semaphore>,
    stop: watch::Sender<bool>,
    state: Mutex<DeliveryWorkerState>,
    /// Delivery cursors that no task serves now, with their cached state.
    parked: Arc<std::sync::Mutex<HashMap<EndpointId, EndpointCursor>>>,
}

#[derive(Default)]
struct DeliveryWorkerState {
    duty: Option<DeliveryLeadership>,
    /// The time of the next attempt to get the leader lock.
    look_at: Option<Timestamp>,
    /// The endpoint of each task.
    served: HashMap<task::Id, EndpointId>,
    tasks: JoinSet<Result<usize>>,
}

impl DeliveryWorker {
    pub fn new(service: &Arc<Service>) -> Self {
        Self {
            service: Arc::clone(service),
            shared: Arc::new(Semaphore::new(SHARED_MAX)),
            stop: watch::Sender::new(false),
            state: Mutex::default(),
            parked: Arc::default(),
        }
    }

    /// Starts a task for every endpoint that has none. Returns how much the finished tasks sent.
    pub async fn round(&self) -> Result<usize> {
        let mut state = self.state.lock().await;
        let mut sent = Ok(0);
        while let Some(ended) = state.tasks.try_join_next_with_id() {
            sent = add(&mut state, sent, ended);
        }
        if !self.ensure_leadership(&mut state).await? {
            return sent;
        }
        for (endpoint, row) in self.service.delivery.endpoint_positions().await? {
            let id = endpoint.record.id.clone();
            if state.served.values().any(|it| *it == id) {
                continue;
            }
            // The cached state saves queries, and it is only used if the endpoint is unchanged.
            let known = self.parked.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            let lane = match known.filter(|it| it.is_of(&endpoint, &row)) {
                Some(lane) => lane,
                None => self.service.delivery.open_cursor(endpoint, row).await?,
            };
            let serving = EndpointDelivery {
                service: Arc::clone(&self.service),
                shared: Arc::clone(&self.shared),
                stopping: self.stop.subscribe(),
            };
            let parked = Arc::clone(&self.parked);
            let whose = id.clone();
            let begun = state.tasks.spawn(async move {
                let mut lane = lane;
                let sent = serving.serve(&mut lane).await;
                // After a failure the cursor is loaded again, because its cached state may be wrong.
                if sent.is_ok() {
                    parked.lock().unwrap_or_else(PoisonError::into_inner).insert(id, lane);
                }
                sent
            });
            state.served.insert(begun.id(), whose);
        }
        sent
    }

    /// Waits until no request is in progress. Returns how much was sent.
    pub async fn rest(&self) -> Result<usize> {
        let mut state = self.state.lock().await;
        let mut sent = Ok(0);
        while let Some(ended) = state.tasks.join_next_with_id().await {
            sent = add(&mut state, sent, ended);
        }
        sent
    }

    /// Returns whether this gateway is the leader. Takeover can take a moment, because the database holds the
    /// lock until it notices a closed connection.
    pub async fn stands(&self) -> bool {
        self.state.lock().await.duty.as_ref().is_some_and(|it| it.stands())
    }

    /// Starts nothing more, and waits for the requests in progress for at most `patience`. Unfinished ones
    /// are sent again later under the same id.
    pub async fn end(&self, patience: Duration) {
        // `send_replace` also works without receivers, when no task runs.
        self.stop.send_replace(true);
        if let Ok(Err(error)) = tokio::time::timeout(patience, self.rest()).await {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the results of the last deliveries could not be stored; these events are sent again"
            );
        }
        // The remaining tasks are aborted. Their requests were not stored as delivered, so they are repeated
        // later.
        self.state.lock().await.tasks.shutdown().await;
    }

    async fn ensure_leadership(&self, state: &mut DeliveryWorkerState) -> Result<bool> {
        if state.duty.as_ref().is_some_and(|it| it.stands()) {
            return Ok(true);
        }
        let now = self.service.core.now();
        // If the clock went back, the second comparison prevents a long wait.
        if state.look_at.is_some_and(|it| now < it && it <= now.plus(STANDBY)) {
            return Ok(false);
        }
        // Another gateway may have been the leader since, so the cached cursors may be stale.
        self.parked.lock().unwrap_or_else(PoisonError::into_inner).clear();
        state.duty = self.service.delivery.acquire_delivery_lock().await?;
        state.look_at = state.duty.is_none().then(|| now.plus(STANDBY));
        Ok(state.duty.is_some())
    }
}

/// Records that a task has finished. After a panic its cursor is loaded again.
fn add(
    state: &mut DeliveryWorkerState,
    sent: Result<usize>,
    ended: std::result::Result<(task::Id, Result<usize>), JoinError>,
) -> Result<usize> {
    let (id, more) = match ended {
        Ok(ended) => ended,
        Err(error) => {
            tracing::error!(%error, "a delivery task panicked; it is started again");
            (error.id(), Ok(0))
        }
    };
    state.served.remove(&id);
    match (sent, more) {
        (Ok(sent), Ok(more)) => Ok(sent + more),
        (Err(error), _) | (Ok(_), Err(error)) => Err(error),
    }
}

struct EndpointDelivery {
    service: Arc<Service>,
    shared: Arc<Semaphore>,
    stopping: watch::Receiver<bool>,
}

impl EndpointDelivery {
    /// Sends until nothing is due. Returns how much was sent.
    async fn serve(&self, lane: &mut EndpointCursor) -> Result<usize> {
        let mut under_way = JoinSet::new();
        let mut ended = FinishedDeliveries::default();
        // One result is stored at a time, while requests continue.
        let mut writing = None;
        let mut ahead = true;
        let mut sent = 0;
        loop {
            if writing.is_none() && (lane.has_news() || !ended.done.is_empty()) {
                // A request holds its permit until its result is stored. This limits how many requests a
                // crash can repeat.
                let FinishedDeliveries { done, leaves } = std::mem::take(&mut ended);
                ahead = lane.scans_ahead() && done.iter().all(CompletedJob::arrived);
                let planned = self.service.delivery.plan(lane, done).await?;
                writing = Some(Box::pin(async { (planned.put(&self.service.delivery).await, leaves) }));
            }
            // A failure may mean that nothing more may be sent, so its result is stored first.
            while (writing.is_none() || ahead)
                && ended.done.iter().all(CompletedJob::arrived)
                && self.has_room(lane, under_way.len())
            {
                // The first request of an endpoint needs no shared permit.
                let leave = match lane.unpersisted_count() {
                    0 => None,
                    _ => match Arc::clone(&self.shared).try_acquire_owned() {
                        Ok(leave) => Some(leave),
                        Err(_) => break,
                    },
                };
                let Some(job) = self.service.delivery.next_delivery(lane).await? else { break };
                let sending = self.send(lane, job).await?;
                under_way.spawn(async move { (sending.await, leave) });
            }
            if lane.has_news() && under_way.is_empty() && writing.is_none() {
                continue;
            }
            tokio::select! {
                Some(first) = under_way.join_next() => {
                    ended.add(first)?;
                    while let Some(more) = under_way.try_join_next() {
                        ended.add(more)?;
                    }
                }
                Some((put, leaves)) = async { Some(writing.as_mut()?.await) } => {
                    writing = None;
                    sent += leaves.len();
                    self.service.delivery.settle(lane, put).await?;
                }
                else => return Ok(sent),
            }
        }
    }

    fn has_room(&self, lane: &EndpointCursor, under_way: usize) -> bool {
        // One request is enough to notice that a failing endpoint has recovered.
        let width = if lane.is_failing() { 1 } else { LANE_WIDTH_MAX };
        !*self.stopping.borrow() && under_way < width && lane.unpersisted_count() < LANE_UNWRITTEN_MAX
    }

    async fn send(
        &self,
        lane: &EndpointCursor,
        job: DeliveryJob,
    ) -> Result<impl Future<Output = CompletedJob> + Send + 'static> {
        let now = self.service.core.now();
        let piece = job.traced(self.service.core.traces());
        let errand = match lane.errand(&self.service.delivery, &job, now, &piece).await {
            Ok(errand) => Some(errand),
            // One event that cannot be read does not block the others.
            Err(error) if error.is_of_what_is_told() => {
                tracing::warn!(%error, event = job.event().as_str(), "an event cannot be read, so it is not delivered");
                None
            }
            Err(error) => return Err(error),
        };
        let (outgoing, address) = (self.service.delivery.outgoing()?.clone(), lane.address().clone());
        Ok(async move {
            let done = match errand {
                Some(errand) => job.done(now, &address, errand.run(&outgoing).await),
                None => job.unsendable(now),
            };
            done.trace(piece);
            done
        })
    }
}

/// Finished requests whose results are not yet stored.
#[derive(Default)]
struct FinishedDeliveries {
    done: Vec<CompletedJob>,
    leaves: Vec<Option<OwnedSemaphorePermit>>,
}

impl FinishedDeliveries {
    fn add(&mut self, one: std::result::Result<(CompletedJob, Option<OwnedSemaphorePermit>), JoinError>) -> Result<()> {
        let (done, leave) = one.map_err(|_| Error::Busy)?;
        self.done.push(done);
        self.leaves.push(leave);
        Ok(())
    }
}
