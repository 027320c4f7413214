//! Transitions: what was asked, and what became of it.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::join_carryover::JoinCarryover;
use super::tool_call::Tool;
use crate::domain::chain::commitment::Origins;
use crate::domain::chain::hash::{Digest, Tag};
use crate::domain::chain::statement::{Statement, TransitionType};
use crate::domain::json::canonical::canonical;
use crate::domain::json::patch::PatchFormat;
use crate::domain::json::pointer::Pointer;
use crate::domain::json::state_delta::Delta;
use crate::domain::keys::ThreadSecret;
use crate::domain::policy::{Instruction, JudgedWarning};
use crate::domain::primitives::id::{
    AccountId, FlowId, Jti, NodeId, PrincipalId, ProposalId, ReviewId, StepKey, ThreadId, ToolName,
};
use crate::domain::primitives::time::Timestamp;
use crate::domain::reviews::HoldReason;
use crate::domain::writes::write::ResultError;

/// What makes two requests the same proposal. It is looked up before the head is.
#[derive(Clone, Debug)]
pub struct ProposalIdentity<'a> {
    pub thread: &'a ThreadId,
    /// The head it was made on; none at version 0.
    pub parent: Option<Digest>,
    /// The node; none at version 0.
    pub node: Option<&'a NodeId>,
    /// The id of the token or account that sent the request.
    pub principal: &'a PrincipalId,
    pub kind: TransitionType,
    pub format: PatchFormat,
    /// The hash of the canonical patch.
    pub patch: Digest,
    /// The number of the attempt.
    pub attempt: u32,
    /// The tool that is called along with it.
    pub tool: Option<&'a Tool>,
    /// The step that it is, by its agent's name for it.
    pub step: Option<&'a StepKey>,
}

impl ProposalIdentity<'_> {
    /// One name for the same proposal, which tells nobody what was asked for.
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
        // With a tool there is one part more, so that no request without one is the same.
        if let (Some(tool), Value::Array(parts)) = (self.tool, &mut parts) {
            parts.push(tool.identity());
        }
        // Likewise; a tool is an object, and a step a text.
        if let (Some(step), Value::Array(parts)) = (self.step, &mut parts) {
            parts.push(Value::from(step.as_str()));
        }
        Digest::keyed(secret, Tag::Proposal, canonical(&parts).as_bytes())
    }
}

/// What a patch hashes to in its thread.
pub fn patch_digest(secret: &ThreadSecret, patch: &Value) -> Digest {
    Digest::keyed(secret, Tag::Patch, canonical(patch).as_bytes())
}

/// What became of a transition.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case", deny_unknown_fields)]
pub enum TransitionOutcome {
    Committed {
        entry: String,
    },
    /// It is in the chain because its flow only observes: otherwise people would have been asked.
    Observed {
        entry: String,
        /// Why they would have been.
        would_hold: Vec<HoldReason>,
    },
    /// The request is held for approval.
    Held {
        review: ReviewId,
    },
    /// People approved it, and it is in the chain.
    Approved {
        review: ReviewId,
        /// The receipt that came of it.
        receipt: Jti,
        entry: String,
    },
    /// It ended without being committed; the hold says how.
    Ended {
        review: ReviewId,
        /// How, in the decision's word.
        decision: HoldEndReason,
    },
}

/// How a hold ended that was not approved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HoldEndReason {
    /// People refused.
    Denied,
    /// Nobody decided in time.
    Expired,
    /// Its proposer took it back.
    Cancelled,
    /// Something took its place.
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

    /// The signed entry, if the transition is committed.
    pub fn entry(&self) -> Option<&str> {
        match self {
            Self::Committed { entry } | Self::Observed { entry, .. } | Self::Approved { entry, .. } => Some(entry),
            Self::Held { .. } | Self::Ended { .. } => None,
        }
    }
}

/// A transition as it is kept: the statement made once, and the request as it was made.
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
    /// The whole effect, from the head's state to the state it leads to.
    pub delta: Delta,
    /// Leaves that it set outside its node's reads, whether or not they differ.
    pub named: BTreeSet<Pointer>,
    /// The agent's rationale: inert text, never believed.
    pub rationale: Option<String>,
    /// The tool that is called along with it; the statement commits to it.
    #[serde(default)]
    pub tool: Option<Tool>,
    /// What the policy's rules warn of.
    #[serde(default)]
    pub warnings: Vec<JudgedWarning>,
    /// The same as others than the proposer may read it, where that is less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warnings_cut: Option<Vec<JudgedWarning>>,
    /// The step that it is, by its agent's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepKey>,
    /// What it brings of its branches, if it is a join.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<Box<JoinCarryover>>,
    /// How many tokens its node was given of the state that it was made on, in hundreds, where its policy bounds that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// Which editor made it, if it is an edit.
    pub editor: Option<AccountId>,
    pub outcome: TransitionOutcome,
    #[serde(default, skip_serializing_if = "ValueLocation::are_here")]
    pub values: ValueLocation,
}

