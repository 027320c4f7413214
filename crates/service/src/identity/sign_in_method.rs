//! The methods that open a session.

use countersign_domain::identity::account::{OneTimeLink, PasskeyUsed};
use countersign_store::record::Stored;

use super::passkeys::vote_signature::PasskeyUse;

pub(crate) enum SignInMethod {
    /// By name and password, or by a set-up link that sets a password.
    Password,
    Link(Stored<OneTimeLink>),
    Passkey {
        used: PasskeyUse,
        challenge: String,
    },
}

impl SignInMethod {
    /// Returns the part that the session stores.
    pub(super) fn passkey(&self) -> Option<PasskeyUsed> {
        match self {
            Self::Passkey { used, challenge } => {
                Some(PasskeyUsed { id: used.id().clone(), challenge: challenge.clone() })
            }
            Self::Password | Self::Link(_) => None,
        }
    }
}
