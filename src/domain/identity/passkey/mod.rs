//! Passkeys: credentials that people enrol, and what is checked of what they sign.
//!
//! The checks of WebAuthn are a library's. What is ours is the challenge, which says what is signed, and that an
//! assertion of another page's frame is refused.

mod assertion;
mod public_key;
mod registration;

pub use assertion::{Assertion, AssertionRejected};
pub use public_key::PasskeyPublicKey;
pub use registration::{Registration, VerifiedRegistration};

use serde::{Deserialize, Serialize};
use url::Url;

use crate::domain::primitives::id::{AccountId, PasskeyId};
use crate::domain::primitives::time::Timestamp;

#[cfg(test)]
mod tests;

/// A person's passkey. Its private half never leaves the authenticator.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Passkey {
    /// As its authenticator names it.
    pub id: PasskeyId,
    pub account: AccountId,
    pub name: String,
    /// What its signatures are checked with.
    pub public_key: PasskeyPublicKey,
    /// The origin it was registered at. It counts nowhere else.
    pub origin: String,
    /// Whether it may be copied to other devices by who keeps it, such as a phone's maker.
    pub backup_eligible: bool,
    /// How many signatures its authenticator had made when it was used last; synced ones say 0 for ever.
    pub counter: u32,
    /// The challenge it was registered with. No two have the same.
    pub challenge: String,
    pub added_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<Timestamp>,
    /// Since when it does not count any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_at: Option<Timestamp>,
}

impl Passkey {
    /// Whether it counts now. What was removed stays so, whatever a clock says that went back since.
    pub fn counts_at(&self, now: Timestamp) -> bool {
        self.added_at <= now && self.removed_at.is_none()
    }

    /// Whether it counted at that moment.
    pub fn counted_at(&self, moment: Timestamp) -> bool {
        self.added_at <= moment && self.removed_at.is_none_or(|it| moment < it)
    }

    /// The same after one more use. No clock that went back makes the last one an earlier one.
    #[must_use]
    pub fn used(&self, counter: u32, now: Timestamp) -> Self {
        Self { counter, used_at: self.used_at.max(Some(now)), ..self.clone() }
    }
}

/// Where passkeys are registered and used: an origin, and the host that they are bound to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RelyingParty {
    id: String,
    origin: Url,
}

impl RelyingParty {
    /// Of the address at which people reach the gateway. Browsers allow passkeys on https and on localhost, and only
    /// for names: an address has none.
    pub fn at(public_url: &str) -> Option<Self> {
        let origin = Url::parse(public_url).ok()?;
        let Some(url::Host::Domain(name)) = origin.host() else { return None };
        let safe = origin.scheme() == "https" || (origin.scheme() == "http" && name == "localhost");
        let id = name.to_owned();
        safe.then_some(Self { id, origin })
    }

    /// The host that passkeys are bound to.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The origin, as browsers write it.
    pub fn origin(&self) -> String {
        self.origin.origin().ascii_serialization()
    }
}
