//! An immutable snapshot of the keyring: the keys that sign and the keys that verify.
//!
//! Rotation and revocation take one snapshot and return the next. A key has its private half only while it is `next`
//! or `signing`. Retiring or revoking a key deletes its private half, so an attacker who obtains the keyring later
//! cannot sign with a retired key.

mod encrypted_value;
mod keyring_json;
mod public;
mod secret;
#[cfg(test)]
mod tests;

use std::fmt;

use super::primitives::time::Timestamp;
pub use encrypted_value::EncryptedValue;
pub use public::{PublicKey, PublicKeys};
pub use secret::{RowKey, SaltKey, SigningKey, ThreadSecret};

use crate::primitives::named_enum::named_enum;

named_enum! {
    /// Purpose of a key. A key is never accepted for another purpose.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum KeyUse {
        /// Entries, receipts, denials, verifications.
        Chain = "chain",
        Log = "log",
        Webhook = "webhook",
    }
}

impl KeyUse {
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == name)
    }
}

named_enum! {
    /// Lifecycle state of a key.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum KeyState {
        /// Published before its first signature, so that every verifier has it.
        Next = "next",
        Signing = "signing",
        /// Signs nothing any more. Its entries stay valid.
        Retired = "retired",
        Revoked = "revoked",
    }
}

impl KeyState {
    pub fn named(name: &str) -> Option<Self> {
        [Self::Next, Self::Signing, Self::Retired, Self::Revoked].into_iter().find(|it| it.as_str() == name)
    }
}

/// Maximum length of an issuer. It fits any URN or origin, and a claim in every token.
pub const ISSUER_CHARS_MAX: usize = 256;

/// Why a keyring, its change or a set of published keys is rejected. Messages never contain a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeysError {
    /// Not a name that fits into a claim.
    #[error("the issuer must be 1 to {ISSUER_CHARS_MAX} visible ASCII characters")]
    Issuer,
    /// Not the JSON of a keyring. The parser's message is dropped, because it may quote a secret.
    #[error("not a keyring of format {} (line {line}, column {column})", keyring_json::FORMAT)]
    Document {
        /// Line of the text, from 1.
        line: usize,
        /// Column of the line, from 1.
        column: usize,
    },
    /// A member of a key's record does not fit the others.
    #[error("key {number} of the keyring: {problem}")]
    Record {
        /// Number of the record, from 1.
        number: usize,
        problem: &'static str,
    },
    /// Each use has exactly one key that signs and exactly one that is next.
    #[error("the keyring has {found} {} keys in state {}, it must have exactly one", key_use.as_str(), state.as_str())]
    NotOne { key_use: KeyUse, state: KeyState, found: usize },
    #[error("the keyring contains key {kid} twice")]
    Twice { kid: String },
    /// A key of small order. Its signature would be valid for almost every message.
    #[error("not a valid Ed25519 public key")]
    Weak,
    /// Not a JWKS as this project publishes it.
    #[error("not a published key of Countersign: {problem}")]
    Jwk { problem: &'static str },
    #[error("there is no key {kid}")]
    Unknown { kid: String },
}

/// Times at which a key was created and entered its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyDates {
    pub created_at: Timestamp,
    /// Start of its current state.
    pub since: Timestamp,
}

#[derive(Clone)]
struct DatedKey<K> {
    key: K,
    dates: KeyDates,
}

/// The two keys of one use that have a private half.
struct SigningKeySlots {
    signing: DatedKey<SigningKey>,
    next: DatedKey<SigningKey>,
}

/// An immutable snapshot of the keyring.
pub struct Keys {
    chain: SigningKeySlots,
    log: SigningKeySlots,
    webhook: SigningKeySlots,
    /// Retired and revoked keys, of which only the public half is left.
    spent: Vec<DatedKey<PublicKey>>,
    salt: SaltKey,
    row: RowKey,
    /// Public halves of all keys.
    public: PublicKeys,
}

