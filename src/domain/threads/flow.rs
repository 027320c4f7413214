//! Flows, their policies, and the stops that people can pull.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::domain::chain::hash::Digest;
use crate::domain::operations::halt::{ActiveHalts, Halt};
use crate::domain::primitives::id::{AmendmentId, FlowId, PrincipalId};
use crate::domain::primitives::time::Timestamp;

/// Whether what people should decide waits for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// It does.
    Enforce,
    /// It commits, and is marked: a policy is tried out on what really happens.
    Observe,
}

/// The gateway itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gateway {
    /// Who signs; must be the keyring's own.
    pub issuer: String,
    /// Stops for all flows.
    pub halt: Halt,
    /// Who set them; rows of older versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stops: Option<ActiveHalts>,
    /// Since when it exists.
    pub created_at: Timestamp,
}

/// A flow: its active policy and its stops.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Its name.
    pub id: FlowId,
    /// The policy that judges.
    pub policy: Digest,
    /// Older policies whose heads may still be written.
    pub accepts: BTreeSet<Digest>,
    /// Stops for this flow.
    pub halt: Halt,
    /// Who set them; rows of older versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stops: Option<ActiveHalts>,
    /// Since when that policy is active.
    pub activated_at: Timestamp,
    /// Who activated it, or proposed to.
    pub activated_by: PrincipalId,
    /// The amendment by which people approved it, if they were asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amendment: Option<AmendmentId>,
}

impl Flow {
    /// Whose heads may be written: the active policy's and those it accepts.
    pub fn accepted(&self) -> BTreeSet<Digest> {
        let mut accepted = self.accepts.clone();
        accepted.insert(self.policy);
        accepted
    }
}

/// A policy as it is kept: its digest is recomputed when it is read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyRow {
    /// Its digest.
    pub digest: Digest,
    /// The flow it is for.
    pub flow: FlowId,
    /// The text.
    pub text: String,
    /// The schemas it names.
    pub schemas: BTreeMap<String, String>,
    /// Since when it is known.
    pub created_at: Timestamp,
}

/// A receipt as it is kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptRow {
    /// Its id.
    pub jti: crate::domain::primitives::id::Jti,
    /// The thread.
    pub thread: crate::domain::primitives::id::ThreadId,
    /// The transition it approves.
    pub transition: Digest,
    /// The token, byte for byte.
    pub token: String,
    /// Who approved.
    pub reviewers: Vec<crate::domain::primitives::id::AccountId>,
    /// Set when it was taken back.
    pub revoked: Option<Revoked>,
}

/// Why a receipt was taken back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revoked {
    /// When.
    pub at: Timestamp,
    /// By whom.
    pub by: PrincipalId,
    /// Why.
    pub reason: String,
}
