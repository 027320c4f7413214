//! Several holds decided at once: which may be, and which of them are alike.

use super::{Hold, HoldReason, Vote, VoteVerdict};
use crate::domain::chain::hash::Digest;
use crate::domain::chain::statement::TransitionType;
use crate::domain::json::pointer::Pointer;
use crate::domain::policy::{RedactedChange, RedactedChangeKind};
use crate::domain::primitives::id::{FlowId, NodeId, ToolName};
use crate::domain::threads::transition::Transition;

/// A page of the inbox has as many; more are not read with care in one go.
pub const SEVERAL_MAX: usize = 50;

/// A hold that changes more places than this is read by itself: beside others nobody reads so much.
pub const CHANGES_AMONG_SEVERAL_MAX: usize = 20;

/// Why a hold is decided by itself, whoever decides it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotBulkDecidable {
    /// One signature is over one change.
    #[error("its flow asks for a passkey")]
    Passkey,
    /// What is typed names one change.
    #[error("its flow asks for something to be typed")]
    Typing,
    /// Somebody denied it, took a vote back or said something: that is read on its own page.
    #[error("people talk about it")]
    Talked,
    /// There is more to read than fits beside others.
    #[error("it changes more than can be read beside others")]
    Large,
}

/// What holds have in common that may be decided at once: the policy, who asks for what kind of step, why people are
/// asked, and which places change in which way. Places are exact: `/items/0` is not `/items/1`. Values may differ; they
/// are what is read.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkGroupKey {
    policy: Digest,
    flow: FlowId,
    node: NodeId,
    kind: TransitionType,
    tool: Option<ToolName>,
    reasons: Vec<HoldReason>,
    places: Vec<(Pointer, RedactedChangeKind)>,
}

impl BulkGroupKey {
    /// The shape of a hold, by what its readers are shown of its change.
    pub fn of(hold: &Hold, transition: &Transition, diff: &[RedactedChange]) -> Self {
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
        }
    }
}

impl Hold {
    /// Why it is decided by itself; `None` if it may be one of several. What one stage asks holds for all of them: the
    /// flow is one that wants more than a look.
    pub fn alone(&self) -> Option<NotBulkDecidable> {
        if self.stages.iter().any(|it| !it.passkey.is_nothing()) {
            return Some(NotBulkDecidable::Passkey);
        }
        if self.stages.iter().any(|it| !it.confirm.is_pressing()) {
            return Some(NotBulkDecidable::Typing);
        }
        let said = |it: &Vote| it.verdict == VoteVerdict::Deny || it.comment.is_some() || !it.stands();
        (!self.comments.is_empty() || self.votes.iter().any(said)).then_some(NotBulkDecidable::Talked)
    }
}