impl Keys {
    /// Creates a keyring. `random` fills the buffer that it receives.
    pub fn generate(issuer: &str, now: Timestamp, random: &mut impl FnMut(&mut [u8])) -> Result<Self, KeysError> {
        let mut pair = |key_use| SigningKeySlots {
            signing: fresh(key_use, KeyState::Signing, now, random),
            next: fresh(key_use, KeyState::Next, now, random),
        };
        let (chain, log, webhook) = (pair(KeyUse::Chain), pair(KeyUse::Log), pair(KeyUse::Webhook));
        // Neither key rotates: every stored commitment and every seal depends on them.
        let (salt, row) = (SaltKey::generate(random), RowKey::generate(random));
        Self::assemble(issuer, KeyringParts { chain, log, webhook, spent: Vec::new(), salt, row })
    }

    /// Reads a keyring file.
    pub fn read(text: &str) -> Result<Self, KeysError> {
        keyring_json::read(text)
    }

    /// Returns the text of the keyring file, including private halves.
    pub fn write(&self) -> zeroize::Zeroizing<Vec<u8>> {
        keyring_json::write(self)
    }

    /// Returns the issuer (`iss`) of everything that the keyring signs.
    pub fn issuer(&self) -> &str {
        self.public.issuer().expect("a keyring is assembled with an issuer")
    }

    /// Returns the key that signs for this use.
    pub fn signing(&self, key_use: KeyUse) -> &SigningKey {
        &self.pair(key_use).signing.key
    }

    /// Returns the key that signs after the next rotation.
    pub fn next(&self, key_use: KeyUse) -> &PublicKey {
        self.pair(key_use).next.key.public()
    }

    /// Returns the key with this name if it is for this use, in any state.
    pub fn public(&self, key_use: KeyUse, kid: &str) -> Option<&PublicKey> {
        self.public.public(key_use, kid)
    }

    /// Returns every key of every use and state, as the JWKS lists them.
    pub fn published(&self) -> impl Iterator<Item = &PublicKey> {
        self.public.iter()
    }

    /// Returns the public keys that verify.
    pub fn trusted(&self) -> &PublicKeys {
        &self.public
    }

    /// Returns the key that salts commitments. It never rotates.
    pub fn salt(&self) -> &SaltKey {
        &self.salt
    }

    pub fn row(&self) -> &RowKey {
        &self.row
    }

    /// Returns the times at which a key was created and entered its state.
    pub fn dates(&self, kid: &str) -> Option<KeyDates> {
        let able = KeyUse::ALL.into_iter().flat_map(|key_use| {
            let SigningKeySlots { signing, next } = self.pair(key_use);
            [(signing.key.kid(), signing.dates), (next.key.kid(), next.dates)]
        });
        let spent = self.spent.iter().map(|it| (it.key.kid(), it.dates));
        able.chain(spent).find_map(|(it, dates)| (it == kid).then_some(dates))
    }

    /// Returns whether this can be a later snapshot of the same keyring, which keeps the parts that never change.
    pub fn continues(&self, earlier: &KeysIdentity) -> bool {
        self.identity() == *earlier
    }

    /// Returns the parts of the keyring that never change, without revealing a secret.
    pub fn identity(&self) -> KeysIdentity {
        KeysIdentity { issuer: self.issuer().to_owned(), salt: self.salt.id(), row: self.row.id().to_owned() }
    }

    /// Rotates the keys of a use: the next key signs, the signing key is retired, and a new next key is created.
    pub fn rotate(
        self,
        key_use: KeyUse,
        now: Timestamp,
        random: &mut impl FnMut(&mut [u8]),
    ) -> Result<Self, KeysError> {
        self.succeed(key_use, KeyState::Retired, now, random)
    }

    /// Revokes a key, so that everything it signed becomes invalid. If it was signing or next, another key takes its
    /// role. Revoking a revoked key has no effect.
    pub fn revoke(self, kid: &str, now: Timestamp, random: &mut impl FnMut(&mut [u8])) -> Result<Self, KeysError> {
        // Operators name a key only by its `kid`, so the keys of every use are searched.
        let Some(key) = self.public.iter().find(|it| it.kid() == kid) else {
            return Err(KeysError::Unknown { kid: kid.to_owned() });
        };
        let key_use = key.key_use();
        match key.state() {
            // A repeated revocation must not change the time of the first one.
            KeyState::Revoked => Ok(self),
            KeyState::Signing => self.succeed(key_use, KeyState::Revoked, now, random),
            KeyState::Next => {
                let (issuer, mut parts) = self.take_apart();
                let next = fresh(key_use, KeyState::Next, now, random);
                // A revoked next key would otherwise sign after the next rotation.
                let old = std::mem::replace(&mut parts.pair_mut(key_use).next, next);
                parts.spent.push(old.spend(KeyState::Revoked, now));
                Self::assemble(&issuer, parts)
            }
            KeyState::Retired => {
                let (issuer, mut parts) = self.take_apart();
                for old in parts.spent.iter_mut().filter(|it| it.key.kid() == kid) {
                    old.key = old.key.in_state(KeyState::Revoked);
                    old.dates.since = now;
                }
                Self::assemble(&issuer, parts)
            }
        }
    }

