//! The stages of an approval, and how far each is.

use super::safe_text::SafeLine;

#[derive(Clone, Debug)]
pub struct StageView {
    pub groups: Vec<SafeLine>,
    /// Names of the approving voters.
    pub approved_by: Vec<SafeLine>,
    pub need: u32,
    pub progress: StageProgress,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StageProgress {
    Done,
    Open,
    Later,
    /// The review ended before the stage had enough approvals.
    Over,
}

impl StageProgress {
    pub const fn words(self) -> &'static str {
        match self {
            Self::Done => "complete",
            Self::Open => "open now",
            Self::Later => "comes later",
            Self::Over => "not reached",
        }
    }
}
