//! The stages of an approval, and how far each is.

use super::safe_text::SafeLine;

/// A stage of the approval.
#[derive(Clone, Debug)]
pub struct StageView {
    /// The groups whose members may vote in it.
    pub groups: Vec<SafeLine>,
    /// Approvals so far, by name.
    pub approved_by: Vec<SafeLine>,
    /// Approvals needed.
    pub need: u32,
    /// Where it stands.
    pub progress: StageProgress,
}

/// Where a stage stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StageProgress {
    /// Its quorum is there.
    Done,
    /// It takes votes.
    Open,
    /// Others come first.
    Later,
    /// The review ended before its quorum was there.
    Over,
}

impl StageProgress {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Done => "complete",
            Self::Open => "open now",
            Self::Later => "comes later",
            Self::Over => "not reached",
        }
    }
}
