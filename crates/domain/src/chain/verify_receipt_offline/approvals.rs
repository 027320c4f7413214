//! Checks approvals by passkey against pinned registrations, without trusting the gateway.

use serde::{Deserialize, Serialize};

use super::{CheckOutcome, fail};
use crate::chain::denial::DenialCode;
use crate::chain::receipt::{ApprovalClaim, ApprovalMethod, Receipt};
use crate::chain::signed_vote::{SIGNATURE_TTL, VoteEvidence};
use crate::identity::passkey::{Passkey, PasskeyPublicKey};
use crate::primitives::id::{AccountId, PasskeyId};
use crate::primitives::time::Timestamp;
use crate::reviews::VoteVerdict;

/// A passkey registration that an auditor trusts, in the form of `GET /v1/passkeys`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PinnedPasskey {
    pub account: AccountId,
    pub added_at: Timestamp,
    pub backup_eligible: bool,
    #[serde(default)]
    pub name: String,
    pub origin: String,
    pub passkey: PasskeyId,
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub public_key: PasskeyPublicKey,
    #[serde(default)]
    pub removed_at: Option<Timestamp>,
}

impl From<Passkey> for PinnedPasskey {
    fn from(it: Passkey) -> Self {
        Self {
            account: it.account,
            added_at: it.added_at,
            backup_eligible: it.backup_eligible,
            name: it.name,
            origin: it.origin,
            passkey: it.id,
            public_key: it.public_key,
            removed_at: it.removed_at,
        }
    }
}

impl PinnedPasskey {
    /// Returns the passkey as it was before its first signature. The gateway checked the counter when the passkey
    /// signed.
    pub fn unused(&self) -> Passkey {
        Passkey {
            id: self.passkey.clone(),
            account: self.account.clone(),
            name: self.name.clone(),
            public_key: self.public_key.clone(),
            origin: self.origin.clone(),
            backup_eligible: self.backup_eligible,
            // The counter of the past is unknown, so it is not checked.
            counter: 0,
            challenge: String::new(),
            added_at: self.added_at,
            used_at: None,
            removed_at: self.removed_at,
        }
    }
}

/// Checks every approval that names a passkey against the given evidence and the pinned registrations.
pub(super) fn approvals(receipt: &Receipt, votes: &[VoteEvidence], pinned: Option<&[PinnedPasskey]>) -> CheckOutcome {
    // Other methods leave no signature that can be checked without the gateway.
    let signed: Vec<&ApprovalClaim> =
        receipt.approvals.iter().filter(|it| it.method == ApprovalMethod::Passkey).collect();
    if signed.is_empty() {
        return CheckOutcome::NotChecked { detail: "no approval claims a passkey signature" };
    }
    let Some(pinned) = pinned else { return CheckOutcome::NotChecked { detail: "no pinned passkeys were given" } };
    let outcomes: Vec<CheckOutcome> = signed.iter().map(|it| one(receipt, it, votes, pinned)).collect();
    let failed = outcomes.iter().find(|it| matches!(it, CheckOutcome::Failed { .. }));
    let other = outcomes.iter().find(|it| **it != CheckOutcome::Passed);
    // A failure outweighs missing evidence, which outweighs passed checks.
    failed.or(other).cloned().unwrap_or(CheckOutcome::Passed)
}

fn one(receipt: &Receipt, approval: &ApprovalClaim, votes: &[VoteEvidence], pinned: &[PinnedPasskey]) -> CheckOutcome {
    let Some(digest) = approval.evidence else {
        return fail(DenialCode::SignatureInvalid, "an approval claims a passkey signature but names no evidence");
    };
    let Some(vote) = votes.iter().find(|it| it.digest() == digest) else {
        return CheckOutcome::CouldNotTell { detail: "the evidence of an approval was not given" };
    };
    let statement = &vote.statement;
    // The signature must be for this approval and not for another vote of the same reviewer.
    let same = statement.iss == receipt.iss
        && statement.transition == receipt.transition
        && statement.reviewer == approval.reviewer
        && statement.stage == approval.stage
        && statement.verdict == VoteVerdict::Approve;
    if !same {
        return fail(DenialCode::DigestMismatch, "the passkey signature is for another approval");
    }
    // The gateway must not count a signature that it stored for later.
    if approval.at >= statement.expires_at || statement.expires_at > approval.at.plus(SIGNATURE_TTL) {
        return fail(DenialCode::Expired, "a passkey signature was counted outside its validity");
    }
    let known = pinned.iter().map(PinnedPasskey::unused).find(|it| it.id == vote.assertion.passkey);
    let Some(passkey) = known.filter(|it| it.counted_at(approval.at)) else {
        return fail(DenialCode::UnknownKey, "an approval is signed by a passkey that is not pinned");
    };
    match vote.check(&passkey) {
        Ok(_) => CheckOutcome::Passed,
        Err(_) => fail(DenialCode::SignatureInvalid, "an approval's signature does not match its reviewer's passkey"),
    }
}

#[cfg(test)]
mod tests;
