//! Bulk decisions: the reviews that can be part of one, and the groups of similar reviews.

use super::{Hold, HoldReason, Vote, VoteVerdict};
use crate::chain::hash::Digest;
use crate::chain::statement::TransitionType;
use crate::json::pointer::Pointer;
use crate::policy::{RedactedChange, RedactedChangeKind};
use crate::primitives::id::{FlowId, NodeId, ToolName};
use crate::threads::transition::Transition;

/// The limit of a bulk decision. It equals a page of the inbox, because no reviewer reads more with care.
pub const SEVERAL_MAX: usize = 50;

/// The limit of changed paths for a review in a bulk decision. A reviewer does not read a longer change in a list.
pub const CHANGES_AMONG_SEVERAL_MAX: usize = 20;

/// The reason why a review cannot be part of a bulk decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotBulkDecidable {
    /// A passkey's signature covers one change.
    #[error("its flow requires a passkey")]
    Passkey,
    /// The typed digits identify one change.
    #[error("its flow requires a typed confirmation")]
    Typing,
    /// The review has a denial, a withdrawn vote or a comment. Reviewers should read these on its page.
    #[error("it has denials, withdrawn votes or comments")]
    Talked,
    /// The change is too long to be read in a list.
    #[error("its change is too long for a bulk decision")]
    Large,
}

/// The common properties of reviews that can be decided together: the policy, the node, the type of request, the
/// reasons, the changed paths and the paths of tool arguments. Paths are exact: `/items/0` differs from `/items/1`. Values may differ, because
/// reviewers read them.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkGroupKey {
    policy: Digest,
    flow: FlowId,
    node: NodeId,
    kind: TransitionType,
    tool: Option<ToolName>,
    reasons: Vec<HoldReason>,
    places: Vec<(Pointer, RedactedChangeKind)>,
    arguments: Vec<Pointer>,
}

impl BulkGroupKey {
    /// Returns the key of a review, from the redacted change and the paths of arguments that its readers see.
    pub fn of(hold: &Hold, transition: &Transition, diff: &[RedactedChange], arguments: Vec<Pointer>) -> Self {
        let place = |change: &RedactedChange| match change {
            RedactedChange::Hidden { pointer, effect, .. } => (pointer.clone(), *effect),
            RedactedChange::Shown { pointer, before, after } => {
                let effect = match (before, after) {
                    (None, _) => RedactedChangeKind::Added,
                    (_, None) => RedactedChangeKind::Removed,
                    (Some(_), Some(_)) => RedactedChangeKind::Changed,
                };
                (pointer.clone(), effect)
            }
        };
        Self {
            policy: hold.policy,
            flow: hold.flow.clone(),
            node: hold.node.clone(),
            kind: transition.statement.kind,
            tool: transition.tool.as_ref().map(|it| it.name.clone()),
            reasons: hold.reasons.iter().map(HoldReason::in_current_wording).collect(),
            places: diff.iter().map(place).collect(),
            arguments,
        }
    }
}

impl Hold {
    /// Returns the reason why the review cannot be part of a bulk decision, or `None` if it can. The requirement of one
    /// stage applies to all stages, because such a flow requires more attention.
    pub fn alone(&self) -> Option<NotBulkDecidable> {
        // One signature for several changes would not show which of them the reviewer has read.
        if self.stages.iter().any(|it| !it.passkey.is_nothing()) {
            return Some(NotBulkDecidable::Passkey);
        }
        // The typed digits belong to one digest.
        if self.stages.iter().any(|it| !it.confirm.is_pressing()) {
            return Some(NotBulkDecidable::Typing);
        }
        let said = |it: &Vote| it.verdict == VoteVerdict::Deny || it.comment.is_some() || !it.stands();
        (!self.comments.is_empty() || self.votes.iter().any(said)).then_some(NotBulkDecidable::Talked)
    }
}
