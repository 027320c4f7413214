//! HMAC beside an envelope's signature, for readers that cannot check a signature. Each node has a secret per period,
//! which is derived from the keyring's row key and stored in no row.
//!
//! It is symmetric: every holder of the secret can make one. So it never replaces the signature.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::Sha256;
use zeroize::Zeroizing;

use super::envelope::{Envelope, EnvelopeClaims, EnvelopeCode, EnvelopeMac, Epoch, MacAlg};
use crate::json::canonical::canonical;
use crate::keys::RowKey;
use crate::primitives::id::{FlowId, NodeId, ThreadId};
use crate::primitives::secret::Secret;
use crate::primitives::time::Timestamp;

/// Prefix of a displayed secret, so that secret scanners recognize it.
const SECRET_PREFIX: &str = "envsec_";

/// Rotation of the nodes' secrets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rotation {
    /// How long a secret is used.
    pub period: Duration,
    /// How long it stays valid after that.
    pub overlap: Duration,
}

impl Default for Rotation {
    fn default() -> Self {
        Self { period: Duration::from_secs(24 * 3600), overlap: Duration::from_secs(3600) }
    }
}

impl Rotation {
    /// Returns the period of a moment. Periods are counted from 1970, so that all gateways of a database agree.
    pub fn epoch(&self, now: Timestamp) -> Epoch {
        // A period of zero would divide by zero.
        let period = i64::try_from(self.period.as_millis()).unwrap_or(i64::MAX).max(1);
        Epoch(Timestamp::from_millis(now.millis().div_euclid(period).saturating_mul(period)))
    }

    /// Returns the beginning of the next period.
    pub fn next(&self, epoch: Epoch) -> Timestamp {
        epoch.0.plus(self.period)
    }

    /// Returns when HMACs of a period expire.
    fn good_until(&self, epoch: Epoch) -> Timestamp {
        self.next(epoch).plus(self.overlap)
    }

    /// Returns the periods whose secrets are valid at a moment, the current one first.
    fn good(&self, now: Timestamp) -> impl Iterator<Item = Epoch> {
        let current = self.epoch(now);
        // Envelopes that were sealed just before a rotation stay valid during the overlap.
        let before = Epoch(current.0.minus(self.period));
        [Some(current), Some(before).filter(|it| now < self.good_until(*it))].into_iter().flatten()
    }
}

/// Secret of a node for one period.
struct NodeSecret(Zeroizing<[u8; 32]>);

impl NodeSecret {
    /// Derives the secret. No name and no moment contains a zero byte, so no two inputs give the same secret.
    fn of(key: &RowKey, flow: &FlowId, node: &NodeId, epoch: Epoch) -> Self {
        let message = format!("countersign.envelope-secret.v1\0{flow}\0{node}\0{}", epoch.0);
        Self(Zeroizing::new(key.hmac(message.as_bytes())))
    }

    fn shown(&self) -> Secret<String> {
        Secret::new(format!("{SECRET_PREFIX}{}", URL_SAFE_NO_PAD.encode(self.0.as_slice())))
    }

    fn read(shown: &str) -> Option<Self> {
        let bytes = Zeroizing::new(URL_SAFE_NO_PAD.decode(shown.strip_prefix(SECRET_PREFIX)?).ok()?);
        Some(Self(Zeroizing::new(bytes.as_slice().try_into().ok()?)))
    }

    fn over(&self, message: &str) -> Hmac<Sha256> {
        let mac = Hmac::<Sha256>::new_from_slice(self.0.as_slice()).expect("HMAC takes keys of any length");
        mac.chain_update(message)
    }
}

/// A secret with the end of its validity.
struct DatedSecret {
    epoch: Epoch,
    good_until: Timestamp,
    secret: NodeSecret,
}

/// Valid secrets of a node, the current one first.
pub struct NodeSecrets(Vec<DatedSecret>);

impl std::fmt::Debug for NodeSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NodeSecrets([redacted])")
    }
}

/// A secret as shown to its node.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSecretView {
    pub epoch: Epoch,
    pub good_until: Timestamp,
    #[serde(with = "shown_text")]
    pub secret: Secret<String>,
}

