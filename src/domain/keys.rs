//! The keyring as it stands at one moment: what the gateway signs with, and what it trusts.
//!
//! A snapshot is immutable; rotating and revoking take one and give the next. A key has its private
//! half only while it is `next` or `signing`: retiring or revoking it forgets that half for good, so
//! that a retired key cannot sign anything any more, whoever gets hold of the keyring.

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

/// What a key is for; never accepted for another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum KeyUse {
    /// Entries, receipts, denials, verifications.
    Chain,
    Log,
    Webhook,
}

impl KeyUse {
    /// Every use, in the order in which keys are made, listed and published.
    pub const ALL: [Self; 3] = [Self::Chain, Self::Log, Self::Webhook];

    /// The word in files, JWKS and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chain => "chain",
            Self::Log => "log",
            Self::Webhook => "webhook",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == name)
    }
}

/// Where a key is in its life.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum KeyState {
    /// Published, so that everybody has it before its first signature.
    Next,
    Signing,
    /// Signs nothing any more; its entries stay good.
    Retired,
    Revoked,
}

impl KeyState {
    /// The word in files, JWKS and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Next => "next",
            Self::Signing => "signing",
            Self::Retired => "retired",
            Self::Revoked => "revoked",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        [Self::Next, Self::Signing, Self::Retired, Self::Revoked].into_iter().find(|it| it.as_str() == name)
    }
}

/// Long enough for any URN or origin, short enough for a claim in every token.
pub const ISSUER_CHARS_MAX: usize = 256;

/// Why a keyring, a change of it or a set of published keys is refused. Never says a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeysError {
    /// Not a name that fits into a claim.
    #[error("the issuer must be 1 to {ISSUER_CHARS_MAX} visible ASCII characters")]
    Issuer,
    /// Not the JSON of a keyring. The parser's own words are dropped: they may quote a secret.
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
        /// Which record, from 1.
        number: usize,
        problem: &'static str,
    },
    /// Each use has exactly one key that signs and exactly one that is next.
    #[error("the keyring has {found} {} keys in state {}, it must have exactly one", key_use.as_str(), state.as_str())]
    NotOne { key_use: KeyUse, state: KeyState, found: usize },
    #[error("key {kid} stands there twice")]
    Twice { kid: String },
    /// Small order: a signature by it would be good for almost every message.
    #[error("not a sound Ed25519 public key")]
    Weak,
    /// Not a JWKS as this project publishes it.
    #[error("not a published key of Countersign: {problem}")]
    Jwk { problem: &'static str },
    #[error("no key is called {kid}")]
    Unknown { kid: String },
}

/// When a key was made, and since when it is in its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyDates {
    pub created_at: Timestamp,
    /// Since when it is in its state.
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
    /// Retired and revoked: only their public halves are left.
    spent: Vec<DatedKey<PublicKey>>,
    salt: SaltKey,
    row: RowKey,
    /// All of the above, without anything private.
    public: PublicKeys,
}

impl Keys {
    /// A new keyring. Randomness is an argument: `random` fills what it is given.
    pub fn generate(issuer: &str, now: Timestamp, random: &mut impl FnMut(&mut [u8])) -> Result<Self, KeysError> {
        let mut pair = |key_use| SigningKeySlots {
            signing: fresh(key_use, KeyState::Signing, now, random),
            next: fresh(key_use, KeyState::Next, now, random),
        };
        let (chain, log, webhook) = (pair(KeyUse::Chain), pair(KeyUse::Log), pair(KeyUse::Webhook));
        let (salt, row) = (SaltKey::generate(random), RowKey::generate(random));
        Self::assemble(issuer, KeyringParts { chain, log, webhook, spent: Vec::new(), salt, row })
    }

    /// Reads a keyring from its text, the format of the file.
    pub fn read(text: &str) -> Result<Self, KeysError> {
        keyring_json::read(text)
    }

    /// The keyring's text, private halves included.
    pub fn write(&self) -> zeroize::Zeroizing<Vec<u8>> {
        keyring_json::write(self)
    }

    /// Who signs: `iss` of everything.
    pub fn issuer(&self) -> &str {
        self.public.issuer().expect("a keyring is assembled with an issuer")
    }

    /// The one key that signs for this use.
    pub fn signing(&self, key_use: KeyUse) -> &SigningKey {
        &self.pair(key_use).signing.key
    }

    /// The key that will sign after the next rotation.
    pub fn next(&self, key_use: KeyUse) -> &PublicKey {
        self.pair(key_use).next.key.public()
    }

    /// The key of that name if it is for this use, in whatever state.
    pub fn public(&self, key_use: KeyUse, kid: &str) -> Option<&PublicKey> {
        self.public.public(key_use, kid)
    }

