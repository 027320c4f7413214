//! Secrets that never leave the process. They are wiped when dropped, and print as `[redacted]`.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::Signer as _;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

use super::{KeyState, KeyUse, PublicKey};

/// A signing key, or the next one.
#[derive(Clone)]
pub struct SigningKey {
    public: PublicKey,
    private: ed25519_dalek::SigningKey,
}

impl SigningKey {
    pub(super) fn generate(key_use: KeyUse, state: KeyState, random: &mut impl FnMut(&mut [u8])) -> Self {
        Self::of(key_use, state, &draw(random))
    }

    pub(super) fn of(key_use: KeyUse, state: KeyState, private: &[u8; 32]) -> Self {
        let private = ed25519_dalek::SigningKey::from_bytes(private);
        Self { public: PublicKey::of(key_use, state, private.verifying_key()), private }
    }

    pub(super) fn in_state(self, state: KeyState) -> Self {
        Self { public: self.public.in_state(state), private: self.private }
    }

    pub(super) fn private(&self) -> &[u8; 32] {
        self.private.as_bytes()
    }

    /// Returns the key's name: the RFC 7638 thumbprint.
    pub fn kid(&self) -> &str {
        self.public.kid()
    }

    /// Returns the signature over the message.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.private.sign(message).to_bytes()
    }

    pub fn public(&self) -> &PublicKey {
        &self.public
    }
}

/// HMAC-SHA-256 with a precomputed key schedule, which halves the cost of a MAC.
#[derive(Clone)]
struct HmacKeySchedule(Hmac<Sha256>);

impl HmacKeySchedule {
    fn new(key: &[u8; 32]) -> Self {
        Self(Hmac::new_from_slice(key).expect("HMAC takes keys of any length"))
    }

    fn hmac(&self, bytes: &[u8]) -> [u8; 32] {
        // The clone keeps the computed schedule for the next MAC.
        self.0.clone().chain_update(bytes).finalize().into_bytes().into()
    }

    /// Returns a name for the key that reveals nothing of it.
    fn id(&self, label: &str) -> String {
        /// 96 bits, so that two keyrings never share it by chance.
        const ID_BYTES: usize = 12;
        URL_SAFE_NO_PAD.encode(&self.hmac(label.as_bytes())[..ID_BYTES])
    }
}

/// The key that salts commitments. It never rotates, because old salts could not be computed again.
pub struct SaltKey {
    bytes: Zeroizing<[u8; 32]>,
    schedule: HmacKeySchedule,
}

impl SaltKey {
    pub(super) fn generate(random: &mut impl FnMut(&mut [u8])) -> Self {
        Self::of(draw(random))
    }

    pub(super) fn of(bytes: Zeroizing<[u8; 32]>) -> Self {
        Self { schedule: HmacKeySchedule::new(&bytes), bytes }
    }

    pub(super) fn bytes(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// A label with spaces, which no thread id can have, so that it is the secret of no thread.
    pub(super) fn id(&self) -> String {
        self.schedule.id("countersign salt key id v1")
    }

    /// Returns the secret that salts the leaves of one thread: HMAC-SHA-256(salt key, thread id).
    pub fn thread_secret(&self, thread: &str) -> ThreadSecret {
        ThreadSecret::from_bytes(&Zeroizing::new(self.schedule.hmac(thread.as_bytes())))
    }
}

/// Secret that salts the leaves of one thread.
pub struct ThreadSecret(HmacKeySchedule);

impl ThreadSecret {
    /// Returns the secret from bytes, for test vectors.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self(HmacKeySchedule::new(bytes))
    }

    /// Returns the HMAC-SHA-256 under the secret.
    pub fn hmac(&self, bytes: &[u8]) -> [u8; 32] {
        self.0.hmac(bytes)
    }
}

/// The key that seals rows, so that an edited, moved, swapped or inserted row is detected.
pub struct RowKey {
    bytes: Zeroizing<[u8; 32]>,
    schedule: HmacKeySchedule,
    id: String,
}

impl RowKey {
    pub(super) fn generate(random: &mut impl FnMut(&mut [u8])) -> Self {
        Self::of(draw(random))
    }

    pub(super) fn of(bytes: Zeroizing<[u8; 32]>) -> Self {
        let schedule = HmacKeySchedule::new(&bytes);
        Self { id: schedule.id("countersign row key id v1"), schedule, bytes }
    }

    /// Returns the key from bytes, for test vectors.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self::of(Zeroizing::new(*bytes))
    }

    pub(super) fn bytes(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// Returns the key's name, which is stored with a seal. It is derived from the key, so it cannot be wrong.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the seal over these bytes.
    pub fn hmac(&self, bytes: &[u8]) -> [u8; 32] {
        self.schedule.hmac(bytes)
    }

    /// Returns whether `seal` is the seal over these bytes, in constant time.
    pub fn checks(&self, bytes: &[u8], seal: &[u8]) -> bool {
        self.schedule.0.clone().chain_update(bytes).verify_slice(seal).is_ok()
    }
}

fn draw(random: &mut impl FnMut(&mut [u8])) -> Zeroizing<[u8; 32]> {
    let mut bytes = Zeroizing::new([0; 32]);
    random(bytes.as_mut_slice());
    bytes
}

macro_rules! redacted {
    ($($name:ident)*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($name), "([redacted])"))
            }
        }
    )*};
}

redacted! { SaltKey ThreadSecret RowKey }

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("public", &self.public).field("private", &"[redacted]").finish()
    }
}
