//! Policy change requests: new policies that require approval before they judge a flow.
//!
//! Reviewers decide a policy change request by voting on one digest, as on a review. The digest binds the new policy,
//! the accepted older policies and the replaced policy. A vote therefore never approves a change whose basis has
//! changed since.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::chain::hash::{Digest, Tag};
use crate::chain::signed_vote::PolicyVoteStatement;
use crate::identity::account::Account;
use crate::json::canonical::canonical;
use crate::primitives::id::{AmendmentId, FlowId, PrincipalId};
use crate::primitives::time::Timestamp;
use crate::reviews::{ApprovalStage, Ballot, Quorum, QuorumResult, Tally, Vote, VoteRejected, VoteSubject, VoterRoll};
use crate::threads::flow::Flow;

#[cfg(test)]
mod tests;

/// The replaced policy of a flow, with the time of its activation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplacedPolicy {
    pub policy: Digest,
    pub since: Timestamp,
}

impl ReplacedPolicy {
    /// Returns the active policy of a flow, which a policy change request would replace.
    pub const fn of(flow: &Flow) -> Self {
        Self { policy: flow.policy, since: flow.activated_at }
    }
}

/// The requested change. The digest that reviewers vote on binds it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyChange {
    pub flow: FlowId,
    /// The new policy.
    pub policy: Digest,
    /// Older policies whose heads may still be written.
    pub accepts: BTreeSet<Digest>,
    /// The policy that it replaces.
    pub over: ReplacedPolicy,
}

/// State of a policy change request. Every end is recorded as it happened, and an expired deadline is never recorded
/// as a denial.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", deny_unknown_fields)]
pub enum PolicyChangeState {
    Open {},
    /// Reviewers approved it, and its policy was activated.
    Activated {
        at: Timestamp,
    },
    Denied {
        at: Timestamp,
    },
    Expired {
        /// Time at which the gateway recorded the end. The deadline itself decides.
        at: Timestamp,
    },
    /// An administrator cancelled it.
    Cancelled {
        at: Timestamp,
        by: PrincipalId,
        reason: String,
    },
    /// Another policy was activated, so the request no longer applies to the active one.
    Superseded {
        at: Timestamp,
    },
}

/// A policy that waits for approval.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyChangeRequest {
    pub id: AmendmentId,
    pub change: PolicyChange,
    pub proposer: PrincipalId,
    pub digest: Digest,
    /// Owners of the proposer, who may not decide (separation of duties).
    pub excluded: BTreeSet<String>,
    /// Required approval: exactly one stage.
    pub stages: Vec<ApprovalStage>,
    pub opened_at: Timestamp,
    pub expires_at: Timestamp,
    /// Counted votes, in order.
    pub votes: Vec<Vote>,
    pub state: PolicyChangeState,
}

/// Terms of a new policy change request.
#[derive(Clone, Debug)]
pub struct PolicyChangeTerms {
    pub proposer: PrincipalId,
    pub excluded: BTreeSet<String>,
    /// Approval that the active policy requires.
    pub stage: ApprovalStage,
    pub opened_at: Timestamp,
    pub expires_at: Timestamp,
}

/// One denial is enough. A policy with an objection should be discussed first.
const DENIALS_NEEDED: u32 = 1;

impl PolicyChangeState {
    /// Returns the state's name for lists and responses.
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

    /// Returns the time of its end, or `None` while it is open.
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

    /// Returns whether the digest matches the content.
    pub fn is_whole(&self) -> bool {
        self.digest == digest_of(&self.id, &self.change, &self.proposer, self.opened_at)
    }

    /// Returns whether reviewers can still decide it.
    pub fn is_open(&self, now: Timestamp) -> bool {
        // The deadline decides even before the gateway records the end.
        matches!(self.state, PolicyChangeState::Open {}) && now < self.expires_at
    }

    /// Returns the required approval and the votes so far.
    pub fn jury(&self) -> Quorum<'_> {
        Quorum {
            digest: self.digest,
            stages: &self.stages,
            // Escalations exist only for reviews.
            also_asked: None,
            excluded: &self.excluded,
            denials_needed: DENIALS_NEEDED,
            expires_at: self.expires_at,
            votes: &self.votes,
        }
    }

    /// Counts a vote, or returns why it is rejected. The roll has every voter with their current account, including
    /// the new one. Delegations do not apply to policy changes.
    pub fn vote(mut self, ballot: Ballot, voter: &Account, roll: &VoterRoll) -> Result<Tally<Self>, VoteRejected> {
        if !matches!(self.state, PolicyChangeState::Open {}) {
            return Err(VoteRejected::Ended);
        }
        let vote = self.jury().hear(ballot, voter, roll)?;
        self.votes.push(vote);
        // All votes are counted again with the current accounts, because groups may have changed since.
        let (result, at) = (self.jury().count(roll), roll.now);
        match result {
            QuorumResult::Waiting => {}
            QuorumResult::Approved(_) => self.state = PolicyChangeState::Activated { at },
            QuorumResult::Denied(_) => self.state = PolicyChangeState::Denied { at },
        }
        Ok(Tally { record: self, result })
    }

    /// Returns the request with its end. Only an open request can end, so an end is never overwritten.
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

impl VoteSubject for PolicyChangeRequest {
    type Statement = PolicyVoteStatement;

    fn subject_id(&self) -> &AmendmentId {
        &self.id
    }

    fn quorum(&self, _now: Timestamp) -> Quorum<'_> {
        self.jury()
    }
}

fn digest_of(id: &AmendmentId, change: &PolicyChange, proposer: &PrincipalId, at: Timestamp) -> Digest {
    let told = json!({
        "id": id, "flow": change.flow, "policy": change.policy, "accepts": change.accepts, "over": change.over,
        "proposer": proposer, "proposed_at": at,
    });
    Digest::of(Tag::Amendment, &[canonical(&told).as_bytes()])
}
