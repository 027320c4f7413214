//! An assertion: what an authenticator signed of a challenge.

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
use crate::domain::primitives::id::PasskeyId;

/// What an authenticator signed of a challenge, each part in base64url as the browser gave it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Assertion {
    /// Whom it is by: host, flags, counter.
    pub authenticator_data: String,
    /// What the browser says it was asked for: challenge, origin.
    pub client_data: String,
    /// Which passkey.
    pub passkey: PasskeyId,
    /// Over both.
    pub signature: String,
}

/// Why an assertion does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AssertionRejected {
    #[error("it is no assertion of a passkey")]
    Unreadable,
    /// The browser was not asked to sign, but to do something else.
    #[error("it was made for another purpose")]
    Purpose,
    /// It is over another challenge.
    #[error("it signs something else")]
    Challenge,
    /// It was made at another origin, or within another origin's page.
    #[error("it was made on another site's page")]
    Origin,
    /// Nobody touched the authenticator, or it did not make sure who.
    #[error("the authenticator did not make sure who used it")]
    Unverified,
    /// The signature is not this passkey's.
    #[error("the signature is not that passkey's")]
    Signature,
    /// Its counter did not go on: the authenticator may have been copied.
    #[error("the passkey's counter went back: it may have been copied")]
    Counter,
    /// The passkey is not this person's, or was removed.
    #[error("it is not a passkey of this account")]
    NotTheirs,
}

/// What the library wants to know and never uses here: it makes no challenge for us.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(super) fn library(party: &RelyingParty) -> WebauthnCore {
    let origins = vec![party.origin.clone()];
    WebauthnCore::new_unsafe_experts_only("Countersign", party.id(), origins, TIMEOUT, Some(false), Some(false))
}

impl Assertion {
    /// The authenticator's counter after it, if it is this passkey's signature over this challenge, made at its own
    /// origin by somebody whom the authenticator made sure of.
    pub fn check(&self, passkey: &Passkey, challenge: &[u8]) -> Result<u32, AssertionRejected> {
        if self.passkey != passkey.id {
            return Err(AssertionRejected::NotTheirs);
        }
        let party = RelyingParty::at(&passkey.origin).ok_or(AssertionRejected::Origin)?;
        let credential = credential(passkey).ok_or(AssertionRejected::Signature)?;
        let response = self.response().ok_or(AssertionRejected::Unreadable)?;
        let checked = library(&party).authenticate_single_credential(&response, &state(challenge), &credential);
        let checked = checked.map_err(|error| refused(&error))?;
        self.check_frame()?;
        Ok(checked.counter())
    }

    /// The library looks at the frame when a passkey is registered, and not when it signs.
    fn check_frame(&self) -> Result<(), AssertionRejected> {
        let bytes = URL_SAFE_NO_PAD.decode(&self.client_data).map_err(|_| AssertionRejected::Unreadable)?;
        let data: CollectedClientData = serde_json::from_slice(&bytes).map_err(|_| AssertionRejected::Unreadable)?;
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

/// The library's own account of what was asked for, with our challenge in place of one of its making.
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
        user_verified: true,
        backup_eligible: passkey.backup_eligible,
        backup_state: false,
        registration_policy: UserVerificationPolicy::Required,
        extensions: RegisteredExtensions::none(),
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
        _ => AssertionRejected::Unreadable,
    }
}
