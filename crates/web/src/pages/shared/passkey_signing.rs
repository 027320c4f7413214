//! Whether a passkey signs a vote, on pages that confirm it.

use crate::pages::identity::passkeys_view::PasskeyChallengeView;

#[derive(Clone, Debug)]
pub enum PasskeySigningView {
    /// No signature is required, and the account has no passkey.
    NotAsked,
    /// A passkey can sign. The vote also counts without it.
    May(PasskeySignForm),
    Must(PasskeySignForm),
    /// A passkey must sign, and the account has no valid one.
    Impossible,
}

#[derive(Clone, Debug)]
pub struct PasskeySignForm {
    pub asking: PasskeyChallengeView,
    /// Expiry of the signature. It is part of the signed data.
    pub until: String,
}

impl PasskeySigningView {
    pub fn form(&self) -> Option<&PasskeySignForm> {
        match self {
            Self::May(form) | Self::Must(form) => Some(form),
            Self::NotAsked | Self::Impossible => None,
        }
    }

    /// Whether the vote is rejected without a signature.
    pub fn must(&self) -> bool {
        matches!(self, Self::Must(_))
    }

    /// Whether a signature is required and impossible.
    pub fn impossible(&self) -> bool {
        matches!(self, Self::Impossible)
    }
}
