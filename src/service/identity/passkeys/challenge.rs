//! The challenge of a registration or a sign-in: made here, for one browser and one purpose, and good for minutes.
//!
//! Nothing is kept of one that was never answered, so that nobody fills the database by opening pages. Whoever answers
//! one leaves it in the row that comes of it, where no two rows can have the same: it counts once, on every gateway.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::domain::keys::RowKey;
use crate::domain::primitives::time::Timestamp;
use crate::random;

/// What the MAC is of. Seals of rows and nonces of forms begin with other tags.
const TAG: &[u8] = b"countersign.challenge.v1";

/// 128 bits never come twice.
const RANDOM_BYTES: usize = 16;

/// A moment in milliseconds.
const MOMENT_BYTES: usize = 8;

/// An HMAC-SHA-256.
const MAC_BYTES: usize = 32;

/// Long enough to find a key and type its PIN, and what a signature of a vote may be old.
pub const CHALLENGE_TTL: Duration = Duration::from_secs(300);

/// What a challenge is for, and for whom.
#[derive(Clone, Copy, Debug)]
pub enum ChallengePurpose<'a> {
    /// To sign in, by the browser that holds this.
    SignIn {
        /// The secret of its cookie.
        door: &'a str,
    },
    /// To register a passkey, in this session.
    Add { session: &'a str },
    /// To let another passkey be registered.
    AllowAdding {
        session: &'a str,
        /// The challenge that the other one is registered with.
        registration: &'a str,
    },
    /// To let somebody else vote in one's place.
    AllowDelegating {
        session: &'a str,
        /// Whom, for how long, and which of the person's it is.
        terms: &'a str,
    },
    /// To let a passkey be removed.
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

    /// Every part with its length before it, so that nothing can move from one part to the next.
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

/// A new challenge, as pages carry it.
pub(super) fn new(key: &RowKey, purpose: &ChallengePurpose<'_>, now: Timestamp) -> String {
    let mut bytes = random::bytes::<RANDOM_BYTES>().to_vec();
    bytes.extend_from_slice(&now.plus(CHALLENGE_TTL).millis().to_be_bytes());
    let mac = key.hmac(&purpose.message(&bytes));
    bytes.extend_from_slice(&mac);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The bytes of a challenge, if it was made here for exactly this and can still be answered.
pub(super) fn read(key: &RowKey, purpose: &ChallengePurpose<'_>, text: &str, now: Timestamp) -> Option<Vec<u8>> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (nonce, mac) = bytes.split_at_checked(RANDOM_BYTES + MOMENT_BYTES)?;
    let until = i64::from_be_bytes(nonce[RANDOM_BYTES..].try_into().ok()?);
    let ours = mac.len() == MAC_BYTES && key.checks(&purpose.message(nonce), mac);
    (ours && now < Timestamp::from_millis(until)).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::keys::Keys;

    fn keys() -> Keys {
        Keys::generate("https://gate.example", Timestamp::from_millis(0), &mut random::fill).unwrap()
    }

    #[test]
    fn a_challenge_is_good_for_its_own_browser_and_purpose_only() {
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
    fn a_challenge_ends_after_five_minutes_and_its_end_cannot_be_put_off() {
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
