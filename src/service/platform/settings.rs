use std::time::Duration;

use countersign_domain::identity::login_throttle::LoginThrottleLimits;
use countersign_domain::json::size::StateLimits;
use countersign_domain::operations::halt::LiftQuorum;

/// The settings that a deployment chooses.
#[derive(Clone, Debug)]
pub struct ServiceSettings {
    pub limits: StateLimits,
    /// The base URL under which people reach the gateway.
    pub public_url: String,
    pub session_lifetime: Duration,
    pub people: PeopleSettings,
}

/// Settings for sign-in and for halts.
#[derive(Clone, Debug, Default)]
pub struct PeopleSettings {
    /// How many people must lift a halt.
    pub lift_needs: LiftQuorum,
    pub sign_ins: LoginThrottleLimits,
}