/// Answer to a node: its secrets, and the moment of the next rotation.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSecretsView {
    pub flow: FlowId,
    pub node: NodeId,
    /// Algorithm of the secrets.
    pub alg: MacAlg,
    /// Beginning of the next period.
    pub rotates_at: Timestamp,
    /// Valid secrets, the current one first.
    pub secrets: Vec<NodeSecretView>,
}

mod shown_text {
    use serde::{Deserialize as _, Deserializer, Serializer};

    use crate::primitives::secret::Secret;

    pub(super) fn serialize<S: Serializer>(secret: &Secret<String>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(secret.expose())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Secret<String>, D::Error> {
        String::deserialize(deserializer).map(Secret::new)
    }
}

impl NodeSecrets {
    /// Derives the secrets from the keyring.
    pub fn of(key: &RowKey, flow: &FlowId, node: &NodeId, rotation: &Rotation, now: Timestamp) -> Self {
        let dated = |epoch| DatedSecret {
            epoch,
            good_until: rotation.good_until(epoch),
            secret: NodeSecret::of(key, flow, node, epoch),
        };
        Self(rotation.good(now).map(dated).collect())
    }

    /// Reads the secrets of a stored answer that are valid at a moment. Returns `None` if one of them is malformed.
    pub fn read(shown: &NodeSecretsView, now: Timestamp) -> Option<Self> {
        let dated = |it: &NodeSecretView| {
            let secret = NodeSecret::read(it.secret.expose())?;
            Some(DatedSecret { epoch: it.epoch, good_until: it.good_until, secret })
        };
        let mut all: Vec<_> = shown.secrets.iter().map(dated).collect::<Option<_>>()?;
        // A stored answer may be old, so expired secrets must not verify anything.
        all.retain(|it| now < it.good_until);
        Some(Self(all))
    }

    /// Returns the secrets as shown to their node.
    pub fn shown(&self) -> Vec<NodeSecretView> {
        let shown =
            |it: &DatedSecret| NodeSecretView { epoch: it.epoch, good_until: it.good_until, secret: it.secret.shown() };
        self.0.iter().map(shown).collect()
    }

    /// Adds an HMAC by the current secret to an envelope.
    pub fn beside(&self, envelope: Envelope, thread: &ThreadId, node: &NodeId) -> Envelope {
        let hmac = self.0.first().map(|it| {
            let mac = it.secret.over(&message(&envelope, thread, node, it.epoch));
            let value = URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes());
            EnvelopeMac { alg: MacAlg::Hs256, epoch: it.epoch, value }
        });
        Envelope { hmac, ..envelope }
    }

    /// Checks an envelope's HMAC over all members and the claimed view. The comparison takes constant time.
    pub fn check(&self, envelope: &Envelope, claims: &EnvelopeClaims) -> Result<(), EnvelopeCode> {
        let hmac = envelope.hmac.as_ref().ok_or(EnvelopeCode::HmacMissing)?;
        let dated = self.0.iter().find(|it| it.epoch == hmac.epoch).ok_or(EnvelopeCode::HmacExpired)?;
        let value = URL_SAFE_NO_PAD.decode(&hmac.value).map_err(|_| EnvelopeCode::HmacMismatch)?;
        let mac = dated.secret.over(&message(envelope, &claims.thread, &claims.node, hmac.epoch));
        mac.verify_slice(&value).map_err(|_| EnvelopeCode::HmacMismatch)
    }
}

/// Builds the content of the HMAC: the envelope with its signature, thread, node and period.
fn message(envelope: &Envelope, thread: &ThreadId, node: &NodeId, epoch: Epoch) -> String {
    let mut bare = serde_json::to_value(envelope).expect("an envelope is a plain struct with text keys");
    if let Value::Object(members) = &mut bare {
        // The HMAC cannot cover itself.
        members.remove("hmac");
    }
    let said = json!({"envelope": bare, "epoch": epoch, "node": node, "thread": thread});
    format!("countersign.envelope-mac.v1\0{}", canonical(&said))
}

#[cfg(test)]
mod tests;
