//! Activating policies, and caching compiled ones.

pub mod catalog;
pub mod policy_cache;
pub(crate) mod reason_masking;

use std::sync::Arc;

use crate::platform::core::Core;
use policy_cache::PolicyCache;

/// Compiled policies, and the active policy of each flow.
pub struct Policies {
    core: Arc<Core>,
    cache: PolicyCache,
}

impl Policies {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        Self { core: Arc::clone(core), cache: PolicyCache::default() }
    }
}
