//! The envelope: a node's view with what it is a view of, signed.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::encoding::Encoding;
use super::fitting::{Fitted, Truncated};
use crate::domain::chain::hash::{Digest, Tag};
use crate::domain::chain::jws::{self, Typ};
use crate::domain::id::{NodeId, ThreadId};
use crate::domain::json::canonical::canonical;
use crate::domain::json::pointer::Pointer;
use crate::domain::keys::SigningKey;
use crate::domain::time::Timestamp;

/// A signed context envelope: a node's view of the state.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// The version that the view shows.
    pub version: u64,
    /// The time of the signature.
    pub timestamp: Timestamp,
    /// The token limit of the node. Null if the policy sets none.
    #[serde(rename = "tokenBudget")]
    #[schema(required)]
    pub token_budget: Option<u64>,
    /// The number of tokens of the payload.
    pub tokens: u64,
    /// The view of the node, as far as it fits.
    #[schema(value_type = Object)]
    pub payload: Value,
    /// The parts that did not fit.
    pub truncated: Vec<Truncated>,
    /// The transition that the view shows.
    pub transition: Digest,
    /// The signature over the whole envelope and its node, a JWS.
    pub signature: String,
    /// An HMAC with a secret of the node, if requested. It also covers the signature. The signature does not cover the
    /// HMAC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub hmac: Option<EnvelopeMac>,
}

/// The HMAC of an envelope.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EnvelopeMac {
    /// The algorithm.
    pub alg: MacAlg,
    /// The period of the secret.
    pub epoch: Epoch,
    /// The HMAC: 32 bytes in base64url without padding.
    pub value: String,
}

/// The HMAC algorithm. There is one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub enum MacAlg {
    /// HMAC-SHA-256, by the name that RFC 7518 gives it.
    #[serde(rename = "HS256")]
    Hs256,
}

/// The start of a period. It identifies the secret of that period.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
pub struct Epoch(pub Timestamp);

/// What an envelope's signature is over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the members are the protocol's own words, explained in docs/protocol.md")]
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

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal: $detail:literal,)*) => {
        /// Why an envelope is not believed.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, utoipa::ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum EnvelopeCode { $($(#[$doc])* $name,)* }

        impl EnvelopeCode {
            /// Every code, in the order of the checks.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The word on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// What it means and what to do, in fixed words.
            pub const fn detail(self) -> &'static str {
                match self { $(Self::$name => $detail,)* }
            }
        }
    };
}

codes! {
    /// Not a token of this kind, or not its claims.
    EnvelopeMalformed = "envelope_malformed": "The signature is not an envelope's by its form.",
    /// No such key, or one that may not sign.
    UnknownKey = "unknown_key": "The envelope's key is unknown or does not sign.",
    /// Not that key's.
    SignatureInvalid = "signature_invalid": "The signature is not that key's.",
    /// Another gateway's.
    IssuerMismatch = "issuer_mismatch": "Another gateway sealed it.",
    /// Of another thread than was asked for.
    ThreadMismatch = "thread_mismatch": "It is of another thread.",
    /// For another node than was asked for.
    NodeMismatch = "node_mismatch": "It is another node's view.",
    /// What stands beside the signature is not what was signed.
    EnvelopeMismatch = "envelope_mismatch": "What is in it is not what was signed: ask for another one.",
    /// It should bear an HMAC, and bears none.
    HmacMissing = "hmac_missing": "It bears no HMAC, and one is asked for: ask for an envelope with `hmac=true`.",
    /// The HMAC is by a secret that does not count.
    HmacExpired = "hmac_expired": "The HMAC is by a secret that is not good now: ask for another envelope and the node's secrets.",
    /// The HMAC is not over this, or not by this node's secret.
    HmacMismatch = "hmac_mismatch": "The HMAC is not that of this envelope by its node's secret.",
    /// Something was committed since.
    Stale = "stale": "The thread has moved on since it was sealed: ask for another one.",
    /// It is not of the chain that there is.
    DigestMismatch = "digest_mismatch": "It is of a transition that is not the thread's.",
    /// Something required is not there.
    RequiredMissing = "required_missing": "Something that the node requires is not in it.",
    /// It is not what its node may receive.
    SchemaMismatch = "schema_mismatch": "It does not fit the schema of what the node receives.",
    /// The payload is not as many tokens as it says.
    TokensMismatch = "tokens_mismatch": "It is not as many tokens as it says.",
    /// It is more than the node may be given.
    OverBudget = "over_budget": "It is more tokens than the node may be given.",
}

pub(super) fn payload_digest(payload: &Value) -> Digest {
    Digest::of(Tag::Payload, &[canonical(payload).as_bytes()])
}

pub(super) fn truncated_digest(truncated: &[Truncated]) -> Digest {
    Digest::of(Tag::Truncated, &[canonical(&json!(truncated)).as_bytes()])
}

impl Envelope {
    /// Seals what fits.
    pub fn seal(key: &SigningKey, claims: EnvelopeClaims, fitted: Fitted) -> Self {
        let Fitted { payload, tokens, truncated } = fitted;
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
            signature: jws::sign(key, Typ::Envelope, &claims),
            hmac: None,
        }
    }
}

impl EnvelopeClaims {
    /// Claims of a view before it is known what of it fits.
    pub fn unsealed(
        iss: &str,
        (thread, node): (&ThreadId, &NodeId),
        (version, transition): (u64, Digest),
        timestamp: Timestamp,
    ) -> Self {
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
            transition,
            truncated: nothing,
            version,
        }
    }
}
