//! Signed answers to interrupts from host applications. An answer is created once, and its bytes never change.

use serde::{Deserialize, Serialize};

use super::{Interrupt, InterruptDecision};
use crate::chain::hash::Digest;
use crate::chain::jws::{self, TokenClaims, TokenType};
use crate::chain::receipt::{ApprovalClaim, DenialClaim};
use crate::keys::SigningKey;
use crate::primitives::id::{AccountId, FlowId, InterruptId, Jti, PrincipalId};
use crate::primitives::time::Timestamp;

/// The claims of an answer. It has its own `typ`, so it never authorizes a writer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterruptAnswer {
    pub approvals: Vec<ApprovalClaim>,
    pub approved: bool,
    pub asserted: Digest,
    pub aud: PrincipalId,
    pub decision: InterruptDecision,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exp: Option<i64>,
    pub flow: FlowId,
    pub iat: i64,
    pub interrupt_id: String,
    pub iss: String,
    pub jti: Jti,
    pub policy: Digest,
    pub refusals: Vec<DenialClaim>,
    pub sub: InterruptId,
    pub transition_digest: String,
}

/// The stored part of an answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredInterruptDecision {
    /// A one-time id of 128 random bits.
    pub nonce: Jti,
    /// The expiry of an approval.
    pub expires_at: Option<Timestamp>,
    /// The last voter's comment, without matches of the policy's detectors.
    pub comment: Option<String>,
    pub token: String,
}

/// The decision that a host application resumes with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct InterruptDecisionResponse {
    /// The host framework's id of the interrupt.
    pub interrupt_id: String,
    /// The host's own digest of the step.
    pub transition_digest: String,
    /// Whether the reviewers approved it.
    pub approved: bool,
    /// `approved`, `denied`, `expired` or `superseded`.
    pub decision: InterruptDecision,
    /// The last voter. Null if no person decided.
    pub reviewer_id: Option<AccountId>,
    /// Every reviewer who voted for the decision.
    pub reviewers: Vec<AccountId>,
    /// The one-time id (`jti`) of the signed answer.
    pub nonce: Jti,
    /// The time until which an approval is valid. Otherwise null.
    pub expires_at: Option<Timestamp>,
    /// The comment of the last voter.
    pub comment: Option<String>,
    /// The same decision as a signed JWS of the type `countersign-interrupt-answer+jwt`. It is for the token that sent
    /// the interrupt, so other owners' hosts do not get it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// The data of an answer that is not in the interrupt.
#[derive(Clone, Debug)]
pub struct InterruptDecisionInput {
    pub decision: InterruptDecision,
    pub at: Timestamp,
    /// The expiry of an approval.
    pub expires_at: Option<Timestamp>,
    /// The counted approvals.
    pub approvals: Vec<ApprovalClaim>,
    pub refusals: Vec<DenialClaim>,
}

impl Interrupt {
    /// Returns the claims to sign.
    pub fn claims(&self, issuer: &str, nonce: &Jti, ending: InterruptDecisionInput) -> InterruptAnswer {
        InterruptAnswer {
            approvals: ending.approvals,
            approved: ending.decision == InterruptDecision::Approved,
            asserted: self.digest,
            // The answer is for the token that posted the interrupt, not for another host application.
            aud: self.source.token.clone(),
            decision: ending.decision,
            exp: ending.expires_at.map(Timestamp::seconds),
            flow: self.flow.clone(),
            iat: ending.at.seconds(),
            interrupt_id: self.asserted.interrupt_id.clone(),
            iss: issuer.to_owned(),
            jti: nonce.clone(),
            policy: self.policy,
            refusals: ending.refusals,
            sub: self.id.clone(),
            transition_digest: self.asserted.transition_digest.clone(),
        }
    }

    /// Returns the response for the host application, or `None` while the interrupt is open.
    pub fn answered(&self) -> Option<InterruptDecisionResponse> {
        let (decision, _, answer) = self.ending()?;
        // An expired interrupt has no deciders, so a time-out never names a person.
        let reviewers: Vec<AccountId> = self.deciders(decision).map(|it| it.reviewer.clone()).collect();
        Some(InterruptDecisionResponse {
            interrupt_id: self.asserted.interrupt_id.clone(),
            transition_digest: self.asserted.transition_digest.clone(),
            approved: decision == InterruptDecision::Approved,
            decision,
            reviewer_id: reviewers.last().cloned(),
            reviewers,
            nonce: answer.nonce.clone(),
            expires_at: answer.expires_at,
            comment: answer.comment.clone(),
            answer: Some(answer.token.clone()),
        })
    }

    /// Returns the votes for a decision.
    pub fn deciders(&self, decision: InterruptDecision) -> impl DoubleEndedIterator<Item = &crate::reviews::Vote> {
        let verdict = decision.verdict();
        self.votes.iter().filter(move |it| Some(it.verdict) == verdict)
    }
}

impl InterruptAnswer {
    pub fn sign(&self, key: &SigningKey) -> String {
        jws::sign(key, TokenType::InterruptAnswer, self)
    }
}

impl TokenClaims for InterruptAnswer {
    /// Only an approval has approvals and an expiry, and only a denial has refusals.
    fn is_whole(&self) -> bool {
        let approval = self.decision == InterruptDecision::Approved;
        let refusal = self.decision == InterruptDecision::Denied;
        self.iat >= 0
            && !self.iss.is_empty()
            && self.approved == approval
            && self.approvals.is_empty() != approval
            && self.refusals.is_empty() != refusal
            && self.exp.is_some() == approval
            && self.exp.is_none_or(|it| it >= self.iat)
    }
}
