//! Reviews: votes, comments, edits, deadlines, and what a reviewer sees.

pub mod cast_vote;
pub mod comment;
pub mod decision;
pub mod details;
pub mod edit;
pub mod eligible_voters;
pub mod escalate;
pub mod extend;
pub mod rejudge;
pub(crate) mod rejudge_cache;
pub mod reveal;
pub(crate) mod summary;
pub mod vote;
pub mod vote_evidence;
pub(crate) mod voter_roll;
pub mod withdraw;

use std::sync::Arc;

use crate::identity::Identity;
use crate::platform::core::Core;
use crate::policies::Policies;
use crate::proposals::Proposals;
use crate::threads::Threads;
use crate::writes::Writes;
use rejudge_cache::RejudgeCache;

/// Reviews of held proposals: votes, comments, edits and deadlines.
pub struct Reviews {
    core: Arc<Core>,
    policies: Arc<Policies>,
    identity: Arc<Identity>,
    threads: Arc<Threads>,
    proposals: Arc<Proposals>,
    writes: Arc<Writes>,
    holds_looked: RejudgeCache,
}

impl Reviews {
    pub(crate) fn new(
        core: &Arc<Core>,
        policies: &Arc<Policies>,
        identity: &Arc<Identity>,
        threads: &Arc<Threads>,
        proposals: &Arc<Proposals>,
        writes: &Arc<Writes>,
    ) -> Self {
        Self {
            core: Arc::clone(core),
            policies: Arc::clone(policies),
            identity: Arc::clone(identity),
            threads: Arc::clone(threads),
            proposals: Arc::clone(proposals),
            writes: Arc::clone(writes),
            holds_looked: RejudgeCache::default(),
        }
    }
}
