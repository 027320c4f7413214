//! The stages of an approval, and how far each is.

use super::safe_text::SafeLine;

#[derive(Clone, Debug)]
pub struct StageView {
    /// The groups whose members may vote in it.
    pub groups: Vec<SafeLine>,
    /// Approvals so far, by name.
    pub approved_by: Vec<SafeLine>,
    pub need: u32,
    pub progress: StageProgress,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StageProgress {
    Done,
    Open,
    Later,
    /// The review ended before its quorum was there.
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
