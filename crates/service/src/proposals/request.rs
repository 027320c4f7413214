//! The proposal of a node.

use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::statement::TransitionType;
use countersign_domain::json::patch::PatchFormat;
use countersign_domain::primitives::id::{NodeId, StepKey, ThreadId};
use countersign_domain::threads::branch::JoinStatement;
use countersign_domain::threads::join_carryover::JoinCarryover;
use countersign_domain::threads::rejected_request::{RejectedJoin, RejectedRequest};
use countersign_domain::threads::tool_call::Tool;
use countersign_domain::threads::transition::Transition;
use countersign_domain::threads::usage::Usage;
use countersign_store::change::Draft;
use serde_json::{Value, json};

use super::join_request::JoinProposal;
use crate::error::Result;

/// The maximum length of a rationale.
pub const RATIONALE_CHARS_MAX: usize = 8_000;

#[derive(Clone, Debug)]
pub struct Proposal {
    pub thread: ThreadId,
    pub node: NodeId,
    pub parent: Digest,
    pub ask: ProposalKind,
    pub attempt: u32,
    /// The reason, in the agent's words.
    pub rationale: Option<String>,
    /// The tool call that belongs to the change.
    pub tool: Option<Tool>,
    /// The usage that the agent reports.
    pub usage: Usage,
    /// The agent's name for the step. A step has one effect, however often it is proposed.
    pub step: Option<StepKey>,
}

#[derive(Clone, Debug)]
pub enum ProposalKind {
    Patch {
        format: PatchFormat,
        patch: Value,
    },
    /// A reviewer's edit of an agent's proposal.
    Edit {
        format: PatchFormat,
        patch: Value,
        supersedes: Digest,
    },
    /// A request for a new receipt of the current head.
    Reaffirm,
    /// A return to the state of an earlier version.
    Rollback {
        to_version: u64,
    },
    Join(Box<JoinProposal>),
}

impl ProposalKind {
    pub(crate) fn kind(&self) -> TransitionType {
        match self {
            Self::Patch { .. } => TransitionType::Propose,
            Self::Edit { .. } => TransitionType::Edit,
            Self::Reaffirm => TransitionType::Reaffirm,
            Self::Rollback { .. } => TransitionType::Rollback,
            Self::Join(_) => TransitionType::Join,
        }
    }

    pub(crate) fn format(&self) -> PatchFormat {
        match self {
            Self::Patch { format, .. } | Self::Edit { format, .. } => *format,
            Self::Reaffirm | Self::Rollback { .. } | Self::Join(_) => PatchFormat::Merge,
        }
    }

    /// Returns the content that the digest of the request covers.
    pub(crate) fn content(&self) -> Value {
        match self {
            Self::Patch { patch, .. } | Self::Edit { patch, .. } => patch.clone(),
            Self::Reaffirm => json!({}),
            Self::Rollback { to_version } => json!({"to_version": to_version}),
            Self::Join(join) => join.content(),
        }
    }
}

impl ProposalKind {
    /// Returns what a join adds to the thread in addition to its effect.
    pub(crate) fn carried(&self) -> Option<&JoinCarryover> {
        let Self::Join(join) = self else { return None };
        join.found().ok().map(|it| &it.carried)
    }

    pub(crate) fn joins(&self) -> Result<Option<(JoinStatement, JoinCarryover)>> {
        let Self::Join(join) = self else { return Ok(None) };
        let found = join.found()?;
        Ok(Some((found.joining.clone(), found.carried.clone())))
    }

    /// Returns the join for a later judgement, or `None` if its branches are not loaded yet.
    pub(crate) fn kept_join(&self) -> Option<Box<RejectedJoin>> {
        let (joining, carried) = self.joins().ok().flatten()?;
        Some(Box::new(RejectedJoin { joining, carried }))
    }

    /// Requires at commit time that the branches are unchanged.
    pub(crate) fn rely(&self, draft: &mut Draft<'_>) {
        let Self::Join(join) = self else { return };
        for row in join.found().iter().flat_map(|it| &it.rows) {
            draft.require_unchanged(row);
        }
    }

    /// Returns the parts of the request that may be stored where others read them.
    pub(crate) fn told(&self) -> Value {
        match self {
            Self::Join(join) => join.told(),
            other => other.content(),
        }
    }
}

impl Proposal {
    /// Returns the proposal of a stored transition, or `None` if no node proposed it.
    pub(crate) fn of(transition: &Transition) -> Option<Self> {
        let statement = &transition.statement;
        let ask = match statement.kind {
            TransitionType::Propose => {
                ProposalKind::Patch { format: transition.format, patch: transition.patch.clone() }
            }
            TransitionType::Reaffirm => ProposalKind::Reaffirm,
            TransitionType::Rollback => {
                ProposalKind::Rollback { to_version: transition.patch.get("to_version")?.as_u64()? }
            }
            TransitionType::Join => ProposalKind::Join(Box::new(JoinProposal::of(transition)?)),
            TransitionType::Create | TransitionType::Fork | TransitionType::Edit | TransitionType::Confirm => {
                return None;
            }
        };
        Some(Self {
            thread: statement.thread.clone(),
            node: statement.node.clone()?,
            parent: statement.parent?,
            ask,
            attempt: statement.attempt?,
            rationale: transition.rationale.clone(),
            tool: transition.tool.clone(),
            usage: statement.usage.as_ref().map_or(Some(Usage::default()), |it| Usage::read(it).ok())?,
            // A restated proposal is found through the transition that it replaces.
            step: None,
        })
    }

    /// Returns the request in the form that is stored for a later judgement.
    pub(crate) fn kept(&self) -> RejectedRequest {
        RejectedRequest {
            kind: self.ask.kind(),
            format: self.ask.format(),
            content: self.ask.content(),
            attempt: self.attempt,
            tool: self.tool.clone(),
            usage: self.usage.stated(),
            step: self.step.clone(),
            join: self.ask.kept_join(),
        }
    }
}
