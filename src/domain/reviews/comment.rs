//! Commenting: saying something about a review without voting. It decides nothing.

use serde::{Deserialize, Serialize};

use super::{COMMENT_CHARS_MAX, Hold};
use crate::domain::primitives::id::AccountId;
use crate::domain::primitives::time::Timestamp;

/// What somebody said without voting.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewComment {
    pub person: AccountId,
    /// Their name when they said it.
    pub name: String,
    /// What: inert text, shown without what the policy's detectors find.
    pub words: String,
    /// The page's one-time nonce: a form that is sent twice says it once.
    pub nonce: String,
    pub at: Timestamp,
}

/// Comments are kept in the hold's row, which everybody who opens the review reads.
pub const COMMENTS_MAX: usize = 100;

/// One person leaves room for the others.
pub const COMMENTS_OF_ONE_MAX: usize = 20;

/// Why something is not said.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CommentRejected {
    #[error("say something")]
    Empty,
    #[error("a comment has at most {COMMENT_CHARS_MAX} characters")]
    TooLong,
    /// The form was sent before.
    #[error("this page was used before; open the review again")]
    NonceUsed,
    #[error("no more comments fit here: {COMMENTS_OF_ONE_MAX} of one person, {COMMENTS_MAX} of all")]
    TooMany,
}

impl Hold {
    /// The hold with one more comment. How it stands does not matter: what was decided may be talked about.
    pub fn commented(mut self, comment: ReviewComment) -> Result<Self, CommentRejected> {
        if comment.words.trim().is_empty() {
            return Err(CommentRejected::Empty);
        }
        if comment.words.chars().count() > COMMENT_CHARS_MAX {
            return Err(CommentRejected::TooLong);
        }
        if self.comments.iter().any(|it| it.nonce == comment.nonce) {
            return Err(CommentRejected::NonceUsed);
        }
        let own = self.comments.iter().filter(|it| it.person == comment.person).count();
        if own >= COMMENTS_OF_ONE_MAX || self.comments.len() >= COMMENTS_MAX {
            return Err(CommentRejected::TooMany);
        }
        self.comments.push(comment);
        Ok(self)
    }
}
