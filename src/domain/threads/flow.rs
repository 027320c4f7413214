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
    Enforce,
    /// It commits, and is marked: a policy is tried out on what really happens.
    Observe,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gateway {
    /// Who signs; must be the keyring's own.
    pub issuer: String,
    pub halt: Halt,
    /// Who set them; rows of older versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stops: Option<ActiveHalts>,
    pub created_at: Timestamp,
}

/// A flow: its active policy and its stops.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    pub id: FlowId,
    pub policy: Digest,
    /// Older policies whose heads may still be written.
    pub accepts: BTreeSet<Digest>,
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
    pub digest: Digest,
    pub flow: FlowId,
    pub text: String,
    pub schemas: BTreeMap<String, String>,
    pub created_at: Timestamp,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptRow {
    pub jti: crate::domain::primitives::id::Jti,
    pub thread: crate::domain::primitives::id::ThreadId,
    /// The transition it approves.
    pub transition: Digest,
    /// The token, byte for byte.
    pub token: String,
    pub reviewers: Vec<crate::domain::primitives::id::AccountId>,
    /// Set when it was taken back.
    pub revoked: Option<Revoked>,
}

/// Why a receipt was taken back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revoked {
    pub at: Timestamp,
    pub by: PrincipalId,
    pub reason: String,
}
