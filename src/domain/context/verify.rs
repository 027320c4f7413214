//! Whether an envelope may be believed, and given to a model.

use super::envelope::{Envelope, EnvelopeClaims, EnvelopeCode, payload_digest, truncated_digest};
use super::input_schema::Receives;
use super::node_mac::NodeSecrets;
use crate::domain::chain::jws::{self, Typ};
use crate::domain::json::canonical::canonical;
use crate::domain::keys::{KeyState, KeyUse, PublicKeys};
use crate::domain::primitives::id::{NodeId, ThreadId};

/// What an envelope is held against.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// The keys that are believed.
    pub keys: &'a PublicKeys,
    /// Whose they are, if that is known.
    pub issuer: Option<&'a str>,
    /// The thread that was asked for, if somebody says.
    pub thread: Option<&'a ThreadId>,
    /// The node it is for, if somebody says.
    pub node: Option<&'a NodeId>,
    /// The version that the thread is known to have come to, if it is.
    pub version: Option<u64>,
    /// What the node may receive, if whoever checks knows that.
    pub receives: Option<&'a Receives>,
    /// The node's secrets, if whoever checks has them: then it must bear an HMAC by one of them.
    pub secrets: Option<&'a NodeSecrets>,
}

impl<'a> Expected<'a> {
    /// Anything that one of these keys signed.
    pub const fn by(keys: &'a PublicKeys) -> Self {
        Self { keys, issuer: None, thread: None, node: None, version: None, receives: None, secrets: None }
    }
}

fn is(holds: bool, code: EnvelopeCode) -> Result<(), EnvelopeCode> {
    if holds { Ok(()) } else { Err(code) }
}

/// Whether an envelope may be given to a model, as far as can be told without the gateway. What was signed, if so.
pub fn check(envelope: &Envelope, expected: &Expected<'_>) -> Result<EnvelopeClaims, EnvelopeCode> {
    let claims = check_signed(envelope, expected)?;
    if let Some(secrets) = expected.secrets {
        secrets.check(envelope, &claims)?;
    }
    check_sound(envelope, &claims, expected)?;
    Ok(claims)
}

/// The first part of it: whether it is what a key of the gateway's signed, of what was asked for. What was signed, if so.
pub fn check_signed(envelope: &Envelope, expected: &Expected<'_>) -> Result<EnvelopeClaims, EnvelopeCode> {
    let malformed = EnvelopeCode::EnvelopeMalformed;
    let unverified = jws::read::<EnvelopeClaims>(&envelope.signature, Typ::Envelope).map_err(|_| malformed)?;
    let key = expected.keys.public(KeyUse::Chain, unverified.kid()).ok_or(EnvelopeCode::UnknownKey)?;
    if matches!(key.state(), KeyState::Next | KeyState::Revoked) {
        return Err(EnvelopeCode::UnknownKey);
    }
    let claims = unverified.verify(key).ok_or(EnvelopeCode::SignatureInvalid)?;
    is(expected.issuer.is_none_or(|it| it == claims.iss), EnvelopeCode::IssuerMismatch)?;
    is(expected.thread.is_none_or(|it| *it == claims.thread), EnvelopeCode::ThreadMismatch)?;
    is(expected.node.is_none_or(|it| *it == claims.node), EnvelopeCode::NodeMismatch)?;
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

/// The last part: whether what was signed is what its node may be given.
pub fn check_sound(envelope: &Envelope, claims: &EnvelopeClaims, expected: &Expected<'_>) -> Result<(), EnvelopeCode> {
    is(expected.version.is_none_or(|it| claims.version >= it), EnvelopeCode::Stale)?;
    let there = claims.requires.iter().all(|it| it.resolve(&envelope.payload).is_some());
    is(there, EnvelopeCode::RequiredMissing)?;
    let fits = expected.receives.is_none_or(|it| it.misfits(&envelope.payload).is_empty());
    is(fits, EnvelopeCode::SchemaMismatch)?;
    // Whoever signs can count wrongly, too: what goes to a model is counted where it goes.
    is(claims.encoding.count(&canonical(&envelope.payload)) == claims.tokens, EnvelopeCode::TokensMismatch)?;
    is(claims.budget.is_none_or(|it| claims.tokens <= it), EnvelopeCode::OverBudget)
}

#[cfg(test)]
mod tests;
