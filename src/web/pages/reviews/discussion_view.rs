//! What can be done on a review besides deciding it: a vote taken back, a comment.

use crate::web::pages::shared::safe_text::{SafeLine, SafeText};

/// The form that takes one's own vote back.
#[derive(Clone, Debug)]
pub struct WithdrawalForm {
    /// `/reviews/{id}/withdrawal`.
    pub action: String,
    /// The session's CSRF token.
    pub csrf: String,
    pub nonce: String,
    /// Which vote, from 0.
    pub vote: String,
    /// Who cast it, if somebody did in the reader's place.
    pub cast_by: Option<SafeLine>,
}

/// The form that moves the deadline.
#[derive(Clone, Debug)]
pub struct ExtensionForm {
    /// `/reviews/{id}/extension`.
    pub action: String,
    /// The session's CSRF token.
    pub csrf: String,
    /// The deadline as it is: the form is good for moving this one.
    pub deadline: String,
    pub choices: Vec<DeadlineOption>,
    /// The reason as typed, when the page comes again.
    pub typed: SafeText,
    /// Why the page comes again.
    pub problem: Option<String>,
}

#[derive(Clone, Debug)]
pub struct DeadlineOption {
    pub value: String,
    pub words: String,
}

/// The form that adds a comment without a vote.
#[derive(Clone, Debug)]
pub struct CommentForm {
    /// `/reviews/{id}/comments`.
    pub action: String,
    /// The session's CSRF token.
    pub csrf: String,
    pub nonce: String,
    /// What was typed, when the page comes again.
    pub typed: SafeText,
    /// Why the page comes again.
    pub problem: Option<String>,
}
