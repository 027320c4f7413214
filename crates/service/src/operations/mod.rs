//! Operations: halts, readiness and gauges.

pub mod gauge_cache;
pub(crate) mod gauges;
pub mod halt;
pub mod halt_request;
pub(crate) mod readiness;
pub mod readiness_cache;

use std::sync::Arc;

use crate::delivery::Deliveries;
use crate::identity::Identity;
use crate::log::Log;
use crate::platform::core::Core;
use crate::policies::Policies;
use gauge_cache::GaugeCache;
use readiness_cache::ReadinessCache;

/// Halts, readiness and gauges.
pub struct Operations {
    core: Arc<Core>,
    policies: Arc<Policies>,
    identity: Arc<Identity>,
    log: Arc<Log>,
    delivery: Arc<Deliveries>,
    last_facts: GaugeCache,
    last_check: ReadinessCache,
}

impl Operations {
    pub(crate) fn new(
        core: &Arc<Core>,
        policies: &Arc<Policies>,
        identity: &Arc<Identity>,
        log: &Arc<Log>,
        delivery: &Arc<Deliveries>,
    ) -> Self {
        Self {
            core: Arc::clone(core),
            policies: Arc::clone(policies),
            identity: Arc::clone(identity),
            log: Arc::clone(log),
            delivery: Arc::clone(delivery),
            last_facts: GaugeCache::default(),
            last_check: ReadinessCache::default(),
        }
    }
}
