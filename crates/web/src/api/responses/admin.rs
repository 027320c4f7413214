//! Response schemas of administration, audit and open calls.

use countersign_domain::chain::hash::Digest;
use countersign_domain::operations::finding::SetupFinding;
use countersign_domain::operations::halt::LiftRequest;
use countersign_domain::policy::PolicyWarning;
use countersign_domain::primitives::id::{EventId, FlowId, GroupName, Jti, NodeId, PrincipalId, ThreadId, WriteId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::writes::write::ResultError;
use countersign_domain::writes::write::WriteResolution;
use countersign_service::policy_changes::replay::ReplayedProposal;
use serde_json::Value;
use utoipa::ToSchema;

use super::reviews::StageResponse;

/// The recorded outcome of a write whose lease expired.
#[derive(Debug, ToSchema)]
pub struct WriteResolutionResponse {
    /// The writer's id of the write.
    pub write_id: WriteId,
    /// The result.
    pub outcome: WriteResolution,
}

/// An active policy.
#[derive(Debug, ToSchema)]
pub struct PolicyActivatedResponse {
    /// The name of the flow.
    pub flow: FlowId,
    /// The digest of the policy.
    pub policy: Digest,
    /// The digests of older policies whose heads may still be written.
    pub accepts: Vec<Digest>,
    /// The nodes of the policy.
    pub nodes: Vec<NodeId>,
    /// The approval stages with their groups.
    pub stages: Vec<StageResponse>,
    /// Probable mistakes in the policy, such as a misspelled path.
    pub warnings: Vec<PolicyWarning>,
    /// Missing reviewers and tokens, the worst first.
    pub findings: Vec<SetupFinding>,
}

/// The halts of a flow, or of all flows.
#[derive(Debug, ToSchema)]
pub struct HaltResponse {
    /// The name of a flow, or `all`.
    pub scope: String,
    /// Whether proposing and voting are halted.
    pub proposing: bool,
    /// Whether verifying is halted.
    pub verifying: bool,
    /// The request that a second person must confirm.
    #[schema(nullable = false)]
    pub lifting: Option<LiftRequest>,
}

/// A revoked receipt.
#[derive(Debug, ToSchema)]
pub struct RevokeReceiptResponse {
    /// The id of the receipt (`jti`).
    pub jti: Jti,
    /// Always true.
    pub revoked: bool,
}

/// One page of replayed proposals.
#[derive(Debug, ToSchema)]
pub struct ReplayResponse {
    /// The digest of the candidate policy.
    pub policy: Digest,
    /// The proposals with both results.
    pub proposals: Vec<ReplayedProposal>,
    /// The value of `after` for the next page. Null on the last page.
    #[schema(required)]
    pub next: Option<String>,
}

/// One page of rejected requests.
#[derive(Debug, ToSchema)]
pub struct RejectionListResponse {
    /// The items, newest first.
    pub rejections: Vec<RejectionResponse>,
    /// The `page_token` of the next page. Null on the last page.
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// A stage that no reviewers could fill.
#[derive(Debug, ToSchema)]
pub struct UnfillableStageResponse {
    /// The stage, from 0.
    pub stage: u32,
    /// The groups whose members may vote.
    pub groups: Vec<GroupName>,
    /// The number of distinct people who must approve.
    pub need: u32,
    /// The number of members who could vote.
    pub eligible: u32,
    /// The members of the groups, the first 50 by name.
    pub members: Vec<StageMemberResponse>,
}

/// A member of a stage's groups.
#[derive(Debug, ToSchema)]
pub struct StageMemberResponse {
    /// The name of the account.
    pub name: String,
    /// The reason why the member cannot vote: `disabled`, `role` or `author`.
    #[schema(nullable = false)]
    pub why_not: Option<String>,
}

/// A rejected request, without redacted values.
#[derive(Debug, ToSchema)]
pub struct RejectionResponse {
    /// The id of the request. A repeated request has the same one.
    pub proposal: Digest,
    /// The name of the thread.
    pub thread: ThreadId,
    /// The flow of the thread.
    pub flow: FlowId,
    /// The node that acts. The token must name it.
    pub node: NodeId,
    /// The id of the token.
    pub principal: PrincipalId,
    /// The keyed digest of the patch in its thread. Equal patches have equal digests, and it reveals nothing about a
    /// guess.
    pub patch_digest: Digest,
    /// The beginning of the patch. It is untrusted text of an agent.
    pub excerpt: String,
    /// The errors of the request.
    pub errors: Vec<ResultError>,
    /// The time.
    pub at: Timestamp,
    /// The digest of the head that the proposal is based on.
    #[schema(required)]
    pub parent: Option<Digest>,
    /// The instruction that the agent got.
    #[schema(required)]
    pub instruction: Option<String>,
    /// The stages that no reviewers could fill, if the code is `nobody_can_approve`.
    #[schema(nullable = false)]
    pub unfillable: Option<Vec<UnfillableStageResponse>>,
    /// The tool of the request.
    #[schema(required)]
    pub tool: Option<Value>,
}

/// Every passkey that was ever enrolled.
#[derive(Debug, ToSchema)]
pub struct PasskeyListResponse {
    /// The passkeys. Removed ones have `removed_at`.
    pub passkeys: Vec<countersign_domain::chain::verify_receipt_offline::PinnedPasskey>,
}

/// The passkey signatures of a receipt's approvals.
#[derive(Debug, ToSchema)]
pub struct EvidenceListResponse {
    /// One item for each approval that a passkey signed.
    pub evidence: Vec<Value>,
}

/// One page of the audit log.
#[derive(Debug, ToSchema)]
pub struct EventListResponse {
    /// The events, in log order.
    pub events: Vec<EventResponse>,
    /// The value of `after` for the next page.
    pub next: u64,
}

/// An event of the audit log.
#[derive(Debug, ToSchema)]
pub struct EventResponse {
    /// The log position of the event.
    pub index: u64,
    /// The permanent id of the event.
    pub id: EventId,
    /// The type of the event.
    #[schema(rename = "type")]
    pub kind: String,
    /// The time.
    pub timestamp: Timestamp,
    /// The flow of the event. Null if it belongs to none.
    #[schema(required)]
    pub flow: Option<FlowId>,
    /// The thread of the event. Null if it belongs to none.
    #[schema(required)]
    pub thread: Option<ThreadId>,
    /// The number of the event in its thread.
    #[schema(required)]
    pub seq: Option<u64>,
    /// The content of the event. Each type has its own members.
    #[schema(value_type = Object)]
    pub data: Value,
}

/// The published keys.
#[derive(Debug, ToSchema)]
pub struct KeySetResponse {
    /// The gateway that signs.
    pub issuer: String,
    /// Every key that ever signed, as a JWK with `countersign_use` and its state.
    #[schema(value_type = Vec<Object>)]
    pub keys: Vec<Value>,
}

/// The health of the gateway.
#[derive(Debug, ToSchema)]
pub struct HealthResponse {
    /// `alive` or `ready`.
    pub status: String,
}
