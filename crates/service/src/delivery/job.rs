//! The next delivery and its result.

use std::sync::Arc;
use std::time::Duration;

use countersign_adapters::traces::{TraceSink, TraceSpan};
use countersign_domain::delivery::delivery_record::{AttemptOutcome, Delivery, DeliveryAttempt, DeliveryState};
use countersign_domain::delivery::failure::FailureCode;
use countersign_domain::primitives::id::EventId;
use countersign_domain::primitives::time::Timestamp;
use countersign_store::record::Stored;

use super::attempt_result::AttemptReport;
use crate::delivery::tail_cache::TailLine;
use crate::delivery::target::DeliveryTarget;

/// The next delivery of a cursor.
pub struct DeliveryJob {
    pub(super) delivery: Delivery,
    pub(super) stored: Option<Stored<Delivery>>,
    pub(super) line: Arc<TailLine>,
}

pub struct CompletedJob {
    pub(super) job: DeliveryJob,
    pub(super) attempt: DeliveryAttempt,
    pub(super) retry_after: Option<Duration>,
}

impl CompletedJob {
    pub fn trace(&self, piece: TraceSpan) {
        let Delivery { endpoint, event, .. } = &self.job.delivery;
        piece.delivered(endpoint.as_str(), event.as_str(), &self.attempt.ended);
    }

    pub const fn arrived(&self) -> bool {
        self.attempt.ended.arrived()
    }
}

impl DeliveryJob {
    pub(super) const fn is_by_hand(&self) -> bool {
        matches!(self.delivery.state, DeliveryState::Waiting { by_hand: true, .. })
    }

    pub fn event(&self) -> &EventId {
        &self.delivery.event
    }

    /// Starts an attempt in the trace of its event.
    pub fn traced(&self, traces: &TraceSink) -> TraceSpan {
        traces.delivery(self.delivery.kind, self.line.placed.trace.as_ref())
    }

    /// Returns the delivery with its result. Secrets of the request are masked in the result.
    pub fn done(self, at: Timestamp, address: &DeliveryTarget, report: AttemptReport) -> CompletedJob {
        let retry_after = report.retry_after;
        CompletedJob { job: self, attempt: address.masked(report.attempt(at)), retry_after }
    }

    /// Returns the delivery with a failed result if nothing could be sent. The stored data of the event does not match
    /// its signatures, or is in an unreadable archive.
    pub fn unsendable(self, at: Timestamp) -> CompletedJob {
        let attempt =
            DeliveryAttempt { at, took_ms: 0, ended: AttemptOutcome::Failed { why: FailureCode::Unsendable } };
        CompletedJob { job: self, attempt, retry_after: None }
    }
}
