//! The provider's signed word about a person, checked in every respect.

use std::collections::BTreeSet;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use openidconnect::core::{CoreIdToken, CoreIdTokenVerifier, CoreJwsSigningAlgorithm};
use openidconnect::{ClaimsVerificationError, ClientId, JsonWebKeySet, Nonce, SignatureVerificationError};
use serde_json::Value;

use super::{AuthorizationSecrets, OidcMetadata, Provider};
use crate::domain::identity::oidc_identity::{OidcIdentity, SignInRejected};
use crate::domain::json::parse::{ParseLimits, parse};
use crate::domain::primitives::time::Timestamp;

/// How far a provider's clock may be from ours.
const SKEW: Duration = Duration::from_secs(60);

/// Signatures that need the provider's private key to make. With the others, whoever knows the client's secret, or
/// nothing at all, could sign.
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

/// Subjects are at most 255 characters, says the standard.
const SUBJECT_CHARS_MAX: usize = 255;
/// More groups than anybody is in.
const VALUES_MAX: usize = 2_000;

/// Why a word is not believed.
pub(super) enum IdTokenError {
    /// It names a key that is not known.
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

/// Who the word is about, if everything about it is as it must be.
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
        .set_time_fn(move || early)
        .set_issue_time_verifier_fn(move |issued| {
            if issued <= late { Ok(()) } else { Err("it is from the future".to_owned()) }
        });
    let nonce = Nonce::new(errand.nonce.expose().clone());
    let checked = token.claims(&verifier, &nonce).map_err(|error| unsound(&error))?;
    // Who asked for it, where it may have been somebody else: that must be us as well.
    let asked = checked.authorized_party().map(|it| it.as_str());
    if asked.is_some_and(|it| it != settings.client_id) || (checked.audiences().len() > 1 && asked.is_none()) {
        return Err(IdTokenError::Not(SignInRejected::NotForUs));
    }
    let hint = token.to_string();
    let claims = claims_of(&hint).ok_or(IdTokenError::Not(SignInRejected::BadSignature))?;
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
    // The library's own words quote the token.
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
    tracing::warn!(reason = not_let_in.as_str(), "the OpenID provider's word is not believed");
    IdTokenError::Not(not_let_in)
}

/// The claims as they were signed, read as strictly as everything else: nothing is said twice in them.
fn claims_of(token: &str) -> Option<Value> {
    let payload = token.split('.').nth(1)?;
    let bytes = URL_SAFE_NO_PAD.decode(payload).ok()?;
    parse(&bytes, &ParseLimits::default()).ok()
}

/// The texts of a claim that is one, or a list of some.
fn values_of(claim: Option<&Value>) -> BTreeSet<String> {
    match claim {
        Some(Value::String(one)) => BTreeSet::from([one.clone()]),
        Some(Value::Array(items)) => {
            items.iter().take(VALUES_MAX).filter_map(Value::as_str).map(str::to_owned).collect()
        }
        _ => BTreeSet::new(),
    }
}

fn moment(at: Timestamp) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(at.millis()).unwrap_or_default()
}
