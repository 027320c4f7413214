//! Reminders and escalations: records the event of each once. The right to vote does not depend on these
//! events.

use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::ReviewId;
use countersign_domain::reviews::{DueReminder, Hold};
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::platform::event_recorder;
use crate::platform::retry::retrying;
use crate::reviews::Reviews;

impl Reviews {
    /// Records the reminder or escalation of a review that is due, if any.
    pub async fn notice(&self, review: &ReviewId) -> Result<()> {
        // After the deadline a reminder has no purpose.
        retrying!({
            let (keys, now) = (self.core.keys()?, self.core.now());
            let hold: Stored<Hold> = self.core.need(&keys, review.as_str(), "review").await?;
            let stored = self.core.thread(&keys, &hold.record.thread).await?;
            // Another gateway may have recorded the reminder already.
            let Some((next, told)) = hold.record.clone().noticed(now) else { return Ok(()) };
            let mut thread = stored.record.clone();
            let mut draft = Draft::new(keys.row(), now);
            // A reminder after the deadline would ask people to decide an ended review.
            draft.before(hold.record.expires_at);
            for notice in told {
                let (kind, data) = notice_data(&next, notice).ok_or(Error::Broken("a reminder without a rule"))?;
                event_recorder::append_thread_event(&mut draft, &mut thread, now, kind, data)?;
            }
            draft.replace(&hold, &next)?;
            draft.replace(&stored, &thread)?;
            self.core.commit(draft.finish()).await
        })
        .or_else(Error::ok_if_too_late)
    }
}

/// Returns the event of a reminder or escalation.
pub(crate) fn notice_data(hold: &Hold, notice: DueReminder) -> Option<(EventType, Value)> {
    let mut data = json!({"review": hold.id, "transition": hold.transition, "expires_at": hold.first_deadline()});
    Some(match notice {
        DueReminder::Reminded => {
            data["groups"] =
                json!(hold.stages.iter().flat_map(|it| &it.groups).collect::<std::collections::BTreeSet<_>>());
            (EventType::ReviewReminded, data)
        }
        DueReminder::Escalated => {
            data["to"] = json!(hold.notices.escalation.as_ref()?.to);
            (EventType::ReviewEscalated, data)
        }
    })
}
