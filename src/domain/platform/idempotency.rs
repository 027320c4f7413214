//! Requests that may be sent again under a key of their sender's: what was answered once is answered again.
//!
//! The row of an answer tells nobody what was asked. Key and body stand in it as HMACs under the row key, and the
//! answer is hidden, since some answers show a secret this once.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::domain::json::canonical::canonical;
use crate::domain::keys::{EncryptedValue, RowKey};
use crate::domain::primitives::id::PrincipalId;
use crate::domain::primitives::secret::Secret;
use crate::domain::primitives::time::Timestamp;

/// A UUID or a job's name with room to spare; what is longer is no name.
pub const KEY_BYTES_MAX: usize = 255;

/// A held proposal's whole difference, of nearly every state there is. What is longer is answered and not kept.
pub const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// What a sender calls a request: `Idempotency-Key`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Reads a header's value: characters that can be seen, and no space.
    pub fn read(text: &str) -> Option<Self> {
        let fits = (1..=KEY_BYTES_MAX).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_graphic());
        fits.then(|| Self(text.to_owned()))
    }
}

/// A request that has a key: by whom, which, and what it asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdempotentRequest {
    /// The key's row: of one token, one method and one path.
    pub id: String,
    pub token: PrincipalId,
    /// What is asked, byte for byte.
    pub request: String,
}

impl IdempotentRequest {
    pub fn new(
        key: &RowKey,
        token: PrincipalId,
        (method, path): (&str, &str),
        named: &IdempotencyKey,
        body: &[u8],
    ) -> Self {
        let scope = canonical(&json!([token, method, path, named.0]));
        let id = hmac(key, b"countersign.repeat-key.v1\0", scope.as_bytes());
        Self { id, token, request: hmac(key, b"countersign.repeat-body.v1\0", body) }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredResponse {
    pub status: u16,
    /// With which bytes.
    pub body: Secret<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdempotencyRecord {
    pub id: String,
    pub token: PrincipalId,
    pub request: String,
    /// With which status it was answered.
    pub status: u16,
    pub until: Timestamp,
    /// The answer; nothing, if it is too long to be kept.
    pub body: Option<EncryptedValue>,
}

/// Why a request that has a key is neither carried out nor answered as before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IdempotencyError {
    /// Another request had the key.
    #[error("another body was sent under this Idempotency-Key; give each request its own")]
    Differs,
    /// The one before has no answer yet.
    #[error("the same request is being carried out; send it again in a moment")]
    Running,
    /// It was carried out, and its answer is not there to be given again.
    #[error("it was carried out before, and its answer was too long to be kept; read what became of it")]
    TooLong,
}

impl IdempotencyError {
    pub const ALL: &'static [Self] = &[Self::Differs, Self::Running, Self::TooLong];

    pub const fn code(self) -> &'static str {
        match self {
            Self::Differs => "idempotency_key_reused",
            Self::Running => "request_in_progress",
            Self::TooLong => "answer_not_kept",
        }
    }
}

impl IdempotencyRecord {
    /// An answer to keep. `random` is used once.
    pub fn new(
        key: &RowKey,
        asked: &IdempotentRequest,
        told: &StoredResponse,
        until: Timestamp,
        random: [u8; 24],
    ) -> Self {
        let IdempotentRequest { id, token, request } = asked.clone();
        let mut kept = Self { id, token, request, status: told.status, until, body: None };
        if told.body.expose().len() <= ANSWER_BYTES_MAX {
            kept.body = Some(key.hide(&kept.place(), told.body.expose(), random));
        }
        kept
    }

    pub fn is_kept(&self, now: Timestamp) -> bool {
        now < self.until
    }

    /// Whether what is hidden in it is this row's own. An audit asks.
    pub fn is_whole(&self, key: &RowKey) -> bool {
        self.body.as_ref().is_none_or(|it| key.show(&self.place(), it).is_some())
    }

    /// What was answered, to whoever asks the same; `None` if what is hidden here is of another row.
    pub fn answer(&self, key: &RowKey, asked: &IdempotentRequest) -> Option<Result<StoredResponse, IdempotencyError>> {
        if self.request != asked.request {
            return Some(Err(IdempotencyError::Differs));
        }
        let Some(hidden) = &self.body else { return Some(Err(IdempotencyError::TooLong)) };
        let body = key.show(&self.place(), hidden)?;
        Some(Ok(StoredResponse { status: self.status, body }))
    }

    /// What the hidden answer is bound to: everything else in the row.
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
    use crate::domain::keys::Keys;

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
        IdempotentRequest::new(keys().row(), PrincipalId::try_from(token).unwrap(), route, &named, body)
    }

    fn told(body: &str) -> StoredResponse {
        StoredResponse { status: 201, body: Secret::new(body.to_owned()) }
    }

    #[test]
    fn a_key_is_one_word_that_can_be_seen() {
        for good in ["k", "a b".replace(' ', "-").as_str(), "\"8e03978e\"", "~".repeat(KEY_BYTES_MAX).as_str()] {
            assert!(IdempotencyKey::read(good).is_some(), "{good}");
        }
        for bad in ["", " ", "a b", "a\tb", "é", "~".repeat(KEY_BYTES_MAX + 1).as_str()] {
            assert!(IdempotencyKey::read(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_key_is_of_one_token_one_method_and_one_path() {
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
    fn the_row_of_an_answer_has_nothing_of_it_in_clear_and_opens_only_as_it_is() {
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
    fn what_is_too_long_is_not_kept_and_not_done_twice() {
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
