//! Public keys: the public half of a key, its name and its lifecycle state.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signature, VerifyingKey};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{ISSUER_CHARS_MAX, KeyState, KeyUse, KeysError};

/// The public half of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublicKey {
    kid: String,
    key_use: KeyUse,
    state: KeyState,
    key: VerifyingKey,
}

impl PublicKey {
    /// Reads the 32 bytes of a key. Refused if they are no point, not its one encoding, or of small order.
    pub(super) fn read(key_use: KeyUse, state: KeyState, bytes: &[u8; 32]) -> Result<Self, KeysError> {
        let key = VerifyingKey::from_bytes(bytes).map_err(|_| KeysError::Weak)?;
        // A second encoding of one key would have a second thumbprint.
        if key.is_weak() || key.to_edwards().compress().as_bytes() != bytes {
            return Err(KeysError::Weak);
        }
        Ok(Self::of(key_use, state, key))
    }

    pub(super) fn of(key_use: KeyUse, state: KeyState, key: VerifyingKey) -> Self {
        Self { kid: thumbprint(&key), key_use, state, key }
    }

    pub(super) fn in_state(&self, state: KeyState) -> Self {
        Self { state, ..self.clone() }
    }

    /// Returns the key's name: the RFC 7638 thumbprint.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    pub fn key_use(&self) -> KeyUse {
        self.key_use
    }

    pub fn state(&self) -> KeyState {
        self.state
    }

    /// Returns whether the signature is this key's over the message, in its only strict form. The state of the key is
    /// not checked: the validity of a retired or revoked key's signature depends on what was signed.
    pub fn verify_strict(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        self.key.verify_strict(message, &Signature::from_bytes(signature)).is_ok()
    }

    /// Returns the key itself, for batch verification.
    pub fn verifying_key(&self) -> &VerifyingKey {
        &self.key
    }

    /// Returns the published form of the key.
    pub fn jwk(&self) -> Value {
        json!({
            "kty": "OKP",
            "crv": "Ed25519",
            "x": x(&self.key),
            "kid": self.kid,
            "use": "sig",
            "alg": "EdDSA",
            "countersign_use": self.key_use.as_str(),
            "status": self.state.as_str(),
        })
    }

    fn from_jwk(jwk: &Value) -> Result<Self, KeysError> {
        let refuse = |problem| KeysError::Jwk { problem };
        let jwk = jwk.as_object().ok_or(refuse("a key must be an object"))?;
        // The document is public, so its readers can sign with this key.
        if jwk.contains_key("d") {
            return Err(refuse("it contains a private key (`d`): its publisher must revoke it"));
        }
        for (name, expected, problem) in [
            ("kty", "OKP", "kty must be OKP"),
            ("crv", "Ed25519", "crv must be Ed25519"),
            ("use", "sig", "use must be sig"),
            ("alg", "EdDSA", "alg must be EdDSA"),
        ] {
            if text(jwk, name) != Some(expected) {
                return Err(refuse(problem));
            }
        }
        // Without its use, a key for webhooks could verify a receipt.
        let key_use = text(jwk, "countersign_use").and_then(KeyUse::named);
        let key_use = key_use.ok_or(refuse("countersign_use must be chain, log or webhook"))?;
        // Without its state, a revoked key would look trusted.
        let state = text(jwk, "status").and_then(KeyState::named);
        let state = state.ok_or(refuse("status must be next, signing, retired or revoked"))?;
        let bytes = text(jwk, "x").and_then(decode_32).ok_or(refuse("x must be base64url of 32 bytes"))?;
        let key = Self::read(key_use, state, &bytes)?;
        match text(jwk, "kid") == Some(key.kid()) {
            true => Ok(key),
            false => Err(refuse("kid must be the key's RFC 7638 thumbprint")),
        }
    }
}

/// The trusted public keys, from a keyring or from a JWKS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublicKeys {
    issuer: Option<String>,
    keys: Vec<PublicKey>,
}

impl PublicKeys {
    pub(super) fn new(issuer: Option<String>, keys: Vec<PublicKey>) -> Result<Self, KeysError> {
        let visible = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if issuer.as_deref().is_some_and(|it| !visible(it) || !(1..=ISSUER_CHARS_MAX).contains(&it.len())) {
            return Err(KeysError::Issuer);
        }
        // Signatures name their key only by `kid`, so a name must not be ambiguous.
        let mut kids = BTreeSet::new();
        match keys.iter().find(|it| !kids.insert(it.kid())) {
            Some(twice) => Err(KeysError::Twice { kid: twice.kid().to_owned() }),
            None => Ok(Self { issuer, keys }),
        }
    }

    /// Reads a published JWKS. One unknown or invalid key rejects the whole set. A verifier that skips such keys
    /// could not distinguish a revoked key from an unknown one.
    pub fn from_jwks(document: &Value) -> Result<Self, KeysError> {
        let refuse = |problem| KeysError::Jwk { problem };
        let keys = document.get("keys").and_then(Value::as_array).ok_or(refuse("`keys` must be a list"))?;
        let issuer = match document.get("issuer") {
            None => None,
            Some(Value::String(issuer)) => Some(issuer.clone()),
            Some(_) => return Err(refuse("`issuer` must be a string")),
        };
        Self::new(issuer, keys.iter().map(PublicKey::from_jwk).collect::<Result<_, _>>()?)
    }

    /// Returns the JWKS to publish: every key with its use and status, and the issuer.
    pub fn jwks(&self) -> Value {
        let keys: Vec<Value> = self.keys.iter().map(PublicKey::jwk).collect();
        match &self.issuer {
            Some(issuer) => json!({"issuer": issuer, "keys": keys}),
            None => json!({"keys": keys}),
        }
    }

    /// Returns the issuer of the keys, if known. A JWKS does not have to name its issuer.
    pub fn issuer(&self) -> Option<&str> {
        self.issuer.as_deref()
    }

    /// Returns the key with this name if it is for this use, in any state.
    pub fn public(&self, key_use: KeyUse, kid: &str) -> Option<&PublicKey> {
        self.keys.iter().find(|it| it.key_use == key_use && it.kid == kid)
    }

    pub fn iter(&self) -> impl Iterator<Item = &PublicKey> {
        self.keys.iter()
    }
}

pub(super) fn x(key: &VerifyingKey) -> String {
    URL_SAFE_NO_PAD.encode(key.as_bytes())
}

pub(super) fn decode_32(text: &str) -> Option<[u8; 32]> {
    URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()
}

/// Returns the RFC 7638 thumbprint over the OKP members of RFC 8037, in their canonical form.
fn thumbprint(key: &VerifyingKey) -> String {
    // RFC 7638 hashes exactly this text: only these members, sorted and without spaces.
    let members = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, x(key));
    URL_SAFE_NO_PAD.encode(Sha256::digest(members))
}

fn text<'a>(jwk: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    jwk.get(name).and_then(Value::as_str)
}
