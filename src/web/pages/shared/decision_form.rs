//! What people are asked besides reviews, policies and interrupts: whose approval it takes, and the form.

use super::safe_text::{SafeLine, SafeText};
pub use super::widgets::CommentRequirement;

/// Whose approval is needed, and how much of it is there.
#[derive(Clone, Debug)]
pub struct StageProgressView {
    pub groups: Vec<SafeLine>,
    pub need: u32,
    pub approved_by: Vec<SafeLine>,
}

/// What the visitor can do about it.
#[derive(Clone, Debug)]
pub enum DecideFormView {
    Open(DecideForm),
    Closed(String),
}

#[derive(Clone, Debug)]
pub struct DecideForm {
    pub action: String,
    /// The session's CSRF token.
    pub csrf: String,
    pub nonce: String,
    pub stage: u32,
    /// Whether a comment is required.
    pub comment: CommentRequirement,
    /// Whether a second look follows, so that a key may press its buttons.
    pub asks: bool,
    /// What was typed before, sent again unchanged.
    pub typed: SafeText,
}
