//! A jury: who is asked about one digest, and what they have said so far.

use std::collections::BTreeSet;

use super::voting::{Ballot, COMMENT_CHARS_MAX, Ineligible, VoteRefused};
use super::{BrowserCheck, Stage, Verdict, Vote, is_author};
use crate::domain::account::{Account, PersonRole, SignIn};
use crate::domain::chain::hash::Digest;
use crate::domain::chain::receipt::{Approval, Method, Refusal};
use crate::domain::time::Timestamp;

/// Who is asked about one digest, and what they have said so far.
#[derive(Clone, Copy, Debug)]
pub struct Jury<'a> {
    /// About exactly what.
    pub digest: Digest,
    /// Whose approval it needs.
    pub stages: &'a [Stage],
    /// Who had a hand in it, and so may not decide it.
    pub excluded: &'a BTreeSet<String>,
    /// How many denials end it.
    pub denials_needed: u32,
    /// Until when they are asked.
    pub expires_at: Timestamp,
    /// The votes, in their order, those that were taken back among them.
    pub votes: &'a [Vote],
}

/// What the counted votes come to.
#[derive(Debug, PartialEq, Eq)]
pub enum Count {
    /// More are needed.
    Waiting,
    /// Every stage has its quorum: the approvals that count.
    Approved(Vec<Approval>),
    /// Enough people refused.
    Denied(Vec<Refusal>),
}

impl Jury<'_> {
    /// Why a person may not decide, or the stages that they may decide.
    pub fn eligible(&self, person: &Account) -> Result<Vec<u32>, Ineligible> {
        if self.standing().any(|vote| vote.reviewer == person.id) {
            return Err(Ineligible::Voted);
        }
        self.stages_of(person)
    }

    /// The votes that count.
    fn standing(&self) -> impl Iterator<Item = &Vote> {
        self.votes.iter().filter(|it| it.stands())
    }

    fn stages_of(&self, person: &Account) -> Result<Vec<u32>, Ineligible> {
        if person.disabled {
            return Err(Ineligible::Disabled);
        }
        if person.role != PersonRole::Reviewer {
            return Err(Ineligible::Role);
        }
        if is_author(self.excluded, person) {
            return Err(Ineligible::Author);
        }
        let asks = |stage: &Stage| !stage.groups.is_disjoint(&person.groups);
        let stages: Vec<u32> =
            (0u32..).zip(self.stages).filter(|(_, stage)| asks(stage)).map(|(index, _)| index).collect();
        if stages.is_empty() { Err(Ineligible::Group) } else { Ok(stages) }
    }

    /// How many votes a stage has of those it needs, counting the people given as they stand now.
    pub fn approvals(&self, stage: u32, people: &[Account]) -> u32 {
        let counted = self.approving(people).filter(|vote| vote.stage == stage);
        u32::try_from(counted.count()).unwrap_or(u32::MAX)
    }

    /// The approvals of those who still may give them.
    fn approving(&self, people: &[Account]) -> impl Iterator<Item = &Vote> {
        self.standing().filter(|vote| {
            let voter = people.iter().find(|it| it.id == vote.reviewer);
            vote.verdict == Verdict::Approve
                && voter.is_some_and(|it| self.stages_of(it).is_ok_and(|at| at.contains(&vote.stage)))
        })
    }

    /// The vote that a ballot is, or why it is not counted.
    pub fn hear(&self, ballot: Ballot, voter: &Account, now: Timestamp) -> Result<Vote, VoteRefused> {
        if now >= self.expires_at {
            return Err(VoteRefused::Expired);
        }
        if ballot.transition != self.digest {
            return Err(VoteRefused::Digest);
        }
        if self.votes.iter().any(|vote| vote.nonce == ballot.nonce) {
            return Err(VoteRefused::NonceUsed);
        }
        if !self.eligible(voter)?.contains(&ballot.stage) {
            return Err(VoteRefused::Stage);
        }
        self.check_words(&ballot)?;
        let typed = self.stage(ballot.stage)?.typed(&ballot, &self.digest)?;
        if ballot.verdict == Verdict::Approve && ballot.browser_check == BrowserCheck::Mismatch {
            return Err(VoteRefused::Mismatch);
        }
        Ok(Vote {
            reviewer: voter.id.clone(),
            name: voter.name.clone(),
            stage: ballot.stage,
            verdict: ballot.verdict,
            transition: ballot.transition,
            nonce: ballot.nonce,
            comment: ballot.comment,
            browser_check: ballot.browser_check,
            proof: ballot.proof,
            typed,
            at: now,
            withdrawn: None,
        })
    }

    fn stage(&self, stage: u32) -> Result<&Stage, VoteRefused> {
        usize::try_from(stage).ok().and_then(|it| self.stages.get(it)).ok_or(VoteRefused::Stage)
    }

    fn check_words(&self, ballot: &Ballot) -> Result<(), VoteRefused> {
        let stage = self.stage(ballot.stage)?;
        let said = ballot.comment.as_deref().unwrap_or_default();
        if stage.comment_required && said.trim().is_empty() {
            return Err(VoteRefused::CommentRequired);
        }
        if said.chars().count() > COMMENT_CHARS_MAX {
            return Err(VoteRefused::CommentTooLong);
        }
        Ok(())
    }

    /// What the votes come to, by the last of them: an approval cannot end it as denied, nor the other way round.
    pub fn count(&self, people: &[Account]) -> Count {
        match self.votes.last().map(|it| it.verdict) {
            Some(Verdict::Approve) => self.count_approvals(people),
            Some(Verdict::Deny) => self.count_denials(),
            None => Count::Waiting,
        }
    }

    fn count_approvals(&self, people: &[Account]) -> Count {
        let full = (0u32..).zip(self.stages).all(|(index, stage)| self.approvals(index, people) >= stage.need);
        if !full || self.stages.is_empty() {
            return Count::Waiting;
        }
        let approval = |vote: &Vote| Approval {
            reviewer: vote.reviewer.clone(),
            stage: vote.stage,
            at: vote.at,
            method: vote.proof.method().unwrap_or_else(|| method_of(vote, people)),
            evidence: vote.proof.evidence(),
        };
        Count::Approved(self.approving(people).map(approval).collect())
    }

    fn count_denials(&self) -> Count {
        let denied = self.standing().filter(|vote| vote.verdict == Verdict::Deny);
        let refusal = |vote: &Vote| Refusal { reviewer: vote.reviewer.clone(), stage: vote.stage, at: vote.at };
        let refusals: Vec<Refusal> = denied.map(refusal).collect();
        let enough = u32::try_from(refusals.len()).is_ok_and(|it| it >= self.denials_needed);
        if enough { Count::Denied(refusals) } else { Count::Waiting }
    }
}

/// How a voter had shown who they are.
fn method_of(vote: &Vote, people: &[Account]) -> Method {
    let voter = people.iter().find(|it| it.id == vote.reviewer);
    match voter.map(|it| &it.sign_in) {
        Some(SignIn::Oidc { .. }) => Method::Oidc,
        Some(SignIn::Password { .. }) | None => Method::Password,
    }
}