    /// Every key of every use and state: what the JWKS says.
    pub fn published(&self) -> impl Iterator<Item = &PublicKey> {
        self.public.iter()
    }

    /// What is trusted, without anything private.
    pub fn trusted(&self) -> &PublicKeys {
        &self.public
    }

    /// The key that salts commitments. It never rotates.
    pub fn salt(&self) -> &SaltKey {
        &self.salt
    }

    pub fn row(&self) -> &RowKey {
        &self.row
    }

    /// When a key was made and since when it is in its state.
    pub fn dates(&self, kid: &str) -> Option<KeyDates> {
        let able = KeyUse::ALL.into_iter().flat_map(|key_use| {
            let SigningKeySlots { signing, next } = self.pair(key_use);
            [(signing.key.kid(), signing.dates), (next.key.kid(), next.dates)]
        });
        let spent = self.spent.iter().map(|it| (it.key.kid(), it.dates));
        able.chain(spent).find_map(|(it, dates)| (it == kid).then_some(dates))
    }

    /// True if this can be a later snapshot of the same keyring: what never changes is the same.
    pub fn continues(&self, earlier: &KeysIdentity) -> bool {
        self.identity() == *earlier
    }

    /// What never changes in a keyring's life, in a form that gives no secret away.
    pub fn identity(&self) -> KeysIdentity {
        KeysIdentity { issuer: self.issuer().to_owned(), salt: self.salt.id(), row: self.row.id().to_owned() }
    }

    /// The next key signs from now on, the one that signed is retired, and another is next.
    pub fn rotate(
        self,
        key_use: KeyUse,
        now: Timestamp,
        random: &mut impl FnMut(&mut [u8]),
    ) -> Result<Self, KeysError> {
        self.succeed(key_use, KeyState::Retired, now, random)
    }

    /// The key verifies nothing from now on. Where it was signing or next, others step in.
    /// Revoking a revoked key changes nothing.
    pub fn revoke(self, kid: &str, now: Timestamp, random: &mut impl FnMut(&mut [u8])) -> Result<Self, KeysError> {
        let Some(key) = self.public.iter().find(|it| it.kid() == kid) else {
            return Err(KeysError::Unknown { kid: kid.to_owned() });
        };
        let key_use = key.key_use();
        match key.state() {
            KeyState::Revoked => Ok(self),
            KeyState::Signing => self.succeed(key_use, KeyState::Revoked, now, random),
            KeyState::Next => {
                let (issuer, mut parts) = self.take_apart();
                let next = fresh(key_use, KeyState::Next, now, random);
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

    /// The signing key ends in `end`, the next one takes its place.
    fn succeed(
        self,
        key_use: KeyUse,
        end: KeyState,
        now: Timestamp,
        random: &mut impl FnMut(&mut [u8]),
    ) -> Result<Self, KeysError> {
        let (issuer, mut parts) = self.take_apart();
        let pair = parts.pair_mut(key_use);
        let promoted = std::mem::replace(&mut pair.next, fresh(key_use, KeyState::Next, now, random));
        let dates = KeyDates { since: now, ..promoted.dates };
        let signing = DatedKey { key: promoted.key.in_state(KeyState::Signing), dates };
        let old = std::mem::replace(&mut pair.signing, signing);
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
        let Self { chain, log, webhook, spent, salt, row, public: _ } = self;
        (issuer, KeyringParts { chain, log, webhook, spent, salt, row })
    }

    fn assemble(issuer: &str, parts: KeyringParts) -> Result<Self, KeysError> {
        let KeyringParts { chain, log, webhook, spent, salt, row } = parts;
        let able = [&chain, &log, &webhook].into_iter().flat_map(|it| [it.signing.key.public(), it.next.key.public()]);
        let all = able.chain(spent.iter().map(|it| &it.key)).cloned().collect();
        let public = PublicKeys::new(Some(issuer.to_owned()), all)?;
        Ok(Self { chain, log, webhook, spent, salt, row, public })
    }
}

/// Says who it is and which keys it has; secrets never print.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("public", &self.public).field("secrets", &"[redacted]").finish()
    }
}

/// What never changes in a keyring's life: its issuer and, by their fingerprints, its salt and row keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeysIdentity {
    issuer: String,
    salt: String,
    row: String,
}

/// A keyring taken apart, to be put together again.
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
    /// Only the public half survives.
    fn spend(self, state: KeyState, now: Timestamp) -> DatedKey<PublicKey> {
        DatedKey { key: self.key.public().in_state(state), dates: KeyDates { since: now, ..self.dates } }
    }
}

fn fresh(key_use: KeyUse, state: KeyState, now: Timestamp, random: &mut impl FnMut(&mut [u8])) -> DatedKey<SigningKey> {
    let key = SigningKey::generate(key_use, state, random);
    DatedKey { key, dates: KeyDates { created_at: now, since: now } }
}
