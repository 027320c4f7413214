//! Withdrawing: taking one's own vote back while the review is open. The vote stays to be read, and does not count.

use serde::{Deserialize, Serialize};

use super::{Hold, HoldState, VoteRejected};
use crate::domain::chain::hash::Digest;
use crate::domain::primitives::id::AccountId;
use crate::domain::primitives::time::Timestamp;

/// That a vote was taken back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Withdrawal {
    pub at: Timestamp,
    /// The page's one-time nonce.
    pub nonce: String,
    /// Who, if not the voter: the one in whose place it was cast.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AccountId>,
}

/// Who changes their mind more often has not made it up; each vote stays in the row that everybody reads.
pub const WITHDRAWALS_MAX: usize = 5;

/// What a person asks to have taken back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WithdrawalRequest {
    /// On exactly what the vote was.
    pub transition: Digest,
    /// Which of the hold's votes, from 0.
    pub vote: usize,
    /// The page's nonce, already found to be ours.
    pub nonce: String,
}

impl Hold {
    /// The hold with one vote less that counts. Whoever cast it may take it back, and so may the one in whose place it was
    /// cast. Both may vote again.
    pub fn withdrawn(
        mut self,
        ask: WithdrawalRequest,
        person: &AccountId,
        now: Timestamp,
    ) -> Result<Self, VoteRejected> {
        if !matches!(self.state, HoldState::Open {}) {
            return Err(VoteRejected::Ended);
        }
        if now >= self.expires_at {
            return Err(VoteRejected::Expired);
        }
        if ask.transition != self.transition {
            return Err(VoteRejected::Digest);
        }
        let taken_back = self
            .votes
            .iter()
            .filter_map(|it| it.withdrawn.as_ref().map(|back| (back.by.as_ref().unwrap_or(&it.reviewer), back)));
        if taken_back.clone().any(|(_, it)| it.nonce == ask.nonce) {
            return Err(VoteRejected::NonceUsed);
        }
        if taken_back.filter(|(who, _)| *who == person).count() >= WITHDRAWALS_MAX {
            return Err(VoteRejected::WithdrawnTooOften);
        }
        let vote = self.votes.get_mut(ask.vote).filter(|it| it.takes_up(person) && it.stands());
        let vote = vote.ok_or(VoteRejected::NothingToWithdraw)?;
        let by = (vote.reviewer != *person).then(|| person.clone());
        vote.withdrawn = Some(Withdrawal { at: now, nonce: ask.nonce, by });
        Ok(self)
    }
}
