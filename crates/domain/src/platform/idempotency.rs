//! Idempotency keys: a repeated request with the same key gets the stored response.
//!
//! The row of a response does not reveal the request. Key and body are stored as HMACs under the row key. The response
//! is encrypted, because some responses show a secret only once.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::json::canonical::canonical;
use crate::keys::{EncryptedValue, RowKey};
use crate::primitives::id::PrincipalId;
use crate::primitives::secret::Secret;
use crate::primitives::time::Timestamp;

/// The length limit of a key. A UUID or the name of a job is shorter.
pub const KEY_BYTES_MAX: usize = 255;

/// The size limit of a stored response. The changes of nearly every held proposal fit. A longer response is sent, but
/// not stored.
pub const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// The `Idempotency-Key` of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Parses a header value: visible characters without a space.
    pub fn read(text: &str) -> Option<Self> {
        let fits = (1..=KEY_BYTES_MAX).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_graphic());
        fits.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A request with a key: its token, key and content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdempotentRequest {
    /// The id of the key's row, unique for token, method and path.
    pub id: String,
    pub token: PrincipalId,
    /// The HMAC of the body's exact bytes.
    pub request: String,
}

impl IdempotentRequest {
    pub fn new(
        key: &RowKey,
        token: PrincipalId,
        method: &str,
        path: &str,
        named: &IdempotencyKey,
        body: &[u8],
    ) -> Self {
        // The scope contains the token, so two tokens may use the same key.
        let scope = canonical(&json!([token, method, path, named.0]));
        let id = hmac(key, b"countersign.repeat-key.v1\0", scope.as_bytes());
        Self { id, token, request: hmac(key, b"countersign.repeat-body.v1\0", body) }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredResponse {
    pub status: u16,
    pub body: Secret<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdempotencyRecord {
    pub id: String,
    pub token: PrincipalId,
    pub request: String,
    /// The status of the response.
    pub status: u16,
    pub until: Timestamp,
    /// The encrypted response. `None` if it is too long to be stored.
    pub body: Option<EncryptedValue>,
}

/// The reason why a request with a key is neither executed nor answered from the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IdempotencyError {
    /// The call requires a key.
    #[error("this call needs an Idempotency-Key; send a key of your own for each call")]
    Missing,
    /// The key was used for another request.
    #[error("this Idempotency-Key was used for another body; use a new key for each request")]
    Differs,
    /// The previous request with this key is still running.
    #[error("the same request is still running; send it again in a moment")]
    Running,
    /// The request was executed, but its response is not stored.
    #[error(
        "the request was executed before, and its response was too long to be stored; read the resource to get the result"
    )]
    TooLong,
}

impl IdempotencyError {
    pub const ALL: &'static [Self] = &[Self::Missing, Self::Differs, Self::Running, Self::TooLong];

    pub const fn code(self) -> &'static str {
        match self {
            Self::Missing => "missing_idempotency_key",
            Self::Differs => "idempotency_key_reused",
            Self::Running => "request_in_progress",
            Self::TooLong => "answer_not_kept",
        }
    }
}

impl IdempotencyRecord {
    /// Returns the row of a response. `random` is the nonce and must be used only once.
    pub fn new(
        key: &RowKey,
        asked: &IdempotentRequest,
        told: &StoredResponse,
        until: Timestamp,
        random: [u8; 24],
    ) -> Self {
        let IdempotentRequest { id, token, request } = asked.clone();
        let mut kept = Self { id, token, request, status: told.status, until, body: None };
        // The row is stored in any case, so a repeated request is never executed twice.
        if told.body.expose().len() <= ANSWER_BYTES_MAX {
            kept.body = Some(key.hide(&kept.place(), told.body.expose(), random));
        }
        kept
    }

    pub fn is_kept(&self, now: Timestamp) -> bool {
        now < self.until
    }

    /// Checks that the encrypted response belongs to this row. An audit calls it.
    pub fn is_whole(&self, key: &RowKey) -> bool {
        self.body.as_ref().is_none_or(|it| key.show(&self.place(), it).is_some())
    }

    /// Returns the stored response for the same request. Returns `None` if the encrypted response belongs to another
    /// row.
    pub fn answer(&self, key: &RowKey, asked: &IdempotentRequest) -> Option<Result<StoredResponse, IdempotencyError>> {
        // A changed body under the same key is a mistake of the client and must not get the old response.
        if self.request != asked.request {
            return Some(Err(IdempotencyError::Differs));
        }
        let Some(hidden) = &self.body else { return Some(Err(IdempotencyError::TooLong)) };
        let body = key.show(&self.place(), hidden)?;
        Some(Ok(StoredResponse { status: self.status, body }))
    }

