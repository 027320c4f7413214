//! Steps: a part of an agent's run under a name of its own, which has one effect however often it is asked for.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::rejected_request::RejectedRequest;
use super::transition::patch_digest;
use crate::domain::chain::hash::{Digest, Tag};
use crate::domain::json::canonical::canonical;
use crate::domain::keys::ThreadSecret;
use crate::domain::primitives::id::{NodeId, StepKey, ThreadId};

/// A step of a node in a thread, and everything that was tried under its name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepRow {
    pub thread: ThreadId,
    pub node: NodeId,
    pub step: StepKey,
    /// What was tried, in its order.
    pub tries: Vec<StepAttemptResult>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "became", rename_all = "snake_case", deny_unknown_fields)]
pub enum StepAttemptResult {
    /// It was committed, or people were asked.
    Stated {
        content: Digest,
        transition: Digest,
    },
    Rejected {
        identity: Digest,
    },
}

impl StepAttemptResult {
    /// The transition that it became, if it became one.
    pub const fn transition(&self) -> Option<Digest> {
        match self {
            Self::Stated { transition, .. } => Some(*transition),
            Self::Rejected { .. } => None,
        }
    }
}

impl StepRow {
    /// The transition that this very content became before.
    pub fn stated_as(&self, asked: Digest) -> Option<Digest> {
        self.tries.iter().find_map(|it| match it {
            StepAttemptResult::Stated { content, transition } if *content == asked => Some(*transition),
            _ => None,
        })
    }

    /// The last transition that came of it: only while no earlier one was in force was another try taken.
    pub fn last_stated(&self) -> Option<Digest> {
        self.tries.iter().rev().find_map(StepAttemptResult::transition)
    }
}

/// What a request asks for, whatever it builds on and whoever asks: of one step, two of the same content are one.
pub fn content_of(secret: &ThreadSecret, request: &RejectedRequest) -> Digest {
    let mut parts = json!([request.kind, request.format, patch_digest(secret, &request.content), request.attempt]);
    if let (Some(tool), Value::Array(parts)) = (&request.tool, &mut parts) {
        parts.push(tool.identity());
    }
    Digest::keyed(secret, Tag::Step, canonical(&parts).as_bytes())
}
