//! Remembers the result of the last readiness check.

use std::time::Instant;

use countersign_store::outage::Outage;
use tokio::sync::Mutex;

/// The last check, and its outage.
#[derive(Debug, Default)]
pub(crate) struct ReadinessCache(pub(crate) Mutex<Option<(Instant, Option<Outage>)>>);
