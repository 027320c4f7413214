//! A delivery: one event to one endpoint, and how each attempt ended.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::failure::FailureCode;
use super::preflight::PreflightResult;
use super::retry_schedule;
use crate::domain::log::event::EventType;
use crate::domain::primitives::id::{EndpointId, EventId, ThreadId};
use crate::domain::primitives::time::Timestamp;

/// One event to one endpoint.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delivery {
    pub endpoint: EndpointId,
    /// The event's place in the log: the delivery's own name at its endpoint.
    pub index: u64,
    pub event: EventId,
    pub kind: EventType,
    /// Of which thread, if one is concerned.
    pub thread: Option<ThreadId>,
    pub state: DeliveryState,
    /// How many attempts were made since it was last asked for.
    pub tries: u32,
    pub attempts: Vec<DeliveryAttempt>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", deny_unknown_fields)]
pub enum DeliveryState {
    Waiting {
        due: Timestamp,
        /// Whether somebody asked for it, so that even a disabled endpoint gets it.
        by_hand: bool,
    },
    /// It is tried when the thread's delivery before it has ended.
    Behind {},
    Delivered {
        at: Timestamp,
    },
    /// It was tried so often that it is tried no more.
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

    /// When nothing is done about it any more without being asked.
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
    /// When it was begun; its `webhook-timestamp`, too.
    pub at: Timestamp,
    pub took_ms: u64,
    pub ended: AttemptOutcome,
}

/// Nothing was sent, because of what was seen.
const LOOKED: &str = "looked";

/// Nothing was sent, because there was nothing to tell any more.
const WAS_OVER: &str = "over";

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum AttemptOutcome {
    Answered {
        status: u16,
        /// The beginning of its body.
        body: String,
        /// Whether there was more of it.
        cut: bool,
    },
    /// By what was seen when whoever waits was looked at: nothing was sent.
    Looked {
        /// The status of the answer to the look.
        status: u16,
        saw: PreflightResult,
    },
    /// Before anything was sent: what would have been told is over.
    Over {},
    Failed {
        why: FailureCode,
    },
}

impl AttemptOutcome {
    /// Only these are a receiver's yes. Where it sends one on to is not where the administrator meant. Where nobody waits
    /// any more there is nothing left to do.
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

    /// Every outcome that is counted.
    pub fn outcomes() -> impl Iterator<Item = &'static str> {
        ["2xx", "3xx", "4xx", "5xx", LOOKED, WAS_OVER].into_iter().chain(FailureCode::ALL.map(FailureCode::as_str))
    }

    /// Nothing was asked of its receiver, so nothing is known of them.
    pub const fn is_over(&self) -> bool {
        matches!(self, Self::Over {})
    }

    /// Nobody is there any more, and nobody will be.
    pub const fn is_gone(&self) -> bool {
        matches!(self, Self::Answered { status: 410, .. })
    }
}

/// Why nothing was sent where it was over.
pub const OVER: &str = "It was decided, or nobody can decide it any more. Nothing was sent.";

/// Attempts that stay to be read: two rounds of the schedule.
const ATTEMPTS_KEPT: usize = 20;

impl DeliveryAttempt {
    pub fn ended_at(&self) -> Timestamp {
        self.at.plus(Duration::from_millis(self.took_ms))
    }
}

impl Delivery {
    /// By which moment it is listed among its like, in milliseconds.
    pub const fn moment(&self) -> i64 {
        match &self.state {
            DeliveryState::Waiting { due, .. } => due.millis(),
            DeliveryState::Delivered { at } | DeliveryState::Failed { at } => at.millis(),
            DeliveryState::Behind {} => 0,
        }
    }

    /// What the attempt makes of it. `chance` spreads the next ones.
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
        let from = attempts.len().saturating_sub(ATTEMPTS_KEPT);
        Self { state, tries, attempts: attempts.split_off(from), ..self.clone() }
    }

    /// Asked for once more, from the first delay on.
    pub fn again(&self, now: Timestamp) -> Self {
        Self { state: DeliveryState::Waiting { due: now, by_hand: true }, tries: 0, ..self.clone() }
    }
}
