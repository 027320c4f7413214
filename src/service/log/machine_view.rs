//! Events as machines receive them, without the texts that only reviewers and auditors may read.

use countersign_domain::identity::party::Party;
use countersign_domain::interrupts::Interrupt;
use countersign_domain::keys::Keys;
use countersign_domain::log::event::{Event, EventType};
use countersign_domain::reviews::Hold;
use serde_json::{Value, json};

use super::withheld_members::{remove, remove_answer_comment};
use crate::service::error::Result;
use crate::service::log::Log;
use crate::service::proposals::outcome::reasons_for_requester;

/// The audience of a warning without restrictions.
const EVERYONE: &str = "everyone";

impl Log {
    /// Removes the reasons and warnings that a proposer may not read: a host application, a webhook receiver
    /// or a log collector may forward its events. Removes also the comment in the answer of an interrupt, so that its
    /// author cannot test guesses of redacted values. The stored event has them for audits.
    pub(in crate::service) async fn for_machines(&self, keys: &Keys, mut event: Event) -> Result<Event> {
        if let Some(warnings) = event.data.get_mut("warnings").and_then(Value::as_array_mut) {
            warnings.retain(|it| it.get("audience").and_then(Value::as_str) == Some(EVERYONE));
        }
        // No review has an empty id, so an event without one finds no row.
        let review = event.data.get("review").and_then(Value::as_str).unwrap_or_default();
        if event.kind == EventType::TransitionHeld {
            // Without the row of the review, the audience of its reasons is unknown, so none is sent.
            let hold = self.core.fetch::<Hold>(keys, review).await?;
            let told = hold.map(|it| reasons_for_requester(&it.record.reasons)).unwrap_or_default();
            event.data["reasons"] = told.iter().map(|it| json!(it.text)).collect();
        }
        remove_answer_comment(&mut event);
        Ok(event)
    }

    /// Removes the digest and the signed answer of an interrupt from its events, unless the reader is of the party that
    /// sent the interrupt. The answer contains the digest, and the digest covers the whole diff without a salt.
    pub(super) async fn remove_digest_of_others(&self, keys: &Keys, event: &mut Event, reader: &Party) -> Result<()> {
        // No interrupt has an empty id, so an event without one finds no row.
        let id = event.data.get("interrupt").and_then(Value::as_str).unwrap_or_default();
        if !event.kind.name().starts_with("interrupt.") {
            return Ok(());
        }
        if let Some(interrupt) = self.core.fetch::<Interrupt>(keys, id).await? {
            let source = self.threads.party_of(keys, &interrupt.record.source.token).await?;
            if reader.could_have_written_as(&source) {
                return Ok(());
            }
        }
        remove(&mut event.data, "digest");
        // A reviewer types the last digits of the digest.
        remove(&mut event.data, "typed");
        if let Some(answer) = event.data.get_mut("answer") {
            remove(answer, "answer");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_domain::policy::ReasonAudience;

    #[test]
    fn warnings_name_their_audience_by_this_word() {
        assert_eq!(json!(ReasonAudience::Everyone), json!(EVERYONE));
        assert_ne!(json!(ReasonAudience::Reviewers), json!(EVERYONE));
    }
}
