//! Records of signed posts, so that a repeated post is recognized and a replayed one has no effect.

use serde::{Deserialize, Serialize};

use crate::chain::hash::{Digest, Tag};
use crate::primitives::id::{InterruptId, PrincipalId};
use crate::primitives::time::Timestamp;

/// The id and the body digest of a signed post.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignedPostId {
    pub webhook_id: String,
    pub body: Digest,
}

/// An accepted signed post.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedPostRecord {
    pub source: PrincipalId,
    pub webhook_id: String,
    pub body: Digest,
    /// The interrupt that it created or repeated.
    pub interrupt: InterruptId,
    pub at: Timestamp,
}

impl SignedPostId {
    /// Returns the id for a post.
    pub fn new(webhook_id: &str, body: &[u8]) -> Self {
        Self { webhook_id: webhook_id.to_owned(), body: Digest::of(Tag::Post, &[body]) }
    }
}
