//! Changes on their way to whoever writes: a bounded queue, and an answer for each.

use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::StoreError;
use super::change::ChangeSet;
use super::outage::Outage;
use crate::clock::{Clock as _, SystemClock};

/// A few groups: more could not be answered before their callers give up.
const QUEUE_CHANGES_MAX: usize = 4_096;

/// What happened to each change of a group.
pub(super) type BatchOutcomes = Vec<Result<(), StoreError>>;

/// A change and whoever waits for it.
pub(super) struct QueuedChange {
    pub(super) change: ChangeSet,
    since: Instant,
    answer: oneshot::Sender<Result<(), StoreError>>,
}

impl QueuedChange {
    /// How long it has been in the store's hands.
    pub(super) fn waited(&self) -> Duration {
        SystemClock.instant().saturating_duration_since(self.since)
    }
}

/// Where a commit stands. Told of each, a test can end the process just there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommitPoint {
    /// The transaction has begun and its rows are locked; nothing is written.
    Locked,
    /// Every row is written, nothing is committed.
    Written,
    /// All is committed, nobody has been told.
    Committed,
}

/// Called at each point of each group of commits. Nothing, except in tests.
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

    /// Queues the change, unless too many are, and waits for what becomes of it.
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

/// Answers every change of a group.
pub(super) fn answer(group: &mut Vec<QueuedChange>, outcomes: BatchOutcomes) {
    for (job, outcome) in group.drain(..).zip(outcomes) {
        // A caller that went away is not owed an answer; what it asked for stands.
        let _ = job.answer.send(outcome);
    }
}

/// All of a group fail alike.
pub(super) fn all_fail(group: &[QueuedChange], error: &StoreError) -> BatchOutcomes {
    group.iter().map(|_| Err(alike(error))).collect()
}

/// The same error for another caller. Only these concern more than one change.
pub(super) fn alike(error: &StoreError) -> StoreError {
    match error {
        StoreError::Busy => StoreError::Busy,
        StoreError::Unavailable { outage, detail } => StoreError::unavailable(*outage, detail.clone()),
        StoreError::Database(text) => StoreError::Database(text.clone()),
        other => StoreError::Database(other.to_string()),
    }
}

pub(super) fn ended() -> StoreError {
    StoreError::unavailable(Outage::Down, "the store has been closed")
}
