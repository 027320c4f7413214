//! Threads: one state, one chain, at most one pending review and at most one active write.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::approval_request::ApprovalRequest;
use super::archive::ArchivalProgress;
use super::branch::Branch;
use super::unapproved_policies::UnapprovedPolicies;
use super::usage::Totals;
use crate::chain::hash::Digest;
use crate::episode::goal::Episode;
use crate::log::event::EventLink;
use crate::primitives::id::{FlowId, NodeId, PrincipalId, ReviewId, ThreadId, WriteId};
use crate::primitives::time::Timestamp;

/// The host's description of a thread. Reviewers see it as an unverified claim of the host.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Context {
    /// The title, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The person on whose behalf the agents act.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<String>,
    /// Links to more information.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
}

/// The key of a write: the writer's id for it, unique per principal.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteKey {
    pub principal: PrincipalId,
    /// The writer's id of the write.
    pub write_id: WriteId,
}

/// The state of the head's only reservation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", deny_unknown_fields)]
pub enum HeadUse {
    Unused {},
    /// Reserved by a write. After `lease_expires_at` the lease is expired, even before a worker notices.
    Reserved {
        write: WriteKey,
        lease_expires_at: Timestamp,
    },
    /// Consumed: the write was aborted or resolved while a receipt was required.
    Used {},
    /// The receipt was revoked before it was used. The thread's row records this too, so an attacker who restores the
    /// receipt's old row does not make it valid again.
    Revoked {},
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    pub version: u64,
    /// The digest of the transition.
    pub transition: Digest,
    /// The policy that evaluated the transition.
    pub policy: Digest,
    /// Whether a write requires a receipt for this transition.
    pub needs_receipt: bool,
    /// Whether the thread still requires approval (`owes`).
    pub owes: bool,
    pub usage: HeadUse,
}

/// The committed version that a step without a change continues from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Checkpoint {
    pub version: u64,
    /// The digest of the transition.
    pub transition: Digest,
}

/// The closing of a thread.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadClosure {
    /// The account or token that closed the thread.
    pub by: PrincipalId,
    pub at: Timestamp,
    pub reason: String,
}

/// The limit of writes with an unknown outcome in one thread. They may still be carried out, and each makes its row
/// longer.
pub const UNRESOLVED_MAX: usize = 100;

/// The row on which all changes of a thread are serialized.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thread {
    pub id: ThreadId,
    pub flow: FlowId,
    /// The origin, if the thread is a branch. A branch is never written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<Branch>,
    /// The number of branches of the current head.
    #[serde(default, skip_serializing_if = "is_none_yet")]
    pub branches: u32,
    /// The host application's description. It is an unverified claim.
    pub context: Context,
    pub created_at: Timestamp,
    pub head: Head,
    /// The fencing token. It grows with every reservation.
    pub fence: u64,
    pub hold: Option<ReviewId>,
    /// Set if the thread is closed.
    pub closed: Option<ThreadClosure>,
    /// Writes with an expired lease and an unknown outcome.
    pub unresolved: BTreeSet<WriteKey>,
    /// Owners of agents and editors since the last confirmed write. They cannot approve (separation of duties).
    pub authors: BTreeSet<String>,
    /// The version of the last confirmed write, or 0. A review shows the changes since this version.
    pub written_version: u64,
    /// Set while the head depends on a revoked approval. The head then cannot be written without an approval of its
    /// own, and the next transition requires approval.
    #[serde(default, skip_serializing_if = "is_no")]
    pub taken_back: bool,
    /// The policies, other than the head's, that committed versions that are not written yet.
    #[serde(default, skip_serializing_if = "UnapprovedPolicies::is_empty")]
    pub lineage: UnapprovedPolicies,
    /// The number of reviews that each node opened on this head.
    pub holds_opened: BTreeMap<NodeId, u32>,
    /// The number of policy violations of each node on this head.
    #[serde(default)]
    pub violations: BTreeMap<NodeId, u32>,
    /// The nodes that committed in this thread. Rules can read them.
    #[serde(default)]
    pub committed_nodes: BTreeSet<NodeId>,
    /// The usage that each node reported, summed over the chain.
    #[serde(default)]
    pub spent: Totals,
    /// The episode, if the thread is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub episode: Option<Episode>,
    /// The approval request, if the thread was made for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Box<ApprovalRequest>>,
    /// The number of archived and erased versions.
    #[serde(default, skip_serializing_if = "ArchivalProgress::is_nothing")]
    pub gone: ArchivalProgress,
    /// The thread's last event. It reveals a deleted row or a restored older row.
    pub last_event: Option<EventLink>,
}

/// Omits the member at its default, so older rows keep their bytes and their seal.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
const fn is_no(taken_back: &bool) -> bool {
    !*taken_back
}

/// Omits the member at its default, so older rows keep their bytes and their seal.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
const fn is_none_yet(branches: &u32) -> bool {
    *branches == 0
}

/// The status of a thread, on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum ThreadStatusCode {
    /// The thread accepts proposals.
    Open,
    /// A proposal is held for approval.
    Held,
    /// A writer is authorized and has not reported the outcome.
    Writing,
    /// The thread rejects all proposals and writes.
    Closed,
}

impl Thread {
    /// Returns the current status.
    pub fn status(&self, now: Timestamp) -> ThreadStatusCode {
        if self.closed.is_some() {
            ThreadStatusCode::Closed
        } else if self.live_write(now).is_some() {
            ThreadStatusCode::Writing
        } else if self.hold.is_some() {
            ThreadStatusCode::Held
        } else {
            ThreadStatusCode::Open
        }
    }

    /// Returns the write with a live lease. Until it ends, commits and votes are refused.
    pub fn live_write(&self, now: Timestamp) -> Option<&WriteKey> {
        match &self.head.usage {
            // At the exact time of its end the lease is expired, as in `expired_write`.
            HeadUse::Reserved { write, lease_expires_at } if *lease_expires_at > now => Some(write),
            _ => None,
        }
    }

    /// Returns the head's write whose lease expired without an outcome.
    pub fn expired_write(&self, now: Timestamp) -> Option<&WriteKey> {
        match &self.head.usage {
            HeadUse::Reserved { write, lease_expires_at } if *lease_expires_at <= now => Some(write),
            _ => None,
        }
    }

    /// Checks for a write whose outcome is unknown.
    pub fn outcome_unknown(&self, now: Timestamp) -> bool {
        !self.unresolved.is_empty() || self.expired_write(now).is_some()
    }

    /// Checks that the head, or a version below it, depends on a revoked approval.
    pub fn rests_on_revoked_approval(&self) -> bool {
        self.taken_back || self.head.usage == (HeadUse::Revoked {})
    }

    /// Returns the thread with a new head. If the old head's lease expired, the write stays in `unresolved`.
    #[must_use]
    pub fn advanced(mut self, head: Head, now: Timestamp) -> Self {
        // Replacing the head must not hide a write that may have happened.
        if let Some(lapsed) = self.expired_write(now).cloned() {
            self.unresolved.insert(lapsed);
        }
        self.head = head;
        // The new head has an approval of its own or requires one.
        self.taken_back = false;
        self.hold = None;
        // These counters limit attempts per head, so a new head starts again.
        self.holds_opened.clear();
        self.violations.clear();
        self.branches = 0;
        self
    }
}
