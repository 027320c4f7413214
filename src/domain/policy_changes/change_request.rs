//! Amendments: policies that people are asked about before they judge a flow.
//!
//! An amendment is decided like a hold: by votes on one digest. The digest binds the policy, what it accepts, and what
//! it takes the place of; so nobody approves a change of something that has changed meanwhile.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::domain::chain::hash::{Digest, Tag};
use crate::domain::identity::account::Account;
use crate::domain::json::canonical::canonical;
use crate::domain::primitives::id::{AmendmentId, FlowId, PrincipalId};
use crate::domain::primitives::time::Timestamp;
use crate::domain::reviews::{
    ApprovalStage, Ballot, PasskeyRequirement, Quorum, QuorumResult, Vote, VoteRejected, VoterRoll,
};
use crate::domain::threads::flow::Flow;

#[cfg(test)]
mod tests;

/// What of a flow an amendment takes the place of: a policy, and the moment at which it was activated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplacedPolicy {
    pub policy: Digest,
    pub since: Timestamp,
}

impl ReplacedPolicy {
    /// What an amendment of this flow takes the place of.
    pub const fn of(flow: &Flow) -> Self {
        Self { policy: flow.policy, since: flow.activated_at }
    }
}

/// What is asked for: bound by the digest that people vote on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyChange {
    pub flow: FlowId,
    /// The policy that would judge it.
    pub policy: Digest,
    /// Older policies whose heads could still be written.
    pub accepts: BTreeSet<Digest>,
    /// What it takes the place of.
    pub over: ReplacedPolicy,
}

/// How an amendment stands. Ends are facts, and a time-out is never a person's refusal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", deny_unknown_fields)]
pub enum PolicyChangeState {
    Open {},
    /// People approved it, and its policy was activated.
    Activated {
        at: Timestamp,
    },
    Denied {
        at: Timestamp,
    },
    Expired {
        /// When that was noticed; the deadline itself counts.
        at: Timestamp,
    },
    /// An administrator took it back.
    Cancelled {
        at: Timestamp,
        by: PrincipalId,
        reason: String,
    },
    /// Another policy was activated, so that it is not over the active one any more.
    Superseded {
        at: Timestamp,
    },
}

/// A policy that waits for people.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyChangeRequest {
    pub id: AmendmentId,
    pub change: PolicyChange,
    pub proposer: PrincipalId,
    pub digest: Digest,
    /// Who answers for the proposer, and so may not decide.
    pub excluded: BTreeSet<String>,
    /// Whose approval it needs; one stage.
    pub stages: Vec<ApprovalStage>,
    pub opened_at: Timestamp,
    pub expires_at: Timestamp,
    /// The counted votes, in their order.
    pub votes: Vec<Vote>,
    pub state: PolicyChangeState,
}

/// A new amendment's terms.
#[derive(Clone, Debug)]
pub struct PolicyChangeTerms {
    pub proposer: PrincipalId,
    pub excluded: BTreeSet<String>,
    /// Whose approval the active policy asks for.
    pub stage: ApprovalStage,
    pub opened_at: Timestamp,
    pub expires_at: Timestamp,
}

/// What a counted vote leads to.
#[derive(Debug, PartialEq, Eq)]
pub enum PolicyChangeTally {
    Waiting(PolicyChangeRequest),
    /// The quorum is there: the policy is to be activated.
    Approved(PolicyChangeRequest),
    Denied(PolicyChangeRequest),
}

/// One no is enough: a policy that somebody has an objection to is talked about first.
const DENIALS_NEEDED: u32 = 1;

impl PolicyChangeState {
    /// The word for lists and answers.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Open {} => "open",
            Self::Activated { .. } => "activated",
            Self::Denied { .. } => "denied",
            Self::Expired { .. } => "expired",
            Self::Cancelled { .. } => "cancelled",
            Self::Superseded { .. } => "superseded",
        }
    }

    /// When it ended; an open one has not.
    pub const fn ended_at(&self) -> Option<Timestamp> {
        match self {
            Self::Open {} => None,
            Self::Activated { at }
            | Self::Denied { at }
            | Self::Expired { at }
            | Self::Cancelled { at, .. }
            | Self::Superseded { at } => Some(*at),
        }
    }
}

impl PolicyChangeRequest {
    pub fn new(id: AmendmentId, change: PolicyChange, terms: PolicyChangeTerms) -> Self {
        let digest = digest_of(&id, &change, &terms.proposer, terms.opened_at);
        Self {
            id,
            change,
            proposer: terms.proposer,
            digest,
            excluded: terms.excluded,
            stages: vec![terms.stage],
            opened_at: terms.opened_at,
            expires_at: terms.expires_at,
            votes: Vec::new(),
            state: PolicyChangeState::Open {},
        }
    }

    /// Whether its digest is of what it says.
    pub fn is_whole(&self) -> bool {
        self.digest == digest_of(&self.id, &self.change, &self.proposer, self.opened_at)
    }

    /// Whether people can still decide it.
    pub fn is_open(&self, now: Timestamp) -> bool {
        matches!(self.state, PolicyChangeState::Open {}) && now < self.expires_at
    }

    /// Who is asked, and what they have said so far.
    pub fn jury(&self) -> Quorum<'_> {
        Quorum {
            digest: self.digest,
            stages: &self.stages,
            also_asked: None,
            excluded: &self.excluded,
            denials_needed: DENIALS_NEEDED,
            expires_at: self.expires_at,
            votes: &self.votes,
        }
    }

    /// What a stage asks of a voter's passkey; of one that is not there, the most.
    pub fn passkey_need(&self, stage: u32) -> PasskeyRequirement {
        self.stages.get(stage as usize).map_or(PasskeyRequirement::Signature {}, |it| it.passkey)
    }

    /// Counts a vote, or says why not. On the roll are all who voted, as they stand now, the new voter included; nobody votes
    /// on policies in another's place.
    pub fn vote(
        mut self,
        ballot: Ballot,
        voter: &Account,
        roll: &VoterRoll,
    ) -> Result<PolicyChangeTally, VoteRejected> {
        if !matches!(self.state, PolicyChangeState::Open {}) {
            return Err(VoteRejected::Ended);
        }
        let vote = self.jury().hear(ballot, voter, roll)?;
        self.votes.push(vote);
        let now = roll.now;
        Ok(match self.jury().count(roll) {
            QuorumResult::Waiting => PolicyChangeTally::Waiting(self),
            QuorumResult::Approved(_) => {
                PolicyChangeTally::Approved(Self { state: PolicyChangeState::Activated { at: now }, ..self })
            }
            QuorumResult::Denied(_) => {
                PolicyChangeTally::Denied(Self { state: PolicyChangeState::Denied { at: now }, ..self })
            }
        })
    }

    /// The amendment with its end. Only an open one can end, so an end is never overwritten.
    pub fn ended(mut self, end: PolicyChangeState) -> Result<Self, VoteRejected> {
        match self.state {
            PolicyChangeState::Open {} => {
                self.state = end;
                Ok(self)
            }
            _ => Err(VoteRejected::Ended),
        }
    }
}

fn digest_of(id: &AmendmentId, change: &PolicyChange, proposer: &PrincipalId, at: Timestamp) -> Digest {
    let told = json!({
        "id": id, "flow": change.flow, "policy": change.policy, "accepts": change.accepts, "over": change.over,
        "proposer": proposer, "proposed_at": at,
    });
    Digest::of(Tag::Amendment, &[canonical(&told).as_bytes()])
}
