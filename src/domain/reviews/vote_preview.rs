//! What a vote would come to: told before it is cast, and held to when it is counted.

use super::ballot::VoteRejected;
use super::quorum::QuorumResult;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VotePreview {
    Waits,
    /// It is the last approval that is needed.
    Passes,
    /// It is the last denial that is needed.
    Ends,
}

impl VotePreview {
    /// The word by which a form says it back.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Waits => "waits",
            Self::Passes => "passes",
            Self::Ends => "ends",
        }
    }

    /// What a form says, if it says one of them.
    pub fn read(word: &str) -> Option<Self> {
        [Self::Waits, Self::Passes, Self::Ends].into_iter().find(|it| it.word() == word)
    }
}

impl QuorumResult {
    /// The count, if it is what the voter was told, or they were told nothing: of two who vote at the same moment, the one
    /// who read that others are waited for does not decide it.
    pub(in crate::domain) fn matches_preview(self, told: Option<VotePreview>) -> Result<Self, VoteRejected> {
        if told.is_none_or(|it| it == self.prospect()) { Ok(self) } else { Err(VoteRejected::MovedOn) }
    }

    const fn prospect(&self) -> VotePreview {
        match self {
            Self::Waiting => VotePreview::Waits,
            Self::Approved(_) => VotePreview::Passes,
            Self::Denied(_) => VotePreview::Ends,
        }
    }
}
