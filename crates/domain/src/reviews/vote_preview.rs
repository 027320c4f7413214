//! The preview of a vote's result: shown before the vote, and enforced when it is counted.

use super::ballot::VoteRejected;
use super::quorum::QuorumResult;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VotePreview {
    Waits,
    /// The last approval that is needed.
    Passes,
    /// The last denial that is needed.
    Ends,
}

impl VotePreview {
    /// Returns the code that the form sends back.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Waits => "waits",
            Self::Passes => "passes",
            Self::Ends => "ends",
        }
    }

    /// Parses the code of a form.
    pub fn read(word: &str) -> Option<Self> {
        [Self::Waits, Self::Passes, Self::Ends].into_iter().find(|it| it.word() == word)
    }
}

impl QuorumResult {
    /// Returns the count if it matches the preview, or if there was no preview. If two reviewers vote at the same
    /// moment, a reviewer whose page said that more votes are needed does not decide the review.
    pub(crate) fn matches_preview(self, told: Option<VotePreview>) -> Result<Self, VoteRejected> {
        // Without a preview no expectation was shown that the result could contradict.
        if told.is_none_or(|it| it == self.prospect()) { Ok(self) } else { Err(VoteRejected::MovedOn) }
    }

    pub(super) const fn prospect(&self) -> VotePreview {
        match self {
            Self::Waiting => VotePreview::Waits,
            Self::Approved(_) => VotePreview::Passes,
            Self::Denied(_) => VotePreview::Ends,
        }
    }
}
