//! Branches: creates a child thread from a version and lists the branches of a thread.

pub mod fork;
pub mod list;

use std::sync::Arc;

use crate::platform::core::Core;
use crate::policies::Policies;
use crate::proposals::Proposals;
use crate::threads::Threads;

/// Forks of threads, and their joins.
pub struct Branches {
    core: Arc<Core>,
    policies: Arc<Policies>,
    threads: Arc<Threads>,
    proposals: Arc<Proposals>,
}

impl Branches {
    pub(crate) fn new(
        core: &Arc<Core>,
        policies: &Arc<Policies>,
        threads: &Arc<Threads>,
        proposals: &Arc<Proposals>,
    ) -> Self {
        Self {
            core: Arc::clone(core),
            policies: Arc::clone(policies),
            threads: Arc::clone(threads),
            proposals: Arc::clone(proposals),
        }
    }
}
