//! Assertions: the signatures of authenticators over challenges.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::json;
use webauthn_rs_core::WebauthnCore;
use webauthn_rs_core::error::WebauthnError;
use webauthn_rs_core::proto::{
    AttestationFormat, AuthenticationState, AuthenticatorAssertionResponseRaw, CollectedClientData, Credential,
    ParsedAttestation, PublicKeyCredential, RegisteredExtensions, UserVerificationPolicy,
};

use super::{Passkey, RelyingParty};
use crate::primitives::id::PasskeyId;

/// A passkey's signature over a challenge, each part in base64url as the browser returned it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Assertion {
    /// The authenticator data: host, flags and counter.
    pub authenticator_data: String,
    /// The browser's client data: challenge and origin.
    pub client_data: String,
    /// The id of the passkey.
    pub passkey: PasskeyId,
    /// The signature over both.
    pub signature: String,
}

/// The reason why an assertion is rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AssertionRejected {
    #[error("this is not a valid passkey assertion")]
    Unreadable,
    /// The browser performed another operation than signing.
    #[error("the passkey was used for another purpose; try again on this page")]
    Purpose,
    /// The signature covers another challenge.
    #[error("the passkey signed something else; open the page again")]
    Challenge,
    /// It was made on another origin, or in a frame of another origin.
    #[error("the passkey was used on another site; use the gateway's own address")]
    Origin,
    /// The authenticator was not touched, or did not verify the person.
    #[error("the authenticator did not verify you; unlock it by PIN, fingerprint or face")]
    Unverified,
    #[error("the signature does not match the passkey")]
    Signature,
    /// The counter did not increase, so the authenticator may have been cloned.
    #[error("the passkey's counter went back, so the passkey may have been cloned; remove it")]
    Counter,
    /// The passkey belongs to another account, or is removed.
    #[error("this passkey does not belong to the account, or is removed")]
    NotTheirs,
}

/// A value that the library requires and does not use, because it creates no challenge here.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(super) fn library(party: &RelyingParty) -> WebauthnCore {
    let origins = vec![party.origin.clone()];
    WebauthnCore::new_unsafe_experts_only("Countersign", party.id(), origins, TIMEOUT, Some(false), Some(false))
}

impl Assertion {
    /// Checks the assertion and returns the new counter. It must be this passkey's signature over this challenge, made
    /// on its own origin, with a verified person.
    pub fn check(&self, passkey: &Passkey, challenge: &[u8]) -> Result<u32, AssertionRejected> {
        if self.passkey != passkey.id {
            return Err(AssertionRejected::NotTheirs);
        }
        // The origin is that of the registration and not of the request, which an attacker may control.
        let party = RelyingParty::at(&passkey.origin).ok_or(AssertionRejected::Origin)?;
        let credential = credential(passkey).ok_or(AssertionRejected::Signature)?;
        let response = self.response().ok_or(AssertionRejected::Unreadable)?;
        let checked = library(&party).authenticate_single_credential(&response, &state(challenge), &credential);
        let checked = checked.map_err(|error| refused(&error))?;
        self.check_frame()?;
        Ok(checked.counter())
    }

    /// The library checks for frames at registration, but not at signing. Without this check another site could embed
    /// the page (clickjacking).
    fn check_frame(&self) -> Result<(), AssertionRejected> {
        let bytes = URL_SAFE_NO_PAD.decode(&self.client_data).map_err(|_| AssertionRejected::Unreadable)?;
        let data: CollectedClientData = serde_json::from_slice(&bytes).map_err(|_| AssertionRejected::Unreadable)?;
        // Browsers report a frame in one of these two members.
        let framed = data.cross_origin == Some(true) || data.unknown_keys.contains_key("topOrigin");
        if framed { Err(AssertionRejected::Origin) } else { Ok(()) }
    }

    fn response(&self) -> Option<PublicKeyCredential> {
        let bytes = |text: &str| URL_SAFE_NO_PAD.decode(text).ok();
        let response = AuthenticatorAssertionResponseRaw {
            authenticator_data: bytes(&self.authenticator_data)?,
            client_data_json: bytes(&self.client_data)?,
            signature: bytes(&self.signature)?,
            user_handle: None,
        };
        let (id, raw_id) = (self.passkey.to_string(), bytes(self.passkey.as_str())?);
        Some(PublicKeyCredential {
            id,
            raw_id,
            response,
            extensions: Default::default(),
            type_: "public-key".to_owned(),
        })
    }
}

/// Returns the library's state with the gateway's challenge. The library offers no other way to set a challenge.
fn state(challenge: &[u8]) -> AuthenticationState {
    let state = json!({
        "credentials": [], "policy": "required", "challenge": URL_SAFE_NO_PAD.encode(challenge), "appid": null,
        "allow_backup_eligible_upgrade": false,
    });
    serde_json::from_value(state).expect("the pinned version's own form, which a test goes through")
}

fn credential(passkey: &Passkey) -> Option<Credential> {
    Some(Credential {
        cred_id: URL_SAFE_NO_PAD.decode(passkey.id.as_str()).ok()?,
        cred: passkey.public_key.cose()?,
        counter: passkey.counter,
        transports: None,
        // The library then refuses an assertion without user verification.
        user_verified: true,
        backup_eligible: passkey.backup_eligible,
        backup_state: false,
        registration_policy: UserVerificationPolicy::Required,
        extensions: RegisteredExtensions::none(),
        // The attestation was not checked at the registration, so none is stored.
        attestation: ParsedAttestation::default(),
        attestation_format: AttestationFormat::None,
    })
}

pub(super) fn refused(error: &WebauthnError) -> AssertionRejected {
    match error {
        WebauthnError::InvalidClientDataType => AssertionRejected::Purpose,
        WebauthnError::MismatchedChallenge => AssertionRejected::Challenge,
        WebauthnError::InvalidRPOrigin | WebauthnError::InvalidRPIDHash | WebauthnError::CredentialCrossOrigin => {
            AssertionRejected::Origin
        }
        WebauthnError::UserNotPresent | WebauthnError::UserNotVerified => AssertionRejected::Unverified,
        WebauthnError::CredentialPossibleCompromise => AssertionRejected::Counter,
        WebauthnError::AuthenticationFailure
        | WebauthnError::SignatureInvalid
        | WebauthnError::CredentialBackupEligibilityInconsistent
        | WebauthnError::CredentialMayNotBeHardwareBound => AssertionRejected::Signature,
        // The other errors mean that the data has no valid form.
        _ => AssertionRejected::Unreadable,
    }
}