/// Where the values of a transition are: what was asked for, and what it did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueLocation {
    #[default]
    Here,
    /// In the archive of its version, or erased with it.
    Archived,
}

impl ValueLocation {
    /// A transition that has its values is written as it always was.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
    const fn are_here(&self) -> bool {
        matches!(self, Self::Here)
    }
}

/// A rejected request as readers are shown it who could have chosen it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthorExcerpt {
    /// See [`Rejection::excerpt`].
    pub excerpt: String,
    /// See [`Rejection::cut`].
    pub cut: BTreeMap<usize, String>,
}

/// A rejected attempt: inert, bounded, never in any state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rejection {
    /// The id of the request. A repeated request has the same one.
    pub identity: Digest,
    pub thread: ThreadId,
    pub flow: FlowId,
    /// The node it was tried as.
    pub node: NodeId,
    pub principal: PrincipalId,
    pub patch: Digest,
    /// The tool that was to be called along with it.
    #[serde(default)]
    pub tool: Option<ToolName>,
    /// The step that it was, by its agent's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepKey>,
    /// The beginning of the patch's canonical text, without what the policy hides.
    pub excerpt: String,
    pub errors: Vec<ResultError>,
    /// Which of them are about something hidden: what was sent there is not told back.
    #[serde(default)]
    pub hidden: BTreeSet<usize>,
    /// Where those of them are that name a place further than others than the proposer may read it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cut: BTreeMap<usize, String>,
    /// What readers are shown who could have chosen the request, where that differs: it was compared only with values that
    /// the node could read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<AuthorExcerpt>,
    /// The head it was tried on.
    #[serde(default)]
    pub parent: Option<Digest>,
    /// Whether it counts against its node's tries on that head.
    #[serde(default)]
    pub counted: bool,
    /// What the node was told to do.
    #[serde(default)]
    pub instruction: Option<Instruction>,
    /// The text of a [`super::kept::KeptRequest`], if it is short enough and nothing in it was hidden.
    /// Shown to nobody.
    #[serde(default)]
    pub request: Option<String>,
    pub at: Timestamp,
}

impl Transition {
    /// Whether it says that it is in the chain.
    pub fn is_committed(&self) -> bool {
        matches!(
            self.outcome,
            TransitionOutcome::Committed { .. }
                | TransitionOutcome::Observed { .. }
                | TransitionOutcome::Approved { .. }
        )
    }

    /// What stays of it where its values are in an archive: what was stated, and what became of it.
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

    /// What the policy's rules warn of, as people, hosts and events are told it. Its own proposer is told the places that
    /// it named, whatever stands elsewhere in the state: or it could find out by asking.
    pub fn warnings_shown(&self) -> &[JudgedWarning] {
        self.warnings_cut.as_deref().unwrap_or(&self.warnings)
    }
}

impl Rejection {
    /// The rejection as a reader is shown it who could have chosen the request.
    #[must_use]
    pub fn as_its_own(mut self) -> Self {
        if let Some(AuthorExcerpt { excerpt, cut }) = self.own.take() {
            (self.excerpt, self.cut) = (excerpt, cut);
        }
        self
    }

    /// Every violation as people and auditors are told it; how often below something hidden is not told. Its own proposer is told the places that it named, whatever
    /// stands elsewhere in the state: or it could find out by asking.
    pub fn errors_shown(&self) -> Vec<ResultError> {
        let shown = self.errors.iter().enumerate().map(|(index, error)| {
            let pointer = self.cut.get(&index).unwrap_or(&error.pointer).clone();
            ResultError { pointer, ..error.clone() }
        });
        let mut seen = HashSet::with_capacity(self.errors.len());
        shown.filter(|it| seen.insert(it.clone())).collect()
    }
}

/// A version's place in its chain.
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
    /// Whole, or as a difference.
    pub content: StateContent,
}

/// A state, whole or as what changed since the version before.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum StateContent {
    Full {
        state: Value,
        /// Which proposal set which leaf.
        origins: Origins,
    },
    /// What changed since the version before, set by this transition's proposal.
    Delta {
        /// The version of the whole state it goes back to.
        base: u64,
        proposal: ProposalId,
        delta: Delta,
        /// Leaves that were set to what they were.
        named: BTreeSet<Pointer>,
    },
}

/// A whole state is kept at least this often, so that reading any version costs a bounded number of rows.
pub const STATE_DELTAS_MAX: u64 = 32;
