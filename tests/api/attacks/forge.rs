//! Takes tokens apart and forges others. Independent of the gateway's own JWS code, so that the two do not share a
//! mistake.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_domain::json::canonical::canonical;
use ed25519_dalek::{Signer as _, SigningKey};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::AttackScenario;

/// A token's parts: header, claims, signature.
pub struct TokenParts {
    pub header: Value,
    pub claims: Value,
    pub signature: Vec<u8>,
}

pub fn take_apart(token: &str) -> TokenParts {
    let parts: Vec<Vec<u8>> = token.split('.').map(|it| URL_SAFE_NO_PAD.decode(it).unwrap()).collect();
    TokenParts {
        header: serde_json::from_slice(&parts[0]).unwrap(),
        claims: serde_json::from_slice(&parts[1]).unwrap(),
        signature: parts[2].clone(),
    }
}

pub fn join(header: &[u8], claims: &[u8], signature: &[u8]) -> String {
    [header, claims, signature].map(|it| URL_SAFE_NO_PAD.encode(it)).join(".")
}

/// Returns the signing input of a JWS.
pub fn signed(header: &[u8], claims: &[u8]) -> String {
    [header, claims].map(|it| URL_SAFE_NO_PAD.encode(it)).join(".")
}

/// Returns header and claims in canonical form, signed with this key.
pub fn sign(header: &Value, claims: &Value, key: &SigningKey) -> String {
    let (header, claims) = (canonical(header), canonical(claims));
    let signature = key.sign(signed(header.as_bytes(), claims.as_bytes()).as_bytes());
    join(header.as_bytes(), claims.as_bytes(), &signature.to_bytes())
}

/// Returns the thumbprint of a key by RFC 7638.
pub fn kid_of(key: &[u8; 32]) -> String {
    let text = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, URL_SAFE_NO_PAD.encode(key));
    URL_SAFE_NO_PAD.encode(Sha256::digest(text))
}

/// Returns the gateway's own private key from its keyring, as a thief would have it.
pub fn stolen(scene: &AttackScenario, purpose: &str, state: &str) -> SigningKey {
    let text = std::fs::read_to_string(scene.g.folder.path().join("keyring.json")).unwrap();
    let keyring: Value = serde_json::from_str(&text).unwrap();
    let wanted = |key: &&Value| key["purpose"] == purpose && key["state"] == state;
    let key = keyring["keys"].as_array().unwrap().iter().find(wanted).unwrap();
    let seed = URL_SAFE_NO_PAD.decode(key["private"].as_str().unwrap()).unwrap();
    let key_pair = SigningKey::from_bytes(&seed.try_into().unwrap());
    assert_eq!(kid_of(&key_pair.verifying_key().to_bytes()), key["kid"], "the keyring's seed is the key's");
    key_pair
}

pub fn attackers() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

/// A header that names a key.
pub fn header_of(key: &SigningKey, typ: &str) -> Value {
    json!({"alg": "EdDSA", "kid": kid_of(&key.verifying_key().to_bytes()), "typ": typ})
}

pub const RECEIPT: &str = "countersign-receipt+jwt";

/// Returns the case's receipt with other claims, signed by the gateway's own key. Each claim is checked separately.
pub fn with_claims(scene: &AttackScenario, change: impl FnOnce(&mut Value)) -> Value {
    let mut claims = take_apart(scene.case.receipt()).claims;
    change(&mut claims);
    let key = stolen(scene, "chain", "signing");
    with_receipt(scene, sign(&header_of(&key, RECEIPT), &claims, &key))
}

/// Returns the case's request with another receipt.
pub fn with_receipt(scene: &AttackScenario, receipt: String) -> Value {
    let mut ask = scene.case.ask("spoiled");
    ask["receipt"] = json!(receipt);
    ask
}
