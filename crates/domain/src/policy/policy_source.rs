//! The source of a policy.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::chain::hash::{Digest, Tag};
use crate::json::canonical::canonical;

/// The text of a policy and of every schema that it names. Heads are bound to the digest of all of them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicySource {
    /// The TOML text, byte for byte.
    pub text: String,
    /// Schema texts by the names that the policy uses.
    #[serde(default)]
    pub schemas: BTreeMap<String, String>,
}

impl PolicySource {
    /// Returns H(policy, JCS({policy: text, schemas: {name: text}})).
    pub fn digest(&self) -> Digest {
        // JSON separates the texts, so a character that moves from one text to the next changes the digest.
        let content = canonical(&json!({ "policy": self.text, "schemas": self.schemas }));
        Digest::of(Tag::Policy, &[content.as_bytes()])
    }
}