    /// Returns the associated data of the encryption: all other columns of the row. A response that an attacker moves
    /// to another row cannot be decrypted.
    fn place(&self) -> String {
        let all = json!(["answers", self.id, self.token, self.request, self.status, self.until]);
        canonical(&all)
    }
}

fn hmac(key: &RowKey, label: &[u8], content: &[u8]) -> String {
    let mac = key.hmac(&[label, content].concat());
    mac.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Keys;

    fn keys() -> Keys {
        let mut drawn = 0;
        let mut draw = |bytes: &mut [u8]| {
            drawn += 1;
            bytes.fill(drawn);
        };
        Keys::generate("urn:test", Timestamp::from_millis(0), &mut draw).unwrap()
    }

    fn asked(token: &str, route: (&str, &str), named: &str, body: &[u8]) -> IdempotentRequest {
        let named = IdempotencyKey::read(named).unwrap();
        IdempotentRequest::new(keys().row(), PrincipalId::try_from(token).unwrap(), route.0, route.1, &named, body)
    }

    fn told(body: &str) -> StoredResponse {
        StoredResponse { status: 201, body: Secret::new(body.to_owned()) }
    }

    #[test]
    fn idempotency_key_has_only_visible_characters() {
        for good in ["k", "a b".replace(' ', "-").as_str(), "\"8e03978e\"", "~".repeat(KEY_BYTES_MAX).as_str()] {
            assert!(IdempotencyKey::read(good).is_some(), "{good}");
        }
        for bad in ["", " ", "a b", "a\tb", "é", "~".repeat(KEY_BYTES_MAX + 1).as_str()] {
            assert!(IdempotencyKey::read(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn idempotency_key_belongs_to_one_token_method_and_path() {
        let one = asked("ada", ("POST", "/v1/threads"), "k", b"{}");
        let others = [
            asked("ben", ("POST", "/v1/threads"), "k", b"{}"),
            asked("ada", ("PUT", "/v1/threads"), "k", b"{}"),
            asked("ada", ("POST", "/v1/thread"), "k", b"{}"),
            asked("ada", ("POST", "/v1/threads"), "l", b"{}"),
        ];
        for other in others {
            assert_ne!(one.id, other.id);
        }
        let another = asked("ada", ("POST", "/v1/threads"), "k", b"{ }");
        assert_eq!(one.id, another.id);
        assert_ne!(one.request, another.request);
    }

    #[test]
    fn stored_response_is_encrypted_and_bound_to_its_row() {
        let (asked, until) = (asked("ada", ("POST", "/v1/x"), "k", b"the body"), Timestamp::from_millis(5));
        let kept = IdempotencyRecord::new(keys().row(), &asked, &told("{\"secret\":\"whsec_x\"}"), until, [1; 24]);
        let text = serde_json::to_string(&kept).unwrap();
        assert!(!text.contains("whsec") && !text.contains("the body"), "{text}");
        assert_eq!(kept.answer(keys().row(), &asked), Some(Ok(told("{\"secret\":\"whsec_x\"}"))));
        let moved = [
            IdempotencyRecord { id: "other".to_owned(), ..kept.clone() },
            IdempotencyRecord { token: PrincipalId::try_from("ben").unwrap(), ..kept.clone() },
            IdempotencyRecord { status: 200, ..kept.clone() },
            IdempotencyRecord { until: Timestamp::from_millis(6), ..kept.clone() },
        ];
        for other in moved {
            assert_eq!(other.answer(keys().row(), &asked), None);
            assert!(!other.is_whole(keys().row()));
        }
        assert!(kept.is_kept(Timestamp::from_millis(4)) && !kept.is_kept(Timestamp::from_millis(5)));
    }

    #[test]
    fn long_response_is_not_stored_and_not_executed_twice() {
        let asked = asked("ada", ("POST", "/v1/x"), "k", b"");
        let at = |bytes: usize| {
            let told = told(&"x".repeat(bytes));
            IdempotencyRecord::new(keys().row(), &asked, &told, Timestamp::from_millis(5), [1; 24])
                .answer(keys().row(), &asked)
        };
        assert!(matches!(at(ANSWER_BYTES_MAX), Some(Ok(_))));
        assert_eq!(at(ANSWER_BYTES_MAX + 1), Some(Err(IdempotencyError::TooLong)));
    }
}
