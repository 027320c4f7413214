//! Policy change requests: opens them, counts their votes, and activates the approved policy.

pub mod activate;
pub mod dry_run;
pub mod findings;
pub mod replay;
pub mod requests;

use std::sync::Arc;

use crate::identity::Identity;
use crate::platform::core::Core;
use crate::policies::Policies;
use crate::proposals::Proposals;
use crate::reviews::Reviews;
use crate::threads::Threads;

/// Activates policies, with the approval that the flow requires.
pub struct PolicyChanges {
    core: Arc<Core>,
    policies: Arc<Policies>,
    identity: Arc<Identity>,
    threads: Arc<Threads>,
    proposals: Arc<Proposals>,
    reviews: Arc<Reviews>,
}

impl PolicyChanges {
    pub(crate) fn new(
        core: &Arc<Core>,
        policies: &Arc<Policies>,
        identity: &Arc<Identity>,
        threads: &Arc<Threads>,
        proposals: &Arc<Proposals>,
        reviews: &Arc<Reviews>,
    ) -> Self {
        Self {
            core: Arc::clone(core),
            policies: Arc::clone(policies),
            identity: Arc::clone(identity),
            threads: Arc::clone(threads),
            proposals: Arc::clone(proposals),
            reviews: Arc::clone(reviews),
        }
    }
}
