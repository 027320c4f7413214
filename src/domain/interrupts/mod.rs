//! Interrupts: what a host that keeps its own graph state asks people about.
//!
//! Nothing of it is checked: the gateway has neither the state nor the change, only the host's word. People vote on a
//! digest over all that the host said, by the stages of the flow's policy; what they decide is signed as a document of
//! its own kind, which lets no writer write here.

mod answer;
mod host_assertion;
mod post_id;
pub mod signed_post;

pub use answer::{InterruptAnswer, InterruptDecisionInput, InterruptDecisionResponse, StoredInterruptDecision};
pub use host_assertion::{HostAssertion, InterruptKind, REDACTED_DIFF_BYTES_MAX};
pub use post_id::{SignedPostId, SignedPostRecord};

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::chain::hash::{Digest, Tag};
use super::chain::receipt::{ApprovalClaim, DenialClaim};
use super::identity::account::Account;
use super::json::canonical::canonical;
use super::primitives::id::{FlowId, InterruptId, PrincipalId};
use super::primitives::time::Timestamp;
use super::reviews::{
    ApprovalStage, Ballot, PasskeyRequirement, Quorum, QuorumResult, Vote, VotePreview, VoteRejected, VoteVerdict,
    VoterRoll,
};

#[cfg(test)]
mod tests;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterruptSource {
    pub token: PrincipalId,
    /// The name of the endpoint, for people.
    pub name: String,
}

/// The decision. A time-out is never reported as a person's denial.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = InterruptDecision)]
pub enum InterruptDecision {
    /// Every stage has its quorum.
    Approved,
    /// Enough people refused.
    Denied,
    /// Nobody decided in time.
    Expired,
    /// Another policy judges its flow, and asks other people.
    Superseded,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", deny_unknown_fields)]
pub enum InterruptState {
    Open {},
    /// It is over, and answered.
    Ended {
        decision: InterruptDecision,
        at: Timestamp,
        /// What the host is told, once and for all.
        answer: StoredInterruptDecision,
    },
}

/// Whose approval the flow's policy asks for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRequirements {
    pub stages: Vec<ApprovalStage>,
    pub denials_needed: u32,
}

/// What a host asked people about.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interrupt {
    pub id: InterruptId,
    pub source: InterruptSource,
    /// The flow whose people are asked.
    pub flow: FlowId,
    /// The policy by which they are.
    pub policy: Digest,
    pub asserted: HostAssertion,
    /// What people vote on: all of it.
    pub digest: Digest,
    /// Who answers for the host, and so may not decide.
    pub excluded: BTreeSet<String>,
    pub asking: ApprovalRequirements,
    /// The time since which this applies.
    pub received_at: Timestamp,
    pub expires_at: Timestamp,
    /// The counted votes, in their order.
    pub votes: Vec<Vote>,
    /// The state of the delivery.
    pub state: InterruptState,
}

/// A new interrupt's terms.
#[derive(Clone, Debug)]
pub struct InterruptTerms {
    pub source: InterruptSource,
    pub flow: FlowId,
    /// The policy by which people are asked.
    pub policy: Digest,
    /// Who answers for the host.
    pub excluded: BTreeSet<String>,
    /// Whose approval that policy asks for.
    pub asking: ApprovalRequirements,
    /// The time at which the gateway received it.
    pub received_at: Timestamp,
    /// Until when people are asked.
    pub expires_at: Timestamp,
}

/// Why a host's interrupt is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InterruptRejected {
    /// The same digest stood beside other words before.
    #[error("this digest was posted before with other members; people decide on exactly what they were shown")]
    Differs,
    /// A signed post of that name said something else.
    #[error("a post of that webhook-id said something else before")]
    PostDiffers,
    /// A signed post from too long ago, or from the future.
    #[error("the post is signed, and its webhook-timestamp is more than five minutes from now")]
    Stale,
    /// Another try, while people are still asked about the one before.
    #[error("the attempt before this one has not ended, or was never made")]
    EarlierAttempt,
    /// As often as the policy allows.
    #[error("the policy allows no further attempt")]
    AttemptsExhausted,
    #[error("the flow's policy names no stages, so nobody would be asked")]
    NobodyAsked,
    /// Everybody who is asked answers for the host.
    #[error("nobody but whoever answers for this token could approve it")]
    NobodyCanApprove,
}

impl InterruptRejected {
    pub const ALL: &'static [Self] = &[
        Self::Differs,
        Self::PostDiffers,
        Self::Stale,
        Self::EarlierAttempt,
        Self::AttemptsExhausted,
        Self::NobodyAsked,
        Self::NobodyCanApprove,
    ];

    pub const fn code(self) -> &'static str {
        match self {
            Self::Differs => "interrupt_differs",
            Self::PostDiffers => "webhook_id_reused",
            Self::Stale => "webhook_stale",
            Self::EarlierAttempt => "earlier_attempt",
            Self::AttemptsExhausted => "attempts_exhausted",
            Self::NobodyAsked => "nobody_asked",
            Self::NobodyCanApprove => "nobody_can_approve",
        }
    }
}

