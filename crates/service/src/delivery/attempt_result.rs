//! The result of an attempt to send.

use std::time::Duration;

use countersign_adapters::http_client::HttpOutcome;
use countersign_domain::delivery::delivery_record::{AttemptOutcome, DeliveryAttempt};
use countersign_domain::primitives::sanitize;
use countersign_domain::primitives::time::Timestamp;

pub struct AttemptReport {
    pub(super) ended: AttemptOutcome,
    pub(super) took: Duration,
    /// Delay that the receiver asked for.
    pub(super) retry_after: Option<Duration>,
}

impl AttemptReport {
    /// Returns the attempt that started at this time.
    pub(super) fn attempt(self, at: Timestamp) -> DeliveryAttempt {
        let took_ms = u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX);
        DeliveryAttempt { at, took_ms, ended: self.ended }
    }
}

impl From<HttpOutcome> for AttemptReport {
    fn from(outcome: HttpOutcome) -> Self {
        match outcome {
            HttpOutcome::Answered(answer) => {
                // The receiver wrote this text, so characters that act on its reader are made visible.
                let body = sanitize::printed(&String::from_utf8_lossy(&answer.body));
                let ended = AttemptOutcome::Answered { status: answer.status, body, cut: answer.cut };
                Self { ended, took: answer.took, retry_after: answer.retry_after }
            }
            HttpOutcome::Failed(failure) => {
                Self { ended: AttemptOutcome::Failed { why: failure.why }, took: failure.took, retry_after: None }
            }
        }
    }
}
