//! Threads: creates and reads them.

pub(crate) mod archive_lookup;
pub(crate) mod close;
pub mod commit;
pub mod comparison;
pub mod create;
pub(crate) mod first_version;
pub mod head_cache;
pub mod heads;
pub mod history;
pub mod hold;
pub(crate) mod hold_end;
mod host_context;
pub mod known_values;
pub(crate) mod lease_expiry;
pub mod list;
mod names;
pub(crate) mod provenance;
pub mod redacted_fields;
pub mod redaction;
pub(crate) mod redaction_queue;
pub(crate) mod statement;
pub mod tool_call_view;
pub mod transition_view;
pub mod transitions;
pub mod version;
pub(crate) mod versions;

use std::sync::Arc;

use crate::identity::Identity;
use crate::platform::core::Core;
use crate::policies::Policies;
use head_cache::HeadCache;

/// Threads: their chains, states and transitions, and who may read them.
pub struct Threads {
    core: Arc<Core>,
    policies: Arc<Policies>,
    identity: Arc<Identity>,
    heads: HeadCache,
}

impl Threads {
    pub(crate) fn new(core: &Arc<Core>, policies: &Arc<Policies>, identity: &Arc<Identity>) -> Self {
        Self {
            core: Arc::clone(core),
            policies: Arc::clone(policies),
            identity: Arc::clone(identity),
            heads: HeadCache::default(),
        }
    }
}
