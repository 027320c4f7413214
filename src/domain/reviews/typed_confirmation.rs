//! What a person types before they approve, where a stage asks for more than the press of a button.

use serde::{Deserialize, Serialize};

use super::{ApprovalStage, Ballot, Hold, VoteRejected, VoteVerdict};
use crate::domain::chain::hash::Digest;

/// How an approval is confirmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub enum ConfirmationMethod {
    #[default]
    Pressing,
    /// By typing what names exactly this change.
    Typing,
}

impl ConfirmationMethod {
    /// Whether a button is enough.
    pub fn is_pressing(&self) -> bool {
        *self == Self::Pressing
    }
}

/// The last digits of a digest that are typed. An agent cannot choose them, no two changes of a day share them but by
/// chance, and a thumb types them without a mistake.
pub const TYPED_DIGITS: usize = 6;

impl Digest {
    /// What is typed to approve what bears this digest.
    pub fn to_type(&self) -> String {
        let digits = self.to_string();
        digits.get(digits.len().saturating_sub(TYPED_DIGITS)..).unwrap_or_default().to_owned()
    }
}

impl ApprovalStage {
    /// What a vote keeps of what was typed: of an approval that this stage wants confirmed so, the digits of this very
    /// digest, however they were spelled; of every other vote nothing.
    pub(super) fn typed(&self, ballot: &Ballot, digest: &Digest) -> Result<Option<String>, VoteRejected> {
        let Some(asked) = self.asks_to_type(ballot.verdict, digest) else { return Ok(None) };
        let typed = ballot.typed.as_deref().unwrap_or_default().trim();
        if typed.eq_ignore_ascii_case(&asked) { Ok(Some(asked)) } else { Err(VoteRejected::NotTyped) }
    }

    /// What has to be typed for a verdict, if something.
    pub fn asks_to_type(&self, verdict: VoteVerdict, digest: &Digest) -> Option<String> {
        (self.confirm == ConfirmationMethod::Typing && verdict == VoteVerdict::Approve).then(|| digest.to_type())
    }
}

impl Hold {
    /// What has to be typed for a verdict at a stage, if something.
    pub fn asks_to_type(&self, stage: u32, verdict: VoteVerdict) -> Option<String> {
        self.stages.get(stage as usize)?.asks_to_type(verdict, &self.transition)
    }
}
