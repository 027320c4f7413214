//! Counting of votes on a review.

use super::ballot::{Ballot, CheckboxState, VoteRejected};
use super::quorum::QuorumResult;
use super::{Hold, HoldState, Vote, VotePreview, VoteVerdict, VoterRoll};
use crate::identity::account::Account;

/// A record after a counted vote, and the result of the count.
#[derive(Debug, PartialEq, Eq)]
pub struct Tally<T> {
    pub record: T,
    pub result: QuorumResult,
}

impl<T> Tally<T> {
    /// Returns the result as the page shows it to the voter.
    pub const fn prospect(&self) -> VotePreview {
        self.result.prospect()
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
    pub fn vote(
        mut self,
        ballot: Ballot,
        voter: &Account,
        bench: &VoteContext<'_>,
    ) -> Result<Tally<Self>, VoteRejected> {
        let told = ballot.told;
        let vote = self.check(ballot, voter, bench)?;
        // The quorum counts the stored votes, so the new one is added first.
        self.votes.push(vote);
        let result = self.jury(bench.roll.now).count(bench.roll).matches_preview(told)?;
        Ok(Tally { record: self, result })
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
