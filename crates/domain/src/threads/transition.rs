//! Transitions: requests and their outcomes.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::join_carryover::JoinCarryover;
use super::tool_call::Tool;
use crate::chain::commitment::Origins;
use crate::chain::hash::{Digest, Tag};
use crate::chain::statement::{Statement, TransitionType};
use crate::json::canonical::canonical;
use crate::json::patch::PatchFormat;
use crate::json::pointer::Pointer;
use crate::json::state_delta::Delta;
use crate::keys::ThreadSecret;
use crate::policy::{Instruction, JudgedWarning};
use crate::primitives::id::{
    AccountId, FlowId, Jti, NodeId, PrincipalId, ProposalId, ReviewId, StepKey, ThreadId, ToolName,
};
use crate::primitives::time::Timestamp;
use crate::reviews::{HoldReason, StageShortage};
use crate::writes::write::ResultError;

/// The data that identifies a proposal. Two requests with the same identity are one. It is looked up before the head
/// is.
#[derive(Clone, Debug)]
pub struct ProposalIdentity<'a> {
    pub thread: &'a ThreadId,
    /// The head that the request builds on. `None` at version 0.
    pub parent: Option<Digest>,
    /// `None` at version 0.
    pub node: Option<&'a NodeId>,
    /// The id of the token or account that sent the request.
    pub principal: &'a PrincipalId,
    pub kind: TransitionType,
    pub format: PatchFormat,
    /// The hash of the canonical patch.
    pub patch: Digest,
    pub attempt: u32,
    /// The tool call of the request.
    pub tool: Option<&'a Tool>,
    /// The agent's name for the step.
    pub step: Option<&'a StepKey>,
}

impl ProposalIdentity<'_> {
    /// Returns the keyed digest of the identity. Without the thread's secret it reveals nothing about the request.
    pub fn digest(&self, secret: &ThreadSecret) -> Digest {
        let mut parts = serde_json::json!([
            self.thread,
            self.parent,
            self.node,
            self.principal,
            self.kind,
            self.format,
            self.patch,
            self.attempt
        ]);
        // A tool adds a part, so no request without a tool has the same identity.
        if let (Some(tool), Value::Array(parts)) = (self.tool, &mut parts) {
            parts.push(tool.identity());
        }
        // A step adds a part too. A tool is an object and a step is a string, so they differ.
        if let (Some(step), Value::Array(parts)) = (self.step, &mut parts) {
            parts.push(Value::from(step.as_str()));
        }
        Digest::keyed(secret, Tag::Proposal, canonical(&parts).as_bytes())
    }
}

/// Returns the keyed digest of a patch.
pub fn patch_digest(secret: &ThreadSecret, patch: &Value) -> Digest {
    Digest::keyed(secret, Tag::Patch, canonical(patch).as_bytes())
}

/// Returns the digest by which readers recognize a rejected patch of one owner. It contains the owner, because events and
/// lists show it. Otherwise another owner could send guesses and compare the digests.
pub fn rejected_patch_digest(secret: &ThreadSecret, owner: &str, patch: &Value) -> Digest {
    Digest::keyed(secret, Tag::Patch, canonical(&serde_json::json!({"owner": owner, "patch": patch})).as_bytes())
}

/// The outcome of a transition.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case", deny_unknown_fields)]
pub enum TransitionOutcome {
    Committed {
        entry: String,
    },
    /// Committed in observe mode. Without it, the request would require approval.
    Observed {
        entry: String,
        /// The reasons for which it would be held.
        would_hold: Vec<HoldReason>,
    },
    /// The request is held for approval.
    Held {
        review: ReviewId,
    },
    /// Approved and committed.
    Approved {
        review: ReviewId,
        /// The receipt of the approval.
        receipt: Jti,
        entry: String,
    },
    /// The review ended without an approval.
    Ended {
        review: ReviewId,
        decision: HoldEndReason,
    },
}

/// How a review ended that was not approved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum HoldEndReason {
    /// Reviewers denied it.
    Denied,
    /// The deadline passed without a decision.
    Expired,
    /// The proposer cancelled it.
    Cancelled,
    /// A newer transition or policy replaced it.
    Superseded,
}

impl TransitionOutcome {
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Committed { .. } => "committed",
            Self::Observed { .. } => "observed",
            Self::Held { .. } => "held",
            Self::Approved { .. } => "approved",
            Self::Ended { .. } => "ended",
        }
    }

    /// Returns the signed entry of a committed transition.
    pub fn entry(&self) -> Option<&str> {
        match self {
            Self::Committed { entry } | Self::Observed { entry, .. } | Self::Approved { entry, .. } => Some(entry),
            Self::Held { .. } | Self::Ended { .. } => None,
        }
    }
}

/// A stored transition: the statement and the original request.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transition {
    pub digest: Digest,
    /// The id of the request. A repeated request has the same one.
    pub identity: Digest,
    /// The statement of the transition.
    pub statement: Statement,
    pub format: PatchFormat,
    pub patch: Value,
    /// The complete change, from the head's state to the resulting state.
    pub delta: Delta,
    /// Leaves outside the node's reads that the request sets, changed or not.
    pub named: BTreeSet<Pointer>,
    /// The agent's rationale. It is untrusted text and is only displayed.
    pub rationale: Option<String>,
    /// The tool call. The statement commits to it.
    #[serde(default)]
    pub tool: Option<Tool>,
    /// Warnings of the policy's rules.
    #[serde(default)]
    pub warnings: Vec<JudgedWarning>,
    /// The warnings for readers other than the proposer, if those readers may see less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warnings_cut: Option<Vec<JudgedWarning>>,
    /// The agent's name for the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepKey>,
    /// The data that a join adds from its branches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<Box<JoinCarryover>>,
    /// The tokens of the state that the node received, in hundreds. Set only if the policy limits them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// The editor, if the transition is an edit.
    pub editor: Option<AccountId>,
    pub outcome: TransitionOutcome,
    #[serde(default, skip_serializing_if = "ValueLocation::are_here")]
    pub values: ValueLocation,
}

