//! The quorum for one digest: eligible voters, votes, and the result.
//!
//! A seat belongs to a person, even if a delegate votes in it. A person who has voted, or on whose behalf a delegate
//! has voted, is not counted again, neither as approval nor as denial. A delegate must be as free to decide as the
//! absent reviewer.

use std::collections::BTreeSet;

use super::ballot::{Ballot, COMMENT_CHARS_MAX, Ineligible, VoteRejected};
use super::voter_roll::{DelegatedFrom, VoterRoll, VotingSeat};
use super::{ApprovalStage, BrowserCheck, PasskeyRequirement, Vote, VoteVerdict, is_author};
use crate::chain::hash::Digest;
use crate::chain::receipt::{ApprovalClaim, ApprovalMethod, DenialClaim};
use crate::identity::account::{Account, AccountCredential, PersonRole};
use crate::identity::delegation::Delegation;
use crate::primitives::id::{AccountId, GroupName};
use crate::primitives::time::Timestamp;

/// The eligible voters and their votes on one digest.
#[derive(Clone, Copy, Debug)]
pub struct Quorum<'a> {
    pub digest: Digest,
    pub stages: &'a [ApprovalStage],
    /// The groups that may also vote in every stage after an escalation.
    pub also_asked: Option<&'a BTreeSet<GroupName>>,
    /// Authors. They may not decide (separation of duties).
    pub excluded: &'a BTreeSet<String>,
    pub denials_needed: u32,
    /// The deadline.
    pub expires_at: Timestamp,
    /// The votes in order, with withdrawn votes.
    pub votes: &'a [Vote],
}

/// The result of the counted votes.
#[derive(Debug, PartialEq, Eq)]
pub enum QuorumResult {
    Waiting,
    /// Every stage has its quorum. These are the counted approvals.
    Approved(Vec<ApprovalClaim>),
    Denied(Vec<DenialClaim>),
}

