//! Remembers the open items that were already judged under the active policies, so that the worker does not
//! read all of them again. It only saves work: each vote rejudges its review in any case.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use countersign_domain::policy_changes::change_request::ReplacedPolicy;

use crate::policies::catalog::ActivePolicies;

/// How many items are remembered. More items only cost repeated reads.
const KEPT_MAX: usize = 100_000;

/// The cache for one kind of item: reviews or interrupts.
#[derive(Debug, Default)]
pub(crate) struct RejudgeCache(Mutex<RejudgeCacheState>);

#[derive(Debug, Default)]
struct RejudgeCacheState {
    kept: HashMap<String, ReplacedPolicy>,
    all: Option<ActivePolicies>,
}

impl RejudgeCache {
    /// Returns whether an item was found unchanged under this policy.
    pub(crate) fn stands(&self, id: &str, over: ReplacedPolicy) -> bool {
        self.seen().kept.get(id) == Some(&over)
    }

    pub(crate) fn keep(&self, id: &str, over: ReplacedPolicy) {
        let mut seen = self.seen();
        if seen.kept.len() >= KEPT_MAX {
            seen.kept.clear();
        }
        seen.kept.insert(id.to_owned(), over);
    }

    /// Returns whether all items were judged under exactly these policies.
    pub(crate) fn is_done(&self, judging: &ActivePolicies) -> bool {
        self.seen().all.as_ref() == Some(judging)
    }

    /// Records that all items were judged under these policies. New items rely on the row of their flow, so
    /// they are opened under them too.
    pub(crate) fn done(&self, judging: ActivePolicies) {
        self.seen().all = Some(judging);
    }

    fn seen(&self) -> MutexGuard<'_, RejudgeCacheState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
