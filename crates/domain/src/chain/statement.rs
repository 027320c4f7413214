//! Statement: everything that a transition's digest binds.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::hash::{Digest, Tag};
use crate::json::canonical::canonical;
use crate::primitives::id::{FlowId, NodeId, PrincipalId, ProposalId, ThreadId, WriteId};
use crate::primitives::named_enum::named_json_enum;
use crate::primitives::time::Timestamp;
use crate::threads::branch::{Branch, JoinStatement};

named_json_enum! {
    /// The type of a transition.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    #[cfg_attr(feature = "openapi", schema(as = TransitionType))]
    pub enum TransitionType {
        /// Version 0, by a host application.
        Create = "create",
        /// Version 0 of a branch, with another thread's head.
        Fork = "fork",
        /// A patch by an agent's node.
        Propose = "propose",
        /// A reviewer's rewrite of a held patch.
        Edit = "edit",
        /// An empty patch that requests a receipt for the current head.
        Reaffirm = "reaffirm",
        /// The state of an earlier version again.
        Rollback = "rollback",
        /// The merged changes of branches.
        Join = "join",
        /// The writer's record of its write.
        Confirm = "confirm",
    }
}

impl TransitionType {
    /// Returns whether the request is based on the view of the head that its node was given. A reaffirmation, a
    /// rollback and a writer's result are not.
    pub const fn is_given_context(self) -> bool {
        matches!(self, Self::Propose | Self::Edit | Self::Join)
    }
}

/// The signed description of a transition. It is made once and never derived again from the same facts. Members that do
/// not apply are null.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Statement {
    #[serde(rename = "type")]
    pub kind: TransitionType,
    pub flow: FlowId,
    pub policy: Digest,
    pub thread: ThreadId,
    pub version: u64,
    pub parent: Option<Digest>,
    pub node: Option<NodeId>,
    pub principal: PrincipalId,
    pub proposal: ProposalId,
    pub attempt: Option<u32>,
    pub from: Digest,
    pub to: Digest,
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub tool: Option<Value>,
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub usage: Option<Value>,
    pub rationale: Option<Digest>,
    pub supersedes: Option<Digest>,
    pub restores: Option<Digest>,
    pub write_id: Option<WriteId>,
    pub proposed_at: Timestamp,
    /// Set only for a fork. All other statements omit it, so their bytes do not change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub fork: Option<Branch>,
    /// Set only for a join.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub join: Option<JoinStatement>,
}

impl Statement {
    /// Returns the canonical JSON that is hashed.
    pub fn canonical(&self) -> String {
        let value = serde_json::to_value(self).expect("a statement is a plain struct with text keys");
        canonical(&value)
    }

    /// Returns whether the statement has every member that its type requires and no other.
    pub fn is_whole(&self) -> bool {
        let first = matches!(self.kind, TransitionType::Create | TransitionType::Fork);
        let asked = !first && self.kind != TransitionType::Confirm;
        // Only the first version of a thread has no parent.
        let placed = (self.version == 0) == first && self.parent.is_none() == first;
        // A host application creates threads, and it is no node.
        let by_host = self.kind == TransitionType::Create;
        let tried = if asked { self.attempt.is_some_and(|it| it > 0) } else { self.attempt.is_none() };
        placed
            && tried
            && self.node.is_none() == by_host
            && self.write_id.is_some() == (self.kind == TransitionType::Confirm)
            && self.restores.is_some() == (self.kind == TransitionType::Rollback)
            // A reaffirmation approves the current state, so it cannot change it.
            && (self.kind != TransitionType::Reaffirm || self.from == self.to)
            && self.supersedes.is_some() == (self.kind == TransitionType::Edit)
            && self.is_of_branches()
    }

    /// Returns whether `fork` and `join` are consistent. A fork names its origin, and its thread name follows from
    /// that. A join names its branches.
    fn is_of_branches(&self) -> bool {
        // The thread id is derived from the fork, so a statement cannot claim another origin.
        let forked = self.fork.as_ref().is_some_and(|it| it.own_thread() == self.thread && it.thread != self.thread);
        let joined = self.join.as_ref().is_some_and(|it| it.is_whole(&self.thread));
        match self.kind {
            TransitionType::Fork => forked && self.join.is_none(),
            TransitionType::Join => joined && self.fork.is_none(),
            _ => self.fork.is_none() && self.join.is_none(),
        }
    }

    /// Returns the digest of the transition.
    pub fn digest(&self) -> Digest {
        Digest::of(Tag::Transition, &[self.canonical().as_bytes()])
    }
}
