//! Compact JWS with one algorithm and one exact header.
//!
//! It is written by hand, because algorithm agility is the usual weakness of general JOSE libraries. Here a token is
//! `EdDSA`, its header is exactly `{alg, kid, typ}` in canonical form, its base64 is canonical, and its `typ` limits
//! its use. The tests check our tokens with public JOSE libraries.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::json::canonical::{canonical, canonical_of_sorted};
use crate::json::parse::{ParseLimits, parse};
use crate::keys::{PublicKey, SigningKey};
use crate::primitives::named_enum::named_enum;

named_enum! {
    /// Type of a signed document. No type is accepted in the place of another.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum TokenType {
        /// A committed transition in a thread's chain.
        Entry = "countersign-entry+jwt",
        /// An approval: a writer may write once.
        Receipt = "countersign-receipt+jwt",
        Denial = "countersign-denial+jwt",
        /// The gateway's answer to an allowed writer.
        Verification = "countersign-verification+jwt",
        /// The outcome of an interrupt. It allows no write.
        InterruptAnswer = "countersign-interrupt-answer+jwt",
        /// The manifest of an episode's files. It allows no write.
        Episode = "countersign-episode+jwt",
        /// A node's view of a thread, as much of it as fits.
        Envelope = "countersign-envelope+jwt",
    }
}

/// Maximum size of a token. A token has a few kilobytes, and approvals with passkey evidence are the longest.
pub const TOKEN_BYTES_MAX: usize = 64 * 1024;

/// A text is not one of our tokens. No key was checked yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JwsError {
    /// It is not three parts of canonical base64url, or exceeds the limit.
    #[error("not a compact JWS in canonical base64url")]
    Form,
    /// The header is not exactly `{alg: EdDSA, kid, typ}`.
    #[error("the header is not exactly {{alg, kid, typ}} with EdDSA")]
    Header,
    /// The header's `typ` is that of another document.
    #[error("the `typ` is not the expected one")]
    Typ,
    /// The payload is not the strict JSON of this document type, or its claims contradict each other.
    #[error("the claims do not fit this type of document, or each other")]
    Claims,
}

/// The claims of one type of token.
pub trait TokenClaims: DeserializeOwned + Serialize {
    /// Returns whether the claims are consistent. Claims that contradict each other are of no token.
    fn is_whole(&self) -> bool;
}

/// A parsed token whose signature is not verified yet.
pub struct Unverified<C> {
    kid: String,
    claims: C,
    signed_len: usize,
    signature: [u8; 64],
    text: String,
}

impl<C> Unverified<C> {
    /// Returns the id of the key that the token names.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// Checks the signature. Returns the claims only if it is valid.
    pub fn verify(self, key: &PublicKey) -> Option<C> {
        let signed = &self.text.as_bytes()[..self.signed_len];
        // The strict check refuses weak keys and malleable signatures.
        key.verify_strict(signed, &self.signature).then_some(self.claims)
    }

    /// Returns the signed bytes and the signature, for a batch verifier.
    pub fn signed(&self) -> (&[u8], &[u8; 64]) {
        (&self.text.as_bytes()[..self.signed_len], &self.signature)
    }

    /// Returns the claims without a check. Use them to display a bad token, never to decide.
    pub fn claims_unverified(&self) -> &C {
        &self.claims
    }
}

impl<C> fmt::Debug for Unverified<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The claims are omitted, so unverified content does not end up in a log.
        f.debug_struct("Unverified").field("kid", &self.kid).finish_non_exhaustive()
    }
}

fn header(kid: &str, typ: TokenType) -> String {
    canonical(&json!({"alg": "EdDSA", "kid": kid, "typ": typ.as_str()}))
}

/// Signs claims as a token of this type. Claims are plain structs whose members are declared in alphabetical order.
pub fn sign<C: Serialize>(key: &SigningKey, typ: TokenType, claims: &C) -> String {
    let mut token = URL_SAFE_NO_PAD.encode(header(key.kid(), typ));
    token.push('.');
    URL_SAFE_NO_PAD.encode_string(canonical_of_sorted(claims), &mut token);
    let signature = key.sign(token.as_bytes());
    token.push('.');
    URL_SAFE_NO_PAD.encode_string(signature, &mut token);
    token
}

/// Parses a token without verifying it. Refuses every spelling except the one that `sign` makes.
pub fn read<C: TokenClaims>(token: &str, typ: TokenType) -> Result<Unverified<C>, JwsError> {
    // The size is checked before decoding, because the text comes from outside.
    if token.len() > TOKEN_BYTES_MAX {
        return Err(JwsError::Form);
    }
    let mut parts = token.split('.');
    // The signature would not cover a fourth part.
    let (Some(head), Some(body), Some(signature), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(JwsError::Form);
    };
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| JwsError::Form);
    let signature = <[u8; 64]>::try_from(decode(signature)?).map_err(|_| JwsError::Form)?;
    let kid = read_header(&decode(head)?, typ)?;
    let payload = decode(body)?;
    let value = parse(&payload, &ParseLimits::default()).map_err(|_| JwsError::Claims)?;
    let claims: C = serde_json::from_value(value).map_err(|_| JwsError::Claims)?;
    // Only one encoding is valid, so no second token has the same meaning.
    if canonical_of_sorted(&claims).as_bytes() != payload || !claims.is_whole() {
        return Err(JwsError::Claims);
    }
    Ok(Unverified { kid, claims, signed_len: head.len() + 1 + body.len(), signature, text: token.to_owned() })
}

fn read_header(bytes: &[u8], typ: TokenType) -> Result<String, JwsError> {
    let value = parse(bytes, &ParseLimits::default()).map_err(|_| JwsError::Header)?;
    let kid = value.get("kid").and_then(Value::as_str).ok_or(JwsError::Header)?;
    // Comparing the whole header excludes other algorithms and additional parameters.
    if header(kid, typ).as_bytes() == bytes {
        return Ok(kid.to_owned());
    }
    // A document of another type gets its own error, because it is a common mistake.
    let other = value.get("typ").and_then(Value::as_str).is_some_and(|it| it != typ.as_str());
    Err(if other { JwsError::Typ } else { JwsError::Header })
}
