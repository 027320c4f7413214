//! What became of an attempt to send.

use std::time::Duration;

use crate::domain::delivery::delivery::{Attempt, Ended};
use crate::domain::primitives::sanitize;
use crate::domain::primitives::time::Timestamp;
use crate::http_client::Outcome;

/// What became of it.
pub struct Report {
    /// How it ended.
    pub(super) ended: Ended,
    /// How long it took.
    pub(super) took: Duration,
    /// For how long its receiver wants to be left alone.
    pub(super) retry_after: Option<Duration>,
}

impl Report {
    /// The attempt that was begun then.
    pub(super) fn attempt(self, at: Timestamp) -> Attempt {
        let took_ms = u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX);
        Attempt { at, took_ms, ended: self.ended }
    }
}

impl From<Outcome> for Report {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Answered(answer) => {
                let body = sanitize::printed(&String::from_utf8_lossy(&answer.body));
                let ended = Ended::Answered { status: answer.status, body, cut: answer.cut };
                Self { ended, took: answer.took, retry_after: answer.retry_after }
            }
            Outcome::Failed(failure) => {
                Self { ended: Ended::Failed { why: failure.why }, took: failure.took, retry_after: None }
            }
        }
    }
}
