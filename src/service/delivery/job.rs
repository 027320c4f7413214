//! What is sent next, and how that went.

use std::sync::Arc;
use std::time::Duration;

use super::Address;
use super::attempt_result::Report;
use super::log_tail::Line;
use crate::domain::delivery::delivery::{Attempt, Delivery, DeliveryState, Ended};
use crate::domain::delivery::failure::FailureCode;
use crate::domain::primitives::id::EventId;
use crate::domain::primitives::time::Timestamp;
use crate::store::record::Stored;
use crate::traces::{Piece, Traces};

/// What is sent next, of one lane.
pub struct Job {
    pub(super) delivery: Delivery,
    pub(super) stored: Option<Stored<Delivery>>,
    pub(super) line: Arc<Line>,
}

/// A job that was done.
pub struct Done {
    pub(super) job: Job,
    pub(super) attempt: Attempt,
    pub(super) retry_after: Option<Duration>,
}

impl Done {
    /// Lets its trace know.
    pub fn trace(&self, piece: Piece) {
        let Delivery { endpoint, event, .. } = &self.job.delivery;
        piece.delivered(endpoint.as_str(), event.as_str(), &self.attempt.ended);
    }

    /// Whether it arrived.
    pub const fn arrived(&self) -> bool {
        self.attempt.ended.arrived()
    }
}

impl Job {
    pub(super) const fn is_by_hand(&self) -> bool {
        matches!(self.delivery.state, DeliveryState::Waiting { by_hand: true, .. })
    }

    /// What it tells.
    pub fn event(&self) -> &EventId {
        &self.delivery.event
    }

    /// An attempt at it, in the trace of what it tells.
    pub fn traced(&self, traces: &Traces) -> Piece {
        traces.delivery(self.delivery.kind, self.line.placed.trace.as_ref())
    }

    /// The job with how it went, without what is hidden in what was sent there.
    pub fn done(self, at: Timestamp, (address, report): (&Address, Report)) -> Done {
        let retry_after = report.retry_after;
        Done { job: self, attempt: address.masked(report.attempt(at)), retry_after }
    }

    /// The job, if nothing could be sent: what is stored about its event does not agree with what was signed, or is in an
    /// archive that cannot be read.
    pub fn unsendable(self, at: Timestamp) -> Done {
        let attempt = Attempt { at, took_ms: 0, ended: Ended::Failed { why: FailureCode::Unsendable } };
        Done { job: self, attempt, retry_after: None }
    }
}
