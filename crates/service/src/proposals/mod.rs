//! Proposals: the only way to change the state of a thread.

pub(crate) mod allowed_call;
pub mod branch_hold;
pub(crate) mod context;
pub(crate) mod context_tokens;
pub mod denied_attempts;
pub mod hold;
pub mod join_merge;
pub mod join_request;
pub mod judge_queue;
pub mod outcome;
pub mod propose;
pub(crate) mod proposer;
pub mod reject;
pub mod rejection_list;
pub mod request;
pub mod rollback;
pub(crate) mod steps;
mod stored_request;

use std::sync::Arc;

use crate::identity::Identity;
use crate::platform::core::Core;
use crate::policies::Policies;
use crate::threads::Threads;

/// Judges proposals, and commits, holds or rejects them.
pub struct Proposals {
    core: Arc<Core>,
    policies: Arc<Policies>,
    identity: Arc<Identity>,
    threads: Arc<Threads>,
}

impl Proposals {
    pub(crate) fn new(
        core: &Arc<Core>,
        policies: &Arc<Policies>,
        identity: &Arc<Identity>,
        threads: &Arc<Threads>,
    ) -> Self {
        Self {
            core: Arc::clone(core),
            policies: Arc::clone(policies),
            identity: Arc::clone(identity),
            threads: Arc::clone(threads),
        }
    }
}