/// The location of a transition's values: the request and the change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueLocation {
    #[default]
    Here,
    /// In the version's archive, or erased.
    Archived,
}

impl ValueLocation {
    /// Omits the member at its default, so older rows keep their bytes and their seal.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
    const fn are_here(&self) -> bool {
        matches!(self, Self::Here)
    }
}

/// The excerpt of a rejected request for readers who could have sent it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthorExcerpt {
    /// See [`Rejection::excerpt`].
    pub excerpt: String,
    /// See [`Rejection::cut`].
    pub cut: BTreeMap<usize, String>,
}

/// A rejected attempt: untrusted, of limited size, and never part of a state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rejection {
    /// The id of the request. A repeated request has the same one.
    pub identity: Digest,
    pub thread: ThreadId,
    pub flow: FlowId,
    /// The node of the attempt.
    pub node: NodeId,
    pub principal: PrincipalId,
    pub patch: Digest,
    /// The tool of the request.
    #[serde(default)]
    pub tool: Option<ToolName>,
    /// The agent's name for the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepKey>,
    /// The start of the patch's canonical JSON, without redacted values.
    pub excerpt: String,
    pub errors: Vec<ResultError>,
    /// Indexes of errors about redacted values. Values sent there are not shown.
    #[serde(default)]
    pub hidden: BTreeSet<usize>,
    /// Shorter paths for errors whose full path readers other than the proposer may not see.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cut: BTreeMap<usize, String>,
    /// The excerpt for readers who could have sent the request, if it differs. It was compared only with values that
    /// the node could read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<AuthorExcerpt>,
    /// The head of the attempt.
    #[serde(default)]
    pub parent: Option<Digest>,
    /// Whether it counts towards the node's limit of attempts on that head.
    #[serde(default)]
    pub counted: bool,
    /// The instruction that the node received.
    #[serde(default)]
    pub instruction: Option<Instruction>,
    /// The text of a [`super::rejected_request::RejectedRequest`], if it is short enough and has no redacted value. It
    /// is never shown.
    #[serde(default)]
    pub request: Option<String>,
    /// The stages that no reviewers could fill, with the members of their groups. Shown to people and auditors, and
    /// never to the proposer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfillable: Vec<StageShortage>,
    pub at: Timestamp,
}

impl Transition {
    /// Checks that the transition is committed.
    pub fn is_committed(&self) -> bool {
        matches!(
            self.outcome,
            TransitionOutcome::Committed { .. }
                | TransitionOutcome::Observed { .. }
                | TransitionOutcome::Approved { .. }
        )
    }

    /// Returns the transition without its values, as it is stored after archiving.
    #[must_use]
    pub fn without_values(&self) -> Self {
        Self {
            patch: Value::Null,
            delta: Delta::default(),
            named: BTreeSet::new(),
            rationale: None,
            tool: None,
            values: ValueLocation::Archived,
            ..self.clone()
        }
    }

    /// Returns the warnings for reviewers, host applications and events. The proposer sees only paths that it named.
    /// Otherwise a proposer could probe the rest of the state.
    pub fn warnings_shown(&self) -> &[JudgedWarning] {
        // The cut list is stored only if it differs.
        self.warnings_cut.as_deref().unwrap_or(&self.warnings)
    }
}

impl Rejection {
    /// Returns the rejection for a reader who could have sent the request.
    #[must_use]
    pub fn as_its_own(mut self) -> Self {
        if let Some(AuthorExcerpt { excerpt, cut }) = self.own.take() {
            (self.excerpt, self.cut) = (excerpt, cut);
        }
        self
    }

    /// Returns the violations for reviewers and auditors, without the number of violations below a redacted path. The
    /// proposer sees only paths that it named. Otherwise a proposer could probe the rest of the state.
    pub fn errors_shown(&self) -> Vec<ResultError> {
        let shown = self.errors.iter().enumerate().map(|(index, error)| {
            let pointer = self.cut.get(&index).unwrap_or(&error.pointer).clone();
            ResultError { pointer, ..error.clone() }
        });
        // Errors with a shortened path may become equal. Their number would reveal how many values are below the path.
        let mut seen = HashSet::with_capacity(self.errors.len());
        shown.filter(|it| seen.insert(it.clone())).collect()
    }
}

/// The chain row of a version.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainRow {
    pub thread: ThreadId,
    pub version: u64,
    pub transition: Digest,
    pub entry: String,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateRow {
    pub thread: ThreadId,
    pub version: u64,
    pub content: StateContent,
}

/// A full state, or the changes since the previous version.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum StateContent {
    Full {
        state: Value,
        /// The proposal that set each leaf.
        origins: Origins,
    },
    /// The changes since the previous version, made by this transition's proposal.
    Delta {
        /// The version of the full state that the changes start from.
        base: u64,
        proposal: ProposalId,
        delta: Delta,
        /// Leaves that were set to their previous value.
        named: BTreeSet<Pointer>,
    },
}

/// The longest sequence of changes between two full states. It limits the number of rows that reading a version needs.
pub const STATE_DELTAS_MAX: u64 = 32;
