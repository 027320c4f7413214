//! Changes on their way to whoever writes: a bounded queue, and an answer for each.

use std::time::Instant;

use tokio::sync::{mpsc, oneshot};

use super::StoreError;
use super::change::Change;
use crate::clock::{Clock as _, SystemClock};

/// A few groups: more could not be answered before their callers give up.
const QUEUE_CHANGES_MAX: usize = 4_096;

/// What happened to each change of a group.
pub(super) type Outcomes = Vec<Result<(), StoreError>>;

/// A change and whoever waits for it.
pub(super) struct Job {
    pub(super) change: Change,
    pub(super) since: Instant,
    answer: oneshot::Sender<Result<(), StoreError>>,
}

/// The callers' end.
#[derive(Clone, Debug)]
pub(super) struct Queue(mpsc::Sender<Job>);

impl Queue {
    pub(super) fn new() -> (Self, mpsc::Receiver<Job>) {
        let (queue, jobs) = mpsc::channel(QUEUE_CHANGES_MAX);
        (Self(queue), jobs)
    }

    /// Queues the change, unless too many are, and waits for what becomes of it.
    pub(super) async fn commit(&self, change: Change) -> Result<(), StoreError> {
        let (answer, answered) = oneshot::channel();
        self.0.try_send(Job { change, since: SystemClock.instant(), answer }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => StoreError::Busy,
            mpsc::error::TrySendError::Closed(_) => ended(),
        })?;
        answered.await.map_err(|_| ended())?
    }
}

/// Answers every change of a group.
pub(super) fn answer(group: &mut Vec<Job>, outcomes: Outcomes) {
    for (job, outcome) in group.drain(..).zip(outcomes) {
        // A caller that went away is not owed an answer; what it asked for stands.
        let _ = job.answer.send(outcome);
    }
}

/// All of a group fail alike.
pub(super) fn all_fail(group: &[Job], error: &StoreError) -> Outcomes {
    group.iter().map(|_| Err(alike(error))).collect()
}

/// The same error for another caller. Only these two concern more than one change.
pub(super) fn alike(error: &StoreError) -> StoreError {
    match error {
        StoreError::Busy => StoreError::Busy,
        StoreError::Database(text) => StoreError::Database(text.clone()),
        other => StoreError::Database(other.to_string()),
    }
}

pub(super) fn ended() -> StoreError {
    StoreError::Database("the store has been closed".to_owned())
}
