//! An HMAC beside an envelope's signature, for whoever cannot check one: by a secret of the node's own, which goes by
//! periods and is in no row. It follows from the keyring's row key, whose node it is and when the period began.
//!
//! It is symmetrical: whoever has the secret can make one. So it stands beside the signature and never in its place.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::Sha256;
use zeroize::Zeroizing;

use super::envelope::{Envelope, EnvelopeClaims, EnvelopeCode, EnvelopeMac, Epoch, MacAlg};
use crate::domain::json::canonical::canonical;
use crate::domain::keys::RowKey;
use crate::domain::primitives::id::{FlowId, NodeId, ThreadId};
use crate::domain::primitives::secret::Secret;
use crate::domain::primitives::time::Timestamp;

/// What a secret is shown with, so that whoever looks for secrets in the wrong places knows one.
const SECRET_PREFIX: &str = "envsec_";

/// How the secrets of nodes change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rotation {
    /// How long one is made with.
    pub period: Duration,
    /// For how long after that it is still good.
    pub overlap: Duration,
}

impl Default for Rotation {
    fn default() -> Self {
        Self { period: Duration::from_secs(24 * 3600), overlap: Duration::from_secs(3600) }
    }
}

impl Rotation {
    /// The period that a moment is in. Periods are counted from 1970, so that all gateways of a database agree.
    pub fn epoch(&self, now: Timestamp) -> Epoch {
        let period = i64::try_from(self.period.as_millis()).unwrap_or(i64::MAX).max(1);
        Epoch(Timestamp::from_millis(now.millis().div_euclid(period).saturating_mul(period)))
    }

    /// When the next one begins.
    pub fn next(&self, epoch: Epoch) -> Timestamp {
        epoch.0.plus(self.period)
    }

    /// Until when what was made in a period is good.
    fn good_until(&self, epoch: Epoch) -> Timestamp {
        self.next(epoch).plus(self.overlap)
    }

    /// The periods whose secrets are good at a moment, the current one first.
    fn good(&self, now: Timestamp) -> impl Iterator<Item = Epoch> {
        let current = self.epoch(now);
        let before = Epoch(current.0.minus(self.period));
        [Some(current), Some(before).filter(|it| now < self.good_until(*it))].into_iter().flatten()
    }
}

/// The secret of a node for one period.
struct NodeSecret(Zeroizing<[u8; 32]>);

impl NodeSecret {
    /// No name and no moment has the zero byte in it, so that no two have the same secret.
    fn of(key: &RowKey, (flow, node): (&FlowId, &NodeId), epoch: Epoch) -> Self {
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

/// The secret of one period, and until when it is good.
struct Dated {
    epoch: Epoch,
    good_until: Timestamp,
    secret: NodeSecret,
}

/// The secrets of a node that are good at a moment, the current one first.
pub struct NodeSecrets(Vec<Dated>);

impl std::fmt::Debug for NodeSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NodeSecrets([redacted])")
    }
}

/// A secret as its node is given it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShownSecret {
    /// Of which period.
    pub epoch: Epoch,
    /// Until when it is good.
    pub good_until: Timestamp,
    /// The secret itself.
    #[serde(with = "shown_text")]
    pub secret: Secret<String>,
}

/// What a node is given: whose secrets these are, and when there will be another.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShownSecrets {
    /// Of which flow.
    pub flow: FlowId,
    /// Of which of its nodes.
    pub node: NodeId,
    /// What they are for.
    pub alg: MacAlg,
    /// When the next period begins.
    pub rotates_at: Timestamp,
    /// Those that are good, the current one first.
    pub secrets: Vec<ShownSecret>,
}

mod shown_text {
    use serde::{Deserialize as _, Deserializer, Serializer};

    use crate::domain::primitives::secret::Secret;

    pub(super) fn serialize<S: Serializer>(secret: &Secret<String>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(secret.expose())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Secret<String>, D::Error> {
        String::deserialize(deserializer).map(Secret::new)
    }
}

impl NodeSecrets {
    /// Those that follow from the keyring.
    pub fn of(key: &RowKey, whose: (&FlowId, &NodeId), rotation: &Rotation, now: Timestamp) -> Self {
        let dated =
            |epoch| Dated { epoch, good_until: rotation.good_until(epoch), secret: NodeSecret::of(key, whose, epoch) };
        Self(rotation.good(now).map(dated).collect())
    }

    /// Those of an answer that was kept, as far as they are good at a moment. Nothing, if one of them is none.
    pub fn read(shown: &ShownSecrets, now: Timestamp) -> Option<Self> {
        let dated = |it: &ShownSecret| {
            let secret = NodeSecret::read(it.secret.expose())?;
            Some(Dated { epoch: it.epoch, good_until: it.good_until, secret })
        };
        let mut all: Vec<_> = shown.secrets.iter().map(dated).collect::<Option<_>>()?;
        all.retain(|it| now < it.good_until);
        Some(Self(all))
    }

    /// As their node is given them.
    pub fn shown(&self) -> Vec<ShownSecret> {
        let shown = |it: &Dated| ShownSecret { epoch: it.epoch, good_until: it.good_until, secret: it.secret.shown() };
        self.0.iter().map(shown).collect()
    }

    /// The envelope of a node's view of a thread, with an HMAC by the current one.
    pub fn beside(&self, envelope: Envelope, view: (&ThreadId, &NodeId)) -> Envelope {
        let hmac = self.0.first().map(|it| EnvelopeMac {
            alg: MacAlg::Hs256,
            epoch: it.epoch,
            value: URL_SAFE_NO_PAD.encode(it.secret.over(&message(&envelope, view, it.epoch)).finalize().into_bytes()),
        });
        Envelope { hmac, ..envelope }
    }

    /// Whether an envelope bears an HMAC by one of them, over all of it and as the view that its signature's claims say
    /// it is. Takes as long whichever bit is wrong.
    pub fn check(&self, envelope: &Envelope, claims: &EnvelopeClaims) -> Result<(), EnvelopeCode> {
        let hmac = envelope.hmac.as_ref().ok_or(EnvelopeCode::HmacMissing)?;
        let dated = self.0.iter().find(|it| it.epoch == hmac.epoch).ok_or(EnvelopeCode::HmacExpired)?;
        let value = URL_SAFE_NO_PAD.decode(&hmac.value).map_err(|_| EnvelopeCode::HmacMismatch)?;
        let mac = dated.secret.over(&message(envelope, (&claims.thread, &claims.node), hmac.epoch));
        mac.verify_slice(&value).map_err(|_| EnvelopeCode::HmacMismatch)
    }
}

/// What it is over: the envelope with its signature, whose view it is, and of which period the secret is.
fn message(envelope: &Envelope, (thread, node): (&ThreadId, &NodeId), epoch: Epoch) -> String {
    let mut bare = serde_json::to_value(envelope).expect("an envelope is a plain struct with text keys");
    if let Value::Object(members) = &mut bare {
        members.remove("hmac");
    }
    let said = json!({"envelope": bare, "epoch": epoch, "node": node, "thread": thread});
    format!("countersign.envelope-mac.v1\0{}", canonical(&said))
}

#[cfg(test)]
mod tests;
