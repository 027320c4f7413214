//! What was looked at under the policies that judge by now, so that not everything that is open is read again and again. It
//! only saves work: whoever votes has it judged for themselves.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::domain::policy_changes::change_request::ReplacedPolicy;
use crate::domain::primitives::id::FlowId;

/// Which policy judges each flow, and since when.
pub(in crate::service) type ActivePolicies = BTreeMap<FlowId, ReplacedPolicy>;

/// How many that stand are remembered; the others are looked at more often than needed.
const KEPT_MAX: usize = 100_000;

/// Of one kind of question to people.
#[derive(Debug, Default)]
pub(in crate::service) struct RejudgeCache(Mutex<RejudgeCacheState>);

#[derive(Debug, Default)]
struct RejudgeCacheState {
    kept: HashMap<String, ReplacedPolicy>,
    all: Option<ActivePolicies>,
}

impl RejudgeCache {
    /// Whether this one stands under that policy.
    pub(in crate::service) fn stands(&self, id: &str, over: ReplacedPolicy) -> bool {
        self.seen().kept.get(id) == Some(&over)
    }

    pub(in crate::service) fn keep(&self, id: &str, over: ReplacedPolicy) {
        let mut seen = self.seen();
        if seen.kept.len() >= KEPT_MAX {
            seen.kept.clear();
        }
        seen.kept.insert(id.to_owned(), over);
    }

    /// Whether nothing is left to be looked at until another policy judges a flow.
    pub(in crate::service) fn is_done(&self, judging: &ActivePolicies) -> bool {
        self.seen().all.as_ref() == Some(judging)
    }

    /// Nothing is. What is asked from now on is asked under these policies: it relies on its flow's row.
    pub(in crate::service) fn done(&self, judging: ActivePolicies) {
        self.seen().all = Some(judging);
    }

    fn seen(&self) -> MutexGuard<'_, RejudgeCacheState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
