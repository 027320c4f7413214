//! Deliveries: one event to one endpoint, and the outcome of each attempt.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::failure::FailureCode;
use super::preflight::PreflightResult;
use super::retry_schedule;
use crate::log::event::EventType;
use crate::primitives::id::{EndpointId, EventId, ThreadId};
use crate::primitives::time::Timestamp;

/// The delivery of one event to one endpoint.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delivery {
    pub endpoint: EndpointId,
    /// The event's log position. It identifies the delivery at its endpoint.
    pub index: u64,
    pub event: EventId,
    pub kind: EventType,
    /// The thread of the event, if it has one.
    pub thread: Option<ThreadId>,
    pub state: DeliveryState,
    /// The number of attempts since the delivery was last requested.
    pub tries: u32,
    pub attempts: Vec<DeliveryAttempt>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", deny_unknown_fields)]
pub enum DeliveryState {
    Waiting {
        due: Timestamp,
        /// Whether an administrator requested it. A disabled endpoint receives it too.
        by_hand: bool,
    },
    /// It waits until the previous delivery of the thread has ended.
    Behind {},
    Delivered {
        at: Timestamp,
    },
    /// All attempts failed. It is a dead letter.
    Failed {
        at: Timestamp,
    },
}

impl DeliveryState {
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Waiting { .. } => "waiting",
            Self::Behind {} => "behind",
            Self::Delivered { .. } => "delivered",
            Self::Failed { .. } => "failed",
        }
    }

    /// Returns the time at which it ended, or `None` if more attempts follow.
    pub const fn ended_at(&self) -> Option<Timestamp> {
        match self {
            Self::Delivered { at } | Self::Failed { at } => Some(*at),
            Self::Waiting { .. } | Self::Behind {} => None,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliveryAttempt {
    /// The start of the attempt. It is also the `webhook-timestamp`.
    pub at: Timestamp,
    pub took_ms: u64,
    pub ended: AttemptOutcome,
}

const LOOKED: &str = "looked";

/// The stored code of [`AttemptOutcome::Over`].
const WAS_OVER: &str = "over";

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum AttemptOutcome {
    Answered {
        status: u16,
        /// The start of the response body.
        body: String,
        /// Whether the body was longer.
        cut: bool,
    },
    /// The preflight request showed a reason to send nothing.
    Looked {
        /// The status of the preflight response.
        status: u16,
        saw: PreflightResult,
    },
    /// The decision was over before anything was sent.
    Over {},
    Failed {
        why: FailureCode,
    },
}

impl AttemptOutcome {
    /// Checks that the delivery is complete. Only 2xx counts as accepted: a redirect leads to an address that the
    /// administrator did not configure. If no run waits any more, nothing is left to send.
    pub const fn arrived(&self) -> bool {
        match self {
            Self::Answered { status, .. } => matches!(status, 200..=299),
            Self::Looked { saw, .. } => saw.settles(),
            Self::Over {} => true,
            Self::Failed { .. } => false,
        }
    }

    pub const fn outcome(&self) -> &'static str {
        match self {
            Self::Answered { status: 200..=299, .. } => "2xx",
            Self::Answered { status: 300..=399, .. } => "3xx",
            Self::Answered { status: 400..=499, .. } => "4xx",
            Self::Answered { .. } => "5xx",
            Self::Looked { .. } => LOOKED,
            Self::Over {} => WAS_OVER,
            Self::Failed { why } => why.as_str(),
        }
    }

    /// Returns all outcomes, as labels of the metrics.
    pub fn outcomes() -> impl Iterator<Item = &'static str> {
        ["2xx", "3xx", "4xx", "5xx", LOOKED, WAS_OVER].into_iter().chain(FailureCode::ALL.map(FailureCode::as_str))
    }

    /// Checks that no request was sent. The outcome then says nothing about the receiver.
    pub const fn is_over(&self) -> bool {
        matches!(self, Self::Over {})
    }

    /// Checks for 410: the receiver is permanently gone.
    pub const fn is_gone(&self) -> bool {
        matches!(self, Self::Answered { status: 410, .. })
    }
}

/// The explanation of [`AttemptOutcome::Over`].
pub const OVER: &str = "Nothing was sent: the review was decided, no reviewer can decide it any more, or the credential of the instance has ended.";

/// The number of stored attempts: two rounds of the schedule.
const ATTEMPTS_KEPT: usize = 20;

impl DeliveryAttempt {
    pub fn ended_at(&self) -> Timestamp {
        self.at.plus(Duration::from_millis(self.took_ms))
    }
}

impl Delivery {
    /// Returns the time by which it is sorted in its list, in milliseconds.
    pub const fn moment(&self) -> i64 {
        match &self.state {
            DeliveryState::Waiting { due, .. } => due.millis(),
            DeliveryState::Delivered { at } | DeliveryState::Failed { at } => at.millis(),
            // It has no time of its own until the previous delivery has ended.
            DeliveryState::Behind {} => 0,
        }
    }

    /// Returns the delivery after an attempt. `chance` adds jitter to the next one.
    pub fn tried(&self, attempt: DeliveryAttempt, chance: u32, retry_after: Option<Duration>) -> Self {
        let ended_at = attempt.ended_at();
        let tries = self.tries.saturating_add(1);
        let state = if attempt.ended.arrived() {
            DeliveryState::Delivered { at: ended_at }
        } else {
            match retry_schedule::delay(tries, chance, retry_after) {
                Some(delay) => DeliveryState::Waiting { due: ended_at.plus(delay), by_hand: false },
                None => DeliveryState::Failed { at: ended_at },
            }
        };
        let mut attempts = self.attempts.clone();
        attempts.push(attempt);
        // The row is read in lists, so its length is limited.
        let from = attempts.len().saturating_sub(ATTEMPTS_KEPT);
        Self { state, tries, attempts: attempts.split_off(from), ..self.clone() }
    }

    /// Returns the delivery, due now, with the schedule restarted.
    pub fn again(&self, now: Timestamp) -> Self {
        // The counter starts at zero, so a manual delivery gets the whole schedule again.
        Self { state: DeliveryState::Waiting { due: now, by_hand: true }, tries: 0, ..self.clone() }
    }
}
