//! The entry: a committed transition's place in its thread's chain, signed.

use serde::{Deserialize, Serialize};

use super::hash::Digest;
use crate::domain::id::{Jti, ReviewId, ThreadId, WriteId};
use crate::domain::time::Timestamp;

/// How a transition came to be committed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Gate {
    /// By the policy alone.
    Auto {},
    /// It would have been held, had the flow been enforced.
    Observed {},
    /// By people; the receipt names them.
    Approved {
        /// The receipt's id.
        receipt: Jti,
        /// The review they did it on.
        review: ReviewId,
    },
    /// By a writer that was let through and confirmed.
    Written {
        /// The receipt it used up, if the head needed one.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        receipt: Option<Jti>,
        /// The write.
        write_id: WriteId,
    },
}

/// The claims of an entry.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the members are the protocol's own words, explained in docs/specs/protocol.md")]
pub struct Entry {
    pub committed_at: Timestamp,
    pub gate: Gate,
    pub iss: String,
    pub owes: bool,
    pub parent: Option<Digest>,
    pub policy: Digest,
    pub thread: ThreadId,
    pub transition: Digest,
    pub version: u64,
}

impl Entry {
    /// Whether it says what every entry says: version 0 alone has no parent, and nobody approved or wrote it.
    pub fn is_whole(&self) -> bool {
        let first = self.version == 0;
        let gated = matches!(self.gate, Gate::Approved { .. } | Gate::Written { .. });
        self.parent.is_none() == first && !(first && gated)
    }

    /// Whether a head with this entry verifies only with a receipt for that very head.
    /// An observed head needs one because whoever asks stands under a flow that enforces.
    pub fn needs_receipt(&self) -> bool {
        self.owes || matches!(self.gate, Gate::Approved { .. } | Gate::Observed {})
    }
}
