//! The statement: everything that a transition's digest binds.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::hash::{Digest, Tag};
use crate::domain::branch::{Branch, Joining};
use crate::domain::id::{FlowId, NodeId, PrincipalId, ProposalId, ThreadId, WriteId};
use crate::domain::json::canonical::canonical;
use crate::domain::time::Timestamp;

/// The type of a transition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = TransitionType)]
pub enum Kind {
    /// Version 0, by the host.
    Create,
    /// Version 0 of a branch: another thread's head.
    Fork,
    /// A patch from an agent's node.
    Propose,
    /// A reviewer's rewrite of a held patch.
    Edit,
    /// An empty patch that asks for a receipt for the head as it stands.
    Reaffirm,
    /// An ancestor's state again.
    Rollback,
    /// What branches changed, as one.
    Join,
    /// The writer's record of what it wrote.
    Confirm,
}

impl Kind {
    /// Whether it is made of what its node was given of the head. A reaffirmation, a return and a writer's result are not.
    pub const fn is_given_context(self) -> bool {
        matches!(self, Self::Propose | Self::Edit | Self::Join)
    }

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Fork => "fork",
            Self::Propose => "propose",
            Self::Edit => "edit",
            Self::Reaffirm => "reaffirm",
            Self::Rollback => "rollback",
            Self::Join => "join",
            Self::Confirm => "confirm",
        }
    }
}

/// A statement is made once, stored, and never made again from the same facts. Members that do not apply are null.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the members are the protocol's own words, explained in docs/protocol.md")]
pub struct Statement {
    #[serde(rename = "type")]
    pub kind: Kind,
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
    #[schema(value_type = Option<Object>)]
    pub tool: Option<Value>,
    #[schema(value_type = Option<Object>)]
    pub usage: Option<Value>,
    pub rationale: Option<Digest>,
    pub supersedes: Option<Digest>,
    pub restores: Option<Digest>,
    pub write_id: Option<WriteId>,
    pub proposed_at: Timestamp,
    /// Only in a fork. Every other statement keeps its bytes without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub fork: Option<Branch>,
    /// Only in a join.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub join: Option<Joining>,
}

impl Statement {
    /// The canonical text that the digest is taken of.
    pub fn canonical(&self) -> String {
        let value = serde_json::to_value(self).expect("a statement is a plain struct with text keys");
        canonical(&value)
    }

    /// Whether it says what its kind must say and nothing that does not apply to it.
    pub fn is_whole(&self) -> bool {
        let first = matches!(self.kind, Kind::Create | Kind::Fork);
        let asked = !first && self.kind != Kind::Confirm;
        let placed = (self.version == 0) == first && self.parent.is_none() == first;
        let by_host = self.kind == Kind::Create;
        let tried = if asked { self.attempt.is_some_and(|it| it > 0) } else { self.attempt.is_none() };
        placed
            && tried
            && self.node.is_none() == by_host
            && self.write_id.is_some() == (self.kind == Kind::Confirm)
            && self.restores.is_some() == (self.kind == Kind::Rollback)
            && (self.kind != Kind::Reaffirm || self.from == self.to)
            && self.supersedes.is_some() == (self.kind == Kind::Edit)
            && self.is_of_branches()
    }

    /// A fork says where it comes from, and has the thread that follows from that; a join says what it joins.
    fn is_of_branches(&self) -> bool {
        let forked = self.fork.as_ref().is_some_and(|it| it.own_thread() == self.thread && it.thread != self.thread);
        let joined = self.join.as_ref().is_some_and(|it| it.is_whole(&self.thread));
        match self.kind {
            Kind::Fork => forked && self.join.is_none(),
            Kind::Join => joined && self.fork.is_none(),
            _ => self.fork.is_none() && self.join.is_none(),
        }
    }

    /// The transition's digest.
    pub fn digest(&self) -> Digest {
        Digest::of(Tag::Transition, &[self.canonical().as_bytes()])
    }
}
