//! Entry: the signed place of a committed transition in its thread's chain.

use serde::{Deserialize, Serialize};

use super::hash::Digest;
use super::jws::TokenClaims;
use crate::primitives::id::{Jti, ReviewId, ThreadId, WriteId};
use crate::primitives::time::Timestamp;

/// How a transition was committed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum CommitGate {
    /// The policy committed it without approval.
    Auto {},
    /// An enforcing flow would have held it. This flow only observes.
    Observed {},
    /// Reviewers approved it. The receipt names them.
    Approved {
        receipt: Jti,
        /// Review in which they approved it.
        review: ReviewId,
    },
    /// An allowed writer confirmed it.
    Written {
        /// Receipt that the write used up, if the head needed one.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        receipt: Option<Jti>,
        write_id: WriteId,
    },
}

/// Claims of an entry.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub committed_at: Timestamp,
    pub gate: CommitGate,
    pub iss: String,
    pub owes: bool,
    pub parent: Option<Digest>,
    pub policy: Digest,
    pub thread: ThreadId,
    pub transition: Digest,
    pub version: u64,
}

impl TokenClaims for Entry {
    fn is_whole(&self) -> bool {
        let first = self.version == 0;
        let gated = matches!(self.gate, CommitGate::Approved { .. } | CommitGate::Written { .. });
        // Version 0 is created by a host application and needs no approval.
        !self.iss.is_empty() && self.parent.is_none() == first && !(first && gated)
    }
}

impl Entry {
    /// Returns whether a head with this entry verifies only with the receipt of that very head. An observed head needs
    /// one once its flow enforces.
    pub fn needs_receipt(&self) -> bool {
        // An observed head has no receipt. It becomes writable by a reaffirmation if the flow enforces later.
        self.owes || matches!(self.gate, CommitGate::Approved { .. } | CommitGate::Observed {})
    }
}
