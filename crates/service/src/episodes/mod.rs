//! Episodes: stores the events that agents add, and builds the episode from the events of its thread.

pub mod envelope_error;
pub(crate) mod envelope_refusals;
pub mod envelopes;
pub mod import;
pub mod record;
pub mod refusal_log;

use std::sync::Arc;

use countersign_domain::context::Rotation;

use crate::log::Log;
use crate::platform::core::Core;
use crate::policies::Policies;
use crate::threads::Threads;
use refusal_log::EnvelopeRefusals;

/// Episodes of agents, their files and their signed context.
pub struct Episodes {
    core: Arc<Core>,
    policies: Arc<Policies>,
    threads: Arc<Threads>,
    log: Arc<Log>,
    rotation: Rotation,
    boundary: EnvelopeRefusals,
}

impl Episodes {
    pub(crate) fn new(
        core: &Arc<Core>,
        policies: &Arc<Policies>,
        threads: &Arc<Threads>,
        log: &Arc<Log>,
        rotation: Rotation,
    ) -> Self {
        Self {
            core: Arc::clone(core),
            policies: Arc::clone(policies),
            threads: Arc::clone(threads),
            log: Arc::clone(log),
            rotation,
            boundary: EnvelopeRefusals::default(),
        }
    }
}
