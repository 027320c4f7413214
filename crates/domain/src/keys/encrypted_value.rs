//! Encrypts the secrets of other systems that the gateway must read back, such as a secret address or a header value.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::RowKey;
use crate::primitives::secret::Secret;

/// A text that only the holder of the row key can read. It is bound to its location and cannot be decrypted for
/// another one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EncryptedValue(String);

/// Random nonces of this length never repeat by chance, whatever the number of encrypted values.
const NONCE_BYTES: usize = 24;

impl RowKey {
    fn cipher(&self) -> XChaCha20Poly1305 {
        // A derived key separates encryption from the seals, which use the row key itself.
        let key = Zeroizing::new(self.hmac(b"countersign.hidden-text.v1"));
        XChaCha20Poly1305::new(&Key::from(*key))
    }

    /// Encrypts a text for a location. `random` is called once.
    pub fn hide(&self, place: &str, text: &str, random: [u8; NONCE_BYTES]) -> EncryptedValue {
        let payload = Payload { msg: text.as_bytes(), aad: place.as_bytes() };
        let sealed = self.cipher().encrypt(&XNonce::from(random), payload).expect("a text is far below the bound");
        // The nonce is not secret, and decryption needs it.
        EncryptedValue(STANDARD_NO_PAD.encode([random.as_slice(), &sealed].concat()))
    }

    /// Returns the text, if it was encrypted for that location under this key.
    pub fn show(&self, place: &str, hidden: &EncryptedValue) -> Option<Secret<String>> {
        let bytes = STANDARD_NO_PAD.decode(&hidden.0).ok()?;
        let (random, sealed) = bytes.split_first_chunk::<NONCE_BYTES>()?;
        let payload = Payload { msg: sealed, aad: place.as_bytes() };
        let text = self.cipher().decrypt(&XNonce::from(*random), payload).ok()?;
        String::from_utf8(text).ok().map(Secret::new)
    }
}
