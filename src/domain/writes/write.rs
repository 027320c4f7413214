//! Writes: a reservation that verify gave, and how it ended.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::domain::chain::hash::Digest;
use crate::domain::primitives::id::{Jti, NodeId, PrincipalId, ThreadId, WriteId};
use crate::domain::primitives::time::Timestamp;
use crate::domain::threads::flow::Mode;
use crate::domain::threads::thread::{HeadUse, Thread, WriteKey};

/// How a write ended, or that it has not.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", deny_unknown_fields)]
pub enum WriteState {
    /// The writer was let through and has not said how it went; past the lease it has lapsed.
    Reserved {},
    /// The writer confirmed and its transition committed.
    Confirmed {
        at: Timestamp,
        /// The version of the commit.
        version: u64,
        transition: Digest,
        /// Why the writer's result was not admitted, if it was not.
        refused: Vec<ResultError>,
    },
    /// The writer said that it wrote nothing.
    Aborted { at: Timestamp, reason: String },
    /// The writer confirmed when the head had moved or had been given to another, or in a closed thread: logged, not
    /// committed.
    Late { at: Timestamp },
    /// An administrator said what became of a lapsed write.
    Resolved {
        at: Timestamp,
        /// The account or token that did it.
        by: PrincipalId,
        outcome: WriteResolution,
        reason: String,
    },
}

/// The outcome of an unknown write, recorded by an administrator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WriteResolution {
    /// The row is there.
    Written,
    /// The row is not there.
    NotWritten,
}

/// The reason why a writer's result was not allowed: code and pointer, no values.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResultError {
    /// The JSON Pointer of the value.
    pub pointer: String,
    /// The error code.
    pub code: String,
    /// The error, in fixed words. For a rule that denies, its reason.
    pub detail: String,
    /// The name of the rule, if the error comes from one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rule: Option<String>,
}

/// A reservation of one head by one writer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// Whose it is and what the writer calls it.
    pub key: WriteKey,
    pub node: NodeId,
    pub thread: ThreadId,
    pub transition: Digest,
    pub version: u64,
    /// Its place among the thread's reservations.
    pub fence: u64,
    /// The receipt it used up, if one was asked for.
    pub receipt: Option<Jti>,
    /// Whether the flow enforced its policy then.
    #[serde(default = "enforced")]
    pub enforced: bool,
    pub reserved_at: Timestamp,
    /// The time until which the writer may write.
    pub lease_expires_at: Timestamp,
    /// The signed answer, the same bytes however often it is asked for.
    pub verification: String,
    pub state: WriteState,
}

/// Rows of before flows could observe.
const fn enforced() -> bool {
    true
}

/// What a writer's confirm does.
#[derive(Debug, PartialEq, Eq)]
pub enum ConfirmEffect {
    /// Commit the writer's transition on the head that stands.
    Commit,
    /// The head is another's by now, or the thread is closed: log it.
    Late,
}

impl Write {
    /// Whether it was let through and nobody said how it ended.
    pub fn is_open(&self) -> bool {
        matches!(self.state, WriteState::Reserved {})
    }

    /// Whether the lease lives: the only time at which asking again gives the same answer.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.is_open() && self.lease_expires_at > now
    }

    /// Whether the head it was given for still stands and is still its own.
    pub fn holds_head(&self, thread: &Thread) -> bool {
        self.is_of_head(thread) && thread.closed.is_none()
    }

    /// The same, of a closed thread as well: of that nothing commits, and a write of it ends all the same.
    fn is_of_head(&self, thread: &Thread) -> bool {
        let mine = matches!(&thread.head.usage, HeadUse::Reserved { write, .. } if *write == self.key);
        mine && thread.head.transition == self.transition
    }

    /// What a confirm of this open write does to its thread.
    pub fn confirm_effect(&self, thread: &Thread) -> ConfirmEffect {
        if self.holds_head(thread) { ConfirmEffect::Commit } else { ConfirmEffect::Late }
    }

    /// The write, ended by its writer's word that nothing was written.
    /// The head is free again only if no receipt was asked for: one is used up by having been let through.
    #[must_use]
    pub fn aborted(mut self, mut thread: Thread, reason: String, now: Timestamp) -> (Self, Thread) {
        if self.is_of_head(&thread) {
            thread.head.usage = if self.receipt.is_some() { HeadUse::Used {} } else { HeadUse::Unused {} };
        }
        thread.unresolved.remove(&self.key);
        self.state = WriteState::Aborted { at: now, reason };
        (self, thread)
    }

    /// The write, confirmed too late to be committed.
    #[must_use]
    pub fn late(mut self, mut thread: Thread, now: Timestamp) -> (Self, Thread) {
        if self.is_of_head(&thread) {
            thread.head.usage = HeadUse::Used {};
        }
        thread.unresolved.remove(&self.key);
        self.state = WriteState::Late { at: now };
        (self, thread)
    }

    /// The lapsed write, resolved by an administrator.
    #[must_use]
    pub fn resolved(
        mut self,
        mut thread: Thread,
        by: PrincipalId,
        verdict: (WriteResolution, String),
        now: Timestamp,
    ) -> (Self, Thread) {
        if self.is_of_head(&thread) {
            thread.head.usage = HeadUse::Used {};
        }
        thread.unresolved.remove(&self.key);
        let (outcome, reason) = verdict;
        self.state = WriteState::Resolved { at: now, by, outcome, reason };
        (self, thread)
    }
}

/// What a reservation is made of.
#[derive(Debug)]
pub struct ReservationInput {
    pub key: WriteKey,
    pub node: NodeId,
    /// The receipt that is used up.
    pub receipt: Option<Jti>,
    /// Whether the flow enforces its policy.
    pub mode: Mode,
    /// For how long the writer may write.
    pub lease: Duration,
}

impl Thread {
    /// Gives the head to a write. Only `verify` says whether that may be; the signed answer is filled in after.
    #[must_use]
    pub fn reserved(mut self, ask: ReservationInput, now: Timestamp) -> (Self, Write) {
        let lease_expires_at = now.plus(ask.lease);
        self.fence += 1;
        self.head.usage = HeadUse::Reserved { write: ask.key.clone(), lease_expires_at };
        let write = Write {
            key: ask.key,
            node: ask.node,
            thread: self.id.clone(),
            transition: self.head.transition,
            version: self.head.version,
            fence: self.fence,
            receipt: ask.receipt,
            enforced: ask.mode == Mode::Enforce,
            reserved_at: now,
            lease_expires_at,
            verification: String::new(),
            state: WriteState::Reserved {},
        };
        (self, write)
    }

    /// Whether a write of this thread is still to be resolved.
    pub fn awaits(&self, write: &WriteId, principal: &PrincipalId) -> bool {
        self.unresolved.iter().any(|key| key.write_id == *write && key.principal == *principal)
    }
}