    /// Moves the signing key to the state `end`. The next key takes its place.
    fn succeed(
        self,
        key_use: KeyUse,
        end: KeyState,
        now: Timestamp,
        random: &mut impl FnMut(&mut [u8]),
    ) -> Result<Self, KeysError> {
        let (issuer, mut parts) = self.take_apart();
        let pair = parts.pair_mut(key_use);
        // Verifiers have known the next key since the last rotation, so they accept it at once.
        let promoted = std::mem::replace(&mut pair.next, fresh(key_use, KeyState::Next, now, random));
        let dates = KeyDates { since: now, ..promoted.dates };
        let signing = DatedKey { key: promoted.key.in_state(KeyState::Signing), dates };
        let old = std::mem::replace(&mut pair.signing, signing);
        // Only the public half is left, so a later theft of the file cannot sign with the old key.
        parts.spent.push(old.spend(end, now));
        Self::assemble(&issuer, parts)
    }

    fn pair(&self, key_use: KeyUse) -> &SigningKeySlots {
        match key_use {
            KeyUse::Chain => &self.chain,
            KeyUse::Log => &self.log,
            KeyUse::Webhook => &self.webhook,
        }
    }

    fn take_apart(self) -> (String, KeyringParts) {
        let issuer = self.issuer().to_owned();
        // The public list is derived, so it is built again from the changed parts.
        let Self { chain, log, webhook, spent, salt, row, public: _ } = self;
        (issuer, KeyringParts { chain, log, webhook, spent, salt, row })
    }

    fn assemble(issuer: &str, parts: KeyringParts) -> Result<Self, KeysError> {
        let KeyringParts { chain, log, webhook, spent, salt, row } = parts;
        let able = [&chain, &log, &webhook].into_iter().flat_map(|it| [it.signing.key.public(), it.next.key.public()]);
        let all = able.chain(spent.iter().map(|it| &it.key)).cloned().collect();
        // Every snapshot is checked as a whole, also one that was only rotated.
        let public = PublicKeys::new(Some(issuer.to_owned()), all)?;
        Ok(Self { chain, log, webhook, spent, salt, row, public })
    }
}

/// Prints the issuer and the names of the keys. Secrets never print.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("public", &self.public).field("secrets", &"[redacted]").finish()
    }
}

/// The parts of a keyring that never change: its issuer, and the fingerprints of its salt key and row key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeysIdentity {
    issuer: String,
    salt: String,
    row: String,
}

/// The parts of a keyring, for building the next snapshot.
struct KeyringParts {
    chain: SigningKeySlots,
    log: SigningKeySlots,
    webhook: SigningKeySlots,
    spent: Vec<DatedKey<PublicKey>>,
    salt: SaltKey,
    row: RowKey,
}

impl KeyringParts {
    fn pair_mut(&mut self, key_use: KeyUse) -> &mut SigningKeySlots {
        match key_use {
            KeyUse::Chain => &mut self.chain,
            KeyUse::Log => &mut self.log,
            KeyUse::Webhook => &mut self.webhook,
        }
    }
}

impl DatedKey<SigningKey> {
    /// Drops the private half.
    fn spend(self, state: KeyState, now: Timestamp) -> DatedKey<PublicKey> {
        DatedKey { key: self.key.public().in_state(state), dates: KeyDates { since: now, ..self.dates } }
    }
}

fn fresh(key_use: KeyUse, state: KeyState, now: Timestamp, random: &mut impl FnMut(&mut [u8])) -> DatedKey<SigningKey> {
    let key = SigningKey::generate(key_use, state, random);
    DatedKey { key, dates: KeyDates { created_at: now, since: now } }
}
