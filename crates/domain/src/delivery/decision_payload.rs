//! The decision that a waiting host application or framework receives.

use serde_json::Value;

use crate::log::event::EventType;
use crate::primitives::id::EventId;

#[derive(Clone, PartialEq, Debug)]
pub struct DecisionPayload {
    pub event: EventId,
    pub flow: String,
    /// The gateway's id of the review.
    pub review: String,
    /// The gateway's thread, or the host application's own thread id for an interrupt.
    pub thread: Option<String>,
    /// The framework's id of the interrupt, if a host application posted it.
    pub interrupt: Option<String>,
    /// The digest of the decided step. For an interrupt it is the host application's own digest.
    pub digest: String,
    pub approved: bool,
    /// `approved`, `denied`, `expired`, `cancelled` or `superseded`.
    pub decision: String,
    /// The body that the host application resumes with. It is identical to the body that polling returns.
    pub answer: Value,
}

/// The text of all fields in a made-up decision.
const MADE_UP: &str = "test";

impl DecisionPayload {
    /// Returns a made-up decision to fill the placeholders when an administrator tests an endpoint.
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

/// Checks that an event ends a review or an interrupt.
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

/// Checks that an event ends an interrupt.
pub const fn ends_interrupt(kind: EventType) -> bool {
    matches!(
        kind,
        EventType::InterruptApproved
            | EventType::InterruptDenied
            | EventType::InterruptExpired
            | EventType::InterruptSuperseded
    )
}
