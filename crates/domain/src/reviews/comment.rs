//! Comments on a review. They do not affect the decision.

use serde::{Deserialize, Serialize};

use super::{COMMENT_CHARS_MAX, Hold};
use crate::primitives::id::AccountId;
use crate::primitives::time::Timestamp;

/// A comment without a vote.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewComment {
    pub person: AccountId,
    /// The author's name at that time.
    pub name: String,
    /// The text, shown without matches of the policy's detectors.
    pub words: String,
    /// The page's one-time nonce. It makes a repeated form submission a single comment.
    pub nonce: String,
    pub at: Timestamp,
}

/// The limit of comments per review. They are stored in the review's row, which every reader of the review loads.
pub const COMMENTS_MAX: usize = 100;

/// The limit of comments per person, so that one person cannot use up the limit of the review.
pub const COMMENTS_OF_ONE_MAX: usize = 20;

/// The reason why a comment is rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CommentRejected {
    #[error("the comment is empty; write a comment")]
    Empty,
    #[error("a comment has at most {COMMENT_CHARS_MAX} characters")]
    TooLong,
    #[error("this page was used before; open the review again")]
    NonceUsed,
    #[error("the limit of comments is reached: {COMMENTS_OF_ONE_MAX} for each person, {COMMENTS_MAX} for a review")]
    TooMany,
}

impl Hold {
    /// Returns the review with one more comment. A decided review accepts comments too.
    pub fn commented(mut self, comment: ReviewComment) -> Result<Self, CommentRejected> {
        // White space alone would be shown as an empty comment.
        if comment.words.trim().is_empty() {
            return Err(CommentRejected::Empty);
        }
        if comment.words.chars().count() > COMMENT_CHARS_MAX {
            return Err(CommentRejected::TooLong);
        }
        // A form that is sent twice must not add a second comment.
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
