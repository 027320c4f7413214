//! What a vote would come to: told before it is cast, and held to when it is counted.

use super::ballot::VoteRefused;
use super::quorum::Count;

/// What a vote comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Prospect {
    /// More are needed.
    Waits,
    /// It is the last approval that is needed.
    Passes,
    /// It is the last denial that is needed.
    Ends,
}

impl Prospect {
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

impl Count {
    /// The count, if it is what the voter was told, or they were told nothing: of two who vote at the same moment, the one
    /// who read that others are waited for does not decide it.
    pub(in crate::domain) fn held_to(self, told: Option<Prospect>) -> Result<Self, VoteRefused> {
        if told.is_none_or(|it| it == self.prospect()) { Ok(self) } else { Err(VoteRefused::MovedOn) }
    }

    const fn prospect(&self) -> Prospect {
        match self {
            Self::Waiting => Prospect::Waits,
            Self::Approved(_) => Prospect::Passes,
            Self::Denied(_) => Prospect::Ends,
        }
    }
}
