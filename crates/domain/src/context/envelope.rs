//! Envelope: a node's signed view of a version.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::tokenizer::Encoding;
use super::truncate::{FittedView, Truncated};
use crate::chain::hash::{Digest, Tag};
use crate::chain::jws::{self, TokenClaims, TokenType};
use crate::json::canonical::canonical;
use crate::json::pointer::Pointer;
use crate::keys::SigningKey;
use crate::primitives::id::{NodeId, ThreadId};
use crate::primitives::named_enum::described_enum;
use crate::primitives::time::Timestamp;
use crate::threads::thread::Checkpoint;

/// The signed context envelope: a node's view with its signature.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// The version of the thread.
    pub version: u64,
    /// The time of the signature.
    pub timestamp: Timestamp,
    /// The token budget of the node. Null if the policy sets none.
    // Without this function, a missing member would be read as null.
    #[serde(rename = "tokenBudget", deserialize_with = "Option::deserialize")]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub token_budget: Option<u64>,
    /// Number of tokens of the payload.
    pub tokens: u64,
    /// The part of the node's view that fits.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub payload: Value,
    /// The parts that did not fit.
    pub truncated: Vec<Truncated>,
    /// The transition of that version.
    pub transition: Digest,
    /// The JWS over the whole envelope and its node.
    pub signature: String,
    /// The HMAC with a secret of the node, if requested. It covers the signature, but the signature does not cover it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub hmac: Option<EnvelopeMac>,
}

/// The HMAC in addition to an envelope's signature.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct EnvelopeMac {
    /// The algorithm.
    pub alg: MacAlg,
    /// The period of the secret.
    pub epoch: Epoch,
    /// The HMAC: 32 bytes in base64url without padding.
    pub value: String,
}

/// The algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum MacAlg {
    /// HMAC-SHA-256, by its name in RFC 7518.
    #[serde(rename = "HS256")]
    Hs256,
}

/// The start of a period. It identifies the secret of the period.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct Epoch(pub Timestamp);

/// Signed claims of an envelope.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvelopeClaims {
    pub budget: Option<u64>,
    pub encoding: Encoding,
    pub iss: String,
    pub node: NodeId,
    pub payload: Digest,
    pub requires: Vec<Pointer>,
    pub thread: ThreadId,
    pub timestamp: Timestamp,
    pub tokens: u64,
    pub transition: Digest,
    pub truncated: Digest,
    pub version: u64,
}

described_enum! { named_json_enum:
    /// Reason why an envelope is refused.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum EnvelopeCode {
        /// The signature is not a token of this type, or its claims are malformed.
        EnvelopeMalformed = "envelope_malformed": "The signature is malformed.",
        /// The key is unknown or may not sign.
        UnknownKey = "unknown_key": "The envelope's key is unknown or not valid.",
        /// The signature is not that key's.
        SignatureInvalid = "signature_invalid": "The signature does not match the key.",
        /// Another gateway signed it.
        IssuerMismatch = "issuer_mismatch": "The envelope was signed by another gateway.",
        /// It is of another thread than the caller named.
        ThreadMismatch = "thread_mismatch": "The envelope is for another thread.",
        /// It is for another node than the caller named.
        NodeMismatch = "node_mismatch": "The envelope is for another node.",
        /// A member beside the signature differs from what was signed.
        EnvelopeMismatch = "envelope_mismatch": "The content is not the signed content: request a new envelope.",
        /// An HMAC is required and missing.
        HmacMissing = "hmac_missing": "The HMAC is missing, and the check requires one: request an envelope with `hmac=true`.",
        /// The HMAC is by a secret that is not valid now.
        HmacExpired = "hmac_expired": "The secret of the HMAC is not valid now: request a new envelope and the node's secrets.",
        /// The HMAC is not over this envelope, or not by this node's secret.
        HmacMismatch = "hmac_mismatch": "The HMAC does not match the envelope and its node's secret.",
        /// The head has a later version.
        Stale = "stale": "The thread has a newer version than the envelope: request a new envelope.",
        /// The transition is not in the thread's chain.
        DigestMismatch = "digest_mismatch": "The envelope's transition is not in the thread.",
        /// A required path is missing.
        RequiredMissing = "required_missing": "A part that the node requires is missing.",
        /// The payload does not fit the schema of what the node receives.
        SchemaMismatch = "schema_mismatch": "The payload does not fit the node's input schema.",
        /// The payload has another number of tokens than claimed.
        TokensMismatch = "tokens_mismatch": "The number of tokens is wrong.",
        /// The payload exceeds the token budget.
        OverBudget = "over_budget": "The payload exceeds the node's token budget.",
    }
}

pub(super) fn payload_digest(payload: &Value) -> Digest {
    Digest::of(Tag::Payload, &[canonical(payload).as_bytes()])
}

pub(super) fn truncated_digest(truncated: &[Truncated]) -> Digest {
    Digest::of(Tag::Truncated, &[canonical(&json!(truncated)).as_bytes()])
}

impl Envelope {
    pub fn seal(key: &SigningKey, claims: EnvelopeClaims, fitted: FittedView) -> Self {
        let FittedView { payload, tokens, truncated } = fitted;
        let claims = EnvelopeClaims {
            tokens,
            payload: payload_digest(&payload),
            truncated: truncated_digest(&truncated),
            ..claims
        };
        Self {
            version: claims.version,
            timestamp: claims.timestamp,
            token_budget: claims.budget,
            tokens,
            payload,
            truncated,
            transition: claims.transition,
            signature: jws::sign(key, TokenType::Envelope, &claims),
            hmac: None,
        }
    }
}

impl TokenClaims for EnvelopeClaims {
    fn is_whole(&self) -> bool {
        // Every payload has the root, so nothing can require it.
        !self.iss.is_empty() && !self.requires.iter().any(Pointer::is_root)
    }
}

impl EnvelopeClaims {
    /// Builds the claims of a view before it is fitted.
    pub fn unsealed(iss: &str, thread: &ThreadId, node: &NodeId, head: Checkpoint, timestamp: Timestamp) -> Self {
        let nothing = payload_digest(&Value::Null);
        Self {
            budget: None,
            encoding: Encoding::default(),
            iss: iss.to_owned(),
            node: node.clone(),
            payload: nothing,
            requires: Vec::new(),
            thread: thread.clone(),
            timestamp,
            tokens: 0,
            transition: head.transition,
            truncated: nothing,
            version: head.version,
        }
    }
}
