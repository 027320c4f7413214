//! Outcomes of reviews for endpoints that resume the waiting agent or host application.

use countersign_domain::chain::hash::Digest;
use countersign_domain::delivery::decision_payload::{DecisionPayload, ends_interrupt, ends_review};
use countersign_domain::identity::party::Party;
use countersign_domain::log::event::Event;
use countersign_domain::primitives::id::InterruptId;
use serde_json::{Value, json};

use crate::delivery::Deliveries;
use crate::error::{Error, Result};

impl Deliveries {
    /// Returns the outcome of a review if the event ends one.
    pub(super) async fn review_ended(&self, event: &Event) -> Result<Option<DecisionPayload>> {
        if ends_interrupt(event.kind) {
            return self.interrupt_ended(event).await.map(Some);
        }
        if !ends_review(event.kind) {
            return Ok(None);
        }
        let digest: Option<Digest> = said(event, "transition").and_then(|it| it.parse().ok());
        let digest = digest.ok_or(Error::Broken("the event of a review's end"))?;
        let Some(decision) = self.reviews.decision(digest, &Party::Receiver).await?.1 else { return Ok(None) };
        Ok(Some(DecisionPayload {
            event: event.id.clone(),
            flow: event.flow.as_ref().map(ToString::to_string).unwrap_or_default(),
            review: said(event, "review").unwrap_or_default().to_owned(),
            thread: event.thread.as_ref().map(ToString::to_string),
            interrupt: None,
            digest: digest.to_string(),
            approved: decision.approved,
            decision: decision.decision.clone(),
            answer: json!(decision),
        }))
    }

    async fn interrupt_ended(&self, event: &Event) -> Result<DecisionPayload> {
        let broken = Error::Broken("the event of an interrupt's end");
        let id = said(event, "interrupt").and_then(|it| InterruptId::try_from(it).ok());
        let Some(id) = id else { return Err(broken) };
        let shown = self.interrupts.interrupt_view(&id).await?;
        let interrupt = &shown.interrupt;
        let Some(answered) = interrupt.answered() else { return Err(broken) };
        // A thread name that contains a redacted value is never sent.
        let thread = interrupt.asserted.thread_ref.as_deref().filter(|it| shown.masked(it) == *it);
        Ok(DecisionPayload {
            event: event.id.clone(),
            flow: interrupt.flow.to_string(),
            review: interrupt.id.to_string(),
            thread: thread.map(str::to_owned),
            interrupt: Some(answered.interrupt_id.clone()),
            digest: answered.transition_digest.clone(),
            approved: answered.approved,
            decision: answered.decision.word().to_owned(),
            answer: json!(answered),
        })
    }
}

fn said<'e>(event: &'e Event, name: &str) -> Option<&'e str> {
    event.data.get(name).and_then(Value::as_str)
}
