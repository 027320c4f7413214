//! The stages and the decision form of policy change requests and interrupts.

use super::safe_text::{SafeLine, SafeText};
pub use super::widgets::CommentRequirement;

#[derive(Clone, Debug)]
pub struct StageProgressView {
    pub groups: Vec<SafeLine>,
    pub need: u32,
    pub approved_by: Vec<SafeLine>,
}

/// The decision form, or the reason why there is none.
#[derive(Clone, Debug)]
pub enum DecideFormView {
    Open(DecideForm),
    Closed(String),
}

#[derive(Clone, Debug)]
pub struct DecideForm {
    pub action: String,
    pub csrf: String,
    pub nonce: String,
    pub stage: u32,
    pub comment: CommentRequirement,
    /// Whether a confirm page follows. Keyboard shortcuts press the buttons only if it does.
    pub asks: bool,
    /// The typed comment, if the form was rejected.
    pub typed: SafeText,
}
