//! Checks whether an envelope is valid and may be given to a model.

use super::envelope::{Envelope, EnvelopeClaims, EnvelopeCode, payload_digest, truncated_digest};
use super::input_schema::InputSchema;
use super::node_mac::NodeSecrets;
use crate::chain::jws::{self, TokenType};
use crate::json::canonical::canonical;
use crate::keys::{KeyState, KeyUse, PublicKeys};
use crate::primitives::id::{NodeId, ThreadId};

/// Expectations that an envelope is checked against.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedEnvelope<'a> {
    pub keys: &'a PublicKeys,
    /// Issuer of the keys, if it is known.
    pub issuer: Option<&'a str>,
    /// Thread that the caller asked for, if it named one.
    pub thread: Option<&'a ThreadId>,
    /// Node that the envelope must be for, if the caller named one.
    pub node: Option<&'a NodeId>,
    /// Known version of the thread, if any.
    pub version: Option<u64>,
    /// Schema of what the node may receive, if the checker has it.
    pub receives: Option<&'a InputSchema>,
    /// Secrets of the node, if the checker has them. The envelope must then have an HMAC by one of them.
    pub secrets: Option<&'a NodeSecrets>,
}

impl<'a> ExpectedEnvelope<'a> {
    /// Accepts every envelope that one of these keys signed.
    pub const fn by(keys: &'a PublicKeys) -> Self {
        Self { keys, issuer: None, thread: None, node: None, version: None, receives: None, secrets: None }
    }
}

fn is(holds: bool, code: EnvelopeCode) -> Result<(), EnvelopeCode> {
    if holds { Ok(()) } else { Err(code) }
}

/// Checks everything that can be checked without the gateway. Returns the signed claims.
pub fn check(envelope: &Envelope, expected: &ExpectedEnvelope<'_>) -> Result<EnvelopeClaims, EnvelopeCode> {
    let claims = check_signed(envelope, expected)?;
    if let Some(secrets) = expected.secrets {
        // The HMAC covers the claims, so they are verified first.
        secrets.check(envelope, &claims)?;
    }
    check_sound(envelope, &claims, expected)?;
    Ok(claims)
}

/// Makes the first checks: a key of the gateway signed the envelope, and it is for the expected thread and node.
/// Returns the signed claims.
pub fn check_signed(envelope: &Envelope, expected: &ExpectedEnvelope<'_>) -> Result<EnvelopeClaims, EnvelopeCode> {
    let malformed = EnvelopeCode::EnvelopeMalformed;
    let unverified = jws::read::<EnvelopeClaims>(&envelope.signature, TokenType::Envelope).map_err(|_| malformed)?;
    let key = expected.keys.public(KeyUse::Chain, unverified.kid()).ok_or(EnvelopeCode::UnknownKey)?;
    // A retired key is accepted, because its envelopes may still be in use.
    if matches!(key.state(), KeyState::Next | KeyState::Revoked) {
        return Err(EnvelopeCode::UnknownKey);
    }
    let claims = unverified.verify(key).ok_or(EnvelopeCode::SignatureInvalid)?;
    is(expected.issuer.is_none_or(|it| it == claims.iss), EnvelopeCode::IssuerMismatch)?;
    is(expected.thread.is_none_or(|it| *it == claims.thread), EnvelopeCode::ThreadMismatch)?;
    is(expected.node.is_none_or(|it| *it == claims.node), EnvelopeCode::NodeMismatch)?;
    // The members outside of the signature are convenient copies. A changed copy would mislead a reader that does not
    // verify.
    let signed = envelope.version == claims.version
        && envelope.timestamp == claims.timestamp
        && envelope.token_budget == claims.budget
        && envelope.tokens == claims.tokens
        && envelope.transition == claims.transition
        && truncated_digest(&envelope.truncated) == claims.truncated
        && payload_digest(&envelope.payload) == claims.payload;
    is(signed, EnvelopeCode::EnvelopeMismatch)?;
    Ok(claims)
}

/// Makes the last checks: the signed content may be given to its node.
pub fn check_sound(
    envelope: &Envelope,
    claims: &EnvelopeClaims,
    expected: &ExpectedEnvelope<'_>,
) -> Result<(), EnvelopeCode> {
    // A newer version than the known one is fine. Only an older view can be stale.
    is(expected.version.is_none_or(|it| claims.version >= it), EnvelopeCode::Stale)?;
    // The signer claims these paths. A payload without them would make a model decide on too little.
    let there = claims.requires.iter().all(|it| it.resolve(&envelope.payload).is_some());
    is(there, EnvelopeCode::RequiredMissing)?;
    let fits = expected.receives.is_none_or(|it| it.misfits(&envelope.payload).is_empty());
    is(fits, EnvelopeCode::SchemaMismatch)?;
    // A signer can miscount too, so the tokens are counted again before the payload goes to a model.
    is(claims.encoding.count(&canonical(&envelope.payload)) == claims.tokens, EnvelopeCode::TokensMismatch)?;
    is(claims.budget.is_none_or(|it| claims.tokens <= it), EnvelopeCode::OverBudget)
}

#[cfg(test)]
mod tests;
