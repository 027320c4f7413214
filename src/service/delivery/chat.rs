//! What chats are told, and whether there is still somebody to tell it to.

use crate::domain::delivery::chat::Note;
use crate::domain::delivery::mail_contact::About;
use crate::domain::log::event::Event;
use crate::domain::reviews::Hold;
use crate::service::Service;
use crate::service::error::{Error, Result};
use crate::service::reviews::summary::Brief;

impl Service {
    /// Whether what an event asks can still be decided, by anybody whom the event asks.
    pub(super) async fn waits_for_people(&self, event: &Event) -> Result<bool> {
        let keys = self.keys()?;
        Ok(match About::of(event.kind, &event.data) {
            Some(About::Review(review)) => !self.asked_by_review(&keys, &review, event.kind).await?.is_empty(),
            Some(About::Interrupt(interrupt)) => !self.asked_by_interrupt(&keys, &interrupt).await?.is_empty(),
            Some(About::EndpointDisabled(_) | About::EndpointRecovered(_)) | None => false,
        })
    }

    /// What is told of it, whether or not it waits still.
    pub(super) async fn note_of(&self, event: &Event) -> Result<Note> {
        let keys = self.keys()?;
        let brief = match About::of(event.kind, &event.data) {
            Some(About::Review(review)) => {
                let hold = self.need::<Hold>(&keys, review.as_str(), "review").await?.record;
                self.brief_of(&keys, &hold).await?
            }
            Some(About::Interrupt(interrupt)) => {
                self.brief_of_interrupt(&self.interrupt_row(&keys, &interrupt).await?.record)
            }
            Some(About::EndpointDisabled(_) | About::EndpointRecovered(_)) | None => {
                return Err(Error::Broken("an event that chats are told of"));
            }
        };
        let Brief { thing, name, flow, risk, ends, page } = brief;
        Ok(Note {
            title: format!("A review waits: {flow}"),
            facts: vec![(thing, name), ("Flow", flow.to_string()), ("Risk", risk), ("Ends", ends.to_string())],
            page,
        })
    }
}
