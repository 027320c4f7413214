//! A thread: one state, one chain, at most one hold and at most one write under way.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::archive::ArchivalProgress;
use super::branch::Branch;
use super::unapproved_policies::UnapprovedPolicies;
use super::usage::Totals;
use crate::domain::chain::hash::Digest;
use crate::domain::episode::goal::Episode;
use crate::domain::log::event::EventLink;
use crate::domain::primitives::id::{FlowId, NodeId, PrincipalId, ReviewId, ThreadId, WriteId};
use crate::domain::primitives::time::Timestamp;

/// The host's description of a thread. Reviewers see it as an unverified claim of the host.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
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

/// A write as the gateway knows it: a writer's own name for it, within that writer's principal.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteKey {
    pub principal: PrincipalId,
    /// The writer's id of the write.
    pub write_id: WriteId,
}

/// What became of the head's one reservation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", deny_unknown_fields)]
pub enum HeadUse {
    Unused {},
    /// Given to a write; past its lease it has lapsed, whether a worker saw it or not.
    Reserved {
        write: WriteKey,
        lease_expires_at: Timestamp,
    },
    /// Used up: aborted or resolved while a receipt was needed.
    Used {},
    /// Its receipt was taken back before it was used. Said here too, since this row agrees with its events:
    /// putting back the receipt's own row brings nothing back.
    Revoked {},
}

/// The last committed transition.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    pub version: u64,
    /// The digest of the transition.
    pub transition: Digest,
    /// Under which policy it was judged.
    pub policy: Digest,
    /// Whether writing it needs a receipt for itself.
    pub needs_receipt: bool,
    /// Whether the thread owes an approval.
    pub owes: bool,
    /// What became of its reservation.
    pub usage: HeadUse,
}

/// A version that stands: what a step that changed nothing goes on from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Checkpoint {
    pub version: u64,
    /// The digest of the transition.
    pub transition: Digest,
}

/// Why a thread takes nothing any more.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadClosure {
    /// The account or token that did it.
    pub by: PrincipalId,
    pub at: Timestamp,
    pub reason: String,
}

/// The row that everything in a thread is serialised on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thread {
    pub id: ThreadId,
    pub flow: FlowId,
    /// Of which thread it is a branch, if it is one: then nothing of it is ever written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<Branch>,
    /// How many branches were made of this head.
    #[serde(default, skip_serializing_if = "is_none_yet")]
    pub branches: u32,
    /// What the host says of it.
    pub context: Context,
    pub created_at: Timestamp,
    /// The last committed transition.
    pub head: Head,
    /// Grows with every reservation.
    pub fence: u64,
    pub hold: Option<ReviewId>,
    /// Set when it takes nothing any more.
    pub closed: Option<ThreadClosure>,
    /// Writes that lapsed and nobody has said what became of.
    pub unresolved: BTreeSet<WriteKey>,
    /// Who owns an agent, or edited, any transition since the last confirmed write: they cannot approve.
    pub authors: BTreeSet<String>,
    /// The version of the last confirmed write, or 0: what a review marks as changed counts from here.
    pub written_version: u64,
    /// Set while the head rests on an approval that was taken back, whatever became of the head meanwhile: without an
    /// approval of its own nothing of it is written, and what comes on top of it owes one.
    #[serde(default, skip_serializing_if = "is_no")]
    pub taken_back: bool,
    /// By which policies what is not written yet was admitted, besides the head's own.
    #[serde(default, skip_serializing_if = "UnapprovedPolicies::is_empty")]
    pub lineage: UnapprovedPolicies,
    /// How many holds each node opened on this head.
    pub holds_opened: BTreeMap<NodeId, u32>,
    /// How many of each node's proposals violated the policy on this head.
    #[serde(default)]
    pub violations: BTreeMap<NodeId, u32>,
    /// The nodes of which something was committed here: what rules ask about.
    #[serde(default)]
    pub committed_nodes: BTreeSet<NodeId>,
    /// What each node says it has used, over the whole chain.
    #[serde(default)]
    pub spent: Totals,
    /// The run that it is, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub episode: Option<Episode>,
    /// How far its past has left the database.
    #[serde(default, skip_serializing_if = "ArchivalProgress::is_nothing")]
    pub gone: ArchivalProgress,
    /// The thread's last event; a deleted or rolled back row shows by it.
    pub last_event: Option<EventLink>,
}

/// A thread of which nothing was taken back is written as it always was.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
const fn is_no(taken_back: &bool) -> bool {
    !*taken_back
}

/// A thread that was never forked is written as it always was.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
const fn is_none_yet(branches: &u32) -> bool {
    *branches == 0
}

/// The status of a thread, on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ThreadStatusCode {
    /// It takes proposals.
    Open,
    /// The request is held for approval.
    Held,
    /// A writer was let through and has not said how it went.
    Writing,
    /// It takes nothing.
    Closed,
}

impl Thread {
    /// What the thread is doing now.
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

    /// The write whose lease lives, if any: until it ends nothing commits and no vote counts.
    pub fn live_write(&self, now: Timestamp) -> Option<&WriteKey> {
        match &self.head.usage {
            HeadUse::Reserved { write, lease_expires_at } if *lease_expires_at > now => Some(write),
            _ => None,
        }
    }

    /// The head's write whose lease has passed without a word, if any.
    pub fn expired_write(&self, now: Timestamp) -> Option<&WriteKey> {
        match &self.head.usage {
            HeadUse::Reserved { write, lease_expires_at } if *lease_expires_at <= now => Some(write),
            _ => None,
        }
    }

    /// Whether some write was let through and nobody knows how it ended.
    pub fn outcome_unknown(&self, now: Timestamp) -> bool {
        !self.unresolved.is_empty() || self.expired_write(now).is_some()
    }

    /// Whether its head rests on an approval that was taken back, its own or one below.
    pub fn rests_on_revoked_approval(&self) -> bool {
        self.taken_back || self.head.usage == (HeadUse::Revoked {})
    }

    /// The thread with a new head. A lapsed write on the old head stays to be resolved.
    #[must_use]
    pub fn advanced(mut self, head: Head, now: Timestamp) -> Self {
        if let Some(lapsed) = self.expired_write(now).cloned() {
            self.unresolved.insert(lapsed);
        }
        self.head = head;
        self.taken_back = false;
        self.hold = None;
        self.holds_opened.clear();
        self.violations.clear();
        self.branches = 0;
        self
    }
}
