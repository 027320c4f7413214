//! The bounded queue of changes to write, with an answer for each.

use std::time::{Duration, Instant};

use countersign_adapters::clock::{Clock as _, SystemClock};
use tokio::sync::{mpsc, oneshot};

use super::StoreError;
use super::change::ChangeSet;
use super::outage::Outage;

/// The limit of queued changes: a few groups. Callers would give up before more could be answered.
const QUEUE_CHANGES_MAX: usize = 4_096;

/// The result of each change of a group.
pub(super) type BatchOutcomes = Vec<Result<(), StoreError>>;

/// A change and the channel to its caller.
pub(super) struct QueuedChange {
    pub(super) change: ChangeSet,
    since: Instant,
    answer: oneshot::Sender<Result<(), StoreError>>,
}

impl QueuedChange {
    /// Returns the time since the change was queued.
    pub(super) fn waited(&self) -> Duration {
        SystemClock.instant().saturating_duration_since(self.since)
    }
}

/// A point in a commit. A test can end the process at each point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommitPoint {
    /// The rows are locked and nothing is written.
    Locked,
    /// All rows are written and nothing is committed.
    Written,
    /// All is committed and no caller is answered.
    Committed,
}

/// A callback for each point of each commit. It does nothing, except in tests.
#[derive(Clone, Copy, Debug)]
pub struct CommitProbe(pub fn(CommitPoint));

impl Default for CommitProbe {
    fn default() -> Self {
        Self(|_| ())
    }
}

#[derive(Clone, Debug)]
pub(super) struct WriteQueue(mpsc::Sender<QueuedChange>);

impl WriteQueue {
    pub(super) fn new() -> (Self, mpsc::Receiver<QueuedChange>) {
        let (queue, jobs) = mpsc::channel(QUEUE_CHANGES_MAX);
        (Self(queue), jobs)
    }

    pub(super) fn len(&self) -> usize {
        self.0.max_capacity() - self.0.capacity()
    }

    /// Queues a change, unless the queue is full, and waits for its result.
    pub(super) async fn commit(&self, change: ChangeSet) -> Result<(), StoreError> {
        let (answer, answered) = oneshot::channel();
        self.0.try_send(QueuedChange { change, since: SystemClock.instant(), answer }).map_err(
            |error| match error {
                mpsc::error::TrySendError::Full(_) => StoreError::Busy,
                mpsc::error::TrySendError::Closed(_) => ended(),
            },
        )?;
        answered.await.map_err(|_| ended())?
    }
}

/// Sends the results to the callers of a group.
pub(super) fn answer(group: &mut Vec<QueuedChange>, outcomes: BatchOutcomes) {
    for (job, outcome) in group.drain(..).zip(outcomes) {
        // The error is ignored: the caller has gone away, and its change stays committed.
        let _ = job.answer.send(outcome);
    }
}

/// Returns the same error for all changes of a group.
pub(super) fn all_fail(group: &[QueuedChange], error: &StoreError) -> BatchOutcomes {
    group.iter().map(|_| Err(alike(error))).collect()
}

/// Copies an error for another caller. Only these kinds concern several changes.
pub(super) fn alike(error: &StoreError) -> StoreError {
    match error {
        StoreError::Busy => StoreError::Busy,
        StoreError::Unavailable { outage, detail } => StoreError::unavailable(*outage, detail.clone()),
        StoreError::Database(text) => StoreError::Database(text.clone()),
        // The other kinds concern one change and never reach this function.
        other => StoreError::Database(other.to_string()),
    }
}

pub(super) fn ended() -> StoreError {
    StoreError::unavailable(Outage::Down, "the store has been closed")
}
