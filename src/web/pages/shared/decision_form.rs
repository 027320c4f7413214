//! What people are asked besides reviews, policies and interrupts: whose approval it takes, and the form.

use super::safe_text::{SafeLine, SafeText};
pub use super::widgets::CommentRequirement;

/// Whose approval is needed, and how much of it is there.
#[derive(Clone, Debug)]
pub struct StageProgressView {
    /// Any of these groups.
    pub groups: Vec<SafeLine>,
    /// How many people.
    pub need: u32,
    /// Who approved.
    pub approved_by: Vec<SafeLine>,
}

/// What the visitor can do about it.
#[derive(Clone, Debug)]
pub enum DecideFormView {
    /// Decide.
    Open(DecideForm),
    /// Nothing, and why.
    Closed(String),
}

/// The decision's form.
#[derive(Clone, Debug)]
pub struct DecideForm {
    /// Where it goes.
    pub action: String,
    /// The session's CSRF token.
    pub csrf: String,
    /// The one-time nonce.
    pub nonce: String,
    /// The stage voted in.
    pub stage: u32,
    /// Whether a comment is required.
    pub comment: CommentRequirement,
    /// Whether a second look follows, so that a key may press its buttons.
    pub asks: bool,
    /// What was typed before, sent again unchanged.
    pub typed: SafeText,
}
