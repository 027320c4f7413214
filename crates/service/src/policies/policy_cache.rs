//! Caches compiled policies by digest.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use countersign_domain::chain::hash::Digest;
use countersign_domain::policy::Policy;

/// Compiled policies by digest. A policy with a digest never changes, so entries never become stale.
#[derive(Default)]
pub(crate) struct PolicyCache {
    pub(crate) compiled: Mutex<HashMap<Digest, Arc<Policy>>>,
}

impl PolicyCache {
    pub(crate) fn get(&self, digest: Digest) -> Option<Arc<Policy>> {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner).get(&digest).cloned()
    }
}

/// How many compiled policies are cached. A gateway has a few flows with a few versions each.
pub(crate) const POLICIES_MAX: usize = 256;
