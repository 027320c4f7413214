//! How a review ended, as whoever stopped for it is told.

use serde_json::Value;

use crate::domain::log::event::EventType;
use crate::domain::primitives::id::EventId;

#[derive(Clone, PartialEq, Debug)]
pub struct DecisionPayload {
    pub event: EventId,
    pub flow: String,
    /// What the review is called here.
    pub review: String,
    /// The thread: the gateway's own, or the host's where a host asked and named it.
    pub thread: Option<String>,
    /// What the framework calls the interrupt, if a host asked.
    pub interrupt: Option<String>,
    /// The digest of what was decided on; the host's own if a host asked.
    pub digest: String,
    pub approved: bool,
    /// `approved`, `denied`, `expired`, `cancelled` or `superseded`.
    pub decision: String,
    /// What whoever stopped for it goes on with: the very body that it gets if it asks.
    pub answer: Value,
}

/// What stands for everything where nothing was decided.
const MADE_UP: &str = "test";

impl DecisionPayload {
    /// No decision: something to fill gaps with where an endpoint is tried out.
    pub fn made_up(event: &EventId) -> Self {
        let text = || MADE_UP.to_owned();
        Self {
            event: event.clone(),
            flow: text(),
            review: text(),
            thread: Some(text()),
            interrupt: Some(text()),
            digest: text(),
            approved: false,
            decision: text(),
            answer: Value::Null,
        }
    }
}

/// Whether an event tells how a review ended.
pub const fn ends_review(kind: EventType) -> bool {
    matches!(
        kind,
        EventType::TransitionApproved
            | EventType::TransitionDenied
            | EventType::TransitionExpired
            | EventType::TransitionCancelled
            | EventType::TransitionSuperseded
    ) || ends_interrupt(kind)
}

/// Whether an event tells how people answered a host.
pub const fn ends_interrupt(kind: EventType) -> bool {
    matches!(
        kind,
        EventType::InterruptApproved
            | EventType::InterruptDenied
            | EventType::InterruptExpired
            | EventType::InterruptSuperseded
    )
}
