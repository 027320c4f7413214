//! Voting: what a counted vote leads to.

use super::ballot::{Ballot, Ticked, VoteRefused};
use super::quorum::Count;
use super::{Hold, HoldState, Prospect, Roll, Verdict, Vote};
use crate::domain::chain::receipt::{Approval, Refusal};
use crate::domain::identity::account::Account;

/// What a counted vote leads to.
#[derive(Debug, PartialEq, Eq)]
pub enum Tally {
    /// More are needed.
    Waiting(Hold),
    /// Every stage has its quorum: the approvals that count.
    Approved(Hold, Vec<Approval>),
    /// Enough people refused.
    Denied(Hold, Vec<Refusal>),
}

impl Tally {
    /// What the vote comes to, as its voter is told.
    pub const fn prospect(&self) -> Prospect {
        match self {
            Self::Waiting(_) => Prospect::Waits,
            Self::Approved(..) => Prospect::Passes,
            Self::Denied(..) => Prospect::Ends,
        }
    }
}

/// What a vote is counted against, besides the hold.
pub struct Bench<'a> {
    /// Everyone who voted or for whom somebody did, as they stand now, the new voter included.
    pub roll: &'a Roll,
    /// Whether an earlier write's outcome is unknown.
    pub outcome_unknown: bool,
}

impl Hold {
    /// Counts a vote, or says why not.
    pub fn vote(mut self, ballot: Ballot, voter: &Account, bench: &Bench<'_>) -> Result<Tally, VoteRefused> {
        let told = ballot.told;
        let vote = self.check(ballot, voter, bench)?;
        self.votes.push(vote);
        Ok(match self.jury(bench.roll.now).count(bench.roll).held_to(told)? {
            Count::Waiting => Tally::Waiting(self),
            Count::Approved(approvals) => Tally::Approved(self, approvals),
            Count::Denied(refusals) => Tally::Denied(self, refusals),
        })
    }

    fn check(&self, ballot: Ballot, voter: &Account, bench: &Bench<'_>) -> Result<Vote, VoteRefused> {
        if !matches!(self.state, HoldState::Open {}) {
            return Err(VoteRefused::Ended);
        }
        let unknown = bench.outcome_unknown && ballot.outcome_unknown_accepted == Ticked::No;
        let vote = self.jury(bench.roll.now).hear(ballot, voter, bench.roll)?;
        if unknown && vote.verdict == Verdict::Approve {
            return Err(VoteRefused::OutcomeUnknown);
        }
        Ok(vote)
    }
}
