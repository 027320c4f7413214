//! Reads and writes the keyring file: strict JSON. A missing, unknown or inconsistent member is an error.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

use super::public::{decode_32, x};
use super::{
    DatedKey, KeyDates, KeyState, KeyUse, KeyringParts, Keys, KeysError, PublicKey, RowKey, SaltKey, SigningKey,
    SigningKeySlots,
};
use crate::primitives::time::Timestamp;

/// Format identifier in a keyring file.
pub(super) const FORMAT: &str = "countersign.keyring.v1";

/// Maximum size of an indented record. The buffer is allocated once, so that a growing buffer leaves no partial copy
/// of a secret behind.
const RECORD_BYTES: usize = 512;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyringDocument {
    format: String,
    issuer: String,
    keys: Vec<KeyRecord>,
    salt: SecretBytes,
    row: SecretBytes,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyRecord {
    purpose: String,
    state: String,
    kid: String,
    created_at: Timestamp,
    since: Timestamp,
    /// Present while the key is next or signing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    private: Option<SecretBytes>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    public: Option<String>,
}

struct SecretBytes(Zeroizing<[u8; 32]>);

/// The records, sorted by the remaining half of their keys.
#[derive(Default)]
struct SortedKeys {
    able: Vec<DatedKey<SigningKey>>,
    spent: Vec<DatedKey<PublicKey>>,
}

pub(super) fn read(text: &str) -> Result<Keys, KeysError> {
    let document: KeyringDocument = serde_json::from_str(text)
        // The parser's message may quote a secret, so only the position is reported.
        .map_err(|error| KeysError::Document { line: error.line(), column: error.column() })?;
    if document.format != FORMAT {
        return Err(KeysError::Document { line: 1, column: 1 });
    }
    let mut sorted = SortedKeys::default();
    for (index, record) in document.keys.iter().enumerate() {
        sorted.add(record).map_err(|problem| KeysError::Record { number: index + 1, problem })?;
    }
    let SortedKeys { mut able, spent } = sorted;
    let mut pair = |key_use| {
        let signing = take_one(&mut able, key_use, KeyState::Signing)?;
        Ok(SigningKeySlots { signing, next: take_one(&mut able, key_use, KeyState::Next)? })
    };
    let (chain, log, webhook) = (pair(KeyUse::Chain)?, pair(KeyUse::Log)?, pair(KeyUse::Webhook)?);
    let (salt, row) = (SaltKey::of(document.salt.0), RowKey::of(document.row.0));
    Keys::assemble(&document.issuer, KeyringParts { chain, log, webhook, spent, salt, row })
}

pub(super) fn write(keys: &Keys) -> Zeroizing<Vec<u8>> {
    let able = KeyUse::ALL.into_iter().flat_map(|key_use| {
        let SigningKeySlots { signing, next } = keys.pair(key_use);
        [signing, next].map(|it| {
            // The copy is wiped when the record is dropped.
            let secret = SecretBytes(Zeroizing::new(*it.key.private()));
            KeyRecord { private: Some(secret), ..record(it.key.public(), it.dates) }
        })
    });
    let spent = keys.spent.iter().map(|it| {
        // Only a spent key needs its public half in the file, because other halves follow from the private ones.
        let public = Some(x(it.key.verifying_key()));
        KeyRecord { public, ..record(&it.key, it.dates) }
    });
    let records: Vec<KeyRecord> = able.chain(spent).collect();
    let mut text = Zeroizing::new(Vec::with_capacity((records.len() + 3) * RECORD_BYTES));
    let document = KeyringDocument {
        format: FORMAT.to_owned(),
        issuer: keys.issuer().to_owned(),
        keys: records,
        salt: SecretBytes(Zeroizing::new(*keys.salt.bytes())),
        row: SecretBytes(Zeroizing::new(*keys.row.bytes())),
    };
    serde_json::to_writer_pretty(&mut *text, &document).expect("plain structs with text keys, into memory");
    text.push(b'\n');
    text
}

fn record(key: &PublicKey, dates: KeyDates) -> KeyRecord {
    KeyRecord {
        purpose: key.key_use().as_str().to_owned(),
        state: key.state().as_str().to_owned(),
        kid: key.kid().to_owned(),
        created_at: dates.created_at,
        since: dates.since,
        private: None,
        public: None,
    }
}

impl SortedKeys {
    fn add(&mut self, record: &KeyRecord) -> Result<(), &'static str> {
        let key_use = KeyUse::named(&record.purpose).ok_or("purpose must be chain, log or webhook")?;
        let state = KeyState::named(&record.state).ok_or("state must be next, signing, retired or revoked")?;
        let dates = KeyDates { created_at: record.created_at, since: record.since };
        // The name follows from the key, so another name shows a damaged or edited record.
        let named = |kid: &str| if kid == record.kid { Ok(()) } else { Err("kid is not the key's thumbprint") };
        match (state, &record.private, &record.public) {
            (KeyState::Next | KeyState::Signing, Some(private), None) => {
                let key = SigningKey::of(key_use, state, &private.0);
                named(key.kid())?;
                self.able.push(DatedKey { key, dates });
                Ok(())
            }
            (KeyState::Retired | KeyState::Revoked, None, Some(public)) => {
                let bytes = decode_32(public).ok_or("public must be base64url of 32 bytes")?;
                let key = PublicKey::read(key_use, state, &bytes).map_err(|_| "public is not a sound Ed25519 key")?;
                named(key.kid())?;
                self.spent.push(DatedKey { key, dates });
                Ok(())
            }
            (KeyState::Next | KeyState::Signing, _, _) => Err("next and signing keys have `private`, not `public`"),
            (KeyState::Retired | KeyState::Revoked, _, _) => Err("spent keys have `public`, not `private`"),
        }
    }
}

fn take_one(
    able: &mut Vec<DatedKey<SigningKey>>,
    key_use: KeyUse,
    state: KeyState,
) -> Result<DatedKey<SigningKey>, KeysError> {
    let is_it = |it: &DatedKey<SigningKey>| it.key.public().key_use() == key_use && it.key.public().state() == state;
    let found = able.iter().filter(|it| is_it(it)).count();
    match (found, able.iter().position(is_it)) {
        (1, Some(at)) => Ok(able.swap_remove(at)),
        _ => Err(KeysError::NotOne { key_use, state, found }),
    }
}

impl Serialize for SecretBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The encoded text is a copy of the secret, so it is wiped, too.
        serializer.serialize_str(&Zeroizing::new(URL_SAFE_NO_PAD.encode(self.0.as_slice())))
    }
}

impl<'de> Deserialize<'de> for SecretBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyringReader;
        impl Visitor<'_> for KeyringReader {
            type Value = SecretBytes;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("base64url of 32 bytes")
            }
            /// Borrowed from the text, which its owner wipes. No copy is made.
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<SecretBytes, E> {
                // The decoder needs space for whole groups of three bytes.
                let mut buffer = Zeroizing::new([0; 36]);
                match URL_SAFE_NO_PAD.decode_slice(text, buffer.as_mut_slice()) {
                    Ok(32) => {
                        let mut bytes = Zeroizing::new([0; 32]);
                        bytes.copy_from_slice(&buffer[..32]);
                        Ok(SecretBytes(bytes))
                    }
                    _ => Err(E::custom("not base64url of 32 bytes")),
                }
            }
        }
        deserializer.deserialize_str(KeyringReader).map_err(D::Error::custom)
    }
}
