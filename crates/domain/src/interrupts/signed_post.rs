//! Posts that host applications sign by Standard Webhooks: their secrets, and the check of signatures.
//!
//! The crate `standardwebhooks` could check signatures too, but it reads the system clock, which tests cannot move. Its
//! arithmetic overflows for extreme timestamps, and it needs another HTTP library and a second HMAC. A test signs with
//! the public Python library.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::keys::RowKey;
use crate::primitives::id::TokenId;
use crate::primitives::secret::Secret;
use crate::primitives::time::Timestamp;

#[cfg(test)]
mod tests;

/// The secret for signed posts of a token. The secret is derived whenever it is needed, so no row contains it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SigningSecretRef {
    /// The number of the secret, from 1.
    pub generation: u32,
    /// The time since which it is valid.
    pub since: Timestamp,
}

/// The time in which the previous secret stays valid after a rotation. To end a secret at once, revoke the token.
const OVERLAP: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

/// The tolerance for timestamps, from the standard.
const TOLERANCE_SECS: u64 = 5 * 60;

/// The prefix of secrets, from the standard.
const SECRET_PREFIX: &str = "whsec_";

/// The limit of signatures per post. A sender that rotates its secret sends two.
const SIGNATURES_MAX: usize = 8;

/// The length limit of ids, which are UUIDs or similar.
const ID_CHARS_MAX: usize = 200;

/// The limit of digits. Seconds since 1970 have ten digits for the next centuries.
const TIMESTAMP_DIGITS_MAX: usize = 12;

/// The headers and the body of a signed post.
#[derive(Clone, Copy, Debug)]
pub struct SignedPost<'a> {
    /// `webhook-id`.
    pub id: &'a str,
    /// `webhook-timestamp`.
    pub timestamp: &'a str,
    /// `webhook-signature`.
    pub signatures: &'a str,
    /// The unchanged bytes of the body. The signature covers them.
    pub body: &'a [u8],
}

/// The reason why a signed post is rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PostRejected {
    /// The headers are invalid, or no known secret signed the post.
    Unsigned,
    /// The signature is valid, but the timestamp is too far from now.
    Stale,
}

struct HostSigningSecret(Zeroizing<[u8; 32]>);

impl HostSigningSecret {
    /// Derives the secret. Ids and numbers contain no zero byte, so no two tokens or generations have the same secret.
    fn of(key: &RowKey, token: &TokenId, generation: u32) -> Self {
        // The prefix separates this use of the row key from all others.
        let message = format!("countersign.post-secret.v1\0{token}\0{generation}");
        Self(Zeroizing::new(key.hmac(message.as_bytes())))
    }

    fn has_signed(&self, post: &SignedPost<'_>) -> bool {
        // HMAC takes keys of any length, so the early return is never reached.
        let Ok(mac) = Hmac::<Sha256>::new_from_slice(self.0.as_slice()) else { return false };
        let mac = mac.chain_update(post.id).chain_update(".").chain_update(post.timestamp).chain_update(".");
        let mac = mac.chain_update(post.body);
        // The standard separates several signatures by spaces. Other versions than `v1` are ignored.
        let given = post.signatures.split(' ').take(SIGNATURES_MAX).filter_map(|it| it.strip_prefix("v1,"));
        // The comparison takes constant time, against timing attacks.
        given.filter_map(|it| STANDARD.decode(it).ok()).any(|it| mac.clone().verify_slice(&it).is_ok())
    }
}

impl SigningSecretRef {
    /// Returns the first secret or the next one.
    pub fn next(before: Option<Self>, now: Timestamp) -> Self {
        Self { generation: before.map_or(0, |it| it.generation).saturating_add(1), since: now }
    }

    /// Returns the secret in its displayed form.
    pub fn secret(&self, key: &RowKey, token: &TokenId) -> Secret<String> {
        let secret = HostSigningSecret::of(key, token, self.generation);
        Secret::new(format!("{SECRET_PREFIX}{}", STANDARD.encode(secret.0.as_slice())))
    }

    /// Checks that the token's holder signed the post recently.
    pub fn check(
        &self,
        key: &RowKey,
        token: &TokenId,
        post: &SignedPost<'_>,
        now: Timestamp,
    ) -> Result<(), PostRejected> {
        // The previous secret stays valid during the overlap, so a host can rotate without an outage.
        let before = self.generation.checked_sub(1).filter(|it| *it > 0 && now < self.since.plus(OVERLAP));
        let mut good =
            [Some(self.generation), before].into_iter().flatten().map(|it| HostSigningSecret::of(key, token, it));
        // The signature is checked before the timestamp, so `Stale` reveals nothing to an unsigned post.
        if !post.is_named() || !good.any(|it| it.has_signed(post)) {
            return Err(PostRejected::Unsigned);
        }
        let sent: i64 = post.timestamp.parse().map_err(|_| PostRejected::Unsigned)?;
        if now.seconds().abs_diff(sent) <= TOLERANCE_SECS { Ok(()) } else { Err(PostRejected::Stale) }
    }
}

impl SignedPost<'_> {
    /// Checks that neither id nor timestamp has a full stop. Otherwise the signed text could be split in two ways.
    fn is_named(&self) -> bool {
        let plain = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b':' | b'_' | b'-' | b'+' | b'/' | b'=');
        (1..=ID_CHARS_MAX).contains(&self.id.len())
            && self.id.bytes().all(plain)
            && (1..=TIMESTAMP_DIGITS_MAX).contains(&self.timestamp.len())
            && self.timestamp.bytes().all(|it| it.is_ascii_digit())
    }
}
