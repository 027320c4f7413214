//! Registrations of new passkeys.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::json;
use webauthn_rs_core::proto::{AuthenticatorAttestationResponseRaw, RegisterPublicKeyCredential, RegistrationState};

use super::assertion::{library, refused};
use super::public_key::ALGORITHMS;
use super::{AssertionRejected, PasskeyPublicKey, RelyingParty};
use crate::primitives::id::PasskeyId;

/// The browser's response, each part in base64url.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registration {
    /// The key and its attestation. The attestation is not checked, because every authenticator is accepted.
    pub attestation: String,
    /// The browser's client data: challenge and origin.
    pub client_data: String,
}

/// A verified new passkey.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifiedRegistration {
    /// The authenticator's id of the passkey.
    pub id: PasskeyId,
    pub public_key: PasskeyPublicKey,
    /// Whether it may be synced to other devices.
    pub backup_eligible: bool,
    /// The initial counter.
    pub counter: u32,
}

impl Registration {
    /// Checks the registration and returns the passkey. It must be made for this challenge on this origin, with a
    /// verified person.
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

/// Returns the library's state with the gateway's challenge, as for an assertion.
fn state(challenge: &[u8]) -> RegistrationState {
    let state = json!({
        "policy": "required", "exclude_credentials": [], "challenge": URL_SAFE_NO_PAD.encode(challenge),
        "credential_algorithms": ALGORITHMS, "require_resident_key": true, "authenticator_attachment": null,
        "extensions": {}, "allow_synchronised_authenticators": true,
    });
    serde_json::from_value(state).expect("the pinned version's own form, which a test goes through")
}
