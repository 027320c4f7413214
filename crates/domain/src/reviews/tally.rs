//! Counting of votes on a review.

use super::ballot::{Ballot, CheckboxState, VoteRejected};
use super::quorum::QuorumResult;
use super::{Hold, HoldState, Vote, VotePreview, VoteVerdict, VoterRoll};
use crate::chain::receipt::{ApprovalClaim, DenialClaim};
use crate::identity::account::Account;

/// The review after a counted vote.
#[derive(Debug, PartialEq, Eq)]
pub enum HoldTally {
    Waiting(Hold),
    /// Every stage has its quorum. These are the counted approvals.
    Approved(Hold, Vec<ApprovalClaim>),
    Denied(Hold, Vec<DenialClaim>),
}

impl HoldTally {
    /// Returns the result as the page shows it to the voter.
    pub const fn prospect(&self) -> VotePreview {
        match self {
            Self::Waiting(_) => VotePreview::Waits,
            Self::Approved(..) => VotePreview::Passes,
            Self::Denied(..) => VotePreview::Ends,
        }
    }
}

/// The data, in addition to the review, that counting needs.
pub struct VoteContext<'a> {
    /// The current accounts of all voters and of the reviewers whom they represent, including the new voter.
    pub roll: &'a VoterRoll,
    /// Whether an earlier write's outcome is unknown.
    pub outcome_unknown: bool,
}

impl Hold {
    /// Checks and counts a vote.
    pub fn vote(mut self, ballot: Ballot, voter: &Account, bench: &VoteContext<'_>) -> Result<HoldTally, VoteRejected> {
        let told = ballot.told;
        let vote = self.check(ballot, voter, bench)?;
        // The quorum counts the stored votes, so the new one is added first.
        self.votes.push(vote);
        Ok(match self.jury(bench.roll.now).count(bench.roll).matches_preview(told)? {
            QuorumResult::Waiting => HoldTally::Waiting(self),
            QuorumResult::Approved(approvals) => HoldTally::Approved(self, approvals),
            QuorumResult::Denied(refusals) => HoldTally::Denied(self, refusals),
        })
    }

    fn check(&self, ballot: Ballot, voter: &Account, bench: &VoteContext<'_>) -> Result<Vote, VoteRejected> {
        if !matches!(self.state, HoldState::Open {}) {
            return Err(VoteRejected::Ended);
        }
        let unknown = bench.outcome_unknown && ballot.outcome_unknown_accepted == CheckboxState::No;
        let vote = self.jury(bench.roll.now).hear(ballot, voter, bench.roll)?;
        // Only an approval can cause a second write, so a denial needs no confirmation.
        if unknown && vote.verdict == VoteVerdict::Approve {
            return Err(VoteRejected::OutcomeUnknown);
        }
        Ok(vote)
    }
}
