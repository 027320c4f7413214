//! Builds chat messages, and checks whether they are still needed.

use countersign_domain::delivery::chat::ChatMessage;
use countersign_domain::delivery::mail_contact::MailTopic;
use countersign_domain::log::event::Event;
use countersign_domain::reviews::Hold;

use crate::delivery::Deliveries;
use crate::error::{Error, Result};
use crate::reviews::summary::ReviewSummary;

impl Deliveries {
    /// Returns true if the request in an event can still be decided by one of the people it was sent to.
    pub(super) async fn awaits_decision(&self, event: &Event) -> Result<bool> {
        let keys = self.core.keys()?;
        Ok(match MailTopic::of(event.kind, &event.data) {
            Some(MailTopic::Review(review)) => {
                !self.accounts_notified_of_review(&keys, &review, event.kind).await?.is_empty()
            }
            Some(MailTopic::Interrupt(interrupt)) => {
                !self.accounts_notified_of_interrupt(&keys, &interrupt).await?.is_empty()
            }
            Some(MailTopic::EndpointDisabled(_) | MailTopic::EndpointRecovered(_)) | None => false,
        })
    }

    /// Returns the chat message of an event, whether or not it still waits.
    pub(super) async fn chat_message(&self, event: &Event) -> Result<ChatMessage> {
        let keys = self.core.keys()?;
        let brief = match MailTopic::of(event.kind, &event.data) {
            Some(MailTopic::Review(review)) => {
                let hold = self.core.need::<Hold>(&keys, review.as_str(), "review").await?.record;
                self.reviews.brief_of(&keys, &hold).await?
            }
            Some(MailTopic::Interrupt(interrupt)) => {
                self.reviews.brief_of_interrupt(&self.interrupts.interrupt_row(&keys, &interrupt).await?.record)
            }
            Some(MailTopic::EndpointDisabled(_) | MailTopic::EndpointRecovered(_)) | None => {
                return Err(Error::Broken("the event of a chat message"));
            }
        };
        let ReviewSummary { thing, name, flow, call, risk, ends, page } = brief;
        let mut facts = vec![(thing, name), ("Flow", flow.to_string())];
        facts.extend(call.map(|it| ("Call", it)));
        facts.extend([("Risk", risk), ("Ends", ends.to_string())]);
        Ok(ChatMessage { title: format!("A review waits: {flow}"), facts, page })
    }
}
