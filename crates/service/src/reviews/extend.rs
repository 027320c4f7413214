//! Extending the deadline of a review.

use countersign_domain::identity::account::Account;
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::{AccountId, ReviewId};
use countersign_domain::reviews::{EXTENSION_REASON_CHARS_MAX, Extension, ExtensionRejected, ExtensionRequest, Hold};
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::platform::event_recorder;
use crate::platform::retry::retrying;
use crate::reviews::Reviews;

impl Reviews {
    /// Extends the deadline of a review. It is also allowed in a halted flow, because it decides nothing and
    /// the time of the review runs.
    pub async fn extend(&self, person: &AccountId, review: &ReviewId, ask: &ExtensionRequest) -> Result<()> {
        // The database's clock decides about the deadline, so the commit can fail after the check passed.
        let length = ask.reason.trim().chars().count();
        if length == 0 || length > EXTENSION_REASON_CHARS_MAX {
            let why = format!("give a reason of at most {EXTENSION_REASON_CHARS_MAX} characters");
            return Err(Error::invalid("/reason", why));
        }
        retrying!({
            let (keys, now) = (self.core.keys()?, self.core.now());
            let person: Stored<Account> =
                self.core.fetch(&keys, person.as_str()).await?.ok_or(Error::Unauthenticated)?;
            let hold: Stored<Hold> = self.core.need(&keys, review.as_str(), "review").await?;
            let stored = self.core.thread(&keys, &hold.record.thread).await?;
            // The response to the agent had this deadline, and the agent does not wait longer.
            if stored.record.request.is_some() {
                return Err(Error::WrongState("the agent waits for its call only until this deadline"));
            }
            // Spaces around the reason would make two equal reasons differ in the event.
            let ask = ExtensionRequest { reason: ask.reason.trim().to_owned(), ..ask.clone() };
            // An account that cannot sign in counts as disabled, for example if its sign-in method is off.
            let standing = self.identity.with_effective_status(person.record.clone());
            let longer = hold.record.clone().extended(ask, &standing, now)?;
            let mut thread = stored.record.clone();
            let mut draft = Draft::new(keys.row(), now);
            // A person who is disabled at the same time must not extend a review.
            draft.require_unchanged(&person);
            // An extension after the deadline would open an ended review again.
            draft.before(hold.record.expires_at);
            if let Some(extension) = longer.extensions.last() {
                let data = extension_data(&longer, extension);
                event_recorder::append_thread_event(&mut draft, &mut thread, now, EventType::ReviewExtended, data)?;
            }
            draft.replace(&hold, &longer)?;
            draft.replace(&stored, &thread)?;
            self.core.commit(draft.finish()).await
        })
        .map_err(Error::expired_if_too_late)
    }
}

/// Returns the data of an extension event. It omits the name, which belongs to the account.
pub(crate) fn extension_data(hold: &Hold, extension: &Extension) -> Value {
    json!({
        "review": hold.id, "transition": hold.transition, "person": extension.person, "was": extension.was,
        "until": extension.until, "reason": extension.reason,
    })
}

impl From<ExtensionRejected> for Error {
    fn from(refused: ExtensionRejected) -> Self {
        match refused {
            ExtensionRejected::Vote(refused) => refused.into(),
            ExtensionRejected::Moved => {
                Self::WrongState("the deadline has changed since you opened the page; reload it")
            }
            ExtensionRejected::NotLater => Self::WrongState("the new deadline must be later than the current one"),
            ExtensionRejected::TooLate => {
                Self::WrongState("a review can be extended to at most twice the time that the policy gives")
            }
            ExtensionRejected::TooOften => Self::WrongState("a deadline can be extended at most five times"),
        }
    }
}
