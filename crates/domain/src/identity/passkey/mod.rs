//! Passkeys (WebAuthn): registration, and the checks of their signatures.
//!
//! A library performs the checks of WebAuthn. This module adds the challenge, which identifies the signed data, and
//! refuses assertions that were made in a frame of another site.

mod assertion;
mod public_key;
mod registration;

pub use assertion::{Assertion, AssertionRejected};
pub use public_key::PasskeyPublicKey;
pub use registration::{Registration, VerifiedRegistration};

use serde::{Deserialize, Serialize};
use url::Url;

use crate::primitives::id::{AccountId, PasskeyId};
use crate::primitives::time::Timestamp;

#[cfg(test)]
mod tests;

/// A person's passkey. Its private half never leaves the authenticator.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Passkey {
    /// The authenticator's id of the passkey.
    pub id: PasskeyId,
    pub account: AccountId,
    pub name: String,
    pub public_key: PasskeyPublicKey,
    /// The origin of the registration. The passkey is valid only there.
    pub origin: String,
    /// Whether its provider, such as the maker of a phone, may sync it to other devices.
    pub backup_eligible: bool,
    /// The authenticator's counter at the last use. Synced passkeys always report 0.
    pub counter: u32,
    /// The challenge of the registration. It is unique, so a registration cannot be replayed.
    pub challenge: String,
    pub added_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<Timestamp>,
    /// The time of the removal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_at: Option<Timestamp>,
}

impl Passkey {
    /// Checks that it is valid now. A removed passkey stays removed, even if a clock was set back.
    pub fn counts_at(&self, now: Timestamp) -> bool {
        // The start is checked too, for a replica whose clock is behind.
        self.added_at <= now && self.removed_at.is_none()
    }

    /// Checks that it was valid at a time.
    pub fn counted_at(&self, moment: Timestamp) -> bool {
        self.added_at <= moment && self.removed_at.is_none_or(|it| moment < it)
    }

    /// Returns the passkey after a use. The time of the last use never goes back, even if a clock does.
    #[must_use]
    pub fn used(&self, counter: u32, now: Timestamp) -> Self {
        Self { counter, used_at: self.used_at.max(Some(now)), ..self.clone() }
    }
}

/// The WebAuthn relying party: an origin, and the host name that passkeys are bound to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RelyingParty {
    id: String,
    origin: Url,
}

impl RelyingParty {
    /// Returns the relying party of the public URL. Browsers allow passkeys only on https and localhost, and only for
    /// names, not for IP addresses.
    pub fn at(public_url: &str) -> Option<Self> {
        let origin = Url::parse(public_url).ok()?;
        let Some(url::Host::Domain(name)) = origin.host() else { return None };
        // Browsers treat localhost as a secure context without TLS.
        let safe = origin.scheme() == "https" || (origin.scheme() == "http" && name == "localhost");
        let id = name.to_owned();
        safe.then_some(Self { id, origin })
    }

    /// Returns the host name that passkeys are bound to.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the origin in the browsers' spelling.
    pub fn origin(&self) -> String {
        self.origin.origin().ascii_serialization()
    }
}
