//! Comments on reviews. A comment does not vote.

use countersign_domain::chain::hash::Digest;
use countersign_domain::identity::account::Account;
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::{AccountId, ReviewId};
use countersign_domain::reviews::{CommentRejected, Hold, Ineligible, ReviewComment, VoteRejected};
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::platform::event_recorder;
use crate::platform::retry::retrying;
use crate::reviews::Reviews;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewComment {
    /// The exact transition that the comment is about.
    pub transition: Digest,
    pub words: String,
    /// The nonce of the page. The caller has checked that the gateway issued it.
    pub nonce: String,
}

impl Reviews {
    /// Stores a comment. It is also allowed in a halted flow, in a closed thread and after the end of a
    /// review, because it decides nothing.
    pub async fn comment(&self, person: &AccountId, review: &ReviewId, saying: &NewComment) -> Result<()> {
        retrying!({
            let (keys, now) = (self.core.keys()?, self.core.now());
            let person: Stored<Account> =
                self.core.fetch(&keys, person.as_str()).await?.ok_or(Error::Unauthenticated)?;
            // The account may have been disabled after the request was authenticated.
            if person.record.disabled {
                return Err(VoteRejected::from(Ineligible::Disabled).into());
            }
            let hold: Stored<Hold> = self.core.need(&keys, review.as_str(), "review").await?;
            // A comment belongs to the change that its author saw.
            if saying.transition != hold.record.transition {
                return Err(VoteRejected::Digest.into());
            }
            let stored = self.core.thread(&keys, &hold.record.thread).await?;
            let comment = ReviewComment {
                person: person.record.id.clone(),
                name: person.record.name.clone(),
                words: saying.words.clone(),
                nonce: saying.nonce.clone(),
                at: now,
            };
            let mut thread = stored.record.clone();
            let mut draft = Draft::new(keys.row(), now);
            // A person who is disabled at the same time must not comment.
            draft.require_unchanged(&person);
            let data = comment_data(&hold.record, &comment);
            event_recorder::append_thread_event(&mut draft, &mut thread, now, EventType::ReviewCommented, data)?;
            draft.replace(&hold, &hold.record.clone().commented(comment)?)?;
            draft.replace(&stored, &thread)?;
            self.core.commit(draft.finish()).await
        })
    }
}

/// Returns the data of a comment event. It omits the text, which is not for host applications.
pub(crate) fn comment_data(hold: &Hold, comment: &ReviewComment) -> Value {
    json!({"review": hold.id, "transition": hold.transition, "person": comment.person})
}

impl From<CommentRejected> for Error {
    fn from(refused: CommentRejected) -> Self {
        match refused {
            CommentRejected::Empty => Self::invalid("/comment", "write a comment"),
            CommentRejected::TooLong => Self::invalid("/comment", refused.to_string()),
            CommentRejected::NonceUsed => VoteRejected::NonceUsed.into(),
            CommentRejected::TooMany => {
                Self::WrongState("the review has the maximum of 20 comments by one person or 100 in total")
            }
        }
    }
}