/// What a counted vote leads to.
#[derive(Debug, PartialEq, Eq)]
pub enum InterruptTally {
    Waiting(Interrupt),
    /// Every stage has its quorum: the approvals that count.
    Approved(Interrupt, Vec<ApprovalClaim>),
    Denied(Interrupt, Vec<DenialClaim>),
}

impl InterruptTally {
    /// What the vote comes to, as its voter is told.
    pub const fn prospect(&self) -> VotePreview {
        match self {
            Self::Waiting(_) => VotePreview::Waits,
            Self::Approved(..) => VotePreview::Passes,
            Self::Denied(..) => VotePreview::Ends,
        }
    }
}

impl InterruptDecision {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Superseded => "superseded",
        }
    }

    /// The verdict of those who made it so; nobody's where no person did.
    pub const fn verdict(self) -> Option<VoteVerdict> {
        match self {
            Self::Approved => Some(VoteVerdict::Approve),
            Self::Denied => Some(VoteVerdict::Deny),
            Self::Expired | Self::Superseded => None,
        }
    }
}

impl Interrupt {
    pub fn new(id: InterruptId, asserted: HostAssertion, terms: InterruptTerms) -> Self {
        let InterruptTerms { source, flow, policy, excluded, asking, received_at, expires_at } = terms;
        let digest = Digest::of(Tag::Interrupt, &[]);
        let state = InterruptState::Open {};
        let votes = Vec::new();
        let new = Self {
            id,
            source,
            flow,
            policy,
            asserted,
            digest,
            excluded,
            asking,
            received_at,
            expires_at,
            votes,
            state,
        };
        Self { digest: new.computed_digest(), ..new }
    }

    /// Over everything that people are shown as the host's word, from whom, when, and until when.
    fn computed_digest(&self) -> Digest {
        let told = json!({
            "asserted": self.asserted, "expires_at": self.expires_at, "flow": self.flow, "interrupt": self.id,
            "received_at": self.received_at, "source": self.source,
        });
        Digest::of(Tag::Interrupt, &[canonical(&told).as_bytes()])
    }

    /// Whether its digest is of what it says.
    pub fn is_whole(&self) -> bool {
        self.digest == self.computed_digest()
    }

    /// Whether people can still decide it.
    pub fn is_open(&self, now: Timestamp) -> bool {
        matches!(self.state, InterruptState::Open {}) && now < self.expires_at
    }

    /// How it ended, and when; an open one has not.
    pub const fn ending(&self) -> Option<(InterruptDecision, Timestamp, &StoredInterruptDecision)> {
        match &self.state {
            InterruptState::Open {} => None,
            InterruptState::Ended { decision, at, answer } => Some((*decision, *at, answer)),
        }
    }

    /// Who is asked, and what they have said so far.
    pub fn jury(&self) -> Quorum<'_> {
        Quorum {
            digest: self.digest,
            stages: &self.asking.stages,
            also_asked: None,
            excluded: &self.excluded,
            denials_needed: self.asking.denials_needed,
            expires_at: self.expires_at,
            votes: &self.votes,
        }
    }

    /// What a stage asks of a voter's passkey; of one that is not there, the most.
    pub fn passkey_need(&self, stage: u32) -> PasskeyRequirement {
        self.asking.stages.get(stage as usize).map_or(PasskeyRequirement::Signature {}, |it| it.passkey)
    }

    /// What has to be typed for a verdict at a stage, if something.
    pub fn asks_to_type(&self, stage: u32, verdict: VoteVerdict) -> Option<String> {
        self.asking.stages.get(stage as usize)?.asks_to_type(verdict, &self.digest)
    }

    /// Counts a vote, or says why not. On the roll are all who voted, as they stand now, the new voter included; nobody
    /// votes on an interrupt in another's place.
    pub fn vote(mut self, ballot: Ballot, voter: &Account, roll: &VoterRoll) -> Result<InterruptTally, VoteRejected> {
        if !matches!(self.state, InterruptState::Open {}) {
            return Err(VoteRejected::Ended);
        }
        if ballot.delegation.is_some() {
            return Err(VoteRejected::Delegation);
        }
        let told = ballot.told;
        let vote = self.jury().hear(ballot, voter, roll)?;
        self.votes.push(vote);
        Ok(match self.jury().count(roll).matches_preview(told)? {
            QuorumResult::Waiting => InterruptTally::Waiting(self),
            QuorumResult::Approved(approvals) => InterruptTally::Approved(self, approvals),
            QuorumResult::Denied(refusals) => InterruptTally::Denied(self, refusals),
        })
    }

    /// The interrupt with its end. Only an open one can end, so an end is never overwritten.
    pub fn ended(
        mut self,
        decision: InterruptDecision,
        at: Timestamp,
        answer: StoredInterruptDecision,
    ) -> Result<Self, VoteRejected> {
        match self.state {
            InterruptState::Open {} => {
                self.state = InterruptState::Ended { decision, at, answer };
                Ok(self)
            }
            InterruptState::Ended { .. } => Err(VoteRejected::Ended),
        }
    }
}
