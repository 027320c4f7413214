//! Receipts and denials that sign reviewers' decisions, and verifications that answer writers.

use serde::{Deserialize, Serialize};

use super::hash::Digest;
use super::jws::{self, TokenClaims, TokenType};
use crate::keys::SigningKey;
use crate::primitives::id::{AccountId, FlowId, Jti, NodeId, PrincipalId, ReviewId, ThreadId, WriteId};
use crate::primitives::time::Timestamp;

/// One reviewer's approval, as a receipt names it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalClaim {
    pub at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub evidence: Option<Digest>,
    #[serde(rename = "for", skip_serializing_if = "Option::is_none", default)]
    pub absent: Option<AccountId>,
    pub method: ApprovalMethod,
    pub reviewer: AccountId,
    pub stage: u32,
}

/// How a reviewer authenticated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalMethod {
    /// By a session that was opened with a password.
    Password,
    /// By a session that an OpenID provider authenticated.
    Oidc,
    /// By a session that was opened with a passkey, which did not sign the decision itself.
    PasskeySession,
    /// By a passkey that signed the decision.
    Passkey,
}

/// Claims of a receipt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    pub approvals: Vec<ApprovalClaim>,
    pub aud: Vec<NodeId>,
    pub exp: i64,
    pub flow: FlowId,
    pub iat: i64,
    pub iss: String,
    pub jti: Jti,
    pub nbf: i64,
    pub parent: Option<Digest>,
    pub policy: Digest,
    pub sub: ThreadId,
    pub to: Digest,
    pub transition: Digest,
    pub version: u64,
}

impl TokenClaims for Receipt {
    fn is_whole(&self) -> bool {
        self.version > 0
            && !self.iss.is_empty()
            && self.parent.is_some()
            // A receipt without an approval must never be valid, even with a good signature.
            && !self.approvals.is_empty()
            && self.nbf >= 0
            && (0..=self.exp).contains(&self.iat)
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DenialClaim {
    pub at: Timestamp,
    #[serde(rename = "for", skip_serializing_if = "Option::is_none", default)]
    pub absent: Option<AccountId>,
    pub reviewer: AccountId,
    pub stage: u32,
}

/// Claims of a denial. Verify never accepts one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Denial {
    pub flow: FlowId,
    pub iat: i64,
    pub iss: String,
    pub jti: Jti,
    pub outcome: String,
    pub parent: Option<Digest>,
    pub policy: Digest,
    pub review: ReviewId,
    pub reviewers: Vec<DenialClaim>,
    pub sub: ThreadId,
    pub transition: Digest,
}

impl TokenClaims for Denial {
    fn is_whole(&self) -> bool {
        let has_parties = !self.iss.is_empty() && !self.reviewers.is_empty();
        self.outcome == "denied" && self.iat >= 0 && self.parent.is_some() && has_parties
    }
}

/// Claims of a verification: the gateway's record that it allowed a write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verification {
    pub aud: PrincipalId,
    pub enforced: bool,
    pub exp: i64,
    pub fence: u64,
    pub flow: FlowId,
    pub iat: i64,
    pub iss: String,
    pub policy: Digest,
    pub receipt: Option<Jti>,
    pub sub: ThreadId,
    pub to: Digest,
    pub transition: Digest,
    pub version: u64,
    pub write_id: WriteId,
}

impl TokenClaims for Verification {
    fn is_whole(&self) -> bool {
        // Fencing tokens start at 1, so 0 means a missing one.
        self.fence > 0 && !self.iss.is_empty() && (0..=self.exp).contains(&self.iat)
    }
}

/// A receipt as this process signed it. If a caller shows the same bytes, form and signature need no second check, only
/// the key's state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IssuedReceipt {
    kid: String,
    claims: Receipt,
    token: String,
}

impl IssuedReceipt {
    pub fn sign(key: &SigningKey, claims: Receipt) -> Self {
        let token = jws::sign(key, TokenType::Receipt, &claims);
        Self { kid: key.kid().to_owned(), claims, token }
    }

    /// Returns the id of the key that signed it.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// Returns the claims.
    pub fn claims(&self) -> &Receipt {
        &self.claims
    }

    /// Returns the signed token.
    pub fn token(&self) -> &str {
        &self.token
    }
}
