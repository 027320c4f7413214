//! What can be done on a review besides deciding it: a vote taken back, a comment.

use super::text::{Line, Prose};

/// The form that takes one's own vote back.
#[derive(Clone, Debug)]
pub struct WithdrawalForm {
    /// `/reviews/{id}/withdrawal`.
    pub action: String,
    /// The session's CSRF token.
    pub csrf: String,
    /// The one-time nonce.
    pub nonce: String,
    /// Which vote, from 0.
    pub vote: String,
    /// Who cast it, if somebody did in the reader's place.
    pub cast_by: Option<Line>,
}

/// The form that adds a comment without a vote.
#[derive(Clone, Debug)]
pub struct CommentForm {
    /// `/reviews/{id}/comments`.
    pub action: String,
    /// The session's CSRF token.
    pub csrf: String,
    /// The one-time nonce.
    pub nonce: String,
    /// What was typed, when the page comes again.
    pub typed: Prose,
    /// Why the page comes again.
    pub problem: Option<String>,
}
