//! Archives old versions of threads as their policies require: first into a file, then out of the database. Every
//! change depends on the policy and the thread as they were read.

mod erase;
pub mod move_versions;
pub mod openings;
pub mod restore;
mod segments;

use std::sync::Arc;

use crate::platform::core::Core;
use crate::policies::Policies;
use crate::threads::Threads;

/// Moves old versions into archive files, and restores them.
pub struct VersionArchive {
    core: Arc<Core>,
    policies: Arc<Policies>,
    threads: Arc<Threads>,
}

impl VersionArchive {
    pub(crate) fn new(core: &Arc<Core>, policies: &Arc<Policies>, threads: &Arc<Threads>) -> Self {
        Self { core: Arc::clone(core), policies: Arc::clone(policies), threads: Arc::clone(threads) }
    }
}
