//! Standard Webhooks: what a delivery is signed with, and what its headers say.
//!
//! The database has no secret. An endpoint's follows from its name and a random text in its row, under the row key,
//! which is outside of it: whoever reads the database can sign nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use standardwebhooks::Webhook;

use crate::domain::keys::{KeyUse, Keys, PublicKey, RowKey};
use crate::domain::primitives::id::{EndpointId, EventId};
use crate::domain::primitives::secret::Secret;
use crate::domain::primitives::time::Timestamp;

/// What a secret is shown with.
const SECRET_PREFIX: &str = "whsec_";

/// What a public key is shown with.
const PUBLIC_KEY_PREFIX: &str = "whpk_";

/// The secrets of one endpoint. During a rotation there are two, and both sign.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointSecrets {
    pub now: SecretGeneration,
    /// The one before, for as long as it still signs beside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<RotatedSecret>,
}

/// What one secret is made from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretGeneration {
    /// Random; no secret by itself.
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
        let message = format!("countersign.webhook-secret.v1\0{endpoint}\0{}", self.salt);
        Secret::new(key.hmac(message.as_bytes()).to_vec())
    }

    /// As its receiver is shown it, once.
    pub fn shown(&self, key: &RowKey, endpoint: &EndpointId) -> Secret<String> {
        Secret::new(format!("{SECRET_PREFIX}{}", STANDARD.encode(self.secret(key, endpoint).expose())))
    }
}

impl EndpointSecrets {
    /// Those that sign at a moment.
    fn signing(&self, now: Timestamp) -> impl Iterator<Item = &SecretGeneration> {
        let before = self.before.as_ref().filter(|it| now < it.until).map(|it| &it.generation);
        [Some(&self.now), before].into_iter().flatten()
    }
}

/// The keys whose signatures a receiver will see, now or after the next rotation: `whpk_…`.
pub fn public_keys(keys: &Keys) -> Vec<String> {
    let now = keys.signing(KeyUse::Webhook).public();
    let shown = |key: &PublicKey| format!("{PUBLIC_KEY_PREFIX}{}", STANDARD.encode(key.verifying_key().as_bytes()));
    [now, keys.next(KeyUse::Webhook)].into_iter().map(shown).collect()
}

/// A body under the gateway's own signature: the same for all who are sent it in the same second.
pub struct SignedBody {
    id: EventId,
    seconds: i64,
    body: String,
    signature: String,
}

/// The second that a moment is in, as signatures name it.
pub fn second_of(at: Timestamp) -> i64 {
    at.millis().div_euclid(1000)
}

impl SignedBody {
    /// Signed now. The id is the event's on every attempt.
    pub fn new(keys: &Keys, (id, at): (&EventId, Timestamp), body: String) -> Self {
        let seconds = second_of(at);
        let signature = keys.signing(KeyUse::Webhook).sign(format!("{id}.{seconds}.{body}").as_bytes());
        Self { id: id.clone(), seconds, body, signature: format!("v1a,{}", STANDARD.encode(signature)) }
    }

    /// The second that it was signed in.
    pub const fn second(&self) -> i64 {
        self.seconds
    }

    pub fn body(&self) -> &str {
        &self.body
    }

    /// The headers of one delivery: its id, its moment, and every signature, those under the endpoint's secrets first.
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
        let signatures: Vec<String> = symmetric.chain([self.signature.clone()]).collect();
        [
            (standardwebhooks::HEADER_WEBHOOK_ID, self.id.to_string()),
            (standardwebhooks::HEADER_WEBHOOK_TIMESTAMP, self.seconds.to_string()),
            (standardwebhooks::HEADER_WEBHOOK_SIGNATURE, signatures.join(" ")),
        ]
    }
}
