//! Forms of the review page that are not the decision: withdraw a vote, extend the deadline, comment.

use crate::pages::shared::safe_text::{SafeLine, SafeText};

#[derive(Clone, Debug)]
pub struct WithdrawalForm {
    pub action: String,
    pub csrf: String,
    pub nonce: String,
    /// Index of the vote, from 0.
    pub vote: String,
    /// The delegate who cast the vote for the reader.
    pub cast_by: Option<SafeLine>,
}

#[derive(Clone, Debug)]
pub struct ExtensionForm {
    pub action: String,
    pub csrf: String,
    /// The current deadline. The form is rejected if the deadline has changed since then.
    pub deadline: String,
    pub choices: Vec<DeadlineOption>,
    /// The typed reason, if the form was rejected.
    pub typed: SafeText,
    /// Why the form was rejected.
    pub problem: Option<String>,
}

#[derive(Clone, Debug)]
pub struct DeadlineOption {
    pub value: String,
    pub words: String,
}

#[derive(Clone, Debug)]
pub struct CommentForm {
    pub action: String,
    pub csrf: String,
    pub nonce: String,
    /// The typed comment, if the form was rejected.
    pub typed: SafeText,
    /// Why the form was rejected.
    pub problem: Option<String>,
}
