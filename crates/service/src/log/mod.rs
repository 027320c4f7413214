//! The audit log: assigns positions to events, serves pages of them, exports them and counts them.

pub mod browse;
pub mod clock_check;
pub mod export;
pub mod follow;
pub mod insight;
pub mod key_events;
pub mod log_end_cache;
pub(crate) mod machine_view;
mod newest_entry;
pub mod sequencer;
pub(crate) mod withheld_members;

use std::sync::Arc;

use crate::identity::Identity;
use crate::platform::core::Core;
use crate::policies::Policies;
use crate::threads::Threads;
use log_end_cache::LogEndCache;

/// The audit log: its order, its readers and its figures.
pub struct Log {
    core: Arc<Core>,
    policies: Arc<Policies>,
    identity: Arc<Identity>,
    threads: Arc<Threads>,
    reach: LogEndCache,
}

impl Log {
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
            reach: LogEndCache::default(),
        }
    }
}
