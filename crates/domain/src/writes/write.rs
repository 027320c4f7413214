//! Writes: reservations by `verify`, and their outcomes.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::chain::hash::Digest;
use crate::primitives::id::{Jti, NodeId, PrincipalId, ThreadId, WriteId};
use crate::primitives::time::Timestamp;
use crate::threads::flow::Mode;
use crate::threads::thread::{HeadUse, Thread, WriteKey};

/// The state of a write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", deny_unknown_fields)]
pub enum WriteState {
    /// The writer is authorized and has not reported the outcome. After the lease the outcome is unknown.
    Reserved {},
    /// The writer confirmed, and its transition is committed.
    Confirmed {
        at: Timestamp,
        /// The version of the commit.
        version: u64,
        transition: Digest,
        /// The reasons why the writer's result was rejected, if it was.
        refused: Vec<ResultError>,
    },
    /// The writer reported that it wrote nothing.
    Aborted { at: Timestamp, reason: String },
    /// The approved tool call failed. It may have had a part of its effect.
    Failed { at: Timestamp },
    /// The confirm came when the head had moved or belonged to another write, or the thread was closed. It is logged
    /// but not committed.
    Late { at: Timestamp },
    /// An administrator recorded the outcome after the lease expired.
    Resolved {
        at: Timestamp,
        /// The account or token that recorded it.
        by: PrincipalId,
        outcome: WriteResolution,
        reason: String,
    },
}

/// The outcome of an unknown write, recorded by an administrator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum WriteResolution {
    /// The writer wrote the row.
    Written,
    /// The writer did not write the row.
    NotWritten,
}

/// The reason why a writer's result was not allowed: code and pointer, no values.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
    /// The writer's principal and its own id of the write.
    pub key: WriteKey,
    pub node: NodeId,
    pub thread: ThreadId,
    pub transition: Digest,
    pub version: u64,
    /// The fencing token: the number of the reservation in the thread.
    pub fence: u64,
    /// The consumed receipt, if one was required.
    pub receipt: Option<Jti>,
    /// Whether the flow enforced its policy at that time.
    #[serde(default = "enforced")]
    pub enforced: bool,
    pub reserved_at: Timestamp,
    /// The time until which the writer may write.
    pub lease_expires_at: Timestamp,
    /// The signed answer. A repeated request gets the same bytes.
    pub verification: String,
    pub state: WriteState,
}

/// The default of rows from before observe mode existed.
const fn enforced() -> bool {
    true
}

/// The effect of a writer's confirm.
#[derive(Debug, PartialEq, Eq)]
pub enum ConfirmEffect {
    /// Commit the writer's transition on the current head.
    Commit,
    /// The head belongs to another write, or the thread is closed: only log the confirm.
    Late,
}

impl Write {
    /// Checks that the write is authorized and its outcome is not recorded.
    pub fn is_open(&self) -> bool {
        matches!(self.state, WriteState::Reserved {})
    }

    /// Checks that the lease is live. Only then a repeated request gets the same answer.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.is_open() && self.lease_expires_at > now
    }

    /// Checks that the write still holds the current head of an open thread.
    pub fn holds_head(&self, thread: &Thread) -> bool {
        self.is_of_head(thread) && thread.closed.is_none()
    }

    /// Checks the head without regard to closing. A closed thread commits nothing, but its writes still end.
    fn is_of_head(&self, thread: &Thread) -> bool {
        // The head may have been reserved again by another write after this lease expired.
        let mine = matches!(&thread.head.usage, HeadUse::Reserved { write, .. } if *write == self.key);
        mine && thread.head.transition == self.transition
    }

    /// Returns the effect of a confirm on the thread.
    pub fn confirm_effect(&self, thread: &Thread) -> ConfirmEffect {
        if self.holds_head(thread) { ConfirmEffect::Commit } else { ConfirmEffect::Late }
    }

    /// Returns the write aborted by its writer. The head becomes free only if no receipt was required, because an
    /// authorized write consumes its receipt.
    #[must_use]
    pub fn aborted(mut self, mut thread: Thread, reason: String, now: Timestamp) -> (Self, Thread) {
        if self.is_of_head(&thread) {
            // A receipt is valid for one authorization. After an abort the writer needs a new approval.
            thread.head.usage = if self.receipt.is_some() { HeadUse::Used {} } else { HeadUse::Unused {} };
        }
        thread.unresolved.remove(&self.key);
        self.state = WriteState::Aborted { at: now, reason };
        (self, thread)
    }

    /// Returns the write of a tool call that failed. The head is used in any case, because the call may have had a part
    /// of its effect.
    #[must_use]
    pub fn failed(mut self, mut thread: Thread, now: Timestamp) -> (Self, Thread) {
        if self.is_of_head(&thread) {
            thread.head.usage = HeadUse::Used {};
        }
        thread.unresolved.remove(&self.key);
        self.state = WriteState::Failed { at: now };
        (self, thread)
    }

    /// Returns the write with a confirm that came too late for a commit.
    #[must_use]
    pub fn late(mut self, mut thread: Thread, now: Timestamp) -> (Self, Thread) {
        if self.is_of_head(&thread) {
            thread.head.usage = HeadUse::Used {};
        }
        thread.unresolved.remove(&self.key);
        self.state = WriteState::Late { at: now };
        (self, thread)
    }

    /// Returns the write with the outcome that an administrator recorded.
    #[must_use]
    pub fn resolved(
        mut self,
        mut thread: Thread,
        by: PrincipalId,
        outcome: WriteResolution,
        reason: String,
        now: Timestamp,
    ) -> (Self, Thread) {
        if self.is_of_head(&thread) {
            thread.head.usage = HeadUse::Used {};
        }
        thread.unresolved.remove(&self.key);
        self.state = WriteState::Resolved { at: now, by, outcome, reason };
        (self, thread)
    }
}

/// The data of a reservation.
#[derive(Debug)]
pub struct ReservationInput {
    pub key: WriteKey,
    pub node: NodeId,
    /// The consumed receipt.
    pub receipt: Option<Jti>,
    /// Whether the flow enforces its policy.
    pub mode: Mode,
    /// The length of the lease.
    pub lease: Duration,
}

impl Thread {
    /// Reserves the head for a write. The caller must be `verify`, which checks all conditions. It adds the signed
    /// answer later.
    #[must_use]
    pub fn reserved(mut self, ask: ReservationInput, now: Timestamp) -> (Self, Write) {
        let lease_expires_at = now.plus(ask.lease);
        // A later reservation always has a greater token, so a resource can refuse an older writer.
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
            // The signature needs the reservation, so it is added afterwards.
            verification: String::new(),
            state: WriteState::Reserved {},
        };
        (self, write)
    }

    /// Checks that a write of this thread waits for its resolution.
    pub fn awaits(&self, write: &WriteId, principal: &PrincipalId) -> bool {
        self.unresolved.iter().any(|key| key.write_id == *write && key.principal == *principal)
    }
}
