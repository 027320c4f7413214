//! Writes after approval: verify a receipt, then confirm, abort or resolve the write.

pub(crate) mod approval_status;
pub mod outcome;
pub mod receipt_lookup;
pub mod revoke_receipt;
pub mod verify;

use std::sync::Arc;

use crate::identity::Identity;
use crate::platform::core::Core;
use crate::platform::row_cache::IssuedReceipts;
use crate::policies::Policies;
use crate::proposals::Proposals;
use crate::threads::Threads;

/// Verifies receipts before a write, and records its outcome.
pub struct Writes {
    core: Arc<Core>,
    policies: Arc<Policies>,
    identity: Arc<Identity>,
    threads: Arc<Threads>,
    proposals: Arc<Proposals>,
    issued: IssuedReceipts,
}

impl Writes {
    pub(crate) fn new(
        core: &Arc<Core>,
        policies: &Arc<Policies>,
        identity: &Arc<Identity>,
        threads: &Arc<Threads>,
        proposals: &Arc<Proposals>,
    ) -> Self {
        Self {
            core: Arc::clone(core),
            policies: Arc::clone(policies),
            identity: Arc::clone(identity),
            threads: Arc::clone(threads),
            proposals: Arc::clone(proposals),
            issued: IssuedReceipts::default(),
        }
    }
}
