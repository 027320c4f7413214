//! The one-time nonce of a decision form, for one session, page, digest and stage. It prevents a replay of the form.
//!
//! This module checks that the gateway made the nonce. `Hold::vote` checks that it is used once.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_adapters::random;
use countersign_domain::chain::hash::Digest;
use countersign_domain::keys::RowKey;
use countersign_domain::primitives::id::SessionId;

/// Domain tag of the MAC. Row seals start with another tag, so neither can replace the other.
const TAG: &[u8] = b"countersign.nonce.v1";

/// 128 random bits do not repeat.
const RANDOM_BYTES: usize = 16;

/// An HMAC-SHA-256.
const MAC_BYTES: usize = 32;

#[derive(Clone, Copy, Debug)]
pub struct NonceBinding<'a> {
    pub session: &'a SessionId,
    /// Name of the page, such as the id of a review. Names are unique.
    pub page: &'a str,
    pub digest: Digest,
    pub stage: u32,
}

/// A nonce that the gateway made for its binding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nonce(String);

impl Nonce {
    pub fn new(key: &RowKey, binding: &NonceBinding<'_>) -> Self {
        let random = random::bytes::<RANDOM_BYTES>();
        let mut bytes = random.to_vec();
        // The nonce authenticates itself, so open forms need no row in the database.
        bytes.extend_from_slice(&key.hmac(&binding.message(&random)));
        Self(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Reads the nonce of a form. Returns `None` unless the gateway made it for exactly this binding.
    pub fn read(key: &RowKey, binding: &NonceBinding<'_>, text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (random, mac) = bytes.split_at_checked(RANDOM_BYTES)?;
        let ours = mac.len() == MAC_BYTES && key.checks(&binding.message(random), mac);
        ours.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl NonceBinding<'_> {
    /// Returns the parts with their lengths, so that bytes cannot move from one part to the next.
    fn message(&self, random: &[u8]) -> Vec<u8> {
        let (digest, stage) = (self.digest.to_string(), self.stage.to_be_bytes());
        let parts: [&[u8]; 6] =
            [TAG, self.session.as_str().as_bytes(), self.page.as_bytes(), digest.as_bytes(), &stage, random];
        let mut message = Vec::new();
        for part in parts {
            // The length before each part keeps two different lists of parts from giving the same message.
            message.extend_from_slice(&(part.len() as u64).to_be_bytes());
            message.extend_from_slice(part);
        }
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_domain::chain::hash::Tag;
    use countersign_domain::keys::Keys;
    use countersign_domain::primitives::time::Timestamp;

    fn keys() -> Keys {
        Keys::generate("https://gate.example", Timestamp::from_millis(0), &mut random::fill).unwrap()
    }

    fn session(text: &str) -> SessionId {
        SessionId::try_from(text).unwrap()
    }

    #[test]
    fn a_nonce_is_good_for_its_own_session_review_digest_and_stage_only() {
        let (keys, one, other) = (keys(), Digest::of(Tag::Patch, &[b"1"]), Digest::of(Tag::Patch, &[b"2"]));
        let (mine, theirs) = (session("s1"), session("s2"));
        let binding = NonceBinding { session: &mine, page: "r1", digest: one, stage: 0 };
        let nonce = Nonce::new(keys.row(), &binding);
        let read = |binding: &NonceBinding<'_>| Nonce::read(keys.row(), binding, nonce.as_str());
        assert_eq!(read(&binding), Some(nonce.clone()));
        assert_eq!(read(&NonceBinding { session: &theirs, ..binding }), None);
        assert_eq!(read(&NonceBinding { page: "r2", ..binding }), None);
        assert_eq!(read(&NonceBinding { digest: other, ..binding }), None);
        assert_eq!(read(&NonceBinding { stage: 1, ..binding }), None);
    }

    #[test]
    fn a_nonce_that_is_not_ours_is_refused() {
        let (keys, others) = (keys(), keys());
        let session = session("s1");
        let binding = NonceBinding { session: &session, page: "r1", digest: Digest::of(Tag::Patch, &[b"1"]), stage: 0 };
        let nonce = Nonce::new(keys.row(), &binding);
        assert_ne!(nonce, Nonce::new(keys.row(), &binding), "no two are the same");
        assert_eq!(Nonce::read(others.row(), &binding, nonce.as_str()), None);
        let cut = &nonce.as_str()[..nonce.as_str().len() - 4];
        for text in ["", "x", "nonce-1", cut, &URL_SAFE_NO_PAD.encode([0; 16]), &URL_SAFE_NO_PAD.encode([0; 48])] {
            assert_eq!(Nonce::read(keys.row(), &binding, text), None, "{text}");
        }
    }
}
