//! Withdrawals of votes on an open review. A withdrawn vote stays visible and is not counted.

use serde::{Deserialize, Serialize};

use super::{Hold, HoldState, VoteRejected};
use crate::chain::hash::Digest;
use crate::primitives::id::AccountId;
use crate::primitives::time::Timestamp;

/// The withdrawal of a vote.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Withdrawal {
    pub at: Timestamp,
    /// The page's one-time nonce.
    pub nonce: String,
    /// The absent reviewer, if they withdrew the vote of their delegate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AccountId>,
}

/// The limit of withdrawals per person and review. Each vote stays in the row that every reader loads.
pub const WITHDRAWALS_MAX: usize = 5;

/// A request to withdraw a vote.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WithdrawalRequest {
    /// The transition that the vote is about.
    pub transition: Digest,
    /// The index of the vote in the review, from 0.
    pub vote: usize,
    /// The page's nonce. The caller has verified that this gateway issued it.
    pub nonce: String,
}

impl Hold {
    /// Returns the review with the vote withdrawn. The voter may withdraw it, and so may the absent reviewer on whose
    /// behalf it was cast. Both may vote again.
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
        // A form that is sent twice must not withdraw a second vote.
        if taken_back.clone().any(|(_, it)| it.nonce == ask.nonce) {
            return Err(VoteRejected::NonceUsed);
        }
        // Each withdrawal counts for the person who made it, so a delegate cannot use up the limit of the absent
        // reviewer.
        if taken_back.filter(|(who, _)| *who == person).count() >= WITHDRAWALS_MAX {
            return Err(VoteRejected::WithdrawnTooOften);
        }
        // A missing vote and the vote of another reviewer give the same error.
        let vote = self.votes.get_mut(ask.vote).filter(|it| it.takes_up(person) && it.stands());
        let vote = vote.ok_or(VoteRejected::NothingToWithdraw)?;
        let by = (vote.reviewer != *person).then(|| person.clone());
        vote.withdrawn = Some(Withdrawal { at: now, nonce: ask.nonce, by });
        Ok(self)
    }
}
