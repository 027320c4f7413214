//! Proof of a voter's presence, and the requirements of stages.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::VoteRejected;
use crate::chain::hash::Digest;
use crate::chain::receipt::ApprovalMethod;
use crate::identity::account::Session;
use crate::identity::passkey::Assertion;
use crate::primitives::id::PasskeyId;
use crate::primitives::time::Timestamp;

/// The passkey requirement of a stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "asks", rename_all = "snake_case", deny_unknown_fields)]
pub enum PasskeyRequirement {
    Nothing {},
    /// The passkey was used recently, to sign in or to sign this vote.
    Within {
        /// The longest time since then, in seconds.
        secs: u64,
    },
    Signature {},
}

/// The proof of a voter's presence.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub enum VoterProof {
    /// A session without a passkey.
    Session {},
    /// A session with a passkey.
    PasskeySession {
        passkey: PasskeyId,
        /// The time at which the passkey was used.
        at: Timestamp,
    },
    /// A passkey's signature over this vote.
    Signature {
        /// The digest of statement and assertion.
        evidence: Digest,
        /// The expiry of the signature.
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
    /// Checks that no passkey is required.
    pub fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing {})
    }

    /// Checks that a proof meets the requirement now.
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
    /// Returns the proof that a session alone gives.
    pub fn of_session(session: &Session) -> Self {
        match &session.passkey {
            Some(used) => Self::PasskeySession { passkey: used.id.clone(), at: session.created_at },
            None => Self::Session {},
        }
    }

    /// Checks for a session without a passkey. The member is then omitted from the row.
    pub fn is_session(&self) -> bool {
        matches!(self, Self::Session {})
    }

    /// Returns the method for receipts. Without a passkey, the account has the method.
    pub const fn method(&self) -> Option<ApprovalMethod> {
        match self {
            Self::Session {} => None,
            Self::PasskeySession { .. } => Some(ApprovalMethod::PasskeySession),
            Self::Signature { .. } => Some(ApprovalMethod::Passkey),
        }
    }

    /// Returns the digest of the evidence, if it can be verified again.
    pub const fn evidence(&self) -> Option<Digest> {
        match self {
            Self::Signature { evidence, .. } => Some(*evidence),
            Self::Session {} | Self::PasskeySession { .. } => None,
        }
    }

    /// Returns the used passkey.
    pub const fn passkey(&self) -> Option<&PasskeyId> {
        match self {
            Self::Session {} => None,
            Self::PasskeySession { passkey, .. } => Some(passkey),
            Self::Signature { assertion, .. } => Some(&assertion.passkey),
        }
    }
}
