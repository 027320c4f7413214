//! What a voter showed for being there, and what a stage asks for.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::VoteRejected;
use crate::domain::chain::hash::Digest;
use crate::domain::chain::receipt::ApprovalMethod;
use crate::domain::identity::passkey::Assertion;
use crate::domain::primitives::id::PasskeyId;
use crate::domain::primitives::time::Timestamp;

/// What a stage asks of a voter's passkey.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "asks", rename_all = "snake_case", deny_unknown_fields)]
pub enum PasskeyRequirement {
    Nothing {},
    /// It was used at most so long ago: to sign in, or to sign this vote.
    Within {
        /// How long, in seconds.
        secs: u64,
    },
    Signature {},
}

/// What a voter showed for being there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub enum VoterProof {
    /// A session that was opened without a passkey.
    Session {},
    /// A session that was opened with a passkey.
    PasskeySession {
        passkey: PasskeyId,
        /// When it was used for that.
        at: Timestamp,
    },
    /// A passkey's signature over this very vote.
    Signature {
        /// The digest of statement and assertion.
        evidence: Digest,
        /// Until when the signature could be used.
        expires_at: Timestamp,
        assertion: Assertion,
    },
}

impl Default for PasskeyRequirement {
    fn default() -> Self {
        Self::Nothing {}
    }
}

impl Default for VoterProof {
    fn default() -> Self {
        Self::Session {}
    }
}

impl PasskeyRequirement {
    /// Whether no passkey is needed.
    pub fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing {})
    }

    /// Whether that is enough at this moment.
    pub fn met_by(self, proof: &VoterProof, now: Timestamp) -> Result<(), VoteRejected> {
        match (self, proof) {
            (Self::Nothing {}, _) | (_, VoterProof::Signature { .. }) => Ok(()),
            (Self::Within { secs }, VoterProof::PasskeySession { at, .. })
                if now <= at.plus(Duration::from_secs(secs)) =>
            {
                Ok(())
            }
            (Self::Within { .. }, _) => Err(VoteRejected::PasskeyStale),
            (Self::Signature {}, _) => Err(VoteRejected::PasskeyRequired),
        }
    }
}

impl VoterProof {
    /// Whether there is nothing to say of it.
    pub fn is_session(&self) -> bool {
        matches!(self, Self::Session {})
    }

    /// The word that receipts have for it; without a passkey, the account says which.
    pub const fn method(&self) -> Option<ApprovalMethod> {
        match self {
            Self::Session {} => None,
            Self::PasskeySession { .. } => Some(ApprovalMethod::PasskeySession),
            Self::Signature { .. } => Some(ApprovalMethod::Passkey),
        }
    }

    /// The digest of what can be checked again.
    pub const fn evidence(&self) -> Option<Digest> {
        match self {
            Self::Signature { evidence, .. } => Some(*evidence),
            Self::Session {} | Self::PasskeySession { .. } => None,
        }
    }

    /// The passkey that was used.
    pub const fn passkey(&self) -> Option<&PasskeyId> {
        match self {
            Self::Session {} => None,
            Self::PasskeySession { passkey, .. } => Some(passkey),
            Self::Signature { assertion, .. } => Some(&assertion.passkey),
        }
    }
}
