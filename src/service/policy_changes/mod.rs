//! Policy change requests: opens them, counts their votes, and activates the approved policy.

pub mod activate;
pub mod dry_run;
pub mod replay;
pub mod requests;

use std::sync::Arc;

use crate::service::identity::Identity;
use crate::service::platform::core::Core;
use crate::service::policies::Policies;
use crate::service::proposals::Proposals;
use crate::service::reviews::Reviews;
use crate::service::threads::Threads;

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
    pub(in crate::service) fn new(
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
