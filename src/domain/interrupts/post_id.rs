//! Posts that were signed: each is remembered by its own name, so that sent again it is the same.

use serde::{Deserialize, Serialize};

use crate::domain::chain::hash::{Digest, Tag};
use crate::domain::primitives::id::{InterruptId, PrincipalId};
use crate::domain::primitives::time::Timestamp;

/// A signed post by its own name, and what it says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignedPostId {
    /// Its `webhook-id`.
    pub webhook_id: String,
    pub body: Digest,
}

/// A signed post that was taken.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedPostRecord {
    pub source: PrincipalId,
    /// Its `webhook-id`.
    pub webhook_id: String,
    pub body: Digest,
    /// What it asked, or asked again.
    pub interrupt: InterruptId,
    pub at: Timestamp,
}

impl SignedPostId {
    /// Of a post with that body.
    pub fn new(webhook_id: &str, body: &[u8]) -> Self {
        Self { webhook_id: webhook_id.to_owned(), body: Digest::of(Tag::Post, &[body]) }
    }
}
