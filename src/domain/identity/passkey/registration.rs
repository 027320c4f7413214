//! A registration: the public half of a new passkey, as an authenticator gives it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::json;
use webauthn_rs_core::proto::{AuthenticatorAttestationResponseRaw, RegisterPublicKeyCredential, RegistrationState};

use super::assertion::{library, refused};
use super::public_key::ALGORITHMS;
use super::{AssertionRejected, PasskeyPublicKey, RelyingParty};
use crate::domain::primitives::id::PasskeyId;

/// What the browser gave, each part in base64url.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registration {
    /// The key and what vouches for it. Nothing has to: any authenticator will do.
    pub attestation: String,
    /// What the browser says it was asked for: challenge, origin.
    pub client_data: String,
}

/// A passkey that was found good.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifiedRegistration {
    /// As its authenticator names it.
    pub id: PasskeyId,
    /// What its signatures are checked with.
    pub public_key: PasskeyPublicKey,
    /// Whether it may be copied to other devices.
    pub backup_eligible: bool,
    /// Where its counter stands.
    pub counter: u32,
}

impl Registration {
    /// The passkey, if it was made for this challenge at this origin by somebody whom the authenticator made sure of.
    pub fn check(&self, party: &RelyingParty, challenge: &[u8]) -> Result<VerifiedRegistration, AssertionRejected> {
        let bytes = |text: &str| URL_SAFE_NO_PAD.decode(text).map_err(|_| AssertionRejected::Unreadable);
        let response = AuthenticatorAttestationResponseRaw {
            attestation_object: bytes(&self.attestation)?,
            client_data_json: bytes(&self.client_data)?,
            transports: None,
        };
        let given = RegisterPublicKeyCredential {
            id: String::new(),
            raw_id: Vec::new(),
            response,
            type_: "public-key".to_owned(),
            extensions: Default::default(),
        };
        let made = library(party).register_credential(&given, &state(challenge), None);
        let made = made.map_err(|error| refused(&error))?;
        let id =
            PasskeyId::try_from(URL_SAFE_NO_PAD.encode(&made.cred_id)).map_err(|_| AssertionRejected::Unreadable)?;
        let public_key = PasskeyPublicKey::of(&made.cred).ok_or(AssertionRejected::Unreadable)?;
        Ok(VerifiedRegistration { id, public_key, backup_eligible: made.backup_eligible, counter: made.counter })
    }
}

/// As for an assertion: the library's own account, with our challenge.
fn state(challenge: &[u8]) -> RegistrationState {
    let state = json!({
        "policy": "required", "exclude_credentials": [], "challenge": URL_SAFE_NO_PAD.encode(challenge),
        "credential_algorithms": ALGORITHMS, "require_resident_key": true, "authenticator_attachment": null,
        "extensions": {}, "allow_synchronised_authenticators": true,
    });
    serde_json::from_value(state).expect("the pinned version's own form, which a test goes through")
}
