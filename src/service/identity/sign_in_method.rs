//! The ways in: what a session is opened by.

use super::passkeys::vote_signature::PasskeyUse;
use crate::domain::identity::account::{OneTimeLink, PasskeyUsed};
use crate::store::record::Stored;

pub(in crate::service) enum SignInMethod {
    /// By name and password, or by a set-up link that gave them one.
    Password,
    Link(Stored<OneTimeLink>),
    Passkey {
        used: PasskeyUse,
        challenge: String,
    },
}

impl SignInMethod {
    /// What the session keeps of it.
    pub(super) fn passkey(&self) -> Option<PasskeyUsed> {
        match self {
            Self::Passkey { used, challenge } => {
                Some(PasskeyUsed { id: used.id().clone(), challenge: challenge.clone() })
            }
            Self::Password | Self::Link(_) => None,
        }
    }
}
