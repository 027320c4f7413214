//! Accounts, sessions, tokens, passkeys, delegations and sign-in.

pub mod accounts;
pub mod actor;
pub mod administration;
pub(crate) mod bootstrap;
mod change_event;
pub mod delegations;
pub mod failure_event_limiter;
pub mod last_seen;
pub mod last_seen_times;
pub mod oidc_sign_in;
pub mod owner_names;
pub mod passkeys;
pub mod password_hash;
pub mod password_reset;
pub mod password_sign_in;
pub mod requester_names;
pub mod revocation;
pub mod self_service;
pub mod session;
pub mod sign_in_config;
pub(crate) mod sign_in_method;

use std::sync::Arc;

use crate::platform::core::Core;
use failure_event_limiter::FailureEventLimiter;
use last_seen_times::LastSeenTimes;
use sign_in_config::SignInMethods;

/// Accounts, tokens, sessions, sign-in and delegations.
pub struct Identity {
    core: Arc<Core>,
    telling: FailureEventLimiter,
    sightings: LastSeenTimes,
    ways: SignInMethods,
}

impl Identity {
    pub(crate) fn new(core: &Arc<Core>, ways: SignInMethods) -> Self {
        Self {
            core: Arc::clone(core),
            telling: FailureEventLimiter::default(),
            sightings: LastSeenTimes::default(),
            ways,
        }
    }
}
