//! Interrupts from host applications that store their own graph state.
//!
//! The gateway cannot verify an interrupt, because it has neither the state nor the change. The description is an
//! unverified claim of the host application. Reviewers vote on a digest of the whole description, by the stages of the
//! flow's policy. The answer is signed as its own type of document and never authorizes a writer.

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
use super::chain::signed_vote::InterruptVoteStatement;
use super::identity::account::Account;
use super::json::canonical::canonical;
use super::primitives::id::{FlowId, InterruptId, PrincipalId};
use super::primitives::time::Timestamp;
use super::reviews::{ApprovalStage, Ballot, Quorum, Tally, Vote, VoteRejected, VoteSubject, VoteVerdict, VoterRoll};

#[cfg(test)]
mod tests;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterruptSource {
    pub token: PrincipalId,
    /// The name of the token.
    pub name: String,
}

/// The decision. A time-out is never reported as a person's denial.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", schema(as = InterruptDecision))]
pub enum InterruptDecision {
    /// Every stage has its quorum.
    Approved,
    /// Enough reviewers denied it.
    Denied,
    /// The deadline passed without a decision.
    Expired,
    /// The flow has a new active policy with other stages.
    Superseded,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", deny_unknown_fields)]
pub enum InterruptState {
    Open {},
    /// Decided and answered.
    Ended {
        decision: InterruptDecision,
        at: Timestamp,
        /// The final answer for the host application.
        answer: StoredInterruptDecision,
    },
}

/// The approval that the flow's policy requires.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRequirements {
    pub stages: Vec<ApprovalStage>,
    pub denials_needed: u32,
}

/// An interrupt from a host application.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interrupt {
    pub id: InterruptId,
    pub source: InterruptSource,
    /// The flow whose reviewers decide.
    pub flow: FlowId,
    /// The policy that names the stages.
    pub policy: Digest,
    pub asserted: HostAssertion,
    /// The digest of the whole description, on which reviewers vote.
    pub digest: Digest,
    /// The owner of the host's token. They may not decide (separation of duties).
    pub excluded: BTreeSet<String>,
    pub asking: ApprovalRequirements,
    /// The time since which this applies.
    pub received_at: Timestamp,
    pub expires_at: Timestamp,
    /// The votes in order.
    pub votes: Vec<Vote>,
    /// The state of the delivery.
    pub state: InterruptState,
}

/// A new interrupt's terms.
#[derive(Clone, Debug)]
pub struct InterruptTerms {
    pub source: InterruptSource,
    pub flow: FlowId,
    /// The policy that names the stages.
    pub policy: Digest,
    /// The owner of the host's token.
    pub excluded: BTreeSet<String>,
    /// The approval that the policy requires.
    pub asking: ApprovalRequirements,
    /// The time at which the gateway received it.
    pub received_at: Timestamp,
    /// The deadline.
    pub expires_at: Timestamp,
}

/// The reason why an interrupt is rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InterruptRejected {
    /// The same digest was posted with another description.
    #[error("this digest was posted before with other content; post the new content with a new digest")]
    Differs,
    /// A signed post with the same id had another body.
    #[error("this `webhook-id` was used before for another body; use a new id for each post")]
    PostDiffers,
    /// The signed post is too old or from the future.
    #[error(
        "the signed post's `webhook-timestamp` is more than five minutes from now; check the clock and sign it again"
    )]
    Stale,
    /// A new attempt, while the previous one is open.
    #[error("the previous attempt is still open or was never posted; post attempts in order")]
    EarlierAttempt,
    #[error("the policy's limit of attempts is reached")]
    AttemptsExhausted,
    #[error("the flow's policy has no stages, so no reviewer could decide; add a stage to the policy")]
    NobodyAsked,
    /// All eligible reviewers own the host's token.
    #[error("only the owner of this token could approve it; add another reviewer to the stages' groups")]
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

impl InterruptDecision {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Superseded => "superseded",
        }
    }

    /// Returns the verdict that led to this decision, or `None` if no person decided.
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
        // A placeholder. The digest is computed from the complete value below.
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

    /// Hashes everything that reviewers see of the host application's claim: content, source, time and deadline.
    fn computed_digest(&self) -> Digest {
        let told = json!({
            "asserted": self.asserted, "expires_at": self.expires_at, "flow": self.flow, "interrupt": self.id,
            "received_at": self.received_at, "source": self.source,
        });
        Digest::of(Tag::Interrupt, &[canonical(&told).as_bytes()])
    }

    /// Checks that the digest matches the content.
    pub fn is_whole(&self) -> bool {
        self.digest == self.computed_digest()
    }

    /// Checks that reviewers can still decide it.
    pub fn is_open(&self, now: Timestamp) -> bool {
        // The deadline decides even before the gateway records the end.
        matches!(self.state, InterruptState::Open {}) && now < self.expires_at
    }

    /// Returns the decision, its time and its answer, or `None` if it is open.
    pub const fn ending(&self) -> Option<(InterruptDecision, Timestamp, &StoredInterruptDecision)> {
        match &self.state {
            InterruptState::Open {} => None,
            InterruptState::Ended { decision, at, answer } => Some((*decision, *at, answer)),
        }
    }

    /// Returns the quorum: the eligible voters and their votes.
    pub fn jury(&self) -> Quorum<'_> {
        Quorum {
            digest: self.digest,
            stages: &self.asking.stages,
            // Escalations exist only for reviews.
            also_asked: None,
            excluded: &self.excluded,
            denials_needed: self.asking.denials_needed,
            expires_at: self.expires_at,
            votes: &self.votes,
        }
    }

    /// Returns the digits that a verdict at a stage requires, if any.
    pub fn asks_to_type(&self, stage: u32, verdict: VoteVerdict) -> Option<String> {
        self.asking.stages.get(stage as usize)?.asks_to_type(verdict, &self.digest)
    }

    /// Checks and counts a vote. The roll contains the current accounts of all voters, including the new one.
    /// Delegations do not apply to interrupts.
    pub fn vote(mut self, ballot: Ballot, voter: &Account, roll: &VoterRoll) -> Result<Tally<Self>, VoteRejected> {
        if !matches!(self.state, InterruptState::Open {}) {
            return Err(VoteRejected::Ended);
        }
        // Delegations cover only reviews, so a ballot that names one is invalid.
        if ballot.delegation.is_some() {
            return Err(VoteRejected::Delegation);
        }
        let told = ballot.told;
        let vote = self.jury().hear(ballot, voter, roll)?;
        self.votes.push(vote);
        // A vote must not decide the interrupt if the page said that more votes are needed.
        let result = self.jury().count(roll).matches_preview(told)?;
        Ok(Tally { record: self, result })
    }

    /// Returns the ended interrupt. Only an open one can end, so an end is never overwritten.
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

impl VoteSubject for Interrupt {
    type Statement = InterruptVoteStatement;

    fn subject_id(&self) -> &InterruptId {
        &self.id
    }

    fn quorum(&self, _now: Timestamp) -> Quorum<'_> {
        self.jury()
    }
}
