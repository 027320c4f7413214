use std::sync::Arc;
use std::time::Duration;

use countersign_adapters::archives::Archives;
use countersign_adapters::clock::Clock;
use countersign_adapters::keyring::Keyring;
use countersign_adapters::traces::TraceSink;
use countersign_domain::identity::login_throttle::LoginThrottleLimits;
use countersign_domain::json::size::StateLimits;
use countersign_domain::operations::halt::LiftQuorum;
use countersign_store::Store;

use super::in_flight_keys::ANSWERS_KEPT;

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

/// The parts that the core is wired from.
pub(crate) struct CoreParts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) keyring: Arc<Keyring>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: ServiceSettings,
    /// Without a directory, state stays in the database.
    pub(crate) archives: Option<Archives>,
    pub(crate) traces: Arc<TraceSink>,
    pub(crate) response_ttl: Duration,
}

impl CoreParts {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        keyring: Keyring,
        clock: Arc<dyn Clock>,
        settings: ServiceSettings,
    ) -> Self {
        let (keyring, traces, response_ttl) = (Arc::new(keyring), Arc::default(), ANSWERS_KEPT);
        Self { store, keyring, clock, settings, archives: None, traces, response_ttl }
    }
}
