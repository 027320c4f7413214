//! CSRF tokens in forms.
//!
//! The token is derived from a cookie that only this origin sets, so other sites cannot compute it. Each form contains
//! the token under its own random mask. Without the mask the compressed length of a page could reveal the token, if an
//! attacker controls other text on the page (BREACH).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_adapters::random;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The same length as the session secret.
const BYTES: usize = 32;

/// The CSRF token of one browser.
#[derive(Clone)]
pub struct CsrfToken([u8; BYTES]);

impl CsrfToken {
    /// Derives the token of the browser whose cookie contains this secret.
    pub fn of(secret: &str) -> Self {
        let mut hasher = Sha256::new();
        // The label keeps this hash distinct from other hashes of the same secret.
        hasher.update(b"countersign.csrf.v1\0");
        hasher.update(secret.as_bytes());
        Self(hasher.finalize().into())
    }

    /// Returns the token for a form: a random mask and the masked token. Each result is different.
    pub fn shown(&self) -> String {
        let mask = random::bytes::<BYTES>();
        let under = under(&mask, &self.0);
        URL_SAFE_NO_PAD.encode([mask, under].concat())
    }

    /// Returns true if this browser was shown a form with this text.
    pub fn is_shown_as(&self, given: &str) -> bool {
        let Ok(given) = URL_SAFE_NO_PAD.decode(given) else { return false };
        let Some((mask, covered)) = given.split_first_chunk::<BYTES>() else { return false };
        // The comparison takes constant time, so that its duration does not reveal how much of a guess is right.
        bool::from(under(mask, &self.0).ct_eq(covered))
    }
}

fn under(mask: &[u8; BYTES], token: &[u8; BYTES]) -> [u8; BYTES] {
    std::array::from_fn(|at| mask[at] ^ token[at])
}

/// `Debug` omits the token, because anyone who has it can submit that browser's forms.
impl std::fmt::Debug for CsrfToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Debug output can reach the server log, which must not contain the token.
        f.write_str("FormToken(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_recognized_under_every_mask() {
        let token = CsrfToken::of("a secret");
        let (one, other) = (token.shown(), token.shown());
        assert!(token.is_shown_as(&one) && token.is_shown_as(&other));
        assert_ne!(one, other);
        let plain = URL_SAFE_NO_PAD.encode(token.0);
        assert!(!one.contains(&plain) && !other.contains(&plain));
        assert!(!format!("{token:?}").contains(&plain));
    }

    #[test]
    fn foreign_changed_or_unmasked_token_is_refused() {
        let token = CsrfToken::of("a secret");
        assert!(!token.is_shown_as(&CsrfToken::of("another").shown()));
        let mut bytes = URL_SAFE_NO_PAD.decode(token.shown()).unwrap();
        for at in [0, BYTES - 1, BYTES, 2 * BYTES - 1] {
            bytes[at] ^= 1;
            assert!(!token.is_shown_as(&URL_SAFE_NO_PAD.encode(&bytes)), "{at}");
            bytes[at] ^= 1;
        }
        assert!(token.is_shown_as(&URL_SAFE_NO_PAD.encode(&bytes)));
        bytes.push(0);
        for wrong in [bytes.as_slice(), &bytes[..BYTES], &token.0, &[]] {
            assert!(!token.is_shown_as(&URL_SAFE_NO_PAD.encode(wrong)), "{wrong:?}");
        }
        assert!(!token.is_shown_as("no base64"));
    }
}
