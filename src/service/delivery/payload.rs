//! Builds the body of an event for endpoints. It has no redacted value and is the same for every attempt.

use countersign_domain::chain::hash::Digest;
use countersign_domain::delivery::endpoint_kind::PayloadVersion;
use countersign_domain::identity::party::Party;
use countersign_domain::log::event::{Event, EventType};
use serde_json::{Value, json};

use crate::service::delivery::Deliveries;
use crate::service::error::Result;
use crate::service::log::sequencer::SequencedEvent;
use crate::service::log::withheld_members::remove_unsalted_digests;

/// Returns true if the event ends a transition, so that its agent can continue.
const fn ends(kind: EventType) -> bool {
    matches!(
        kind,
        EventType::TransitionCommitted
            | EventType::TransitionApproved
            | EventType::TransitionDenied
            | EventType::TransitionExpired
            | EventType::TransitionCancelled
            | EventType::TransitionSuperseded
    )
}

impl Deliveries {
    /// Returns the body of an event. At the end of a transition it includes the instruction for the agent.
    pub(super) async fn payload_of(&self, version: PayloadVersion, placed: &SequencedEvent) -> Result<String> {
        match version {
            PayloadVersion::V1 => {}
        }
        let SequencedEvent { index, event, .. } = placed;
        let keys = self.core.keys()?;
        // A receiver gets no redacted value, so texts by people are masked.
        let mut masked = self.log.masked_event(&keys, event.clone(), &Party::Receiver).await?;
        remove_unsalted_digests(&mut masked);
        let event = &self.log.for_machines(&keys, masked).await?;
        let mut data = event.data.clone();
        let place = [
            ("index", json!(index)),
            ("flow", json!(event.flow)),
            ("thread", json!(event.thread)),
            ("seq", json!(event.seq)),
        ];
        for (name, value) in place {
            data[name] = value;
        }
        if let Some(decision) = self.resume_body(event).await? {
            data["decision"] = decision;
        }
        Ok(json!({"type": event.kind, "timestamp": event.at, "data": data}).to_string())
    }

    async fn resume_body(&self, event: &Event) -> Result<Option<Value>> {
        let digest = event.data.get("transition").and_then(Value::as_str).and_then(|it| it.parse::<Digest>().ok());
        let Some(digest) = digest.filter(|_| ends(event.kind)) else { return Ok(None) };
        Ok(self.reviews.decision(digest, &Party::Receiver).await?.1.map(|it| json!(it)))
    }
}
