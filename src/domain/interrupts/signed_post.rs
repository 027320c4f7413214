//! Posts that a host signs, by Standard Webhooks: what its secret is, and whether a signature counts.
//!
//! The crate `standardwebhooks` checks such signatures, too. It reads the machine's clock by itself, while here there is
//! one source of time, which tests move; a timestamp at the end of its numbers overflows in it; and it wants the headers of another HTTP
//! library and a second HMAC. What it would do is the function below. The public library for Python signs in the tests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::domain::keys::RowKey;
use crate::domain::primitives::id::TokenId;
use crate::domain::primitives::secret::Secret;
use crate::domain::primitives::time::Timestamp;

#[cfg(test)]
mod tests;

/// Which secret a token's holder signs with. The secret itself is worked out again when it is needed, so that no row has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SigningSecretRef {
    /// How many were made, from 1.
    pub generation: u32,
    /// Since when this one counts.
    pub since: Timestamp,
}

/// While a new secret is put where the old one was, both count. Who must end one at once revokes the token.
const OVERLAP: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

/// As far as clocks and queues may be apart, by the standard.
const TOLERANCE_SECS: u64 = 5 * 60;

/// What every such secret begins with, by the standard.
const SECRET_PREFIX: &str = "whsec_";

/// A sender that rotates sends two.
const SIGNATURES_MAX: usize = 8;

/// Names are UUIDs or like them.
const ID_CHARS_MAX: usize = 200;

/// Seconds since 1970 have ten digits for the next centuries.
const TIMESTAMP_DIGITS_MAX: usize = 12;

/// A post as its headers and its body say it.
#[derive(Clone, Copy, Debug)]
pub struct SignedPost<'a> {
    /// `webhook-id`.
    pub id: &'a str,
    /// `webhook-timestamp`.
    pub timestamp: &'a str,
    /// `webhook-signature`.
    pub signatures: &'a str,
    /// The body, byte for byte.
    pub body: &'a [u8],
}

/// Why a signed post does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PostRejected {
    /// Its headers are not those of the standard, or nobody here has signed it.
    Unsigned,
    /// It is signed, and its timestamp is too far from now.
    Stale,
}

/// A secret that a host signs with.
struct HostSigningSecret(Zeroizing<[u8; 32]>);

impl HostSigningSecret {
    /// Neither an id nor a number has the zero byte in it, so that no two have the same secret.
    fn of(key: &RowKey, token: &TokenId, generation: u32) -> Self {
        let message = format!("countersign.post-secret.v1\0{token}\0{generation}");
        Self(Zeroizing::new(key.hmac(message.as_bytes())))
    }

    fn has_signed(&self, post: &SignedPost<'_>) -> bool {
        let Ok(mac) = Hmac::<Sha256>::new_from_slice(self.0.as_slice()) else { return false };
        let mac = mac.chain_update(post.id).chain_update(".").chain_update(post.timestamp).chain_update(".");
        let mac = mac.chain_update(post.body);
        let given = post.signatures.split(' ').take(SIGNATURES_MAX).filter_map(|it| it.strip_prefix("v1,"));
        // Compared so that it takes as long whichever bit is wrong.
        given.filter_map(|it| STANDARD.decode(it).ok()).any(|it| mac.clone().verify_slice(&it).is_ok())
    }
}

impl SigningSecretRef {
    /// The first, or the one after.
    pub fn next(before: Option<Self>, now: Timestamp) -> Self {
        Self { generation: before.map_or(0, |it| it.generation).saturating_add(1), since: now }
    }

    /// The secret as its holder is given it.
    pub fn secret(&self, key: &RowKey, token: &TokenId) -> Secret<String> {
        let secret = HostSigningSecret::of(key, token, self.generation);
        Secret::new(format!("{SECRET_PREFIX}{}", STANDARD.encode(secret.0.as_slice())))
    }

    /// Whether the token's holder has signed this, lately.
    pub fn check(
        &self,
        (key, token): (&RowKey, &TokenId),
        post: &SignedPost<'_>,
        now: Timestamp,
    ) -> Result<(), PostRejected> {
        let before = self.generation.checked_sub(1).filter(|it| *it > 0 && now < self.since.plus(OVERLAP));
        let mut good =
            [Some(self.generation), before].into_iter().flatten().map(|it| HostSigningSecret::of(key, token, it));
        if !post.is_named() || !good.any(|it| it.has_signed(post)) {
            return Err(PostRejected::Unsigned);
        }
        let sent: i64 = post.timestamp.parse().map_err(|_| PostRejected::Unsigned)?;
        if now.seconds().abs_diff(sent) <= TOLERANCE_SECS { Ok(()) } else { Err(PostRejected::Stale) }
    }
}

impl SignedPost<'_> {
    /// Whether id and timestamp are such that what is signed can be taken apart in one way: neither has a full stop.
    fn is_named(&self) -> bool {
        let plain = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b':' | b'_' | b'-' | b'+' | b'/' | b'=');
        (1..=ID_CHARS_MAX).contains(&self.id.len())
            && self.id.bytes().all(plain)
            && (1..=TIMESTAMP_DIGITS_MAX).contains(&self.timestamp.len())
            && self.timestamp.bytes().all(|it| it.is_ascii_digit())
    }
}
