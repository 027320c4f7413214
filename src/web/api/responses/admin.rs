//! What administrators and auditors are told, and everybody.

use serde_json::Value;
use utoipa::ToSchema;

use crate::domain::chain::hash::Digest;
use crate::domain::operations::halt::Lifting;
use crate::domain::primitives::id::{EventId, FlowId, Jti, NodeId, PrincipalId, ThreadId, WriteId};
use crate::domain::primitives::time::Timestamp;
use crate::domain::writes::write::Resolution;
use crate::domain::writes::write::ResultError;
use crate::service::policy_changes::replay::Replayed;

/// What is known of a write that lapsed.
#[derive(Debug, ToSchema)]
pub struct WriteResolved {
    /// What the writer called it.
    pub write_id: WriteId,
    /// What became of it.
    pub outcome: Resolution,
}

/// A policy that judges its flow.
#[derive(Debug, ToSchema)]
pub struct PolicyActive {
    /// The flow.
    pub flow: FlowId,
    /// Its digest.
    pub policy: Digest,
    /// Older policies whose heads may still be written.
    pub accepts: Vec<Digest>,
}

/// The stops of a flow, or of all.
#[derive(Debug, ToSchema)]
pub struct HaltStanding {
    /// A flow, or `all`.
    pub scope: String,
    /// Whether nothing may be proposed and no vote counts.
    pub proposing: bool,
    /// Whether no write may be verified.
    pub verifying: bool,
    /// What a second person has still to ask for.
    #[schema(nullable = false)]
    pub lifting: Option<Lifting>,
}

/// A receipt that was taken back.
#[derive(Debug, ToSchema)]
pub struct ReceiptRevoked {
    /// Its id.
    pub jti: Jti,
    /// Always true.
    pub revoked: bool,
}

/// Some of a flow's recorded proposals.
#[derive(Debug, ToSchema)]
pub struct ReplayPage {
    /// The candidate's digest.
    pub policy: Digest,
    /// What became of each, and what would have.
    pub proposals: Vec<Replayed>,
    /// What to give as `after` to go on; null at the end.
    #[schema(required)]
    pub next: Option<String>,
}

/// A page of rejected attempts.
#[derive(Debug, ToSchema)]
pub struct RejectionPage {
    /// The latest first.
    pub rejections: Vec<RejectionTold>,
    /// Where the next page begins; null at the end.
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// An attempt that was turned away; what the policy hides is not in it.
#[derive(Debug, ToSchema)]
pub struct RejectionTold {
    /// What makes another request the same.
    pub proposal: Digest,
    /// The thread.
    pub thread: ThreadId,
    /// Its flow.
    pub flow: FlowId,
    /// As which node.
    pub node: NodeId,
    /// Whose token.
    pub principal: PrincipalId,
    /// The patch's digest in its thread: the same for the same patch, and nothing to try guesses on.
    pub patch_digest: Digest,
    /// The beginning of what was asked for: an agent's text.
    pub excerpt: String,
    /// What was wrong.
    pub errors: Vec<ResultError>,
    /// When.
    pub at: Timestamp,
    /// On which head.
    #[schema(required)]
    pub parent: Option<Digest>,
    /// What the agent was told to do.
    #[schema(required)]
    pub instruction: Option<String>,
    /// The tool that was to be called.
    #[schema(required)]
    pub tool: Option<Value>,
}

/// Every passkey that was ever enrolled.
#[derive(Debug, ToSchema)]
pub struct PasskeyList {
    /// Those that count no more with `removed_at`.
    pub passkeys: Vec<crate::domain::chain::verify_receipt_offline::Pinned>,
}

/// What passkeys signed for a receipt's approvals.
#[derive(Debug, ToSchema)]
pub struct EvidenceList {
    /// One for each approval that a passkey signed.
    pub evidence: Vec<Value>,
}

/// A page of the log.
#[derive(Debug, ToSchema)]
pub struct EventPage {
    /// In the log's order.
    pub events: Vec<EventTold>,
    /// What to give as `after` to go on.
    pub next: u64,
}

/// An event.
#[derive(Debug, ToSchema)]
pub struct EventTold {
    /// Its place in the log.
    pub index: u64,
    /// Its name, which stays.
    pub id: EventId,
    /// What happened.
    #[schema(rename = "type")]
    pub kind: String,
    /// When.
    pub timestamp: Timestamp,
    /// In which flow; null where it belongs to none.
    #[schema(required)]
    pub flow: Option<FlowId>,
    /// In which thread; null where it belongs to none.
    #[schema(required)]
    pub thread: Option<ThreadId>,
    /// Which of its thread's events.
    #[schema(required)]
    pub seq: Option<u64>,
    /// What is told of it; each type has its own members.
    #[schema(value_type = Object)]
    pub data: Value,
}

/// The published keys.
#[derive(Debug, ToSchema)]
pub struct KeySet {
    /// Who signs.
    pub issuer: String,
    /// Every key that ever signed, as a JWK with `countersign_use` and its status.
    #[schema(value_type = Vec<Object>)]
    pub keys: Vec<Value>,
}

/// How the gateway is.
#[derive(Debug, ToSchema)]
pub struct Health {
    /// `alive` or `ready`.
    pub status: String,
}
