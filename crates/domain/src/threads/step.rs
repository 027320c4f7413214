//! Steps: named parts of an agent's run that take effect only once, however often they are requested.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::rejected_request::RejectedRequest;
use super::transition::patch_digest;
use crate::chain::hash::{Digest, Tag};
use crate::json::canonical::canonical;
use crate::keys::ThreadSecret;
use crate::primitives::id::{NodeId, StepKey, ThreadId};

/// A step of a node, with all attempts under its name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepRow {
    pub thread: ThreadId,
    pub node: NodeId,
    pub step: StepKey,
    /// The attempts in order.
    pub tries: Vec<StepAttemptResult>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "became", rename_all = "snake_case", deny_unknown_fields)]
pub enum StepAttemptResult {
    /// The attempt was committed or held for approval.
    Stated {
        content: Digest,
        transition: Digest,
    },
    Rejected {
        identity: Digest,
    },
}

impl StepAttemptResult {
    /// Returns the transition of the attempt, if it was not rejected.
    pub const fn transition(&self) -> Option<Digest> {
        match self {
            Self::Stated { transition, .. } => Some(*transition),
            Self::Rejected { .. } => None,
        }
    }
}

impl StepRow {
    /// Returns the content of the attempt that became a transition.
    pub fn content(&self, of: Digest) -> Option<Digest> {
        self.tries.iter().find_map(|it| match it {
            StepAttemptResult::Stated { content, transition } if *transition == of => Some(*content),
            _ => None,
        })
    }

    /// Returns the last transition of the step. A new attempt is accepted only while no earlier one is in force, so the
    /// last one is the current one.
    pub fn last_stated(&self) -> Option<Digest> {
        // Attempts are in order, so the search starts at the end.
        self.tries.iter().rev().find_map(StepAttemptResult::transition)
    }
}

/// Returns the digest of a request's content, without its head and its caller. Two requests of one step with the same
/// content are the same.
pub fn content_of(secret: &ThreadSecret, request: &RejectedRequest) -> Digest {
    let mut parts = json!([request.kind, request.format, patch_digest(secret, &request.content), request.attempt]);
    // The member is appended only with a tool, so digests of requests without one do not change.
    if let (Some(tool), Value::Array(parts)) = (&request.tool, &mut parts) {
        parts.push(tool.identity());
    }
    Digest::keyed(secret, Tag::Step, canonical(&parts).as_bytes())
}
