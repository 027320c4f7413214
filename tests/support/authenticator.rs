//! Authenticator for tests. It registers and signs like a real one, and returns false data if a test requests it.
//!
//! It gives what the page's script would put into a form, as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Flags of the authenticator data: the user was present, and the authenticator verified the user.
pub const PRESENT: u8 = 0x01;
pub const VERIFIED: u8 = 0x04;
/// It may be, and is, on other devices.
pub const SYNCED: u8 = 0x08 | 0x10;
const NEW_KEY: u8 = 0x40;

#[derive(Clone)]
pub struct Authenticator {
    pub key: SigningKey,
    pub id: Vec<u8>,
    pub counter: u32,
    pub flags: u8,
}

/// Request of the browser to the authenticator, with the fields that a test can falsify.
#[derive(Clone, Debug)]
pub struct AuthenticatorRequest {
    pub kind: &'static str,
    pub origin: String,
    pub rp_id: String,
    pub challenge: String,
    /// Members of the client data beside the usual ones.
    pub more: Value,
}

impl AuthenticatorRequest {
    /// As an honest browser asks for a signature.
    pub fn get(origin: &str, challenge: &str) -> Self {
        let host = origin.split("://").nth(1).unwrap().split(':').next().unwrap();
        Self {
            kind: "webauthn.get",
            origin: origin.to_owned(),
            rp_id: host.to_owned(),
            challenge: challenge.to_owned(),
            more: json!({"crossOrigin": false}),
        }
    }

    fn client_data(&self) -> Vec<u8> {
        let mut data = json!({"type": self.kind, "challenge": self.challenge, "origin": self.origin});
        data.as_object_mut().unwrap().extend(self.more.as_object().unwrap().clone());
        serde_json::to_vec(&data).unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// CBOR's head of a byte string, and the string.
fn cbor_bytes(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap().to_be_bytes();
    [&[0x59][..], &length, bytes].concat()
}

impl Authenticator {
    /// One of its own for each seed.
    pub fn new(seed: u8) -> Self {
        let key = SigningKey::from_slice(&[seed; 32]).unwrap();
        Self { key, id: vec![seed; 32], counter: 0, flags: PRESENT | VERIFIED }
    }

    /// One that is on several devices: its counter never counts.
    pub fn synced(seed: u8) -> Self {
        Self { flags: PRESENT | VERIFIED | SYNCED, ..Self::new(seed) }
    }

    pub fn id(&self) -> String {
        text(&self.id)
    }

    fn data(&mut self, rp_id: &str, more: u8) -> Vec<u8> {
        if self.flags & SYNCED == 0 {
            self.counter += 1;
        }
        let hash = Sha256::digest(rp_id.as_bytes());
        [&hash[..], &[self.flags | more], &self.counter.to_be_bytes()].concat()
    }

    fn cose_key(&self) -> Vec<u8> {
        let point = self.key.verifying_key().to_sec1_point(false);
        let (x, y) = (point.x().unwrap(), point.y().unwrap());
        [&[0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20][..], x, &[0x22, 0x58, 0x20], y].concat()
    }

    /// Returns a registration without an attestation signature.
    pub fn register(&mut self, ask: &AuthenticatorRequest) -> Value {
        let mut data = self.data(&ask.rp_id, NEW_KEY);
        data.extend_from_slice(&[0; 16]);
        data.extend_from_slice(&u16::try_from(self.id.len()).unwrap().to_be_bytes());
        data.extend_from_slice(&self.id);
        data.extend_from_slice(&self.cose_key());
        let attestation = [b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData", &cbor_bytes(&data)[..]].concat();
        json!({"attestation": text(&attestation), "client_data": text(&ask.client_data())})
    }

    pub fn sign(&mut self, ask: &AuthenticatorRequest) -> Value {
        let (data, client) = (self.data(&ask.rp_id, 0), ask.client_data());
        let signed = [&data[..], &Sha256::digest(&client)].concat();
        let signature: Signature = self.key.sign(&signed);
        json!({
            "authenticator_data": text(&data), "client_data": text(&client), "passkey": self.id(),
            "signature": text(signature.to_der().as_bytes()),
        })
    }
}
