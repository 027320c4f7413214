//! Challenges for registering and signing in with passkeys. Each is made for one browser and one purpose, and is valid
//! for some minutes.
//!
//! Unanswered challenges are not stored, so opening pages cannot fill the database. An answered challenge is stored in
//! the row that results from it. No two rows can have the same challenge, so it works only once across all gateways.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_adapters::random;
use countersign_domain::keys::RowKey;
use countersign_domain::primitives::time::Timestamp;

/// Prefix of the MAC input. Seals of rows and nonces of forms use other prefixes.
const TAG: &[u8] = b"countersign.challenge.v1";

/// 128 random bits do not repeat.
const RANDOM_BYTES: usize = 16;

/// A time in milliseconds.
const MOMENT_BYTES: usize = 8;

/// Length of an HMAC-SHA-256.
const MAC_BYTES: usize = 32;

/// Long enough to find a key and type its PIN. Also the maximum age of the signature of a vote.
pub const CHALLENGE_TTL: Duration = Duration::from_secs(300);

/// Purpose and recipient of a challenge.
#[derive(Clone, Copy, Debug)]
pub enum ChallengePurpose<'a> {
    /// Sign-in by the browser that has this secret.
    SignIn {
        /// Secret of its cookie.
        door: &'a str,
    },
    /// Registration of a passkey in this session.
    Add { session: &'a str },
    /// Confirmation that another passkey may be registered.
    AllowAdding {
        session: &'a str,
        /// Challenge of that registration.
        registration: &'a str,
    },
    /// Confirmation of a delegation.
    AllowDelegating {
        session: &'a str,
        /// Person, length and number of the delegation.
        terms: &'a str,
    },
    /// Confirmation that a passkey may be removed.
    AllowRemoving { session: &'a str, passkey: &'a str },
}

impl ChallengePurpose<'_> {
    const fn parts(&self) -> [&str; 3] {
        match self {
            Self::SignIn { door } => ["sign-in", door, ""],
            Self::Add { session } => ["add", session, ""],
            Self::AllowAdding { session, registration } => ["allow-adding", session, registration],
            Self::AllowDelegating { session, terms } => ["allow-delegating", session, terms],
            Self::AllowRemoving { session, passkey } => ["allow-removing", session, passkey],
        }
    }

    /// Returns the MAC input. The length of each part comes before it, so that no bytes can move from one part to the
    /// next.
    fn message(&self, nonce: &[u8]) -> Vec<u8> {
        let mut message = Vec::new();
        let parts = self.parts();
        for part in [TAG, parts[0].as_bytes(), parts[1].as_bytes(), parts[2].as_bytes(), nonce] {
            message.extend_from_slice(&(part.len() as u64).to_be_bytes());
            message.extend_from_slice(part);
        }
        message
    }
}

/// Returns a new challenge in the form that pages contain.
pub(super) fn new(key: &RowKey, purpose: &ChallengePurpose<'_>, now: Timestamp) -> String {
    let mut bytes = random::bytes::<RANDOM_BYTES>().to_vec();
    bytes.extend_from_slice(&now.plus(CHALLENGE_TTL).millis().to_be_bytes());
    let mac = key.hmac(&purpose.message(&bytes));
    bytes.extend_from_slice(&mac);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Returns the bytes of a challenge if this gateway made it for exactly this purpose and it has not expired.
pub(super) fn read(key: &RowKey, purpose: &ChallengePurpose<'_>, text: &str, now: Timestamp) -> Option<Vec<u8>> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (nonce, mac) = bytes.split_at_checked(RANDOM_BYTES + MOMENT_BYTES)?;
    let until = i64::from_be_bytes(nonce[RANDOM_BYTES..].try_into().ok()?);
    // The MAC is checked before the expiry is used, because only the MAC makes the expiry trustworthy.
    let ours = mac.len() == MAC_BYTES && key.checks(&purpose.message(nonce), mac);
    (ours && now < Timestamp::from_millis(until)).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_domain::keys::Keys;

    fn keys() -> Keys {
        Keys::generate("https://gate.example", Timestamp::from_millis(0), &mut random::fill).unwrap()
    }

    #[test]
    fn challenge_is_valid_for_its_browser_and_purpose_only() {
        let (keys, others, now) = (keys(), keys(), Timestamp::from_millis(1000));
        let purpose = ChallengePurpose::AllowAdding { session: "s1", registration: "r1" };
        let challenge = new(keys.row(), &purpose, now);
        let read = |purpose: &ChallengePurpose<'_>| read(keys.row(), purpose, &challenge, now);
        assert!(read(&purpose).is_some());
        for other in [
            ChallengePurpose::AllowAdding { session: "s2", registration: "r1" },
            ChallengePurpose::AllowAdding { session: "s1", registration: "r2" },
            ChallengePurpose::AllowRemoving { session: "s1", passkey: "r1" },
            ChallengePurpose::AllowDelegating { session: "s1", terms: "r1" },
            ChallengePurpose::Add { session: "s1" },
            ChallengePurpose::SignIn { door: "s1" },
            ChallengePurpose::AllowAdding { session: "s1r", registration: "1" },
        ] {
            assert_eq!(read(&other), None, "{other:?}");
        }
        assert_eq!(super::read(others.row(), &purpose, &challenge, now), None, "another gateway's key");
        assert_eq!(super::read(keys.row(), &purpose, &challenge[..challenge.len() - 4], now), None);
        assert_ne!(challenge, new(keys.row(), &purpose, now), "no two are the same");
    }

    #[test]
    fn challenge_expires_after_five_minutes() {
        let (keys, now) = (keys(), Timestamp::from_millis(1000));
        let purpose = ChallengePurpose::SignIn { door: "d" };
        let challenge = new(keys.row(), &purpose, now);
        let at = |moment| read(keys.row(), &purpose, &challenge, moment).is_some();
        assert!(at(now.plus(CHALLENGE_TTL - Duration::from_millis(1))));
        assert!(!at(now.plus(CHALLENGE_TTL)));
        let mut bytes = URL_SAFE_NO_PAD.decode(&challenge).unwrap();
        bytes[RANDOM_BYTES] ^= 0x40;
        assert_eq!(read(keys.row(), &purpose, &URL_SAFE_NO_PAD.encode(bytes), now), None);
    }
}
