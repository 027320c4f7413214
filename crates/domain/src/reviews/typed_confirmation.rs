//! Typed confirmation: digits that a reviewer types to approve, if a stage requires more than a button.

use serde::{Deserialize, Serialize};

use super::{ApprovalStage, Ballot, Hold, VoteRejected, VoteVerdict};
use crate::chain::hash::Digest;

/// How an approval is confirmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub enum ConfirmationMethod {
    #[default]
    Pressing,
    /// By typing digits that identify this change.
    Typing,
}

impl ConfirmationMethod {
    /// Checks that a button is enough.
    pub fn is_pressing(&self) -> bool {
        *self == Self::Pressing
    }
}

/// The number of digits at the end of the digest. An agent cannot choose them, changes of one day share them only by
/// chance, and they are short enough for a phone.
pub const TYPED_DIGITS: usize = 6;

impl Digest {
    /// Returns the digits to type.
    pub fn to_type(&self) -> String {
        let digits = self.to_string();
        digits.get(digits.len().saturating_sub(TYPED_DIGITS)..).unwrap_or_default().to_owned()
    }
}

impl ApprovalStage {
    /// Checks the typed text and returns the digits that the vote stores, in the digest's own spelling. Returns `None`
    /// if this vote needs no confirmation.
    pub(super) fn typed(&self, ballot: &Ballot, digest: &Digest) -> Result<Option<String>, VoteRejected> {
        let Some(asked) = self.asks_to_type(ballot.verdict, digest) else { return Ok(None) };
        let typed = ballot.typed.as_deref().unwrap_or_default().trim();
        // A phone may capitalize the first letter.
        if typed.eq_ignore_ascii_case(&asked) { Ok(Some(asked)) } else { Err(VoteRejected::NotTyped) }
    }

    /// Returns the digits that a verdict requires, if any.
    pub fn asks_to_type(&self, verdict: VoteVerdict, digest: &Digest) -> Option<String> {
        (self.confirm == ConfirmationMethod::Typing && verdict == VoteVerdict::Approve).then(|| digest.to_type())
    }
}

impl Hold {
    /// Returns the digits that a verdict at a stage requires, if any.
    pub fn asks_to_type(&self, stage: u32, verdict: VoteVerdict) -> Option<String> {
        self.stages.get(stage as usize)?.asks_to_type(verdict, &self.transition)
    }
}
