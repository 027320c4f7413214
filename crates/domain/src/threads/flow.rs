//! Flows, their policies, and halts.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::chain::hash::Digest;
use crate::operations::halt::{ActiveHalts, Halt};
use crate::primitives::id::{AmendmentId, FlowId, PrincipalId};
use crate::primitives::time::Timestamp;

/// Whether a request that requires approval is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Enforce,
    /// Observe mode: the request is committed and marked, to test a policy on real traffic.
    Observe,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gateway {
    /// The issuer in signatures. It must be the issuer of the keyring.
    pub issuer: String,
    pub halt: Halt,
    /// The actors that set the halts. Older rows do not have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stops: Option<ActiveHalts>,
    pub created_at: Timestamp,
}

/// A flow with its active policy and its halts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    pub id: FlowId,
    pub policy: Digest,
    /// Older policies whose heads may still be written.
    pub accepts: BTreeSet<Digest>,
    pub halt: Halt,
    /// The actors that set the halts. Older rows do not have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stops: Option<ActiveHalts>,
    pub activated_at: Timestamp,
    /// The account or token that activated the policy, or that proposed the policy change request.
    pub activated_by: PrincipalId,
    /// The approved policy change request, if the policy required approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amendment: Option<AmendmentId>,
}

impl Flow {
    /// Returns the policies whose heads may be written: the active policy and those that it accepts.
    pub fn accepted(&self) -> BTreeSet<Digest> {
        let mut accepted = self.accepts.clone();
        // The active policy is always accepted, so the stored set has only the older ones.
        accepted.insert(self.policy);
        accepted
    }
}

/// A stored policy. Each read recomputes its digest, to detect a manipulated row.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyRow {
    pub digest: Digest,
    pub flow: FlowId,
    pub text: String,
    pub schemas: BTreeMap<String, String>,
    pub created_at: Timestamp,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptRow {
    pub jti: crate::primitives::id::Jti,
    pub thread: crate::primitives::id::ThreadId,
    /// The approved transition.
    pub transition: Digest,
    /// The signed token. It must keep its bytes, because the signature covers them.
    pub token: String,
    pub reviewers: Vec<crate::primitives::id::AccountId>,
    /// The revocation, if the receipt is revoked.
    pub revoked: Option<Revoked>,
}

/// The revocation of a receipt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revoked {
    pub at: Timestamp,
    pub by: PrincipalId,
    pub reason: String,
}
