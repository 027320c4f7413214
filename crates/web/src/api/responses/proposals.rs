//! Response schemas of proposals and writes.

use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::opening::Opening;
use countersign_domain::chain::statement::Statement;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::policy::RedactedChange;
use countersign_domain::primitives::id::{ThreadId, WriteId};
use countersign_domain::reviews::HoldReason;
use countersign_domain::writes::write::ResultError;
use serde_json::Value;
use utoipa::ToSchema;

use super::reviews::ReviewResponse;

/// A committed proposal.
#[derive(Debug, ToSchema)]
pub struct CommittedResponse {
    /// `committed`.
    #[schema(pattern = "^committed$")]
    pub outcome: String,
    /// The version of the commit.
    pub version: u64,
    /// The digest of the transition, which is now the head.
    pub transition: Digest,
    /// The signed entry, a JWS.
    pub entry: String,
    /// The changes, as far as the node may know them.
    pub changed: Vec<Pointer>,
    /// The reasons for which an enforcing flow would have required approval.
    #[schema(nullable = false)]
    pub would_hold: Option<Vec<HoldReason>>,
    /// The warnings of the policy's rules.
    #[schema(nullable = false)]
    pub warnings: Option<Vec<WarningResponse>>,
}

/// The request is held for approval.
#[derive(Debug, ToSchema)]
pub struct HeldResponse {
    /// `held`.
    #[schema(pattern = "^held$")]
    pub outcome: String,
    /// The digest of the held transition. Wait for its decision.
    pub transition: Digest,
    /// The review.
    pub review: ReviewResponse,
    /// The reasons, as far as the node may know them.
    pub reasons: Vec<HoldReason>,
    /// The warnings of the policy's rules.
    #[schema(nullable = false)]
    pub warnings: Option<Vec<WarningResponse>>,
    /// The changes that it would make, as far as the node may know them.
    pub diff: Vec<ChangeResponse>,
    /// The look-alike texts in `diff`.
    #[schema(nullable = false)]
    pub marks: Option<Vec<ConfusableMark>>,
}

/// A look-alike in a shown text. At most 100 in a response.
#[derive(Debug, ToSchema)]
pub struct ConfusableMark {
    /// The pointer of the changed line.
    pub pointer: Pointer,
    /// The part with the look-alike: `name` (the pointer) or `value` (the new value).
    #[schema(pattern = "^(name|value)$")]
    pub of: String,
    /// `invisible`, `right_to_left`, `mixed_scripts`, `looks_like_ascii`, `looks_like_known` (it looks like the
    /// previous value but differs), or `new_script` (it uses a script that the previous value does not use).
    #[schema(pattern = "^(invisible|right_to_left|mixed_scripts|looks_like_ascii|looks_like_known|new_script)$")]
    pub code: String,
    /// The same, in words.
    pub detail: String,
}

/// A warning of a rule.
#[derive(Debug, ToSchema)]
pub struct WarningResponse {
    /// The name of the rule.
    pub rule: String,
    /// The JSON Pointer, cut at redacted prefixes.
    pub pointer: Pointer,
    /// The reason in the policy.
    pub detail: String,
}

/// A changed leaf. An absent side is left out. Null is a value.
#[derive(Debug, ToSchema)]
pub struct ChangeResponse {
    /// The JSON Pointer of the value.
    pub pointer: Pointer,
    /// The value before the change.
    pub before: Option<Value>,
    /// The value after the change.
    pub after: Option<Value>,
}

/// A transition, with the part of its effect that the caller may see.
#[derive(Debug, ToSchema)]
pub struct TransitionResponse {
    /// The digest of the transition.
    pub transition: Digest,
    /// The name of the thread.
    pub thread: ThreadId,
    /// `committed`, `observed`, `held`, `approved`, `denied`, `expired`, `cancelled` or `superseded`.
    #[schema(pattern = "^(committed|observed|held|approved|denied|expired|cancelled|superseded)$")]
    pub status: String,
    /// The statement of the transition.
    pub statement: Statement,
    /// The signed entry, if the transition is committed.
    #[schema(required)]
    pub entry: Option<String>,
    /// The cause if the approval is no longer usable: `halted`, `closed`, `policy_mismatch`, `revoked`, `expired`, or
    /// another code of verify. Left out while it is usable.
    #[schema(nullable = false)]
    pub stopped: Option<String>,
    /// The arguments of its tool, redacted. Agents get them only for their own proposals.
    #[schema(nullable = false)]
    pub arguments: Option<Vec<LeafResponse>>,
    /// The warnings of the policy's rules.
    #[schema(nullable = false)]
    pub warnings: Option<Vec<Value>>,
    /// The changes. Agents get those that their nodes may read, other callers get them redacted.
    pub diff: Vec<RedactedChange>,
    /// The look-alike texts in `diff` and `arguments`.
    #[schema(nullable = false)]
    pub marks: Option<Vec<ConfusableMark>>,
    /// The kind, length class and commitment of each redacted line of the diff, for each side. For auditors only.
    #[schema(nullable = false)]
    pub hidden: Option<Vec<RedactedValueResponse>>,
    /// The openings of both trees. For auditors only.
    #[schema(nullable = false)]
    pub opening: Option<Opening>,
    /// The review, if the transition was held.
    #[schema(nullable = false)]
    pub review: Option<ReviewResponse>,
}

/// A leaf of a tool's arguments.
#[derive(Debug, ToSchema)]
pub struct LeafResponse {
    /// The JSON Pointer of the value.
    pub pointer: Pointer,
    /// The value of the leaf.
    pub value: Option<Value>,
    /// True if the leaf is redacted.
    #[schema(nullable = false)]
    pub hidden: Option<bool>,
}

/// A redacted change, without its values.
#[derive(Debug, ToSchema)]
pub struct RedactedValueResponse {
    /// The JSON Pointer of the value.
    pub pointer: Pointer,
    /// The kind of the value before the change.
    #[schema(nullable = false)]
    pub before: Option<RedactedSideResponse>,
    /// The kind of the value after the change.
    #[schema(nullable = false)]
    pub after: Option<RedactedSideResponse>,
}

/// One side of a redacted value.
#[derive(Debug, ToSchema)]
pub struct RedactedSideResponse {
    /// `text`, `number`, `scalar`, `list` or `object`.
    #[schema(rename = "type")]
    pub kind: String,
    /// The length class.
    pub length: Option<Value>,
    /// The commitment of the value in the tree.
    pub commitment: Option<Digest>,
}

/// The transition is not decided yet. Send the request again.
#[derive(Debug, ToSchema)]
pub struct PendingDecisionResponse {
    /// `held`.
    #[schema(pattern = "^held$")]
    pub status: String,
}

/// A cancelled proposal.
#[derive(Debug, ToSchema)]
pub struct CancelResponse {
    /// The digest of the transition.
    pub transition: Digest,
    /// `cancelled`.
    #[schema(pattern = "^cancelled$")]
    pub status: String,
}

/// The outcome of a write.
#[derive(Debug, ToSchema)]
pub struct WriteOutcomeResponse {
    /// The writer's id of the write.
    pub write_id: WriteId,
    /// `confirmed`, `aborted`, or `late` if the head had changed.
    #[schema(pattern = "^(confirmed|aborted|late)$")]
    pub outcome: String,
    /// The version of the head after the write.
    pub version: u64,
    /// The head after the write.
    pub transition: Digest,
    /// True if the result was not allowed. Then an empty change was committed.
    #[schema(nullable = false)]
    pub result_refused: Option<bool>,
    /// The errors of the refused result.
    #[schema(nullable = false)]
    pub errors: Option<Vec<ResultError>>,
}
