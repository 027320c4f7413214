//! Messages to the receiver of an agent instance, as the Agent Approval Protocol defines them.
//!
//! The creator of the instance chose the secret. So only this secret signs the messages, and the gateway verifies the
//! receiver before the instance exists.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use standardwebhooks::Webhook;

use super::signature::{SECRET_PREFIX, second_of};
use crate::keys::EncryptedValue;
use crate::primitives::id::{EventId, TokenId};
use crate::primitives::secret::Secret;
use crate::primitives::time::Timestamp;

/// The lengths of a secret, in bytes, by Standard Webhooks.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// The length limit of a registration's id. It is normally a UUID.
const REGISTRATION_CHARS_MAX: usize = 128;

/// The receiver of an instance.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceReceiver {
    /// The token of the instance.
    pub instance: TokenId,
    /// The id by which the receiver knows its registration.
    pub registration: String,
    pub secret: EncryptedValue,
}

/// A secret that signs messages to one receiver.
#[derive(Debug)]
pub struct ReceiverSecret(Secret<Vec<u8>>);

/// A message to a receiver.
#[derive(Clone, Debug)]
pub struct ReceiverMessage {
    /// The same in every attempt, so that a receiver can recognize a repetition.
    pub id: EventId,
    pub instance: TokenId,
    pub at: Timestamp,
    pub content: ReceiverContent,
}

#[derive(Clone, Debug)]
pub enum ReceiverContent {
    /// Asks the receiver to return the challenge, which shows that it has the secret and knows the registration.
    Verification { registration: String, challenge: String },
    /// An approval request of the instance is decided. The instance reads the decision itself.
    Resolved { request: String },
}

impl ReceiverSecret {
    /// Reads `whsec_` with base64.
    pub fn read(text: &str) -> Option<Self> {
        let bytes = Secret::new(STANDARD.decode(text.strip_prefix(SECRET_PREFIX)?).ok()?);
        SECRET_BYTES.contains(&bytes.expose().len()).then_some(Self(bytes))
    }

    /// Returns the headers of a message that is sent now. `None` would mean a secret that Standard Webhooks refuses.
    pub fn headers(&self, id: &EventId, now: Timestamp, body: &str) -> Option<Vec<(&'static str, String)>> {
        let seconds = second_of(now);
        let webhook = Webhook::from_bytes(self.0.expose().clone()).ok()?;
        Some(vec![
            (standardwebhooks::HEADER_WEBHOOK_ID, id.to_string()),
            (standardwebhooks::HEADER_WEBHOOK_TIMESTAMP, seconds.to_string()),
            (standardwebhooks::HEADER_WEBHOOK_SIGNATURE, webhook.sign(id.as_str(), seconds, body.as_bytes()).ok()?),
        ])
    }
}

impl ReceiverMessage {
    pub fn body(&self) -> String {
        let mut body = json!({"id": self.id, "instance_id": self.instance, "created_at": self.at});
        let (kind, members) = match &self.content {
            ReceiverContent::Verification { registration, challenge } => {
                ("webhook.verification", vec![("registration_id", registration), ("challenge", challenge)])
            }
            ReceiverContent::Resolved { request } => ("request.resolved", vec![("request_id", request)]),
        };
        body["type"] = json!(kind);
        for (name, value) in members {
            body[name] = json!(value);
        }
        body.to_string()
    }
}

/// Checks the id of a registration: visible characters.
pub fn is_registration(id: &str) -> bool {
    (1..=REGISTRATION_CHARS_MAX).contains(&id.len()) && id.bytes().all(|it| it.is_ascii_graphic())
}

/// Checks the response to a verification: exactly the challenge.
pub fn is_verified(challenge: &str, status: u16, body: &[u8]) -> bool {
    status == 200 && serde_json::from_slice::<Value>(body).is_ok_and(|it| it == json!({"challenge": challenge}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_has_the_form_of_standard_webhooks() {
        let text = |bytes: usize| format!("whsec_{}", STANDARD.encode(vec![7; bytes]));
        for (bytes, fits) in [(23, false), (24, true), (32, true), (64, true), (65, false)] {
            assert_eq!(ReceiverSecret::read(&text(bytes)).is_some(), fits, "{bytes}");
        }
        for bad in ["", "whsec_", "whsec_*", &text(32)[6..], &text(32).replace('B', "-")] {
            assert!(ReceiverSecret::read(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn only_the_challenge_verifies() {
        assert!(is_verified("c", 200, br#"{"challenge":"c"}"#));
        for (status, body) in [
            (201, r#"{"challenge":"c"}"#),
            (200, r#"{"challenge":"d"}"#),
            (200, r#"{"challenge":"c","more":1}"#),
            (200, r#"["c"]"#),
            (200, ""),
        ] {
            assert!(!is_verified("c", status, body.as_bytes()), "{status} {body}");
        }
    }
}
