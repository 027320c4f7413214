//! Standard Webhooks: secrets, signatures and headers of deliveries.
//!
//! The database contains no secret. The secret of an endpoint is derived from its id and a random salt in its row, with
//! the row key. The row key is not in the database, so an attacker who reads the database cannot sign.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use standardwebhooks::Webhook;

use crate::keys::{KeyUse, Keys, PublicKey, RowKey};
use crate::primitives::id::{EndpointId, EventId};
use crate::primitives::secret::Secret;
use crate::primitives::time::Timestamp;

/// The prefix of a displayed secret.
pub(super) const SECRET_PREFIX: &str = "whsec_";

/// The prefix of a displayed public key.
const PUBLIC_KEY_PREFIX: &str = "whpk_";

/// The secrets of one endpoint. During a rotation there are two, and both sign.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointSecrets {
    pub now: SecretGeneration,
    /// The previous secret, while both sign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<RotatedSecret>,
}

/// The data from which one secret is derived.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretGeneration {
    /// A random value. It is not secret.
    pub salt: String,
    pub made_at: Timestamp,
}

/// A secret that was rotated.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RotatedSecret {
    pub generation: SecretGeneration,
    pub until: Timestamp,
}

impl SecretGeneration {
    pub fn new(random: [u8; 16], made_at: Timestamp) -> Self {
        Self { salt: STANDARD.encode(random), made_at }
    }

    fn secret(&self, key: &RowKey, endpoint: &EndpointId) -> Secret<Vec<u8>> {
        // The prefix separates this use of the row key from all others.
        let message = format!("countersign.webhook-secret.v1\0{endpoint}\0{}", self.salt);
        Secret::new(key.hmac(message.as_bytes()).to_vec())
    }

    /// Returns the secret in its displayed form. It is shown only once.
    pub fn shown(&self, key: &RowKey, endpoint: &EndpointId) -> Secret<String> {
        Secret::new(format!("{SECRET_PREFIX}{}", STANDARD.encode(self.secret(key, endpoint).expose())))
    }
}

impl EndpointSecrets {
    /// Returns the secrets that sign at a time.
    fn signing(&self, now: Timestamp) -> impl Iterator<Item = &SecretGeneration> {
        // The previous secret ends by itself, even if no worker removes it.
        let before = self.before.as_ref().filter(|it| now < it.until).map(|it| &it.generation);
        [Some(&self.now), before].into_iter().flatten()
    }
}

/// Returns the public keys (`whpk_…`) whose signatures a receiver gets now and after the next rotation.
pub fn public_keys(keys: &Keys) -> Vec<String> {
    let now = keys.signing(KeyUse::Webhook).public();
    let shown = |key: &PublicKey| format!("{PUBLIC_KEY_PREFIX}{}", STANDARD.encode(key.verifying_key().as_bytes()));
    [now, keys.next(KeyUse::Webhook)].into_iter().map(shown).collect()
}

/// A body with the gateway's own signature. Deliveries to several endpoints within one second share it.
pub struct SignedBody {
    id: EventId,
    seconds: i64,
    body: String,
    signature: String,
}

/// Returns the second of a time, as signatures contain it.
pub fn second_of(at: Timestamp) -> i64 {
    at.millis().div_euclid(1000)
}

impl SignedBody {
    /// Signs a body. The id is the event's id in every attempt, so receivers can detect repetitions.
    pub fn new(keys: &Keys, id: &EventId, at: Timestamp, body: String) -> Self {
        // Standard Webhooks signs whole seconds.
        let seconds = second_of(at);
        let signature = keys.signing(KeyUse::Webhook).sign(format!("{id}.{seconds}.{body}").as_bytes());
        Self { id: id.clone(), seconds, body, signature: format!("v1a,{}", STANDARD.encode(signature)) }
    }

    /// Returns the second of the signature.
    pub const fn second(&self) -> i64 {
        self.seconds
    }

    pub fn body(&self) -> &str {
        &self.body
    }

    /// Returns the headers of one delivery: id, timestamp and all signatures. The signatures by the endpoint's secrets
    /// come first.
    pub fn headers(
        &self,
        key: &RowKey,
        endpoint: &EndpointId,
        secrets: &EndpointSecrets,
    ) -> [(&'static str, String); 3] {
        let symmetric = secrets.signing(Timestamp::from_millis(self.seconds * 1000)).filter_map(|it| {
            let secret = it.secret(key, endpoint).expose().clone();
            Webhook::from_bytes(secret).ok()?.sign(self.id.as_str(), self.seconds, self.body.as_bytes()).ok()
        });
        // Receivers accept any valid signature, so all are sent during a rotation.
        let signatures: Vec<String> = symmetric.chain([self.signature.clone()]).collect();
        [
            (standardwebhooks::HEADER_WEBHOOK_ID, self.id.to_string()),
            (standardwebhooks::HEADER_WEBHOOK_TIMESTAMP, self.seconds.to_string()),
            (standardwebhooks::HEADER_WEBHOOK_SIGNATURE, signatures.join(" ")),
        ]
    }
}
