//! Response schemas of reviews, policy change requests and interrupts.

use countersign_domain::chain::hash::Digest;
use countersign_domain::primitives::id::{
    AccountId, AmendmentId, FlowId, GroupName, InterruptId, PrincipalId, ReviewId,
};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::VoteVerdict;
use serde_json::Value;
use utoipa::ToSchema;

/// The id and address of a review.
#[derive(Debug, ToSchema)]
pub struct ReviewLink {
    /// The unique id.
    pub id: ReviewId,
    /// The address of the page where reviewers decide.
    #[schema(format = "uri")]
    pub url: String,
}

/// A review, as returned to a token.
#[derive(Debug, ToSchema)]
pub struct ReviewResponse {
    /// The unique id.
    pub id: ReviewId,
    /// The address of the page where reviewers decide.
    #[schema(format = "uri")]
    pub url: String,
    /// The deadline.
    pub expires_at: Timestamp,
    /// The last extension of the deadline.
    #[schema(nullable = false)]
    pub extended: Option<ExtensionResponse>,
    /// The stages with their groups.
    pub needed: Vec<StageResponse>,
    /// The escalation, once it applies.
    #[schema(nullable = false)]
    pub escalated: Option<EscalationResponse>,
    /// Always false: no token can vote.
    pub can_decide: bool,
    /// The reason.
    pub why_not: IneligibilityResponse,
    /// The people who could decide. For auditors only.
    #[schema(nullable = false)]
    pub people: Option<Vec<ReviewerResponse>>,
}

/// A stage of an approval.
#[derive(Debug, ToSchema)]
pub struct StageResponse {
    /// The groups whose members may vote.
    pub groups: Vec<GroupName>,
    /// The number of distinct people.
    pub need: u32,
}

/// An extension of a deadline.
#[derive(Debug, ToSchema)]
pub struct ExtensionResponse {
    /// The account or token that did it.
    pub by: AccountId,
    /// The time.
    pub at: Timestamp,
    /// The previous deadline.
    pub was: Timestamp,
}

/// The escalation of a review to further groups.
#[derive(Debug, ToSchema)]
pub struct EscalationResponse {
    /// The time since which this applies.
    pub at: Timestamp,
    /// The groups.
    pub to: Vec<GroupName>,
}

/// The reason why a person cannot decide.
#[derive(Debug, ToSchema)]
pub struct IneligibilityResponse {
    /// `machine`, `ended`, `author`, `disabled`, `group`, `halted`, `role`, `voted` or `write_in_progress`.
    pub code: String,
    /// The description, in words.
    pub detail: String,
}

/// A person in the groups of a review.
#[derive(Debug, ToSchema)]
pub struct ReviewerResponse {
    /// The account.
    pub reviewer: AccountId,
    /// The name of the person.
    pub name: String,
    /// Whether the person can decide now.
    pub can_decide: bool,
    /// The stages in which the person can vote.
    #[schema(nullable = false)]
    pub stages: Option<Vec<u32>>,
    /// The people for whom the person holds a delegation.
    #[schema(rename = "for", nullable = false)]
    pub absent: Option<Vec<DelegatedVoteResponse>>,
    /// The reason why it cannot be known.
    #[schema(nullable = false)]
    pub why_not: Option<IneligibilityResponse>,
}

/// A delegated vote.
#[derive(Debug, ToSchema)]
pub struct DelegatedVoteResponse {
    /// The account.
    pub reviewer: AccountId,
    /// The name of the person.
    pub name: String,
    /// The stage.
    pub stage: u32,
}

/// A policy change that requires approval.
#[derive(Debug, ToSchema)]
pub struct PolicyChangeResponse {
    /// The unique id.
    pub amendment: AmendmentId,
    /// `open`, `approved`, `denied`, `expired`, `cancelled` or `superseded`.
    pub state: String,
    /// The digest that reviewers vote on.
    pub digest: Digest,
    /// The flow of the policy.
    pub flow: FlowId,
    /// The digest of the policy.
    pub policy: Digest,
    /// The digests of older policies whose heads may still be written.
    pub accepts: Vec<Digest>,
    /// The active policy until the change is approved.
    pub over: Digest,
    /// The id of the token or account that sent the request.
    pub proposer: PrincipalId,
    /// The time.
    pub proposed_at: Timestamp,
    /// The deadline.
    pub expires_at: Timestamp,
    /// The address of the page where reviewers decide.
    #[schema(format = "uri")]
    pub url: String,
    /// The groups whose members decide.
    pub needed: Vec<StageResponse>,
    /// The votes.
    pub votes: Vec<VoteResponse>,
    /// The passkey signatures of the votes.
    #[schema(nullable = false)]
    pub evidence: Option<Vec<Value>>,
}

/// A vote.
#[derive(Debug, ToSchema)]
pub struct VoteResponse {
    /// The account.
    pub reviewer: AccountId,
    /// The name of the person.
    pub name: String,
    /// `approve` or `deny`.
    pub verdict: VoteVerdict,
    /// The comment.
    #[schema(required)]
    pub comment: Option<String>,
    /// The time.
    pub at: Timestamp,
}

/// The policy change requests of a flow.
#[derive(Debug, ToSchema)]
pub struct PolicyChangeListResponse {
    /// The items, newest first.
    pub amendments: Vec<PolicyChangeResponse>,
}

/// An interrupt under review, or decided. Always the same bytes.
#[derive(Debug, ToSchema)]
pub struct InterruptResponse {
    /// The unique id of the endpoint.
    pub id: InterruptId,
    /// The host framework's id of the interrupt.
    pub interrupt_id: String,
    /// The host's own digest of the step.
    pub transition_digest: String,
    /// The number of the attempt.
    pub attempt: u32,
    /// The digest that reviewers vote on.
    pub digest: Digest,
    /// The address of the page where reviewers decide.
    #[schema(format = "uri")]
    pub url: String,
    /// The deadline.
    pub expires_at: Timestamp,
    /// The groups whose members decide.
    pub needed: Vec<StageResponse>,
}

/// The interrupt is not decided yet.
#[derive(Debug, ToSchema)]
pub struct PendingInterruptResponse {
    /// `open`.
    #[schema(pattern = "^open$")]
    pub status: String,
}