impl Quorum<'_> {
    /// Returns the stages that a person may decide for themselves, or the reason why there is none.
    pub fn eligible(&self, person: &Account) -> Result<Vec<u32>, Ineligible> {
        if self.has_spoken(&person.id) {
            return Err(Ineligible::Voted);
        }
        self.stages_of(person)
    }

    /// Returns all seats in which a person may vote, or the reason why there is none. Their own seats come first, then
    /// those of absent reviewers.
    pub fn places(&self, person: &Account, roll: &VoterRoll) -> Result<Vec<VotingSeat>, Ineligible> {
        if self.has_spoken(&person.id) {
            return Err(Ineligible::Voted);
        }
        self.free(person)?;
        // A reviewer without an own stage may still vote for an absent one.
        let own = self.stages_of(person).unwrap_or_default();
        let own = own.into_iter().map(|stage| VotingSeat { stage, absent: None });
        let others = roll.away_for(&person.id).filter(|(_, away)| !self.has_spoken(&away.id)).flat_map(|(by, away)| {
            let absent = DelegatedFrom::by(by, away);
            self.stages_handed_on(by, away)
                .into_iter()
                .map(move |stage| VotingSeat { stage, absent: Some(absent.clone()) })
        });
        let places: Vec<VotingSeat> = own.chain(others).collect();
        if places.is_empty() { Err(Ineligible::Group) } else { Ok(places) }
    }

    fn standing(&self) -> impl Iterator<Item = &Vote> {
        self.votes.iter().filter(|it| it.stands())
    }

    /// Checks that a person's seat is used: by their own vote in any seat, or by their delegate.
    fn has_spoken(&self, person: &AccountId) -> bool {
        self.standing().any(|vote| vote.takes_up(person))
    }

    /// Checks that a person may take part in the decision at all.
    pub(super) fn free(&self, person: &Account) -> Result<(), Ineligible> {
        if person.disabled {
            return Err(Ineligible::Disabled);
        }
        if person.role != PersonRole::Reviewer {
            return Err(Ineligible::Role);
        }
        if is_author(self.excluded, person) { Err(Ineligible::Author) } else { Ok(()) }
    }

    /// Returns the stages that a person may decide by their own groups, before and after their vote.
    pub(super) fn stages_of(&self, person: &Account) -> Result<Vec<u32>, Ineligible> {
        self.free(person)?;
        self.eligible_stages(person)
    }

    /// Returns the stages whose groups contain the person.
    pub(super) fn eligible_stages(&self, person: &Account) -> Result<Vec<u32>, Ineligible> {
        let also = self.also_asked.is_some_and(|it| !it.is_disjoint(&person.groups));
        let asks = |stage: &ApprovalStage| also || !stage.groups.is_disjoint(&person.groups);
        let stages: Vec<u32> =
            (0u32..).zip(self.stages).filter(|(_, stage)| asks(stage)).map(|(index, _)| index).collect();
        if stages.is_empty() { Err(Ineligible::Group) } else { Ok(stages) }
    }

    /// Returns the stages in which a delegate may vote for an absent reviewer. If a stage requires a passkey, the
    /// absent reviewer must have confirmed the delegation with a passkey. Otherwise a stolen session could delegate to
    /// another person, whose passkey would then open the stage.
    fn stages_handed_on(&self, by: &Delegation, away: &Account) -> Vec<u32> {
        let mut stages = self.stages_of(away).unwrap_or_default();
        stages.retain(|stage| {
            let asked = usize::try_from(*stage).ok().and_then(|it| self.stages.get(it));
            // An unknown stage requires a confirmed delegation, which is the strict choice.
            by.confirmed_by.is_some() || asked.is_some_and(|it| it.passkey.is_nothing())
        });
        stages
    }

    /// Returns the number of approvals of a stage, by the voters' current accounts.
    pub fn approvals(&self, stage: u32, roll: &VoterRoll) -> u32 {
        let counted = self.approving(roll).filter(|vote| vote.stage == stage);
        u32::try_from(counted.count()).unwrap_or(u32::MAX)
    }

    /// Returns the approvals of voters who may still give them.
    fn approving<'v>(&'v self, roll: &'v VoterRoll) -> impl Iterator<Item = &'v Vote> {
        self.standing().filter(|vote| vote.verdict == VoteVerdict::Approve && self.may_still(vote, roll))
    }

    /// Checks that the voter could cast the same vote now: the voter and, for a delegation, the absent reviewer are
    /// eligible, and the delegation is active.
    pub(super) fn may_still(&self, vote: &Vote, roll: &VoterRoll) -> bool {
        let Some(voter) = roll.person(&vote.reviewer) else { return false };
        match &vote.absent {
            None => self.stages_of(voter).is_ok_and(|at| at.contains(&vote.stage)),
            Some(absent) => {
                let handed =
                    roll.away_for(&voter.id).find(|(by, away)| by.id == absent.delegation && away.id == absent.person);
                // The delegate must be eligible too. Otherwise an author could approve through a delegation.
                self.free(voter).is_ok()
                    && handed.is_some_and(|(by, away)| self.stages_handed_on(by, away).contains(&vote.stage))
            }
        }
    }

    /// Checks a ballot and returns the vote.
    pub fn hear(&self, ballot: Ballot, voter: &Account, roll: &VoterRoll) -> Result<Vote, VoteRejected> {
        if roll.now >= self.expires_at {
            return Err(VoteRejected::Expired);
        }
        if ballot.transition != self.digest {
            return Err(VoteRejected::Digest);
        }
        // Withdrawn votes are included: a replayed form must not vote again.
        if self.votes.iter().any(|vote| vote.nonce == ballot.nonce) {
            return Err(VoteRejected::NonceUsed);
        }
        let place = self.place_of(&ballot, voter, roll)?;
        self.check_words(&ballot)?;
        let typed = self.stage(ballot.stage)?.typed(&ballot, &self.digest)?;
        // A denial stays possible: it is safe even if the page was manipulated.
        if ballot.verdict == VoteVerdict::Approve && ballot.browser_check == BrowserCheck::Mismatch {
            return Err(VoteRejected::Mismatch);
        }
        Ok(Vote {
            reviewer: voter.id.clone(),
            name: voter.name.clone(),
            absent: place.absent,
            stage: ballot.stage,
            verdict: ballot.verdict,
            transition: ballot.transition,
            nonce: ballot.nonce,
            comment: ballot.comment,
            browser_check: ballot.browser_check,
            proof: ballot.proof,
            typed,
            at: roll.now,
            withdrawn: None,
        })
    }

    fn stage(&self, stage: u32) -> Result<&ApprovalStage, VoteRejected> {
        usize::try_from(stage).ok().and_then(|it| self.stages.get(it)).ok_or(VoteRejected::Stage)
    }

    /// Returns the passkey requirement of a stage. For an unknown stage it is the strictest one, so an invalid stage
    /// never weakens the check.
    pub fn passkey_need(&self, stage: u32) -> PasskeyRequirement {
        self.stage(stage).map_or(PasskeyRequirement::Signature {}, |it| it.passkey)
    }

    /// Returns the seat in which a ballot is cast.
    fn place_of(&self, ballot: &Ballot, voter: &Account, roll: &VoterRoll) -> Result<VotingSeat, VoteRejected> {
        let places = self.places(voter, roll)?;
        let mut meant = places.into_iter().filter(|it| it.delegation() == ballot.delegation.as_ref()).peekable();
        // The error names the delegation, because it may have ended after the page was opened.
        if ballot.delegation.is_some() && meant.peek().is_none() {
            return Err(VoteRejected::Delegation);
        }
        meant.find(|it| it.stage == ballot.stage).ok_or(VoteRejected::Stage)
    }

    fn check_words(&self, ballot: &Ballot) -> Result<(), VoteRejected> {
        let stage = self.stage(ballot.stage)?;
        let said = ballot.comment.as_deref().unwrap_or_default();
        if stage.comment_required && said.trim().is_empty() {
            return Err(VoteRejected::CommentRequired);
        }
        if said.chars().count() > COMMENT_CHARS_MAX {
            return Err(VoteRejected::CommentTooLong);
        }
        Ok(())
    }

    /// Returns the result after the last vote. An approval cannot cause a denial, and a denial cannot cause an
    /// approval.
    pub fn count(&self, roll: &VoterRoll) -> QuorumResult {
        match self.votes.last().map(|it| it.verdict) {
            Some(VoteVerdict::Approve) => self.count_approvals(roll),
            Some(VoteVerdict::Deny) => self.count_denials(),
            None => QuorumResult::Waiting,
        }
    }

    fn count_approvals(&self, roll: &VoterRoll) -> QuorumResult {
        let full = (0u32..).zip(self.stages).all(|(index, stage)| self.approvals(index, roll) >= stage.need);
        // A review without stages must never count as approved.
        if !full || self.stages.is_empty() {
            return QuorumResult::Waiting;
        }
        let approval = |vote: &Vote| ApprovalClaim {
            reviewer: vote.reviewer.clone(),
            absent: vote.absent.as_ref().map(|it| it.person.clone()),
            stage: vote.stage,
            at: vote.at,
            method: vote.proof.method().unwrap_or_else(|| method_of(roll.person(&vote.reviewer))),
            evidence: vote.proof.evidence(),
        };
        QuorumResult::Approved(self.approving(roll).map(approval).collect())
    }

    fn count_denials(&self) -> QuorumResult {
        // Denials are counted without a check of the current accounts, so disabling an account cannot undo a denial.
        let denied = self.standing().filter(|vote| vote.verdict == VoteVerdict::Deny);
        let refusal = |vote: &Vote| DenialClaim {
            reviewer: vote.reviewer.clone(),
            absent: vote.absent.as_ref().map(|it| it.person.clone()),
            stage: vote.stage,
            at: vote.at,
        };
        let refusals: Vec<DenialClaim> = denied.map(refusal).collect();
        let enough = u32::try_from(refusals.len()).is_ok_and(|it| it >= self.denials_needed);
        if enough { QuorumResult::Denied(refusals) } else { QuorumResult::Waiting }
    }
}

/// Returns the sign-in method of a voter.
fn method_of(voter: Option<&Account>) -> ApprovalMethod {
    match voter.map(|it| &it.sign_in) {
        Some(AccountCredential::Oidc { .. }) => ApprovalMethod::Oidc,
        Some(AccountCredential::Password { .. }) | None => ApprovalMethod::Password,
    }
}
