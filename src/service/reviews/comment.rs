//! Comments: what people say about a review without voting.

use serde_json::{Value, json};

use crate::domain::chain::hash::Digest;
use crate::domain::identity::account::Account;
use crate::domain::log::event::EventType;
use crate::domain::primitives::id::{AccountId, ReviewId};
use crate::domain::reviews::{CommentRejected, Hold, Ineligible, ReviewComment, VoteRejected};
use crate::service::Service;
use crate::service::error::{Error, Result};
use crate::service::platform::event_recorder;
use crate::service::platform::retry::retrying;
use crate::store::change::Draft;
use crate::store::record::Stored;

/// What a person asks to have said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewComment {
    /// Of exactly which transition.
    pub transition: Digest,
    pub words: String,
    /// The page's nonce, already found to be ours.
    pub nonce: String,
}

impl Service {
    /// Writes a comment down. A stopped flow, a closed thread and a review that has ended may be talked about: nothing
    /// is decided.
    pub async fn comment(&self, person: &AccountId, review: &ReviewId, saying: &NewComment) -> Result<()> {
        retrying!(self.comment_once(person, review, saying))
    }

    async fn comment_once(&self, person: &AccountId, review: &ReviewId, saying: &NewComment) -> Result<()> {
        let (keys, now) = (self.keys()?, self.now());
        let person: Stored<Account> = self.fetch(&keys, person.as_str()).await?.ok_or(Error::Unauthenticated)?;
        if person.record.disabled {
            return Err(VoteRejected::from(Ineligible::Disabled).into());
        }
        let hold: Stored<Hold> = self.need(&keys, review.as_str(), "review").await?;
        if saying.transition != hold.record.transition {
            return Err(VoteRejected::Digest.into());
        }
        let stored = self.thread(&keys, &hold.record.thread).await?;
        let comment = ReviewComment {
            person: person.record.id.clone(),
            name: person.record.name.clone(),
            words: saying.words.clone(),
            nonce: saying.nonce.clone(),
            at: now,
        };
        let mut thread = stored.record.clone();
        let mut draft = Draft::new(keys.row(), now);
        draft.require_unchanged(&person);
        let data = comment_data(&hold.record, &comment);
        event_recorder::append_thread_event(&mut draft, &mut thread, now, EventType::ReviewCommented, data)?;
        draft.replace(&hold, &hold.record.clone().commented(comment)?)?;
        draft.replace(&stored, &thread)?;
        self.commit(draft.finish()).await
    }
}

/// What the event of a comment tells: that there is one. What people say to each other is not for hosts.
pub(in crate::service) fn comment_data(hold: &Hold, comment: &ReviewComment) -> Value {
    json!({"review": hold.id, "transition": hold.transition, "person": comment.person})
}

impl From<CommentRejected> for Error {
    fn from(refused: CommentRejected) -> Self {
        match refused {
            CommentRejected::Empty => Self::invalid("/comment", "say something"),
            CommentRejected::TooLong => Self::invalid("/comment", refused.to_string()),
            CommentRejected::NonceUsed => VoteRejected::NonceUsed.into(),
            CommentRejected::TooMany => Self::WrongState("no more comments fit here: 20 of one person, 100 of all"),
        }
    }
}
