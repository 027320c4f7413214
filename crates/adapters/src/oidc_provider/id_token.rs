//! Checks the ID token of the provider: signature, issuer, audience, nonce and times.

use std::collections::BTreeSet;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use countersign_domain::identity::oidc_identity::{OidcIdentity, SignInRejected};
use countersign_domain::json::parse::{ParseLimits, parse};
use countersign_domain::primitives::time::Timestamp;
use openidconnect::core::{CoreIdToken, CoreIdTokenVerifier, CoreJwsSigningAlgorithm};
use openidconnect::{ClaimsVerificationError, ClientId, JsonWebKeySet, Nonce, SignatureVerificationError};
use serde_json::Value;

use super::{AuthorizationSecrets, OidcMetadata, Provider};

/// The accepted difference between the provider's clock and the gateway's.
const SKEW: Duration = Duration::from_secs(60);

/// The accepted signature algorithms, which need the provider's private key. The others are refused: with HMAC anyone
/// who knows the client secret could sign, and with `none` anyone at all.
const SIGNATURES: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// The limit on a subject, from the OpenID Connect standard.
const SUBJECT_CHARS_MAX: usize = 255;
/// The limit on the values of a claim, more groups than any person has.
const VALUES_MAX: usize = 2_000;

/// The reason that a token is refused.
pub(super) enum IdTokenError {
    /// The token names an unknown key.
    UnknownKey,
    Not(SignInRejected),
}

impl From<IdTokenError> for SignInRejected {
    fn from(unsound: IdTokenError) -> Self {
        match unsound {
            IdTokenError::UnknownKey => Self::BadSignature,
            IdTokenError::Not(reason) => reason,
        }
    }
}

/// Returns the identity in the token if every check passes.
pub(super) fn identity(
    provider: &Provider,
    metadata: &OidcMetadata,
    token: &CoreIdToken,
    errand: &AuthorizationSecrets,
) -> Result<OidcIdentity, IdTokenError> {
    let settings = &provider.settings;
    let now = provider.clock.now();
    let (early, late) = (moment(now.minus(SKEW)), moment(now.plus(SKEW)));
    let keys = JsonWebKeySet::new(metadata.jwks().keys().clone());
    let verifier =
        CoreIdTokenVerifier::new_public_client(
            ClientId::new(settings.client_id.clone()),
            provider.issuer.clone(),
            keys,
        )
        .set_allowed_algs(SIGNATURES)
        // The verifier compares expiry with this time, so a token that expired within the skew is accepted.
        .set_time_fn(move || early)
        .set_issue_time_verifier_fn(move |issued| {
            if issued <= late { Ok(()) } else { Err("it is from the future".to_owned()) }
        });
    let nonce = Nonce::new(errand.nonce.expose().clone());
    let checked = token.claims(&verifier, &nonce).map_err(|error| unsound(&error))?;
    // The authorized party must be this client. It is required if the token has several audiences, because another
    // client could have requested it.
    let asked = checked.authorized_party().map(|it| it.as_str());
    if asked.is_some_and(|it| it != settings.client_id) || (checked.audiences().len() > 1 && asked.is_none()) {
        return Err(IdTokenError::Not(SignInRejected::NotForUs));
    }
    let hint = token.to_string();
    // The library reads the claims loosely. They are parsed again strictly, so that a duplicate member cannot hide
    // another.
    let claims = claims_of(&hint).ok_or(IdTokenError::Not(SignInRejected::BadSignature))?;
    // The library does not check `nbf`.
    let begins = claims.get("nbf").and_then(Value::as_f64).unwrap_or(0.0);
    if begins * 1000.0 > now.plus(SKEW).millis() as f64 {
        return Err(IdTokenError::Not(SignInRejected::WrongTime));
    }
    let subject = checked.subject().as_str();
    if subject.is_empty() || subject.chars().count() > SUBJECT_CHARS_MAX {
        return Err(IdTokenError::Not(SignInRejected::UnusableName));
    }
    Ok(OidcIdentity {
        issuer: settings.issuer.clone(),
        subject: subject.to_owned(),
        name: claims.get(&settings.name_claim).and_then(Value::as_str).map(str::to_owned),
        values: values_of(claims.get(&settings.groups_claim)),
        hint,
    })
}

fn unsound(error: &ClaimsVerificationError) -> IdTokenError {
    // The library's error texts quote the token.
    let not_let_in = match error {
        ClaimsVerificationError::SignatureVerification(SignatureVerificationError::NoMatchingKey) => {
            return IdTokenError::UnknownKey;
        }
        ClaimsVerificationError::Expired(_) => SignInRejected::WrongTime,
        ClaimsVerificationError::InvalidIssuer(_) => SignInRejected::WrongProvider,
        ClaimsVerificationError::InvalidAudience(_) | ClaimsVerificationError::InvalidNonce(_) => {
            SignInRejected::NotForUs
        }
        _ => SignInRejected::BadSignature,
    };
    tracing::warn!(reason = not_let_in.as_str(), "the ID token of the OpenID provider was refused");
    IdTokenError::Not(not_let_in)
}

/// Reads the signed claims. A duplicate member makes them invalid.
fn claims_of(token: &str) -> Option<Value> {
    let payload = token.split('.').nth(1)?;
    let bytes = URL_SAFE_NO_PAD.decode(payload).ok()?;
    parse(&bytes, &ParseLimits::default()).ok()
}

/// Returns the texts of a claim that is a text or a list of texts.
fn values_of(claim: Option<&Value>) -> BTreeSet<String> {
    match claim {
        Some(Value::String(one)) => BTreeSet::from([one.clone()]),
        Some(Value::Array(items)) => {
            // The limit bounds the memory of a token with very many groups.
            items.iter().take(VALUES_MAX).filter_map(Value::as_str).map(str::to_owned).collect()
        }
        _ => BTreeSet::new(),
    }
}

fn moment(at: Timestamp) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(at.millis()).unwrap_or_default()
}
