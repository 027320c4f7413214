//! What a deployment decides about the service.

use std::time::Duration;

use crate::domain::identity::login_throttle::LoginThrottleLimits;
use crate::domain::json::size::StateLimits;
use crate::domain::operations::halt::LiftQuorum;

/// What a deployment decides.
#[derive(Clone, Debug)]
pub struct ServiceSettings {
    /// How large a state may be.
    pub limits: StateLimits,
    /// Where people find the gateway.
    pub public_url: String,
    /// How long a person stays signed in.
    pub session_lifetime: Duration,
    /// What it takes where people themselves are concerned.
    pub people: PeopleSettings,
}

/// What it takes where people themselves are concerned.
#[derive(Clone, Debug, Default)]
pub struct PeopleSettings {
    /// How many let go on what was stopped.
    pub lift_needs: LiftQuorum,
    /// How often a sign-in may fail.
    pub sign_ins: LoginThrottleLimits,
}
